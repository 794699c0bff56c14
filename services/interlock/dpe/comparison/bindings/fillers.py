"""Fillers: what a sentence puts into a slot of a predicate, read from the dependency parse, and how two of them compare.

Two fillers are the same, surely apart, or unsure. A pronoun is always unsure: nothing is known about what it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property
from typing import Any

from interlock.dpe.text.parse.memo import of_token
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import DIRECTIONS, STOP
from interlock.dpe.values.frames import stem as stem_of

_PARTITIVES = word_set(
    "all most some many several few half none each any both one majority minority part share number group lot percent "
    "% third quarter rest remainder series pair plenty lot lots bit piece kind type"
)
QUANTIFIERS = word_set("all every each most many some several few half no none any both")
_CORE = frozenset({"compound", "amod", "nmod", "poss", "nummod", "npadvmod"})
_INNER = frozenset({"of", "for", "to", "against", "in", "on", "from", "at", "with", "between"})
_PERIODS = word_set(
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday spring summer autumn winter today yesterday tomorrow week month year day decade "
    "century quarter morning afternoon evening night hour minute second weekend noon midnight"
)
_YEAR = 4
_STANDING_FOR = frozenset({"DT", "WDT", "WP", "EX"})
_TITLES = word_set("mr mrs ms dr prof sir")
_POINTING = word_set("this these those such")
_ERAS = word_set("bc ad ce bce am pm a.m p.m")
_SIGNS = frozenset("%$€£¥")
_AMOUNTS = frozenset({"increase", "high", "more", "large"})
_WORDY = 2
_MOSTLY = 0.6


class FillerKind(Enum):
    """What sort of thing a filler is. Only fillers of one kind can take each other's place."""

    NAME = "name"
    NOUN = "noun"
    TIME = "time"
    VALUE = "value"
    CLAUSE = "clause"
    UNKNOWN = "unknown"


class Likeness(Enum):
    """How two fillers compare."""

    SAME = "same"
    APART = "apart"
    UNSURE = "unsure"


_KINDS = {
    "NOUN": FillerKind.NOUN, "PROPN": FillerKind.NOUN, "ADJ": FillerKind.NOUN, "X": FillerKind.NOUN, "VERB": FillerKind.CLAUSE, "AUX": FillerKind.CLAUSE,
}  # fmt: skip


@dataclass(frozen=True)
class Filler:
    """A filler: its text, the key of its head, its own distinguishing keys, and those of the phrases that it governs.

    ``deep`` are the keys of all that it governs, clauses too, and ``proper`` those of names among them. ``borrowed``: it fills the
    slot as the antecedent of a participle or a relative clause, which a parser often finds wrong.
    """

    text: str
    kind: FillerKind
    head: str
    words: frozenset[str]
    inner: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    quantifier: str = ""
    amount: str = ""
    indefinite: bool = False
    deep: frozenset[str] = frozenset()
    proper: frozenset[str] = frozenset()
    borrowed: bool = False

    @cached_property
    def all(self) -> frozenset[str]:
        """Every key that tells this filler from others."""
        return self.words | self.inner

    @cached_property
    def joined(self) -> str:
        """The letters without gaps: *cross fire* and *crossfire*."""
        return "".join(c for c in self.text.casefold().removeprefix("the ").removeprefix("a ") if c.isalnum())

    @cached_property
    def direction_of(self) -> frozenset[str] | None:
        """What a direction is of: the *profit* of *lower profit*, *decline in profit* and *drop of profit*."""
        directed = {word for word in self.all if word in DIRECTIONS and DIRECTIONS[word][0] in _AMOUNTS}
        rest = self.all - directed
        return rest if directed and rest else None


@cache
def key(word: str) -> str:
    """Return the key by which two words are the same: *repairs* and *repair*, but not *rise* and *fall*."""
    low = word.casefold().removesuffix("'s").removesuffix("’s").strip(".,;:\"'()[]")
    return low if low in DIRECTIONS or len(low) < 4 else stem_of(low)


def key_of(token: Any) -> str:
    """Return the key of a token. A name keeps its ending."""
    word = str(token.text if token.pos_ == "PROPN" or not token.lemma_ else token.lemma_)
    return key(word)


def fillers(token: Any) -> tuple[Filler, ...]:
    """Return the filler that a noun heads and those coordinated with it."""
    return tuple(_one(each) for each in members(token))


def named(token: Any) -> tuple[Filler, ...]:
    """Return the filler that a noun heads; the name that stands beside a noun for it: *the Irish group Corrib Dairies*."""
    beside = [c for c in token.children if c.dep_ == "appos" and c.pos_ == "PROPN" and not _is_bare_label(c)]
    listed = any(c.dep_ == "conj" for c in token.children)
    return fillers(beside[0])[:1] if token.pos_ == "NOUN" and len(beside) == 1 and not listed else fillers(token)


