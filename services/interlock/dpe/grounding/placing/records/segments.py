"""Segments: the stretches of a sentence that each say one thing of some rows of a grid (SPEC-005 §5.3).

*A and B have a shelter, but C does not* are two segments, the second with a denial and without words of its own. A stretch behind
*except* says the reverse of what it is excepted from. Pure functions of texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.grounding.placing.records.words import RecordWord, tokens
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.numerals import UNITS

_SPLITTING = word_set("but while whereas although though yet however")
_MARKS = frozenset({";", "—", "–", "("})
_FINITE = word_set(
    "is are was were has have had does do did can may must cannot isn't aren't wasn't weren't hasn't haven't doesn't don't shows"
    " needs need takes take costs gets get goes comes ends begins starts stays remains offers allows includes requires lacks come include offer"
)
_EXCEPTING = (
    ("except", "for"), ("except",), ("excepting",), ("excluding",), ("apart", "from"), ("aside", "from"), ("other", "than"),
    ("all", "but"), ("but",), ("unlike",), ("with", "the", "exception", "of"), ("the", "exception", "is"), ("the", "exceptions", "are"),
    ("not", "counting"), ("the", "only", "exception", "is"), ("the", "one", "exception", "is"), ("save", "for"),
)  # fmt: skip
_HEDGED = word_set(
    "if unless whether when whenever once until might could should would will shall going planned previously formerly earlier"
    " before after than rather instead either or some most many several few perhaps maybe probably supposed expected used compared versus vs upgrade upgrading switching moving"
)
_ORDERING = word_set("to set enable disable switch turn change allow add make check ask see choose use let put")
_INCLUSIVE = word_set("only also too another besides apart aside other")
_OF_TIME = word_set("would will until before after could")
_ANSWERS = word_set("yes no")
_LEAD_WORDS = 2
_WHOLE = word_set("all every each everything everyone everybody none")
_NEAR = 3
_RELATIVES = word_set("which who whose where")
_PARTICIPLES = word_set("led run held built made taught owned known sold given kept driven")
_DETERMINERS = word_set("the a an of no all its their our your my his her these those")
_LINKS = word_set("by in at from with for to as on")


@dataclass(frozen=True)
class RecordSegment:
    """A stretch of a sentence. ``excepts``: it says the reverse of the one before it. ``splits``: a contrast opens it."""

    tokens: tuple[RecordWord, ...]
    excepts: bool = False
    but: tuple[RecordWord, ...] = ()
    """What it excepts."""

    @property
    def hedged(self) -> bool:
        """Whether it says that something may be, was, or will be so."""
        return any(token.low in _HEDGED for token in self.tokens)

    @property
    def conditional(self) -> bool:
        """Whether it says what holds in a case, at another time, or of several things one does not know which."""
        opens = next((token.low for token in self.tokens if token.is_word), "")
        return opens in _ORDERING or any(token.low in _HEDGED - _OF_TIME for token in self.tokens)

    @property
    def words(self) -> list[str]:
        """Its words in lower case, marks left out."""
        return [token.low for token in self.tokens if token.is_word]


def segments(text: str) -> list[RecordSegment]:
    """Return the segments of a sentence, in order. A *yes* or *no* that answers is left out."""
    found = list(tokens(text))
    if len(found) > _LEAD_WORDS and found[0].low in _ANSWERS and found[1].low in {",", ".", ";", ":", "—", "–", "-"}:
        found = found[2:]
    cut: list[RecordSegment] = []
    for part in _parts(_without_asides(found)):
        cut += _excepted(part)
    return [each for each in cut if any(token.is_word for token in each.tokens)]


def _without_asides(found: Sequence[RecordWord]) -> list[RecordWord]:
    """Return a sentence without what stands between two commas and says something else of what is before it: *, led by Ann,*."""
    left: list[RecordWord] = []
    place = 0
    while place < len(found):
        token, after = found[place], [each.low for each in found[place + 1 : place + 3]]
        end = next((n for n in range(place + 1, len(found)) if found[n].low == ","), 0)
        if token.low == "," and end and _opens_aside(after):
            place = end + (found[end + 1].low == "and")  # A, led by Ann, and B
            left.append(found[end] if place == end else found[place])
        else:
            left.append(token)
        place += 1
    return left


def _opens_aside(words: Sequence[str]) -> bool:
    if not words:
        return False
    participle = words[0] in _PARTICIPLES or (words[0].endswith("ed") and words[0] not in _FINITE)
    return words[0] in _RELATIVES or (participle and words[-1] in _LINKS)


def _parts(found: Sequence[RecordWord]) -> Iterator[tuple[RecordWord, ...]]:
    """Yield the clauses: cut at semicolons and contrasts, and at a comma or *and* where both sides have a verb."""
    start = 0
    for place, token in enumerate(found):
        if (
            token.low in _MARKS
            or (token.low in _SPLITTING and not _excepts(found, place))
            or (token.low in {"and", ","} and _parts_clauses(found, start, place))
        ):
            yield tuple(found[start:place])
            start = place + 1
    yield tuple(found[start:])


def _excepts(found: Sequence[RecordWord], place: int) -> bool:
    """Whether *but* takes something from all: *all plans but one*."""
    before = [token.low for token in found[max(0, place - _NEAR) : place]]
    return (
        found[place].low == "but"
        and bool(_WHOLE.intersection(before))
        and not _says(found[max(0, place - _NEAR) : place])
    )


def _parts_clauses(found: Sequence[RecordWord], start: int, place: int) -> bool:
    """Whether both sides of a comma or *and* say something, or the second one denies: *with A and B, not with C*."""
    if place + 1 < len(found) and found[place + 1].low == "not" and not _says(_until(found, place + 1)):
        return True
    opens = place + 1 < len(found) and found[place + 1].low not in {"and", *_SPLITTING}
    return opens and _says(found[start:place]) and _says(_until(found, place + 1))


def _until(found: Sequence[RecordWord], start: int) -> Sequence[RecordWord]:
    """Return the tokens up to the next place where a clause may end."""
    end = start
    while (
        end < len(found) and found[end].low not in _MARKS and found[end].low not in _SPLITTING and found[end].low != ","
    ):
        end += 1
    return found[start:end]


def _says(part: Sequence[RecordWord]) -> bool:
    """Whether a stretch has a verb with something before it that could be its subject."""
    verbs = [n for n, token in enumerate(part) if token.low in _FINITE and not (n and part[n - 1].low in _DETERMINERS)]
    return bool(verbs) and any(token.is_word for token in part[: verbs[-1]])


def _excepted(part: tuple[RecordWord, ...]) -> Iterator[RecordSegment]:
    low = [token.low for token in part]
    for place in range(len(low)):
        phrase = next((each for each in _EXCEPTING if tuple(low[place : place + len(each)]) == each), None)
        if phrase is None:
            continue
        rest = part[place + len(phrase) :]
        end = next(
            (n for n, token in enumerate(rest) if (token.low == "," and place == 0) or token.low in _FINITE), len(rest)
        )
        before = (
            *part[:place],
            *(RecordWord(word, word, word, is_word=True) for word in phrase if word == "all"),
            *rest[end:],
        )
        if part[place].low in _INCLUSIVE and _INCLUSIVE.intersection(token.low for token in before):
            yield RecordSegment(before)  # apart from A, only B does: so does A
            return
        if any(token.is_word for token in before):
            yield RecordSegment(before, but=rest[:end])
        yield RecordSegment(rest[:end], excepts=True)
        return
    yield RecordSegment(part)


def count_of(low: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return the counts of so many of so many, *two of the three stops*, *of the five shops four*: count, whole, place behind both."""
    numbers = [_number(word) for word in low]
    found: list[tuple[int, int, int]] = []
    for place, word in enumerate(low):
        if word != "of":
            continue
        whole = next((n for n in range(place + 1, min(place + 6, len(low))) if numbers[n] is not None), None)
        if whole is None:
            continue
        before = numbers[place - 1] if place else None
        if before is None and place and low[place - 1] == "none":
            before = 0
        if before is None and place == 0:  # of the four automations, two are on
            after = next((n for n in range(whole + 1, min(whole + 6, len(low))) if numbers[n] is not None), None)
            if after is not None:
                found.append((numbers[after] or 0, numbers[whole] or 0, after + 1))
            continue
        if before is not None:
            found.append((before, numbers[whole] or 0, whole + 1))
    for place, word in enumerate(low[:-1]):  # all three stops
        after = place + 1 + (low[place + 1] in {"of", "the"})
        after += after < len(low) and low[after] == "the"
        number = numbers[after] if after < len(low) else None
        if word == "all" and number is not None:
            found.append((number, number, after + 1))
    return found


def _number(word: str) -> int | None:
    if word.isdigit():
        return int(word)
    return UNITS.get(word)
