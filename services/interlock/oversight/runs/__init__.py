"""A run of an experiment as people see it, from sealed traces alone: what each cycle heard, what was proposed, what was decided."""
