"""The client of the decision protocol, without a network."""
