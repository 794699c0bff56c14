"""The traces of kernels: records sealed one after the other, and read back (docs/adr/0031)."""
