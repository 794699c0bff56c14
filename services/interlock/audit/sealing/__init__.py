"""Session chains: appending through the one writer, sealing, verifying, and reading seals, reports and contents.

Imported by every room above it, by ``servicer``, ``wiring`` and the command line. It may import ``requests``, ``store`` and
``export``.
"""
