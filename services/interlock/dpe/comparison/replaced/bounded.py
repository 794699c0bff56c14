"""Limits turned round in other words: *for at least four weeks*, where the source has *for up to four weeks* (SPEC-005 §5.3).

``slots.turned_bounds`` needs nearly all words of a claim in its source. Here a few are enough, since every place of the sources that
states the figure has it as the opposite limit, and both limits take the figure itself in. A claim may instead tell what is beyond a
limit, *stays of at least four weeks need a permit*: so its limit has to follow its verb or to open it, and no case may be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.cues import DATE_SHIFTED, NUMBER_CHANGED
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import ORDINAL, Value, comparable, same

_UPPER_BEFORE = (
    r"up to|at (?:the )?most|(?:no|not) (?:more|longer|later|larger|greater|higher|heavier) than|(?:a )?maximum(?: of)?|max\.?"
    r"|as (?:many|much|long) as"
)
_LOWER_BEFORE = r"at (?:the very )?least|(?:no|not) (?:less|fewer|shorter|earlier|sooner|smaller|lower) than|(?:a )?minimum(?: of)?|min\."
_UPPER_AFTER = r"at (?:the )?(?:very )?(?:most|latest)|or (?:less|fewer)|(?:as a |in )?maximum"
_LOWER_AFTER = r"at (?:the )?(?:very )?(?:least|earliest)|or (?:more|longer|later)|(?:as a )?minimum"
_SIDES = (
    ("upper", pattern(rf"\b(?:{_UPPER_BEFORE})(?: (?:an?|the|on|to))?\s*\z", ignore_case=True),
     pattern(rf"\A[\s,]*(?:[\p{{L}}-]+\s+){{0,3}}?(?:{_UPPER_AFTER})\b", ignore_case=True)),
    ("lower", pattern(rf"\b(?:{_LOWER_BEFORE})(?: (?:an?|the|on|to))?\s*\z", ignore_case=True),
     pattern(rf"\A[\s,]*(?:[\p{{L}}-]+\s+){{0,3}}?(?:{_LOWER_AFTER})\b", ignore_case=True)),
)  # fmt: skip
_LIMITS = pattern(rf"\b(?:{_UPPER_BEFORE}|{_LOWER_BEFORE}|{_UPPER_AFTER}|{_LOWER_AFTER})\b", ignore_case=True)
_CLAUSES = pattern(r"[,;:.!?]\s|\s(?:and|but|while|whereas|or)\s")
_CASES = pattern(
    r"\b(?:if|when|where|who|which|whose|that|those|anyone|after|before|unless|until|prior|ahead|advance|notice|otherwise|others?|beyond"
    r"|over|above|older|younger|aged|only|with|without|than|except|first|from|not)\b",
    ignore_case=True,
)
"""Words by which a claim or a source tells a case, or counts back from a time."""
_VERB = pattern(
    r"\b(?:must|can|could|may|might|shall|should|will|would|ought|has|have|had|is|are|was|were|be|needs?|covers?|lasts?|takes?|goes"
    r"|go|runs?|costs?|holds?|carry|carries|seats?)\b",
    ignore_case=True,
)
_MODAL = pattern(r"\b(?:must|can|may|have to|has to|are to|is to|should|shall)\b", ignore_case=True)
_OPENS = pattern(r"\A[\s\"'“]*(?:an?|the)?\s*\z", ignore_case=True)
_SAID = frozenset(
    map(key, ("least", "most", "minimum", "maximum", "early", "earliest", "late", "latest", "long", "more", "less"))
)


@dataclass(frozen=True)
class _Limited:
    """A figure or a time, which limit it is (empty for none), and the clause that it stands in, its words before it apart."""

    value: Value
    side: str
    text: str
    before: str
    clause: str


def bounded(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the limit of *claim* that its sources have the other way round, or ``None``."""
    if _LIMITS.search(claim.text) is None:
        return None
    for mine in _limited(claim.text):
        if not mine.side or not _is_plain(mine) or not _is_told(mine):
            continue
        told = [
            (its, source)
            for source in evidence.passages
            for its in _limited(source.text)
            if comparable(mine.value, its.value) and same(mine.value, its.value)
        ]
        if not told or any(its.side in {"", mine.side} or not _is_plain(its) for its, _ in told):
            continue
        own = claim.content - _SAID - frozenset(map(key, mine.value.text.lower().split()))
        for its, source in told:
            if own & source.content:
                kind = DATE_SHIFTED if mine.value.moment is not None else NUMBER_CHANGED
                return Misbinding(kind, "limit", its.text, mine.text, source.text, source.fact_id, about=claim.content)
    return None


def _is_told(mine: _Limited) -> bool:
    """Whether a claim's limit follows its verb, or opens a clause that says what may or must be, with no other figure."""
    opens = _OPENS.search(mine.before) is not None and _MODAL.search(mine.clause) is not None
    return (opens or _VERB.search(mine.before) is not None) and len(read(mine.clause).values) == 1


def _is_plain(limited: _Limited) -> bool:
    """Whether a clause denies nothing and tells no case."""
    rest = _LIMITS.sub(" ", limited.clause)
    return not has_negator(rest) and _CASES.search(rest) is None


@remembered(bytes_a_character=10, from_length=60)
def _limited(text: str) -> tuple[_Limited, ...]:
    return tuple(_each(text))


def _each(text: str) -> Iterator[_Limited]:
    cuts = [(match.start(), match.end()) for match in _CLAUSES.finditer(text)]
    for value in read(text).values:
        if value.vague or value.label or value.kind == ORDINAL:
            continue
        first = max((end for _, end in cuts if end <= value.start), default=0)
        last = min((start for start, _ in cuts if start >= value.end), default=len(text))
        begins = text.casefold().find(value.text.casefold(), value.start)
        before, after = text[first : max(begins, value.start)], text[value.end : last].rstrip(" .!?")
        side, lead, told = _side(before, value.text, after)
        yield _Limited(value, side, told, lead, text[first:last])


def _side(before: str, written: str, after: str) -> tuple[str, str, str]:
    """Return which limit the words around a figure make it, what stands before it, and the limit as it is written."""
    for side, leading, trailing in _SIDES:
        if (lead := leading.search(before)) is not None:
            return side, before[: lead.start()], f"{lead[0].strip()} {written}"
        if (trail := trailing.search(after)) is not None:
            return side, before, f"{written}{trail[0]}"
    return "", before, written
