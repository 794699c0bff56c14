"""Secrets that tests plant and then look for in every output (reliability.md A-43)."""

from __future__ import annotations

PROMPT = "canary-prompt my diagnosis is hepatitis"
API_KEY = "sk-canary0123456789abcdefABCDEF"
SESSION_TOKEN = "eyJ2IjozLCJzaWQiOiJjYW5hcnkifQ.Y2FuYXJ5LW1hYy1jYW5hcnktbWFjLWNhbmFyeQ"
MASTER_KEY = "c0ffee" + "a1b2c3d4e5f60718293a4b5c6d7e8f90" * 2
PASSWORD = "canarypassword"

ALL = (PROMPT, "hepatitis", API_KEY, SESSION_TOKEN, SESSION_TOKEN.split(".")[1], MASTER_KEY, PASSWORD)


def found_in(text: str) -> list[str]:
    """Return the planted secrets that *text* holds."""
    return [secret for secret in ALL if secret in text]
