"""Kin: words that say the same of a thing when it is only asked whether they are denied: *works* and *runs*."""

from __future__ import annotations

from functools import cache
from typing import Any

from interlock.dpe.comparison.bindings.clauses import sense, sense_of
from interlock.dpe.comparison.bindings.fillers import key, key_of
from interlock.dpe.text.parse.memo import of_token
from interlock.dpe.text.wordlists import lines


@cache
def _kin() -> dict[str, str]:
    """Read the groups: the sense of each word with that of the first of its group."""
    found: dict[str, str] = {}
    for line in lines("predicates.txt"):
        kind, _, words = line.partition("|")
        if kind == "kin":
            first, *_ = senses = [sense_of(word) for word in words.split()]
            for each in senses:
                found.setdefault(each, first)
    return found


@of_token
def meaning(token: Any) -> str:
    """Return what a token says, the same for kin."""
    if token.pos_ == "VERB" and token.lemma_ == "send" and any(c.lower_ == "back" for c in token.children):
        return meaning_of("return")
    said = sense(token)
    if token.pos_ == "ADJ" and said == key_of(token):
        said = _of_participle(token.lemma_.lower()) or said
    return _kin().get(said, said)


@cache
def _of_participle(word: str) -> str:
    """Return what the verb of a participle says that the parser took for an adjective: *refunded*."""
    plain = (word.removesuffix("ed"), word.removesuffix("d")) if word.endswith("ed") else ()
    return next((said for base in plain if (said := sense_of(base)) != key(base)), "")


def meaning_of(word: str) -> str:
    """Return what a word says, the same for kin."""
    said = sense_of(word)
    return _kin().get(said, said)
