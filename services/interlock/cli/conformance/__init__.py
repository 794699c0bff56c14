"""`interlock conformance`: what the specification fixes, and its test vectors run against the domain and a mesh.

No other command imports it.
"""
