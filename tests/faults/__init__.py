"""The fault suite: real parts, broken on purpose, and one verifier at the end of every run (reliability.md §3, §4)."""
