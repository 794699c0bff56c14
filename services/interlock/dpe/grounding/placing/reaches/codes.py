"""Figures that are part of a code, which no calculation makes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value

_CODE_BEFORE = re.compile(r"(?:^|[^A-Za-z])([A-Z]{2,3})[ -]\Z")
_LONGEST_CODE = 6


def is_of_code(values: Sequence[Value], text: str) -> bool:
    """Whether a figure is that of a code, *flight KX 713*, which no calculation makes."""
    behind = [_CODE_BEFORE.search(text[max(0, value.start - _LONGEST_CODE) : value.start]) for value in values]
    return bool(behind) and all(
        found is not None and not read(f"{found[1]} {value.text}").values[0].unit
        for found, value in zip(behind, values, strict=True)
    )
