"""Claims that are judged apart from the sources: what none is about, and what is in another language."""
