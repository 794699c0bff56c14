"""The life of a session: token, grant, opening, the settlement of a window, and rebuilding from the chain.

Its rules and the Lua scripts of the session store are the same rules. No other room of the domain imports it.
"""
