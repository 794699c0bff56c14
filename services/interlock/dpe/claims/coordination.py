"""Coordination in a noun phrase: "causes, symptoms and treatments of diabetes" are three items (SPEC-005 §10.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CONJUNCTIONS = frozenset({"and", "&", "plus"})
_VERSUS = frozenset({"vs", "vs.", "versus"})
_WITH = frozenset({"with", "to", "against"})
_STOPS = frozenset({"ADP", "AUX", "SCONJ", "PART"})
_FIXED = frozenset(
    {
        ("research", "development"), ("terms", "conditions"), ("supply", "demand"), ("health", "safety"),
        ("mergers", "acquisitions"), ("trial", "error"), ("profit", "loss"), ("law", "order"), ("question", "answer"),
        ("questions", "answers"), ("bed", "breakfast"), ("black", "white"), ("aims", "objectives"), ("wear", "tear"),
    }
)  # fmt: skip
_COUNTS = frozenset(
    {"number", "amount", "share", "level", "date", "place", "year", "name", "kind", "type", "percentage", "rate"}
)
MAX_ITEMS = 32


@dataclass(frozen=True)
class Coordination:
    """Coordinated items with what they share: a prefix, a common head and a suffix."""

    items: tuple[str, ...]
    named: bool
    prefix: Sequence[Any]
    shared: Sequence[Any]
    suffix: Sequence[Any]
    versus: bool = False

    @property
    def head(self) -> str:
        """The common head of all items, such as "approaches", or an empty string."""
        return written(self.shared)

    def text(self, item: str) -> str:
        """Return one item with everything it shares."""
        shared = " ".join(token.lemma_ if token is self.shared[-1] else token.text for token in self.shared)
        return " ".join(part for part in (written(self.prefix), item, shared, written(self.suffix)) if part)


def coordination(tokens: Sequence[Any], *, comparing: bool) -> Coordination | None:
    """Return the first coordination in *tokens*, or ``None``.

    *comparing* allows "with" and "to" as conjunctions.
    """
    at = next((n for n in range(1, len(tokens) - 1) if _joins(tokens, n, comparing=comparing)), None)
    if at is None:
        return None
    start = max((n + 1 for n in range(at) if tokens[n].pos_ in _STOPS or _is_verb(tokens[n])), default=0)
    end = next((n for n in range(at + 1, len(tokens)) if _ends(tokens, n, at)), len(tokens))
    items = [item for item in _split(tokens[start:end], comparing=comparing) if item]
    if len(items) < 2 or len(items) > MAX_ITEMS:
        return None
    if start and len(items) == 2 and not comparing and _is_whole(tokens, at, tokens[start - 1]):
        whole = (written(_bare(tokens[:at])), written(tokens[at + 2 :]))
        return Coordination(items=whole, named=False, prefix=(), shared=(), suffix=())
    end = _owned(tokens, items[-1], end)
    names = [_named(item) == len(item) for item in items]
    shared: Sequence[Any] = ()
    if all(names[:-1]) and not names[-1] and is_name(items[-1][0]):
        cut = _named(items[-1])
        shared, items[-1] = items[-1][cut:], items[-1][:cut]
        names[-1] = True
    return Coordination(
        items=tuple(written(item) for item in items),
        named=all(names),
        prefix=_bare(tokens[:start]),
        shared=shared,
        suffix=tokens[end:],
        versus=tokens[at].lower_ in _VERSUS,
    )


def is_name(token: Any, *, first: bool = False) -> bool:
    """Whether a word is part of a name, judged by its capitals: the tagger takes many commands for names."""
    if first:
        return len(token.text) > 1 and token.text.isupper()
    return bool(token.text[:1].isupper() or (token.text[:1].isdigit() and token.pos_ == "PROPN"))


def written(tokens: Sequence[Any]) -> str:
    """Return the text of tokens with white space normalised."""
    return " ".join("".join(token.text_with_ws for token in tokens).split()).strip(" ,;:.?!")


def _joins(tokens: Sequence[Any], at: int, *, comparing: bool) -> bool:
    word, left, right = tokens[at].lower_, tokens[at - 1], tokens[at + 1]
    if word in _VERSUS:
        return True
    if comparing and word in _WITH:
        return _is_nominal(left)
    if word not in CONJUNCTIONS or (left.lower_, right.lower_) in _FIXED:
        return False
    again = right.pos_ == "ADP" and any(token.lower_ == right.lower_ for token in tokens[:at])  # "under A and under B"
    return (_is_nominal(left) or left.text == ",") and not _is_verb(right) and (again or right.pos_ not in _STOPS)


def _ends(tokens: Sequence[Any], at: int, joint: int) -> bool:
    """Whether the last item ends before this token: a preposition or a verb starts the shared suffix."""
    token = tokens[at]
    if at == joint + 1:
        return False
    return (
        token.pos_ in _STOPS or _is_verb(token) or (token.is_punct and token.text not in {",", "-", "/", "&", "'", "."})
    )


def _split(tokens: Sequence[Any], *, comparing: bool) -> list[list[Any]]:
    items: list[list[Any]] = [[]]
    for token in tokens:
        if token.lower_ in CONJUNCTIONS | _VERSUS or token.text == "," or (comparing and token.lower_ in _WITH):
            items.append([])
        elif items[-1] or token.pos_ not in {"DET", "ADP"}:
            items[-1].append(token)
    return items


def _is_whole(tokens: Sequence[Any], at: int, before: Any) -> bool:
    """Whether two complete phrases are coordinated: "the climate of Norway and the economy of Sweden"."""
    right = tokens[at + 1 :]
    return right[0].pos_ == "DET" and before.lower_ not in {"between", "among"} and any(t.pos_ == "ADP" for t in right)


def _named(item: Sequence[Any]) -> int:
    """Return the length of the name at the start of an item. A number inside a name belongs to it ("Model 3")."""
    return next((n for n, t in enumerate(item) if not (is_name(t) or (n and t.like_num))), len(item))


def _owned(tokens: Sequence[Any], last: list[Any], end: int) -> int:
    """Extend the last item by an "of ..." phrase that belongs to it ("number of employees") and return its new end."""
    joints = [n for n in range(end, len(tokens)) if tokens[n].pos_ == "ADP"]
    if len(joints) < 2 or not last or last[-1].lemma_.lower() not in _COUNTS or joints[0] != end:
        return end
    last += tokens[end : joints[1]]
    return joints[1]


def _bare(tokens: Sequence[Any]) -> Sequence[Any]:
    return tokens[1:] if tokens and tokens[0].pos_ == "DET" else tokens


def _is_nominal(token: Any) -> bool:
    return token.pos_ in {"NOUN", "PROPN", "ADJ", "NUM", "X"} or token.tag_ == "VBG" or token.text[:1].isupper()


def _is_verb(token: Any) -> bool:
    return token.pos_ == "VERB" and token.tag_ not in {"VBG", "VBN"} and not token.text[:1].isupper()
