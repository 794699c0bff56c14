"""Pins: the versions that sources give to what they name, ``postgres:16``, ``django==4.2``, ``"node": ">=20"`` (SPEC-005 §5.2).

*PostgreSQL 16* is what ``postgres:16`` says, and *Django 5.3.6* is not what ``django==4.2`` and ``celery==5.3.6`` say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.document import Claim, Distortion, Fact
from interlock.dpe.grounding.placing.words import shared_start
from interlock.dpe.text.wordlists import word_set

_PIN = re.compile(
    r"(?<![\w/.])([A-Za-z][\w.+-]{1,40}?)(?:\"?\s*[:=]\s*[\"'](?:[\^~]|[<>=~!]=?)?\s*v?|\s*(?:==|>=|~=|<=|<|>)\s*v?|:v?|@v?|-v?(?=\d+\.))(\d{1,4}(?:\.\d{1,4}){0,3})(?![\d:])"
)
_NAMED = re.compile(
    r"(?<![\w.])([A-Za-z][\w+-]{1,40}(?:\.js)?),?\s+(?:version\s+|release\s+|v\.?\s*)?v?(\d{1,4}(?:\.\d{1,4}){0,3})(?![\d:]|\.\d)"
)
_EXACT = re.compile(r"==|:v?\d|@")
_MOST_CHARACTERS = 64_000
_SHORTEST_NAME, _SHORTEST_ROOT = 3, 5
_COMPARED = word_set(
    "from than not until before instead upgrade upgraded upgrading older newer earlier previous if unless"
)
_TAILS = word_set("ql sql db js mq")


@dataclass(frozen=True)
class Pin:
    """A name with a version, where it stands, and whether no other version of it satisfies the source."""

    name: str
    version: str
    fact_id: str = ""
    written: str = ""
    exact: bool = False


@dataclass(frozen=True)
class Pinned:
    """What pins say of a claim: its figures that are versions of what it names, and the versions that it gives wrongly."""

    settled: frozenset[str] = frozenset()
    moved: tuple[Distortion, ...] = ()
    rest: bool = False
    """Whether the claim denies what its source leaves out."""

    def with_(self, other: Pinned) -> Pinned:
        """Return what both say."""
        return Pinned(self.settled | other.settled, (*self.moved, *other.moved), self.rest or other.rest)


def pinned(claim: Claim, facts: Sequence[Fact]) -> Pinned:
    """Return which versions of a claim the sources state for what it names, and which they state otherwise."""
    told = _pins(tuple((fact.id, fact.content) for fact in facts))
    if not told:
        return Pinned()
    settled: set[str] = set()
    moved: list[Distortion] = []
    compared = _COMPARED.intersection(claim.text.casefold().split())
    for match in _NAMED.finditer(claim.text):
        name, version = match[1], match[2]
        own = [pin for pin in told if same_name(name, pin.name)]
        if any(agree(version, pin.version) for pin in own):
            settled |= {version, match[0], f"{name} {version}"}
        elif own and not compared and all(pin.exact for pin in own) and any(pin.version == version for pin in told):
            moved.append(Distortion(NUMBER_CHANGED, own[0].written, match[0], own[0].fact_id, slot="version"))
    return Pinned(frozenset(settled), tuple(moved))


def same_name(one: str, other: str) -> bool:
    """Whether a name and an identifier are of one product: *PostgreSQL* and ``postgres``, *Python* and ``requires-python``."""
    first, second = one.casefold().removesuffix(".js"), other.casefold().removesuffix(".js")
    if first == second or first in re.split(r"[-_./]", second)[-1:]:
        return True
    size = shared_start(first, second)
    return size >= _SHORTEST_ROOT and {first[size:], second[size:]} <= {"", *_TAILS}


def agree(one: str, other: str) -> bool:
    """Whether one version is the other, or is it in more detail: 3.12 and 3.12.4."""
    first, second = one.split("."), other.split(".")
    size = min(len(first), len(second))
    return first[:size] == second[:size]


@lru_cache(maxsize=32)
def _pins(facts: tuple[tuple[str, str], ...]) -> tuple[Pin, ...]:
    return tuple(pin for fact_id, content in facts for pin in _in_fact(fact_id, content[:_MOST_CHARACTERS]))


def _in_fact(fact_id: str, content: str) -> Iterator[Pin]:
    """Yield the pins of a source, and the versions that its prose gives to the same names, which no finding may deny."""
    pins = [
        Pin(match[1], match[2], fact_id, match[0], bool(_EXACT.search(match[0])))
        for match in _PIN.finditer(content)
        if len(match[1]) >= _SHORTEST_NAME and not match[1].isdigit()
    ]
    yield from pins
    for match in _NAMED.finditer(content):
        yield Pin(match[1], match[2], fact_id, match[0])
