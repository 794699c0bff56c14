"""The signal bus of experiments: a port, its twin in memory, Valkey's streams, and what is done with them."""
