"""`interlock check`: probes of every part, each with a hint.

No other command imports it; it may import theirs.
"""
