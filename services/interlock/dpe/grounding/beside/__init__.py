"""Claims that are judged apart from the sources: what none is about, what is in another language, and what only an earlier answer says."""
