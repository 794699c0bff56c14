"""Held responses: ``held`` serves reviewers and clients, ``rule`` decides inside the log's transaction.

Imported by ``servicer``. It may import ``sealing``, ``requests``, ``store`` and ``export``, not the rooms at its level: erasure,
merkle, streams, tree.
"""
