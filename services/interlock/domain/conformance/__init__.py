"""What the specification requires of a deployment and of what it carries, and which of it is met (SPEC-014)."""
