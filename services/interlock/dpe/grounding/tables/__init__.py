"""Tables and records as sources: their fields, by the names of their columns and keys."""
