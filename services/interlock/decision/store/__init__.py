"""Where the states of experiments are kept: a port, its twin in memory, and Valkey."""
