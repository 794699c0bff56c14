"""Sessions of an agent tree: the auditor's walk, the verdict on chains and trees, and the record that rebuilds a tree.

Imported by ``servicer`` and the command line. It may import ``sealing``, ``requests``, ``store`` and ``export``, not the rooms
at its level: erasure, holds, merkle, streams.
"""
