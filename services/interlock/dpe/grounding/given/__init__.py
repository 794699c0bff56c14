"""What a call gave to rest on, and what its answer makes because that was asked for."""
