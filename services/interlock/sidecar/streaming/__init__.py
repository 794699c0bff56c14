"""Answers that are released in parts while the provider still writes: units, the provider's stream, parts (docs/adr/0030)."""
