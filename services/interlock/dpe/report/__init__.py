"""The report: what was found, as the message that leaves the engine."""
