"""Cases under a rule: values that a claim supposes, and that the source's bound decides on."""
