"""Limits of a sentence: the conditions under which it holds, the degree to which it does, and what says that it always does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP

_STOPS = frozenset({";", ".", "!", "?", ":", "—", "–"})
_ANYWHERE = word_set(
    "wherever whenever whatever whichever whoever regardless irrespective anywhere anytime unconditionally"
)
_ANYONE = word_set("whoever whatever whichever")
_WHERE = word_set("anywhere anytime")
_NEAR = 6
_EVEN = word_set("if when without after before outside for")
_MEASURED = word_set("long much many old often big large small far high low")
_OF_ANY = word_set("with from for at in on by under")
_EXCEPTING = word_set("unless except excluding excepting barring save")
_NONE = word_set("no nobody none nothing neither")
_UNDONE = word_set("unpaid unsold unread unseen undone unmet unwell")
_SHORT = 4
_DEGREES = {
    **dict.fromkeys(word_set("always invariably constantly everywhere"), 4),
    **dict.fromkeys(
        word_set("usually generally typically normally mostly mainly largely often frequently commonly"), 3
    ),
    **dict.fromkeys(word_set("sometimes occasionally rarely seldom hardly"), 1),
}
_QUANTITIES = {
    "all": 4, "every": 4, "each": 4, "any": 4, "most": 3, "majority": 3, "many": 2, "half": 2, "several": 2,
    "some": 1, "few": 1, "minority": 1, "one": 1,
}  # fmt: skip


class LimitKind(Enum):
    """What a limit does to the sentence that it stands in."""

    IF = "if"
    UNLESS = "unless"
    ONLY = "only"
    ALWAYS = "always"


@dataclass(frozen=True)
class Limit:
    """A limit: its kind, its content words, its text, and the place of the verb that it limits, -1 where it is none."""

    kind: LimitKind
    words: frozenset[str]
    text: str
    at: int = -1


def limits(sentence: Any) -> tuple[Limit, ...]:
    """Return the limits of a parsed sentence."""
    return tuple(_limits(list(sentence)))


def _limits(tokens: Sequence[Any]) -> Iterator[Limit]:
    for n, token in enumerate(tokens):
        low, after = token.lower_, tokens[n + 1 : n + 3]
        following = [t.lower_ for t in after]
        if (
            (low in _ANYWHERE and not _is_subject(token, n) and not _is_of_none(tokens, n))
            or (low == "no" and following[:1] == ["matter"])
            or (low == "even" and following and following[0] in _EVEN)
        ):
            yield _limit(LimitKind.ALWAYS, tokens, n)
        elif (
            low in {"any", "all"}
            and following
            and following[0] in {"time", "times", "case", "cases", "circumstances", "place"}
        ):
            yield Limit(LimitKind.ALWAYS, frozenset(), f"{low} {following[0]}")
        elif (
            (low == "however" and following and following[0] in _MEASURED)
            or (
                low == "any"
                and n
                and tokens[n - 1].dep_ == "prep"
                and tokens[n - 1].lower_ in _OF_ANY
                and not _is_denied(tokens)
            )
            or (
                (low == "whether" and "not" in following)
                or low == "including"
                or (low == "with" and following == ["or", "without"])
            )
        ):
            yield _limit(LimitKind.ALWAYS, tokens, n)
        elif (
            (low in _EXCEPTING and not (low == "save" and following[:1] != ["for"]))
            or (low in {"other", "apart"} and following[:1] in (["than"], ["from"]))
            or (low == "without" and _is_denied(tokens[:n]) and token.dep_ == "prep")
        ):
            yield _limit(LimitKind.UNLESS, tokens, n)
        elif low == "only" and not _counts(tokens, n):
            yield _limit(LimitKind.ONLY, tokens, n)
        elif low in {"if", "provided", "providing", "when"} and _is_condition(tokens, n):
            kind = LimitKind.UNLESS if _denies(tokens, n) else LimitKind.IF
            yield _limit(kind, tokens, n)


def _is_subject(token: Any, n: int) -> bool:
    """Whether *whoever* opens a sentence as its subject, and so tells of whom it is: *whoever arrives late stands*."""
    return n == 0 and token.lower_ in _ANYONE and token.dep_ in SUBJECTS | PASSIVE_SUBJECTS


def _is_of_none(tokens: Sequence[Any], n: int) -> bool:
    """Whether *anywhere* only widens a denial: *hot food is not allowed anywhere*."""
    return tokens[n].lower_ in _WHERE and any(
        t.dep_ == "neg" or t.lower_ in _NONE for t in tokens[max(0, n - _NEAR) : n]
    )


def _is_denied(tokens: Sequence[Any]) -> bool:
    return any(t.dep_ == "neg" or t.lower_ in {"no", "if", "without", "nor"} for t in tokens)


def _is_condition(tokens: Sequence[Any], n: int) -> bool:
    """Whether a word opens a condition, and no question and no limit that was read already: *even if*, *only if*."""
    token = tokens[n]
    before = tokens[n - 1].lower_ if n else ""
    return (
        token.dep_ in {"mark", "prep", "advcl", "advmod"}
        and token.head.dep_ != "ccomp"
        and before not in {"even", "only", "as"} | _EXCEPTING
    )


def _denies(tokens: Sequence[Any], n: int) -> bool:
    near, verb = tokens[n : n + 8], tokens[n].head
    return any(
        (t.dep_ == "neg" and t.head == verb) or (t.lower_ in _NONE and verb in (t.head, t.head.head)) for t in near
    )


def is_undone(word: str) -> bool:
    """Whether a participle says that something was not done: *unanswered*, *unpaid*."""
    plain = word.removeprefix("un")
    return plain != word and (word in _UNDONE or (plain.endswith("ed") and len(plain) > _SHORT))


def _counts(tokens: Sequence[Any], n: int) -> bool:
    """Whether *only* belittles a figure, or opens *not only … but*: *only 12 people came*."""
    following = tokens[n + 1] if n + 1 < len(tokens) else None
    return following is None or following.like_num or (n > 0 and tokens[n - 1].lower_ in {"not", "n't"})


def _limit(kind: LimitKind, tokens: Sequence[Any], n: int) -> Limit:
    """Return the limit that a word opens: up to the next comma or the end, or where it opens the sentence, to its comma."""
    inside = [tokens[n]]
    for token in tokens[n + 1 :]:
        if token.text in _STOPS or (token.text == "," and len(inside) > 1):
            break
        inside.append(token)
    words = frozenset(
        key_of(t) for t in inside[1:] if t.is_alpha and t.lower_ not in STOP and t.pos_ not in {"PRON", "AUX"}
    )
    verb = next((t for t in tokens[n].ancestors if t.pos_ in {"VERB", "AUX"} and t not in inside), None)
    return Limit(kind, words, " ".join(t.text for t in inside), int(verb.i) if verb is not None else -1)


def degree(sentence: Any) -> tuple[int, str]:
    """Return how far a sentence says that something holds, from 1 to 4, with the word; 0 where it says nothing of it."""
    found = [(_DEGREES[t.lower_], t.text) for t in sentence if t.lower_ in _DEGREES and t.dep_ == "advmod"]
    found = [each for each in found if not any(t.dep_ == "neg" for t in sentence)]
    return found[0] if len(found) == 1 else (0, "")


def quantity(word: str) -> int:
    """Return how much of its noun a quantifier takes, from 1 to 4; 0 for what is none."""
    return _QUANTITIES.get(word, 0)
