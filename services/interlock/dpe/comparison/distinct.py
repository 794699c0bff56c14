"""Distinct items: claims of one answer that state fields, rows or members of different things (SPEC-005 §5.4).

The model takes figures that differ for a contradiction: three prices of three plans, two fields of an object, two rows of a
table. Such claims cannot contradict each other, because each is about another thing. What counts as another thing is narrow:
another label before a colon, another first cell, another bare item, or another modifier of one head noun (*Basic plan*, *Pro plan*).
Pure functions of two texts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from interlock.dpe.text.lexing import NUMBER, WORD, Lexeme
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import cells_of, is_of_structure
from interlock.dpe.values.dates import MONTHS
from interlock.dpe.values.frames import DIRECTIONS, STOP, frame, stem
from interlock.dpe.values.reckoning.equations import equations

_LABEL = pattern(r"(?s)\s*([^:;.!?\s][^:;.!?\n]{0,79})(?::\s|;)\s*(\S.*)")
_CODE = pattern(r"\b\p{Lu}{1,3}[- ]?\d{1,6}[a-z]?\b")
_MOST_LABEL_WORDS = 6
_ITEM_WORDS = 6
_OTHER_CELLS = 2
_LONGEST_MARKER = 2  # more digits before a colon are no number of an item, but name what it is about
_REMEMBERED = 1024
_VERB_LIKE = frozenset(
    stem(word)
    for word in [
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "costs",
        "takes",
        "runs",
        "needs",
        "uses",
        "gives",
        "makes",
        "goes",
        "comes",
        "will",
        "can",
        "must",
    ]
)
_ARTICLES = frozenset({"the", "a", "an", "this", "that", "its", "our", "your", "their", "my"})
_STATES = frozenset(
    {"is", "are", "was", "were", "has", "have", "had", "will", "can", "does", "do", "needs", "costs", "takes"}
)
_SUBJECT_TOKENS = 3
_SHOUTED = 3
_GENERAL = word_set(
    "note notes summary overview update warning tip important remember result results answer conclusion key point points first "
    "second third step reminder example correction in short also yes no"
)
"""Words of labels that name no thing: *Note:*, *Step 2:*."""


def distinct(one: str, other: str) -> bool:
    """Whether two claims state different fields, rows, items or members, so that both can hold."""
    if (
        _rows_apart(one, other)
        or _fields_apart(one, other)
        or _one_list(one, other)
        or _equated(one, other)
        or _dated_apart(one, other)
        or _coded_apart(one, other)
    ):
        return True
    left, right = _parts(one), _parts(other)
    if left is None or right is None:
        return _members(one, other) or _subjects(one, other) or _below_one_lead(one, other) or _terse(one, other)
    if left[0] == right[0]:
        return _items(left[1], right[1]) or _below_one_lead(one, other)  # one lead with two bare items
    if _is_general(left[0]) or _is_general(right[0]):
        return _members(left[1], right[1])
    return bool(_words(left[0]) ^ _words(right[0]))


def _rows_apart(one: str, other: str) -> bool:
    """Whether two claims are rows of one table, with another first cell, or with the same one and two others that differ."""
    left, right = cells_of(one), cells_of(other)
    if left is None or right is None or [head for head, _ in left[1]] != [head for head, _ in right[1]]:
        return False
    return left[0] != right[0] or sum(a != b for a, b in zip(left[1], right[1], strict=True)) >= _OTHER_CELLS


def _fields_apart(one: str, other: str) -> bool:
    """Whether two claims are fields of a structure with other keys, or with the same key below other names: *10:15 court: 2*."""
    if not (is_of_structure(one) and is_of_structure(other)):
        return False
    left, right = one.partition(": ")[0], other.partition(": ")[0]
    if _is_general(left.casefold()) or _is_general(right.casefold()):
        return False
    return bool(_words(left.casefold()) ^ _words(right.casefold()))


def _one_list(one: str, other: str) -> bool:
    """Whether two claims are bare items below one lead, however long: *Side effects, which are rare: nausea*."""
    (lead, item), (other_lead, other_item) = _led(one), _led(other)
    return bool(lead) and lead == other_lead and _items(item, other_item)


def _below_one_lead(one: str, other: str) -> bool:
    """Whether two claims are labelled items below one lead, however long: *the amounts: Flour: 250 g*, *the amounts: Sugar: 300 g*."""
    lead, colon, item = one.partition(": ")
    if not colon or not other.startswith(f"{lead}: ") or _parts(item) is None:
        return False
    return distinct(item, other.removeprefix(f"{lead}: "))


def _terse(one: str, other: str) -> bool:
    """Whether two claims are lines of a list that each have a name in capitals and a figure: *FLOUR 375 g*, *BUTTER 170 g*."""
    shouted = all(text[:_SHOUTED].isupper() and frame(text).values for text in (one, other))
    return shouted and _items(one, other)


def _equated(one: str, other: str) -> bool:
    """Whether each claim writes out an equation that is right: two right ones do not contradict each other."""
    return _states_right_equations(one) and _states_right_equations(other)


@lru_cache(maxsize=_REMEMBERED)
def _states_right_equations(text: str) -> bool:
    found = list(equations(frame(text).reading))
    return bool(found) and all(each.right for each in found)


def _dated_apart(one: str, other: str) -> bool:
    """Whether two claims are lines of a plan, each of which begins with another day: *WED 6 MAY - 2 ml*."""
    days = [frame(text).values[:1] for text in (one, other)]
    if not all(day and day[0].first == 0 and day[0].moment is not None and day[0].moment.day for day in days):
        return False
    return days[0][0].moment != days[1][0].moment


def _coded_apart(one: str, other: str) -> bool:
    """Whether each claim names things by codes, and none of them is in both: *S3 arrives at 08:11*, *X9 arrives at 08:08*."""
    codes = _codes(one), _codes(other)
    return all(codes) and codes[0].isdisjoint(codes[1])


@lru_cache(maxsize=_REMEMBERED)
def _codes(text: str) -> frozenset[str]:
    return frozenset(_CODE.findall(text))


def _led(text: str) -> tuple[str, str]:
    """Return the lead of an item and the item, or two empty strings."""
    lead, colon, item = text.rpartition(": ")
    return (" ".join(lead.casefold().split()), item) if colon and item.strip() else ("", "")


def _subjects(one: str, other: str) -> bool:
    """Whether the subjects of two claims are two members of a kind: *the north gate*, *port 22*."""
    first, second = _subject(one), _subject(other)
    return first is not None and second is not None and first[0] == second[0] and first[1] != second[1]


@lru_cache(maxsize=_REMEMBERED)
def _subject(text: str) -> tuple[str, str] | None:
    """Return the noun of a subject of one noun and one word that tells its member, and that word; else ``None``."""
    tokens = frame(text).tokens
    place = 1 if tokens and tokens[0].low in _ARTICLES else 0
    if len(tokens) < place + _SUBJECT_TOKENS or tokens[place + 2].low not in _STATES:
        return None
    first, second = tokens[place], tokens[place + 1]
    if first.kind != WORD or first.low in STOP:
        return None
    if second.kind == NUMBER or (len(second.text) == 1 and second.capital):
        return stem(first.low), second.low
    return (stem(second.low), first.low) if second.kind == WORD and second.low not in STOP else None


@lru_cache(maxsize=_REMEMBERED)
def _parts(text: str) -> tuple[str, str] | None:
    """Return the label of a field, row or item and what it labels, or ``None``."""
    found = _LABEL.match(text)
    if found is None or len(found.group(1).split()) > _MOST_LABEL_WORDS:
        return None
    return " ".join(found.group(1).casefold().split()), found.group(2)


def _is_general(label: str) -> bool:
    return all(word in _GENERAL or (word.isdigit() and len(word) <= _LONGEST_MARKER) for word in _words(label))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def _items(one: str, other: str) -> bool:
    """Whether two rests are bare items without a verb that share no content word: *80 g feta*, *150 g spinach*."""
    if len(one.split()) > _ITEM_WORDS or len(other.split()) > _ITEM_WORDS or _has_verb(one) or _has_verb(other):
        return False
    left, right = frame(one).bag, frame(other).bag
    return bool(left and right) and not left & right


def _has_verb(text: str) -> bool:
    return any(
        token.kind == WORD and (stem(token.low) in _VERB_LIKE or token.low in DIRECTIONS)
        for token in frame(text).tokens
    )


def _members(one: str, other: str) -> bool:
    """Whether a head noun of both texts has another modifier in each, and figures stand after it in both."""
    heads, others = _modified(one), _modified(other)
    return any(
        head in others and not heads[head] & others[head] and bool(heads[head]) and bool(others[head]) for head in heads
    )


@lru_cache(maxsize=_REMEMBERED)
def _modified(text: str) -> dict[str, frozenset[str]]:
    """Return each head noun before the first figure with the content words right before it, of this text's first sentence."""
    framed = frame(text)
    found: dict[str, frozenset[str]] = {}
    tokens, first = framed.tokens, framed.values[0].first if framed.values else 0
    for index in range(1, first):
        token, before = tokens[index], tokens[index - 1]
        if _is_noun(token) and _modifies(before, opens=index == 1):
            found.setdefault(stem(token.low), frozenset({before.low}))
    last = framed.values[-1].first if framed.values else 0
    for token, after in pairwise(
        tokens[:last]
    ):  # a mark is no mark where it is all that the text states: the risk is Level 3
        if token.kind == WORD and token.low not in STOP and token.low not in MONTHS and _is_mark(token, after):
            found[stem(token.low)] = found.get(stem(token.low), frozenset()) | {after.low}
    return found


def _is_mark(token: Lexeme, after: Lexeme) -> bool:
    """Whether a letter or a figure after a noun tells its member: plan A, Room 12."""
    return (after.capital and len(after.text) == 1) or (after.kind == NUMBER and token.capital)


def _is_noun(token: Lexeme) -> bool:
    return token.kind == WORD and token.low not in STOP and not token.capital and stem(token.low) not in _VERB_LIKE


def _modifies(token: Lexeme, *, opens: bool) -> bool:
    """Whether a word names the member of a kind: a capital or a figure inside a sentence, not its first word alone."""
    if token.low in STOP:
        return False
    return (token.capital and not opens) or token.kind == NUMBER
