"""Markup: the tables of HTML, each row as one record (SPEC-003 §3)."""

from __future__ import annotations

from html.parser import HTMLParser

from interlock.dpe.grounding.tables import rows
from interlock.dpe.grounding.tables.record import MOST_RECORDS, ReadSource

_CELLS = frozenset({"td", "th"})
_BREAKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "caption"})
_MOST_CHARACTERS = 64_000


def has_table(content: str) -> bool:
    """Whether a text has a table in HTML that is short enough to be read."""
    return "<t" in content and len(content) <= _MOST_CHARACTERS and "<table" in content.lower()


def of_tables(content: str) -> ReadSource:
    """Return the rows of the tables, and the text around them. A table that cannot be read leaves all as it is."""
    reader = _Tables()
    reader.feed(content)
    reader.close()
    found = [
        rows.as_record(table[0], cells)
        for table in reader.tables
        for cells in table[1:]
        if len(table[0]) > 1 and 0 < len(cells) <= len(table[0])
    ]
    found = [record for record in found if record.fields]
    if reader.open or not 0 < len(found) <= MOST_RECORDS:
        return ReadSource((), content)
    return ReadSource(tuple(found), "".join(reader.around).strip())


class _Tables(HTMLParser):
    """The cells of each row of each table. A table within a cell, and what spans several, leave the source unread."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[str]]] = []
        self.around: list[str] = []
        self.open = False
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        spans = any(name in {"rowspan", "colspan"} and value != "1" for name, value in attrs)
        if tag == "table":
            self.open = True
            self.tables.append([])
        elif self.open and tag == "tr":
            self._end_cell()
            self.tables[-1].append([])
        elif self.open and tag in _CELLS and self.tables[-1] and not spans:
            self._end_cell()
            self._cell = []
        elif not self.open and tag in _BREAKS:
            self.around.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _CELLS or tag == "tr":
            self._end_cell()
        elif tag == "table":
            self._end_cell()
            self.open = False
        elif not self.open and tag in _BREAKS:
            self.around.append("\n")

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        elif not self.open:
            self.around.append(data)

    def _end_cell(self) -> None:
        if self._cell is not None:
            self.tables[-1][-1].append(" ".join("".join(self._cell).split()))
        self._cell = None
