"""Rows that an answer tells: of a table, of objects, of a list, each cell with the name of its row (SPEC-005 §5.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.document import Claim
from interlock.dpe.values.cells import cells_of, label_of
from interlock.dpe.values.extraction import read

_LONGEST_NAME = 4
_LEAST_ROWS = 2
_LONGEST_KEY = 3


@dataclass(frozen=True)
class Cell:
    """A cell with the name of its row and the claim that states it."""

    name: str
    value: str
    claim_id: str


@dataclass(frozen=True)
class Column:
    """The cells under one head, of rows with different names."""

    head: str
    cells: tuple[Cell, ...]


def columns(claims: Sequence[Claim]) -> list[Column]:
    """Return the columns of at least two rows that the *claims* of one answer tell."""
    found: dict[str, list[Cell]] = defaultdict(list)
    for head, cell in (*_of_tables(claims), *_of_fields(claims), *_of_items(claims)):
        found[head].append(cell)
    return [
        Column(head, tuple(cells))
        for head, cells in found.items()
        if len(cells) >= _LEAST_ROWS and len({cell.name.casefold() for cell in cells}) == len(cells)
    ]


def _of_tables(claims: Sequence[Claim]) -> Iterator[tuple[str, Cell]]:
    """Yield the cells of tables, each row named by the first column that has another text in every row."""
    tables: dict[tuple[str, ...], list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for claim in claims:
        row = cells_of(claim.text)
        if row is not None:
            tables[tuple(head for head, _ in row[1])].append((claim.claim_id, (row[0], *(cell for _, cell in row[1]))))
    for heads, rows in tables.items():
        naming = next((n for n in range(len(heads) + 1) if _names(cells[n] for _, cells in rows)), None)
        for claim_id, cells in rows if naming is not None else ():
            for n, cell in enumerate(cells):
                if n != naming:
                    yield ("row " + heads[n - 1] if n else "row"), Cell(cells[naming or 0], cell, claim_id)


def _names(cells: Iterator[str]) -> bool:
    written = [cell.casefold() for cell in cells]
    return len(set(written)) == len(written) and all(any(map(str.isalpha, each)) for each in written)


def _of_fields(claims: Sequence[Claim]) -> Iterator[tuple[str, Cell]]:
    """Yield the fields of objects: with the name in front of the key, *spring revenue: 4*, or in a heading, *spring:*."""
    heading = ""
    labelled: list[tuple[str, Claim]] = []
    for claim in claims:
        if claim.text.rstrip().endswith(":") and len(claim.text.split()) <= _LONGEST_NAME:
            heading = claim.text.strip().rstrip(":")
            continue
        label = label_of(claim.text) if cells_of(claim.text) is None else None
        if label is None:
            heading = ""
        elif heading:
            yield label, Cell(heading, _value(claim), claim.claim_id)
        else:
            labelled.append((label, claim))
    for label, claim in labelled:
        key = _key(label, [other for other, _ in labelled if other != label])
        if key:
            yield key, Cell(label.removesuffix(key).strip(), _value(claim), claim.claim_id)
        yield f"fields of {_sort(_value(claim))}", Cell(label, _value(claim), claim.claim_id)


def _value(claim: Claim) -> str:
    return claim.text.partition(":")[2].strip()


def _sort(value: str) -> str:
    """Return of which sort a field is, so that only what could be exchanged is compared."""
    found = read(value).values
    return next((str(each.kind) for each in found), "words")


def _key(label: str, others: Sequence[str]) -> str:
    """Return the longest end that a label shares with another one and that leaves both a name, or an empty text."""
    own = label.split()
    for size in range(min(_LONGEST_KEY, len(own) - 1), 0, -1):
        end = own[-size:]
        if any(len(other.split()) > size and other.split()[-size:] == end for other in others):
            return " ".join(end)
    return ""


def _of_items(claims: Sequence[Claim]) -> Iterator[tuple[str, Cell]]:
    """Yield the parts of list items that begin with a name: *Alma: 14:20, met by Petra*."""
    for claim in claims:
        name, _, rest = claim.text.partition(": ")
        if not rest or len(name.split()) > _LONGEST_NAME or cells_of(claim.text) is not None:
            continue
        parts = rest.rstrip(".").split(", ")
        for n, part in enumerate(parts):
            yield f"part {n} of {len(parts)}", Cell(name, part, claim.claim_id)
