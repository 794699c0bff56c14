"""Records: the rows and objects that a source states, each as one sentence with its subject (SPEC-003 §3).

A JSON object, a section of a settings file, a row of a table and a line of CSV say the same as prose does. ``{"year": 2023,
"revenue_musd": 412}`` becomes ``year 2023, revenue $412 million``: the key gives the noun and the unit, the other fields give the
subject. Fields of one object thus stand in one unit of evidence, and those of another object in another.
"""

from __future__ import annotations

import json

from interlock.dpe.grounding.tables import markup, objects, rows, settings
from interlock.dpe.grounding.tables.record import Pairs, ReadSource, Record

__all__ = ["ReadSource", "Record", "read"]


def read(content: str) -> ReadSource:
    """Return the records of a source. What is neither an object, a setting nor a table is left as it is."""
    if content.lstrip()[:1] in {"{", "["} and (found := _of_json(content)):
        return ReadSource(found, "")
    if markup.has_table(content):
        return markup.of_tables(content)
    if "|" in content and (in_text := rows.of_tables(content)).records:
        return in_text
    if found := rows.of_csv(content):
        return ReadSource(found, "")
    return settings.of_lines(content)


def _of_json(content: str) -> tuple[Record, ...]:
    try:
        document = json.loads(content, object_pairs_hook=Pairs, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return ()
    return objects.of_tree(document)
