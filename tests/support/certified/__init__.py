"""Agents that the compliance kit must tell apart: one good, and one for each rule that is broken."""
