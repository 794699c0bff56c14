"""Keyed digests: what the index of bindings holds in place of names and texts (requirements.md, ATT-3)."""

from __future__ import annotations

import hmac

DIGEST_BYTES = 16
SEPARATOR = "\x1f"
"""Stands between the parts of what is digested. No name and no canonical text holds it."""


class Digests:
    """Makes the digests of one caller. Two callers that send the same have different ones, so that neither finds the other's."""

    def __init__(self, key: bytes, scope: str) -> None:
        self._key = hmac.digest(key, scope.encode(), "sha256")

    def of(self, *parts: str) -> str:
        """Return the digest of *parts*, 32 hex digits. None of them may hold ``SEPARATOR``."""
        data = SEPARATOR.join(parts).encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, data, "sha256")[:DIGEST_BYTES].hex()
