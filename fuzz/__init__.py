"""Fuzz targets: what reads bytes of strangers, with what must hold for every input. ``python -m fuzz run all``."""
