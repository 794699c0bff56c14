"""References of an answer to parts of its sources."""
