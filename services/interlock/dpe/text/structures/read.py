"""Which structure a text is, if any (SPEC-005 §3)."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.text.structures import literals, settings, tabular
from interlock.dpe.text.structures.parts import StructurePart

_READERS = (literals.read, tabular.inserted, settings.assigned, tabular.csv, settings.nested)


def structure(chars: str) -> Sequence[StructurePart] | None:
    """Return the parts of a text that is one structure from end to end, or ``None`` for another text."""
    for reader in _READERS:
        found = reader(chars)
        if found:
            return found
    return None
