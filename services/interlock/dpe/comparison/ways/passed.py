"""Who gives and who gets: *the museum bought the vase from the bank* for *the museum sold the vase to the bank* (SPEC-005 §5.3).

*Sell to*, *be lent by*, *buy from*, *borrow from*, *import from* and *go from … to …* all pass something from one to another. They are read from
the words around the verb, since a parser often ties *to* and *from* to the thing that is passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern

_GIVES = (
    r"sells?|sold|selling|lends?|lent|lending|gives?|gave|given|giving|hands?|handed|delivers?|delivered|donat(?:e|es|ed)|transfers?"
    r"|transferred|suppl(?:y|ies|ied)|sends?|sent|ships?|shipped|exports?|exported|awards?|awarded|loans?|loaned|bequeath(?:s|ed)?"
)
_TAKES = (
    r"buys?|bought|buying|purchas(?:e|es|ed)|acquir(?:e|es|ed)|borrow(?:s|ed|ing)?|receiv(?:e|es|ed|ing)|gets?|got|imports?|imported"
    r"|obtain(?:s|ed)?|inherit(?:s|ed)?|hir(?:e|es|ed|ing)|took over"
)
_EITHER = r"leas(?:e|es|ed|ing)|rent(?:s|ed|ing)?|charter(?:s|ed)?"
"""Both who lets and who hires *leases*: the preposition tells which."""
_GOES = r"went|goes|go|gone|going|pass(?:es|ed)?|moved|moves|changed hands"
_GIVING_NOUNS = r"(?:sale|transfer|loan|delivery|export|donation|gift|supply|shipment)"
_TAKING_NOUNS = r"(?:purchase|acquisition|takeover|import)"
_VERBS = pattern(
    rf"\b(?:({_GIVING_NOUNS} of|{_GIVES})|({_TAKING_NOUNS} of|{_TAKES})|({_EITHER})|({_GOES}))\b", ignore_case=True
)
_BE = pattern(r"\b(?:am|is|are|was|were|be|been|being)\s+(?:\p{L}+ly\s+|also\s+|then\s+|later\s+)?\z", ignore_case=True)
_NOUN = r"""[\p{L}\p{N}&][\p{L}\p{N}&’'.-]*"""
_TOWARDS = pattern(rf"\b(to|from|by)\s+((?:{_NOUN}\s+){{0,5}}?{_NOUN})(?:\s+(?:to|from|by|in|on|at|for|when|because|and|or|so|with|without|after|before|during|since|until|while|if|as|that|which|who|is|are|was|were|can|may|must)\b|[\s]*[,.;:!?)]|\s*\z)",
                   ignore_case=True)  # fmt: skip
_PREPOSITIONS = pattern(r"\b(?:to|from|by)\b", ignore_case=True)
_CLAUSES = pattern(r"[;:]\s|[;\n]|\s(?:but|while|whereas|because)\s", ignore_case=True)
_BACK = pattern(
    r"\b(?:back|returns?|returned|each other|one another|swap\w*|swop\w*|exchang\w*|resold|resell\w*|repa\w+|invoic\w*|bill(?:s|ed)?)\b",
    ignore_case=True,
)
_RETURNED = pattern(
    r"\b(?:back|returns?|returned|returning|vice versa|both (?:ways|directions)|each other|one another|swap\w*|swop\w*|exchang\w*|resold"
    r"|resell\w*)\b",
    ignore_case=True,
)
_SUBJECT = pattern(r",\s(?:which|who)\s|[,—–]\s", ignore_case=True)


_MOST = 6
"""Verbs, and prepositions behind a verb: more are no clause that anybody reads so."""


@dataclass(frozen=True)
class _Passed:
    """What passes from whom to whom, as words, and how it is written."""

    givers: frozenset[str]
    takers: frozenset[str]
    thing: frozenset[str]
    text: str


def passed(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* passes the other way than its source, or ``None``."""
    if has_negator(claim.text) or _BACK.search(claim.text) or claim.text.rstrip().endswith("?"):
        return None
    own = _transfers(claim.text)
    told = [(its, source) for source in evidence.passages for its in _transfers(source.text)] if own else []
    for mine in own:
        if any(_are_straight(mine, its) for its, _ in told) or _comes_back(mine, evidence):
            continue
        for its, source in told:
            if _are_crossed(mine, its) and mine.thing & its.thing:
                return Misbinding(
                    ENTITY_SUBSTITUTED,
                    "direction",
                    its.text,
                    mine.text,
                    source.text,
                    source.fact_id,
                    about=claim.content,
                )
    return None


def _comes_back(mine: _Passed, evidence: Evidence) -> bool:
    """Whether a source that speaks of one of the two says that something goes the other way, too: *it returns in the evening*."""
    return any(
        _RETURNED.search(each.text) is not None and bool(words_of(each.text) & (mine.givers | mine.takers))
        for each in evidence.passages
    )


def _are_crossed(mine: _Passed, its: _Passed) -> bool:
    return bool(mine.givers & its.takers and mine.takers & its.givers) and not _are_straight(mine, its)


def _are_straight(mine: _Passed, its: _Passed) -> bool:
    return bool(mine.givers & its.givers and mine.takers & its.takers)


@remembered(bytes_a_character=10, from_length=60)
def _transfers(text: str) -> tuple[_Passed, ...]:
    return tuple(each for clause in _CLAUSES.split(text) for each in _in_clause(clause))


def _in_clause(clause: str) -> Iterator[_Passed]:
    verbs = list(_VERBS.finditer(clause))
    if not 0 < len(verbs) <= _MOST:
        return
    subject = _words(_SUBJECT.split(clause[: verbs[0].start()])[-1])
    for number, verb in enumerate(verbs):
        end = verbs[number + 1].start() if number + 1 < len(verbs) else len(clause)
        after = clause[verb.end() : end]
        around = {"to": frozenset(), "from": frozenset(), "by": frozenset(), **_towards(after)}
        passive = verb[0].lower().endswith(" of") or (
            _BE.search(clause[: verb.start()]) is not None and not verb[0].lower().endswith("ing")
        )
        givers, takers = _sides(verb.groups(), around, subject, passive=passive)
        if givers - takers and takers - givers:
            thing = _words(clause[: verbs[0].start()] if passive or verb[4] else "") | _words(after)
            yield _Passed(givers - takers, takers - givers, thing - givers - takers, clause.strip())


def _sides(
    kinds: tuple[str | None, ...], around: dict[str, frozenset[str]], subject: frozenset[str], *, passive: bool
) -> tuple[frozenset[str], frozenset[str]]:
    """Return who gives and who gets, as the kind and the voice of a verb tell."""
    gives, takes, either, goes = kinds
    if goes:
        return around["from"], around["to"]
    acting = around["by"] if passive else subject
    if gives or (either and around["to"] and not around["from"]):
        return acting or around["from"], around["to"]
    if takes or (either and around["from"]):
        return around["from"], acting
    return frozenset(), frozenset()


def _towards(after: str) -> dict[str, frozenset[str]]:
    """Return the words behind each preposition; of several *to* the last: *the rights to the song to a label*."""
    found: dict[str, frozenset[str]] = {}
    for start in list(_PREPOSITIONS.finditer(after))[-_MOST:]:
        if (match := _TOWARDS.match(after[start.start() :])) is not None and (words := _words(match[2])):
            found[match[1].lower()] = words
    return found


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}
