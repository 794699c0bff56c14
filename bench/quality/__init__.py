"""How good the engine is: every labelled set that may be measured, against three baselines on the same rows."""
