"""Standing for the keys of the chain where there are none."""

from __future__ import annotations


def KEYLESS(version: int) -> bytes | None:  # noqa: N802 - a constant of the type ``KeyOf``
    """Stand for no key at all: an auditor's. HMACs are not checked, and everything else is."""
    del version
    return None
