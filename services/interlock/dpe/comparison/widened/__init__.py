"""Conditions widened, narrowed or waived between a claim and its source, in other words."""
