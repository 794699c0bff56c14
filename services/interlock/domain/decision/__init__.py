"""The decision protocol: agents observe and propose, one engine decides (SEED-5; docs/decision.md)."""
