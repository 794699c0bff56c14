"""Cells: claims that are a field of an object or a row of a table, read by key and header (SPEC-005 §3).

``layout`` turns an answer's JSON into lines of ``key: value`` and its tables into rows of ``label; header: cell``. Here such a
claim is put as prose would put it, so that ``revenue musd: 412`` meets a source's revenue of $412 million.
"""

from __future__ import annotations

from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.keys import read_key

_FIELD = pattern(r"\s*([\p{L}\d][\p{L}\d _()$€£%/-]{0,60}?)\s*:\s+([^;:]{1,80})\s*")
_CELL = pattern(r"\s*([^;:]{1,60}?)\s*:\s+([^;]{1,80}?)\s*")
MOST_LABEL_WORDS = 6
_MOST_VALUE_WORDS = 4


def label_of(text: str) -> str | None:
    """Return the label of a claim that is one field, or ``None``."""
    found = _FIELD.fullmatch(text)
    return found[1].casefold() if found and len(found[1].split()) <= MOST_LABEL_WORDS else None


def cells_of(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Return the label of a row and its cells with their headers, or ``None`` for a claim that is no row."""
    label, *rest = text.split(";")
    found = [_CELL.fullmatch(part) for part in rest]
    if not found or ":" in label or not label.strip() or any(each is None for each in found):
        return None
    return label.strip(), tuple((each[1], each[2]) for each in found if each is not None)


def is_of_structure(text: str) -> bool:
    """Whether a claim is a row, or a field with a value of few words, which is no sentence."""
    if cells_of(text) is not None:
        return True
    label, colon, value = text.partition(": ")
    return bool(colon) and len(label.split()) <= MOST_LABEL_WORDS and 0 < len(value.split()) <= _MOST_VALUE_WORDS


def restated(text: str) -> str:
    """Return a field or a row in words, with the unit of its key or label. Other text is returned as it is."""
    row = cells_of(text)
    if row is not None:
        label = read_key(row[0])
        if label.before or label.after:
            return "; ".join([label.noun, *(f"{head}: {label.written(cell)}" for head, cell in row[1])])
        return "; ".join([row[0], *(f"{head}: {read_key(head).written(cell)}" for head, cell in row[1])])
    found = _FIELD.fullmatch(text)
    if found is None or len(found[1].split()) > MOST_LABEL_WORDS:
        return text
    key = read_key(found[1])
    return f"{key.noun}: {key.written(found[2].strip())}"
