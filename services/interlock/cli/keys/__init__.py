"""`interlock keys`: the file of master keys, and certificates of a development mesh.

`cli.check` imports it.
"""
