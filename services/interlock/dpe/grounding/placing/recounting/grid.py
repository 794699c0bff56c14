"""Grids: the rows of an answer or of the sources, with the words and the figures of each cell (SPEC-005 §5.2).

An object, a section, a row of a table, a line of a log and a sentence are all rows here: words that say what the row is about, and
figures under the words of their key.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.grounding.placing.near import values_of
from interlock.dpe.grounding.placing.recounting.instants import Instant, instants_of
from interlock.dpe.grounding.tables import records
from interlock.dpe.grounding.tables.record import Field, Record
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import label_of
from interlock.dpe.values.frames import stem
from interlock.dpe.values.keys import read_key
from interlock.dpe.values.quantities import ORDINAL, Value

MOST_ROWS = 200
_MOST_CHARACTERS = 32_000
_WORD = re.compile(r"[^\W\d_]+\d[^\W_]{0,20}|[^\W\d_]+|(?<![\d.,:])\d{3,12}(?![.,:]?\d)")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_IGNORED = word_set(
    "a an and are as at be been by for from had has have he in is it its of on one or per she so that the their them then there they this"
    " to was were will with which yes no true false null none"
)
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~).*$", re.MULTILINE)
_HEAD = re.compile(r"^\s*(?:(?:const|let|var|final)\s+)?[A-Za-z_]\w{0,40}(?:\s*:\s*[\w\[\], ]{1,40})?\s*=\s*(?=[\[{])")
_TUPLES = pattern(r"insert\s+into\s+[\w.\"`]{1,60}\s*\(([^()]{1,600})\)\s*values\b", ignore_case=True)
_TUPLE = re.compile(r"\(([^()]{1,600})\)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_SECONDS = re.compile(
    r"(?<![\d.])(?:(\d{1,3})h ?)?(?:(\d{1,3})m(?:in)? ?)?(\d{1,2})s\b|(?<![\d.])(\d{1,3})h ?(\d{1,2})(?:m(?:in)?)?\b"
)
_BYTES = re.compile(r"(?<![\d.])(\d{1,9}(?:\.\d{1,3})?) ?([KMGT])i(?:B|b)?\b")
_KELVIN = re.compile(r"(?<![\d.])(\d{1,6}(?:\.\d{1,3})?) ?K\b")
_OF_BYTES = {"K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3}
BYTES, KELVIN = "bytes (binary)", "kelvin"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as it is written, with its unit, and the place value of its last digit."""

    stated: float
    step: float
    unit: str = ""
    factor: float = 1.0
    text: str = ""

    @property
    def base(self) -> float:
        """The amount in base units."""
        return self.stated * self.factor


@dataclass(frozen=True, slots=True)
class SheetCell:
    """The words of a key and of a value, and the figures and instants of the value."""

    key: frozenset[str]
    text: str
    words: frozenset[str]
    figures: tuple[Figure, ...]
    instants: tuple[Instant, ...]


