"""The four agents of SEED-5 §4, with the statistics of §5: pure functions of the snapshot and the signals."""
