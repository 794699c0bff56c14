"""Values that follow from others."""
