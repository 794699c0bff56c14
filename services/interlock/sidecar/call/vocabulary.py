"""What the words of a line say about the parts of a prompt, in the languages of ``words.toml`` (ATT-5)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SOURCES, ASKS, POINTS, ABOVE, WORKS, ORDERS, ENDS = "sources", "asks", "points", "above", "works", "orders", "ends"
"""The meanings of a word; see ``words.toml``."""

_SPACED = re.compile(r"[a-zà-ɏͰ-ϿЀ-ӿḀ-ỿ'’-]+\Z")
"""Scripts that part their words by spaces and have no signs that Python takes for no letters."""
_RUN_TOGETHER = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SHORTEST_STEM = 3
_COPULAS = frozenset(
    ["is", "are", "was", "ist", "sind", "war", "est", "sont", "es", "son", "è", "sono", "é", "são", "jest", "są"]
)


@dataclass(frozen=True)
class Word:
    """A word of a line, and what it may mean."""

    text: str
    means: frozenset[str]


@dataclass(frozen=True)
class _Vocabulary:
    exact: dict[str, frozenset[str]]
    stems: dict[str, frozenset[str]]
    inside: re.Pattern[str]
    """Words of scripts without spaces, and words of several: they are found wherever they stand."""


def words(text: str) -> list[Word]:
    """Return the words of *text*, in order; a name in a script without spaces is one, and what stands between such names another."""
    return list(_words(text.casefold().replace("’", "'")))


def meanings(text: str) -> frozenset[str]:
    """Return all that the words of *text* may mean."""
    return frozenset[str]().union(*(word.means for word in words(text)))


def without_copula(found: list[Word]) -> list[Word]:
    """Return words without a verb at their end that only leads to what follows: *Context is*."""
    return found[:-1] if len(found) > 1 and found[-1].text in _COPULAS else found


def _words(text: str) -> Iterator[Word]:
    known, at = _vocabulary(), 0
    for match in known.inside.finditer(text):
        yield from _tokens(text[at : match.start()])
        yield Word(match[0], known.exact[match[0]])
        at = match.end()
    yield from _tokens(text[at:])


def _tokens(text: str) -> Iterator[Word]:
    for match in _TOKEN.finditer(text):
        yield from _meant(match[0])


def _meant(token: str) -> Iterator[Word]:
    """Yield a token with its meaning; a compound with hyphens is known by its last part, as *Lehrkonzept-Quellen* is."""
    means = _means(token)
    if not means and "-" in token:
        means = _means(token.rpartition("-")[2])
    yield Word(token, means)


def _means(token: str) -> frozenset[str]:
    known = _vocabulary()
    found = known.exact.get(token)
    if found is not None:
        return found
    stems = (known.stems.get(token[:length]) for length in range(len(token), _SHORTEST_STEM - 1, -1))
    return next((means for means in stems if means is not None), frozenset())


@cache
def _vocabulary() -> _Vocabulary:
    """Return the words of all languages together: which one a prompt is in is not asked."""
    exact: dict[str, set[str]] = {}
    stems: dict[str, set[str]] = {}
    told = tomllib.loads(files("interlock.sidecar.call").joinpath("words.toml").read_text(encoding="utf-8"))
    for language in told.values():
        for meaning, listed in language.items():
            for word in str(listed).casefold().split():
                into = stems if word.endswith("*") else exact
                into.setdefault(word.rstrip("*").replace("_", " "), set()).add(meaning)
    found_inside = sorted((word for word in exact if not _SPACED.match(word)), key=len, reverse=True)
    return _Vocabulary(
        {word: frozenset(means) for word, means in exact.items()},
        {word: frozenset(means) for word, means in stems.items()},
        re.compile("|".join(map(_as_pattern, found_inside))),
    )


def _as_pattern(word: str) -> str:
    """Return the pattern of a word: scripts that run words together have them anywhere."""
    return re.escape(word) if _RUN_TOGETHER.match(word) else rf"(?<!\w){re.escape(word)}(?!\w)"
