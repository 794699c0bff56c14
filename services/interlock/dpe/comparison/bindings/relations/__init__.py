"""Relations that a whole sentence states, whichever word says so: norms, needs, causes, orders, successions."""
