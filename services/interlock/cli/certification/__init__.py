"""The compliance kit of the decision protocol (SEED-5 §14): an agent, in whatever language, against an endpoint of the kit's own."""
