"""What a record is: the fields of one object, row or section of a source, each with its key (SPEC-003 §3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlock.dpe.values.keys import Key

MOST_RECORDS = 400


@dataclass(frozen=True)
class Field:
    """A field of a record: its key, and its value as text would state it. ``items`` are the members of a list."""

    key: Key
    value: str
    items: tuple[str, ...] = ()

    @property
    def stated(self) -> str:
        """The field in words."""
        return f"{self.key.noun} {self.value}".strip()


@dataclass(frozen=True)
class Record:
    """The fields of one object or row. ``subject`` has the fields of the objects around it; ``absent`` are the keys without a value,
    ``kind`` the key of the list that it is a member of.
    """

    fields: tuple[Field, ...]
    subject: tuple[Field, ...] = ()
    absent: tuple[Key, ...] = ()
    kind: str = ""

    @property
    def sentence(self) -> str:
        """The record as one sentence."""
        return ", ".join(field.stated for field in (*self.subject, *self.fields)) + "."


@dataclass(frozen=True)
class ReadSource:
    """A source as its records and the text that is evidence beside them: the whole text where it has no record."""

    records: tuple[Record, ...]
    rest: str


class Pairs(list[tuple[str, Any]]):
    """An object with all its pairs, so that a duplicate key hides nothing."""


class UnfitError(Exception):
    """A document that records cannot state."""
