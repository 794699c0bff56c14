"""Streaming the log to sinks: their configuration, one feed per sink, the posts and their delivery.

Imported by ``servicer``, ``wiring`` and the command line. It may import ``sealing``, ``requests``, ``store`` and ``export``, not
the rooms at its level: erasure, holds, merkle, tree.
"""
