"""The call itself as the steps hand it on: caller, evidence, named results, and the time that is left.

Every room above `trail` may import it.
"""