def members(token: Any) -> Iterator[Any]:
    """Yield a token and the tokens coordinated with it. A coordination with a verb is a misparse."""
    yield token
    for child in token.children:
        if child.dep_ == "conj" and child.pos_ in {"NOUN", "PROPN", "NUM", "X", "ADJ"}:
            yield from members(child)


def clause(token: Any, without: frozenset[int] = frozenset()) -> Filler:
    """Return the filler that a verb heads: its content words, in no order."""
    inside = [t for t in token.subtree if t.i not in without]
    words = frozenset(key_of(t) for t in inside if _is_content(t))
    text = _written(inside)
    return Filler(text, FillerKind.CLAUSE, key_of(token), words)


@of_token
def _one(token: Any) -> Filler:
    head, quantifier = _counted(token)
    quantifier = _tempered(quantifier or _quantifier(head), head)
    core = [head, *(c for c in _core(head) if c.lower_ not in QUANTIFIERS)]
    inner = [t for c in head.children if c.dep_ == "prep" and c.lower_ in _INNER for t in _phrase(c)]
    inner += [t for c in head.children if c.dep_ == "poss" and c.pos_ != "PRON" for t in _phrase(c)]
    labels = frozenset(key_of(t) for t in core if _is_label(t, head))
    kind = _kind(head, core, labels)
    amount = next((c.lower_ for c in head.children if c.dep_ == "nummod" and c.i < head.i), "")
    words = [t for t in core if (_is_content(t) or key_of(t) in labels) and t.dep_ != "poss" and not _counts(t, head)]
    if kind is FillerKind.VALUE:
        words = [t for t in (*core, *_below(head)) if any(c.isalnum() for c in t.text) or t.text in _SIGNS]
    if kind is FillerKind.NAME and any(t.pos_ == "PROPN" for t in words):
        words = [t for t in words if t.pos_ == "PROPN" or t.text[:1].isupper() or key_of(t) in labels]
    return Filler(
        text=_written([t for t in head.subtree if not _is_outside(t, head)]),
        kind=kind,
        head=key_of(head),
        words=frozenset(map(key_of, words)) | labels,
        inner=frozenset(key_of(t) for t in inner if _is_content(t)),
        labels=labels,
        quantifier=quantifier,
        amount=amount,
        deep=frozenset(key_of(t) for t in _governed(head) if _is_content(t)),
        proper=frozenset(key_of(t) for t in _governed(head) if t.pos_ == "PROPN"),
        indefinite=head.tag_ in {"NNS", "NNPS"} or any(c.lower_ in {"a", "an", "another"} for c in head.children),
    )


def _quantifier(head: Any) -> str:
    dependent = (c for c in head.children if c.dep_ in {"det", "amod", "predet", "nummod"})
    return next((c.lower_ for c in dependent if c.lower_ in QUANTIFIERS), "")


def _tempered(quantifier: str, head: Any) -> str:
    """Return what is left of a quantifier that is denied or rounded: *not all* are some, *almost all* are most."""
    if quantifier not in {"all", "every", "each"}:
        return "" if quantifier in {"no", "none"} else quantifier  # a negation of the predicate
    before = {t.lower_ for t in head.doc[max(head.sent.start, head.left_edge.i - 1) : head.i]}
    return (
        "some"
        if "not" in before
        else "most"
        if before & {"nearly", "almost", "virtually", "practically"}
        else quantifier
    )


def _counted(token: Any) -> tuple[Any, str]:
    """Return the noun that a partitive counts, with the partitive: *most of the patients*."""
    if token.lower_ in _PARTITIVES:
        for child in token.children:
            if child.dep_ == "prep" and child.lower_ == "of":
                for inner in child.children:
                    if inner.dep_ == "pobj":
                        return inner, token.lower_
    return token, ""


def _core(head: Any) -> Iterator[Any]:
    for child in head.children:
        if child.dep_ in _CORE or (child.dep_ == "appos" and _is_bare_label(child)):
            yield child
            yield from _core(child)


def _below(head: Any) -> Iterator[Any]:
    return (c for c in head.children if c.dep_ in {"nummod", "quantmod", "nmod", "compound"})


def _is_label(token: Any, head: Any) -> bool:
    """Whether a token tells one of a series from another: *port 22*, *service B*, *vitamin K*."""
    if token is head:
        return _is_bare_label(token) and any(c.dep_ == "compound" and c.is_alpha for c in token.children)
    return bool(
        (token.dep_ in {"nummod", "appos"} and token.i > head.i) or (token.dep_ == "compound" and token.like_num)
    )


