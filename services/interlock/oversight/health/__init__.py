"""The health of every part: ``look`` asks the probes of `interlock check`, ``words`` says what each part is and what stands without it."""
