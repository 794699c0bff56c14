"""The decision service: experiments whose agents propose and whose engine decides (SEED-5; docs/decision.md)."""
