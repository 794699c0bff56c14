"""Amounts on lines of lists, which an earlier list may give otherwise (SPEC-005 §8.2).

A recipe, the same for more guests and a shopping list each give *milk* an amount, and so does a conversion (*half a pound is 227 g*).
Such a line names no occasion, so that the lines of two lists deny each other only where nothing accounts for the new figure: neither a
source nor a calculation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim
from interlock.dpe.grounding.placing.near import converts
from interlock.dpe.grounding.placing.within_reach import Across
from interlock.dpe.text.lexing import WORD
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.frames import taken_by_values
from interlock.dpe.values.quantities import NUMBER, QUANTITY, Value

_MOST_WORDS = 5
_ON_AMOUNTS = frozenset({"nli", "numbers"})
_TELLING = word_set(
    "is are was were be been being has have had do does did can could will would shall should may might must not no never cost costs take"
    " takes took last lasts weigh weighs contain contains make makes give gives need needs earn earns pay pays rose fell grew"
)
_FIRM = word_set(
    "limit max maximum min minimum dose dosage rate fee rent price age total deadline score speed capacity"
)


def without_other_lists(
    across: Sequence[Sequence[Across]],
    readings: Sequence[ChoiceReading],
    left: Mapping[str, tuple[str, ...]],
) -> list[list[Across]]:
    """Return the contradictions with earlier answers without those of amounts in other lists. *left*: figures without a basis."""
    if not any(across):
        return [list(each) for each in across]
    claims = {claim.claim_id: claim for reading in readings for claim in reading.checked}
    return [[one for one in found if not _of_another_list(one, claims.get(one.claim_id), left)] for found in across]


def _of_another_list(found: Contradiction, claim: Claim | None, left: Mapping[str, tuple[str, ...]]) -> bool:
    if claim is None or left.get(claim.claim_id) or found.method not in _ON_AMOUNTS:
        return False
    reading = read(claim.text)
    return (_is_amount_of_list(reading) and _is_amount(read(found.other_text))) or (
        found.method == "numbers" and _is_conversion(reading)
    )


def _is_amount_of_list(reading: ValuesRead) -> bool:
    """Whether a text is a label and an amount, and tells nothing of it: *MILK - 1 litre*."""
    words = list(_words(reading))
    return (
        _is_amount(reading)
        and 0 < len(words) <= _MOST_WORDS
        and not _TELLING.intersection(words) | _FIRM.intersection(words)
    )


def _is_amount(reading: ValuesRead) -> bool:
    values = _stated(reading)
    return bool(values) and all(value.kind in {QUANTITY, NUMBER} and value.moment is None for value in values)


def _is_conversion(reading: ValuesRead) -> bool:
    """Whether a text only says one amount in two units."""
    return any(converts(one, other) or converts(other, one) for one, other in combinations(_stated(reading), 2))


def _stated(reading: ValuesRead) -> list[Value]:
    return [value for value in reading.values if not value.vague]


def _words(reading: ValuesRead) -> Iterator[str]:
    taken = taken_by_values(reading)
    return (token.low for place, token in enumerate(reading.tokens) if token.kind == WORD and not taken[place])
