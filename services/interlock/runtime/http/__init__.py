"""HTTP servers inside our process: the limits of the protocol, and the operators' pages.

The top room of the runtime: services with an HTTP front and the commands that serve may import it.
"""
