"""What the words of a line say about the parts of a prompt, in the languages of ``words.toml`` (ATT-5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SOURCES, ASKS, POINTS, ABOVE, WORKS, ORDERS = "sources", "asks", "points", "above", "works", "orders"
SHOWS, ENDS = "shows", "ends"
"""The meanings of a word; see ``words.toml``."""
ENGLISH = "en"
"""What every word of the English list means besides."""

_NOTHING = frozenset[str]()
_ORDERED = frozenset([ORDERS])
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_RUN_TOGETHER = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that run words together: a word is found anywhere in them."""
_SIGNS_INSIDE = re.compile(r"[\u0900-\u0dff]")
"""Scripts whose vowels are signs that Python takes for no letters."""
_WITH_SIGNS = re.compile(r"[^\W\d_\u0900-\u0dff]+(?:['’-][^\W\d_]+)*|[\u0900-\u0dff\u200c\u200d]+")
_SHORTEST_STEM, _LONGEST_STEM = 3, 24
_COPULAS = frozenset([
    "is", "are", "was", "ist", "sind", "war", "est", "sont", "es", "son", "è", "sono", "é", "são", "jest", "są",
])  # fmt: skip


@dataclass(frozen=True)
class LabelWord:
    """A word of a line, and what it may mean."""

    text: str
    means: frozenset[str]


@dataclass(frozen=True)
class _Vocabulary:
    exact: dict[str, frozenset[str]]
    """Words and phrases."""
    stems: dict[str, frozenset[str]]
    openings: frozenset[str]
    """First words of phrases."""
    inside: re.Pattern[str]
    """Words of scripts that run words together."""


def words(text: str) -> list[LabelWord]:
    """Return the words of *text*, in order; where a script runs words together, those that are known and what is between them."""
    folded = text.casefold().replace("’", "'")
    if _RUN_TOGETHER.search(folded):
        return list(_run_together(folded))
    return _spaced(folded)


def meanings(text: str) -> frozenset[str]:
    """Return all that the words of *text* may mean."""
    return _NOTHING.union(*(word.means for word in words(text)))


def without_copula(found: list[LabelWord]) -> list[LabelWord]:
    """Return words without a verb at their end that only leads to what follows: *Context is*."""
    return found[:-1] if len(found) > 1 and found[-1].text in _COPULAS else found


def _run_together(folded: str) -> Iterator[LabelWord]:
    known, at = _vocabulary(), 0
    for match in known.inside.finditer(folded):
        yield from _spaced(folded[at : match.start()])
        yield LabelWord(match[0], known.exact[match[0]])
        at = match.end()
    yield from _spaced(folded[at:])


def _spaced(folded: str) -> list[LabelWord]:
    known = _vocabulary()
    pattern = _WITH_SIGNS if _SIGNS_INSIDE.search(folded) else _TOKEN
    tokens = pattern.findall(folded)
    if known.openings.isdisjoint(tokens):
        return [LabelWord(token, _means(token, known)) for token in tokens]
    return list(_phrases(tokens, known))


def _phrases(tokens: Sequence[str], known: _Vocabulary) -> Iterator[LabelWord]:
    at = 0
    while at < len(tokens):
        lengths = (3, 2) if tokens[at] in known.openings else ()
        joined = ((length, " ".join(tokens[at : at + length])) for length in lengths)
        length, phrase = next(((n, each) for n, each in joined if each in known.exact), (1, tokens[at]))
        yield LabelWord(phrase, _means(phrase, known))
        at += length


def _means(token: str, known: _Vocabulary) -> frozenset[str]:
    """Return what a word may mean; a compound with hyphens is known by its last part, as *Lehrkonzept-Quellen* is, and an
    order by its first, as *écris-moi* is.
    """
    found = known.exact.get(token)
    if found is not None:
        return found
    for length in range(min(len(token), _LONGEST_STEM), _SHORTEST_STEM - 1, -1):
        if (found := known.stems.get(token[:length])) is not None:
            return found
    if "-" not in token:
        return _NOTHING
    return _means(token.rpartition("-")[2], known) or _means(token.partition("-")[0], known) & _ORDERED


@cache
def _vocabulary() -> _Vocabulary:
    """Return the words of all languages together: which one a prompt is in is not asked."""
    import tomllib  # read once, and not by a sidecar that stays idle

    exact: dict[str, set[str]] = {}
    stems: dict[str, set[str]] = {}
    told = tomllib.loads(files("interlock.sidecar.call").joinpath("words.toml").read_text(encoding="utf-8"))
    for language, lists in told.items():
        for meaning, listed in lists.items():
            for word in str(listed).casefold().split():
                into = stems if word.endswith("*") else exact
                into.setdefault(word.rstrip("*").replace("_", " "), set()).update([meaning, language])
    inside = sorted(filter(_RUN_TOGETHER.match, exact), key=len, reverse=True)
    return _Vocabulary(
        {word: frozenset(means) for word, means in exact.items()},
        {word: frozenset(means) for word, means in stems.items()},
        frozenset(word.partition(" ")[0] for word in exact if " " in word),
        re.compile("|".join(map(re.escape, inside))),
    )
