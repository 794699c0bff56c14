"""What agents may do: budgets, state and invariants that any number of processes share (SEED-2; docs/kernel.md)."""
