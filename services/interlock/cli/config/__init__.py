"""`interlock config`: the settings in force, and where each value came from."""
