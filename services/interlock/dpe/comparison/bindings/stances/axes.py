"""Axes: questions with sides that exclude each other, and the words by which texts take them (``data/stances/``).

*Free of charge*, *waived* and *at no cost* are one side of a question, *for a fee* and *at your own expense* the other. A phrase is a row of
lemmas; ``*`` in it stands for one to four words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from interlock.dpe.text.wordlists import lines, word_set

FILES = ("stances/actions.txt", "stances/states.txt")
GAP = "*"
_MOST_BETWEEN = 4
_CLASSES = {"a": ("ADJ", "VERB"), "v": ("VERB", "AUX"), "n": ("NOUN", "PROPN"), "r": ("ADV", "ADP", "ADJ", "SCONJ")}
_VAGUE = word_set(
    "take put get give bring come go make set turn let hold run keep call look break pick fall stand pass"
)
_SKIPPED = frozenset({"DET", "PRON"})


@dataclass(frozen=True)
class AxisPhrase:
    """A phrase of one side: its lemmas, and the word classes that a single word must have. ``open``: the axis has more than two sides."""

    axis: str
    side: int
    words: tuple[str, ...]
    classes: tuple[str, ...] = ()
    open: bool = False

    @cached_property
    def needed(self) -> frozenset[str]:
        """The words that a text with this phrase has."""
        return frozenset(word for word in self.words if word != GAP)


def _read() -> list[AxisPhrase]:
    found: list[AxisPhrase] = []
    for file in FILES:
        for line in lines(file):
            several = "=" in line.partition("|")[0]
            name, _, rest = line.partition("=" if several else "|")
            for side, phrases in enumerate(rest.split("|")):
                for phrase in filter(None, map(str.strip, phrases.split(";"))):
                    word, _, tag = phrase.partition("/")
                    words = tuple(word.lower().replace("-", " ").split())
                    words = words[1:] if words[0] == "be" and len(words) > 1 else words
                    found.append(AxisPhrase(name.strip(), side, words, _CLASSES.get(tag.strip(), ()), several))
    return found


def _by_rarest() -> Mapping[str, tuple[AxisPhrase, ...]]:
    """Return the phrases by that word of each which the fewest of them have: hundreds begin with *in*."""
    every = _read()
    count = Counter(word for wording in every for word in wording.needed)
    found: dict[str, list[AxisPhrase]] = {}
    for wording in every:
        found.setdefault(min(wording.needed, key=lambda word: (count[word], word)), []).append(wording)
    return {word: tuple(each) for word, each in found.items()}


_BY_RAREST = _by_rarest()


def matches(tokens: list[Any]) -> list[tuple[AxisPhrase, list[Any]]]:
    """Return the phrases that stand in *tokens*, with the tokens of each, and none that is only a part of another of its axis."""
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        for word in {token.lower_, token.lemma_.lower()}:
            places.setdefault(word, []).append(place)
    found = [
        (wording, own)
        for word in places
        for wording in _BY_RAREST.get(word, ())
        if wording.needed <= places.keys()
        for place in places[wording.words[0]]
        if (own := _matched(wording, tokens, place))
    ]
    spans = [(wording.axis, frozenset(token.i for token in own)) for wording, own in found]
    kept = [
        each
        for each, (axis, span) in zip(found, spans, strict=True)
        if not any((axis == other or _says_little(each[0])) and span < longer for other, longer in spans)
    ]
    return sorted(kept, key=lambda each: (each[1][0].i, each[0].axis))


def _says_little(wording: AxisPhrase) -> bool:
    """Whether a phrase is a verb that says something else in every idiom: what *gave way* was not given."""
    return len(wording.words) == 1 and wording.words[0] in _VAGUE


def _matched(wording: AxisPhrase, tokens: list[Any], place: int) -> list[Any]:
    """Return the tokens of a phrase that begins at *place*, or none."""
    if wording.classes and tokens[place].pos_ not in wording.classes:
        return []
    own, at, between = [tokens[place]], place + 1, 0
    for word in wording.words[1:]:
        if word == GAP:
            between = _MOST_BETWEEN
            continue
        while at < len(tokens) and word not in {tokens[at].lower_, tokens[at].lemma_.lower()}:
            if tokens[at].pos_ not in _SKIPPED and tokens[at].text != "-":
                between -= 1
                if between < 0 or tokens[at].text in ",;:":
                    return []
            at += 1
        if at >= len(tokens):
            return []
        own.append(tokens[at])
        at, between = at + 1, 0
    return own
