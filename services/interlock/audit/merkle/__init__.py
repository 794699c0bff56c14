"""The Merkle log: checkpoints and their key, the anchor they are published to, proofs, bundles and their examination.

Imported by ``servicer``, ``wiring`` and the command line. It may import ``sealing``, ``requests``, ``store`` and ``export``, not
the rooms at its level: erasure, holds, streams, tree.
"""