def _is_bare_label(token: Any) -> bool:
    text = token.text.rstrip(".")
    return (0 < len(text) <= 2 and text.isalnum() and not text.islower()) or text.isdigit()


def _counts(token: Any, head: Any) -> bool:
    """Whether a number counts the head, and is no part of its name: *two clusters*, but not *two-node clusters*."""
    joined = token.i + 1 < len(token.doc) and token.nbor(1).text == "-"
    return token.dep_ == "nummod" and token.i < head.i and token is not head and not joined


def _kind(head: Any, core: list[Any], labels: frozenset[str]) -> FillerKind:
    low = head.lower_.strip(".")
    if head.tag_ in _STANDING_FOR or head.pos_ == "PRON" or any(c.lower_ in _POINTING for c in head.children):
        return FillerKind.UNKNOWN
    if low in _ERAS or low in _PERIODS or (len(low) == _YEAR and low.isdigit()):
        return FillerKind.TIME
    if head.like_num or head.pos_ in {"NUM", "SYM"} or low in {"%", "percent"}:
        return FillerKind.VALUE
    if labels or (head.pos_ == "PROPN" and _is_name(head, core)):
        return FillerKind.NAME
    return _KINDS.get(head.pos_, FillerKind.UNKNOWN)


def _is_name(head: Any, core: list[Any]) -> bool:
    """Whether a proper noun names somebody: not a defined term (*the Landlord*), nor a word that is written small."""
    defined = len(core) == 1 and any(c.lower_ == "the" for c in head.children)
    titled = any(t.lower_.strip(".") in _TITLES for t in core)
    return titled or (not defined and any(t.text[:1].isupper() for t in core))


def _is_content(token: Any) -> bool:
    low = token.lower_.strip(".")
    return (
        not token.is_punct
        and not token.is_space
        and token.pos_ not in {"DET", "PRON", "ADP", "CCONJ", "SCONJ", "AUX", "PART", "SYM"}
        and (low not in STOP or token.pos_ == "PROPN")
        and any(c.isalnum() for c in low)
    )


def _phrase(token: Any) -> Iterator[Any]:
    """Yield the tokens of a phrase without its clauses."""
    yield token
    for child in token.children:
        if child.dep_ not in {"relcl", "acl", "advcl", "appos"}:
            yield from _phrase(child)


def _governed(token: Any) -> Iterator[Any]:
    """Yield a token and all that it governs but other members of its list and appositions."""
    yield token
    for child in token.children:
        if child.dep_ not in {"conj", "appos"}:
            yield from _governed(child)


def _is_outside(token: Any, head: Any) -> bool:
    """Whether a token of a noun's subtree belongs to a clause, an apposition or another member of its list."""
    while token is not head and token.i != head.i:
        if token.dep_ in {"relcl", "acl", "advcl", "conj", "cc", "appos", "punct"} and not _is_bare_label(token):
            return True
        token = token.head
    return False


def _written(tokens: list[Any]) -> str:
    return " ".join(t.text for t in tokens if not t.is_space).replace(" 's", "'s").replace(" ,", ",").strip(" .,;:")


def same(one: Filler, other: Filler) -> bool:
    """Whether two fillers surely are the same thing: neither has a word of its own that the other contradicts."""
    if FillerKind.UNKNOWN in {one.kind, other.kind}:
        return False
    if FillerKind.CLAUSE in {one.kind, other.kind}:
        return _overlap(one, other) >= _MOSTLY
    if one.kind in {FillerKind.VALUE, FillerKind.TIME}:
        return one.kind is other.kind and (one.all <= other.all or other.all <= one.all) and bool(one.all & other.all)
    if any(one.all) and one.joined == other.joined:
        return True
    shared = one.words & other.words
    if not shared or (one.kind is FillerKind.NOUN and other.kind is FillerKind.NOUN and one.head != other.head):
        return one.direction_of is not None and one.direction_of == other.direction_of
    return one.all <= other.all or other.all <= one.all


def shared_keys(filler: Filler) -> frozenset[str]:
    """Return the keys of which any filler that is ``same`` as this one has at least one."""
    return filler.all | {"=" + filler.joined}


def _overlap(one: Filler, other: Filler) -> float:
    least = min(len(one.all), len(other.all))
    return len(one.all & other.all) / least if least >= _WORDY else 0.0


def own_words(one: Filler, other: Filler) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that each of two fillers has and the other lacks."""
    return one.all - other.all, other.all - one.all


def bare(filler: Filler) -> Filler:
    """Return a filler without the phrases that it governs."""
    return replace(filler, inner=frozenset())
