"""A run of an experiment as one HTML file: its signals on a time line, proposals, guards and decisions (SEED-5 §10)."""