@dataclass(frozen=True)
class SheetRow:
    """A row. ``about`` are the words of the objects around it; ``table`` is what it is a row of; prose is of no table."""

    table: str
    about: frozenset[str]
    cells: tuple[SheetCell, ...]
    text: str

    @property
    def words(self) -> frozenset[str]:
        """Every word of the row."""
        return self.about.union(*(cell.words | cell.key for cell in self.cells))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as the rows are compared by them: names, stems, and the numbers that name something."""
    low = (word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", text.replace("_", " "))))
    return frozenset(_root(word) for word in low if word not in _IGNORED)


def _root(word: str) -> str:
    """Return the stem of a word. Those of one scale have one stem, but North and South are two rows."""
    found = stem(word)
    return word if found.startswith("±") else found


def grid_of(text: str) -> tuple[SheetRow, ...]:
    """Return the rows of a text: of its blocks of data, and each sentence and line around them."""
    return _grid(text[:_MOST_CHARACTERS])


@remembered(bytes_a_character=60, from_length=LONG)
def _grid(text: str) -> tuple[SheetRow, ...]:
    rows: list[SheetRow] = []
    for place, part in enumerate(_parts(text)):
        found, rest = _read(part)
        rows += [_of_record(record, f"{place}") for record in found]
        rows += _of_lines(rest, f"{place} lines")
        if len(rows) > MOST_ROWS:
            break
    return tuple(rows[:MOST_ROWS])


def _parts(text: str) -> Iterator[str]:
    """Yield what stands between fences, and each run of lines without an empty one where that is read as data."""
    for part in _FENCE.split(text):
        if not part.strip():
            continue
        if _read(part)[0]:
            yield part
        else:
            yield from (each for each in re.split(r"\n\s*\n", part) if each.strip())


def _read(part: str) -> tuple[Sequence[Record], str]:
    written = part.strip()
    if (listed := _of_tuples(written)) is not None:
        written = listed
    head = _HEAD.match(written)
    if head is not None:
        written = written[head.end() :].rstrip("; \n")
    if head is not None or (written[:1] in {"{", "["} and written[-1:] in {"}", "]", ";"}):
        written = _as_json(written)
    found = records.read(written)
    return found.records, (found.rest if found.rest != written else "") if found.records else part


def _as_json(written: str) -> str:
    """Return an object of a program as JSON, where YAML reads it: single quotes, bare keys and last commas."""
    try:
        json.loads(written)
    except (ValueError, RecursionError):
        plain = re.sub(r"(?m)(?://|#)[^\n\"']*$", "", written)
        plain = re.sub(r"(?<=[{,\s])([A-Za-z_]\w{0,40})(?=\s*:)", r'"\1"', plain.replace("'", '"'))
        plain = re.sub(r":\s*(?:None|NULL|undefined)\b", ": null", re.sub(r",(?=\s*[}\]])", "", plain))
        return re.sub(r":\s*(True|False)\b", lambda found: f": {found[1].lower()}", plain)
    return written


def _of_tuples(written: str) -> str | None:
    """Return the rows of an SQL statement as CSV."""
    found = _TUPLES.search(written)
    if found is None:
        return None
    tuples = _TUPLE.findall(written[found.end() :])
    lines = (next(csv.reader([each], quotechar="'", skipinitialspace=True), []) for each in tuples)
    return "\n".join([found[1].replace(" ", ""), *(",".join(f'"{cell.strip()}"' for cell in line) for line in lines)])


def _of_record(record: Record, table: str) -> SheetRow:
    about = frozenset[str]().union(*(words_of(field.stated) for field in record.subject))
    kind = f"{record.kind} {sorted(field.key.noun for field in record.subject)}"
    return SheetRow(f"{table} {kind}", about, tuple(_cell(field) for field in record.fields), record.sentence)


def _cell(field: Field) -> SheetCell:
    return SheetCell(
        words_of(field.key.noun), field.value, words_of(field.value), figures_of(field.value), instants_of(field.value)
    )


def _of_lines(text: str, table: str) -> Iterator[SheetRow]:
    for line in _SENTENCE.split(text):
        if line.strip():
            yield SheetRow(table, frozenset(), (_of_line(line),), line)


def _of_line(line: str) -> SheetCell:
    """Return a line as a cell: under its key where it is one field, else under none."""
    label = label_of(line)
    key = read_key(label) if label is not None else None
    value = line if key is None else key.written(line.partition(":")[2].strip())
    return SheetCell(
        words_of(key.noun) if key else frozenset(), value, words_of(value), figures_of(value), instants_of(value)
    )


def figures_of(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text. What is written in minutes and seconds, in binary bytes or in kelvin is one figure."""
    special = list(_special(text))
    taken = [(start, end) for start, end, _ in special]
    plain = (
        _figure(value)
        for value in values_of([text])
        if _counts(value) and not any(value.start < end and start < value.end for start, end in taken)
    )
    return (*(figure for _, _, figure in special), *plain)


def _counts(value: Value) -> bool:
    return (
        value.amount is not None and value.moment is None and not (value.label or value.vague) and value.kind != ORDINAL
    )


def _figure(value: Value) -> Figure:
    factor = value.factor or 1.0
    return Figure((value.amount or 0.0) / factor, value.step / factor, value.unit, factor, value.text)


def _special(text: str) -> Iterator[tuple[int, int, Figure]]:
    for found in _SECONDS.finditer(text):
        hours, minutes, seconds = found[1] or found[4] or 0, found[2] or found[5] or 0, found[3] or 0
        whole = 3600 * int(hours) + 60 * int(minutes) + int(seconds)
        yield found.start(), found.end(), Figure(float(whole), 1.0, "time", 1.0, found[0])
    for found in _BYTES.finditer(text):
        yield found.start(), found.end(), Figure(float(found[1]), 1.0, BYTES, _OF_BYTES[found[2]], found[0])
    for found in _KELVIN.finditer(text):
        yield found.start(), found.end(), Figure(float(found[1]), 0.01, KELVIN, 1.0, found[0])
