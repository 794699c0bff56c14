"""`interlock audit`: verify, export, prove, bundle, erase and stream.

No other command imports it.
"""
