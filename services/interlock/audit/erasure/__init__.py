"""Erasing sessions: a data key destroyed on a reviewer's approval, and retention, which erases and truncates by age.

Imported by ``servicer`` and ``wiring``. It may import ``sealing``, ``requests``, ``store`` and ``export``, not
the rooms at its level: holds, merkle, streams, tree.
"""
