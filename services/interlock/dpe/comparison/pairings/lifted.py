"""Lifted conditions: a claim that says that a condition of its source makes no difference (SPEC-005 §5.3).

*You may keep a dog if the neighbours agree* told as *whether or not the neighbours agree*; *unless it rains* told as *even if it rains*.
The words behind the lifting phrase must be those that the source sets as a condition or an exception; a source that lifts something itself, or that only
goes on to say what holds otherwise, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP, stem

_EITHER = pattern(
    r"\b(?:whether or not|whether they|with or without|regardless of|no matter (?:whether|if|how|what|when|who)|irrespective of"
    r"|even without|also without|without needing"
    r"|even (?:to|for|from|by|if|when|where) (?:\p{L}+ ){1,4}?(?:(?:have|has|had) no|(?:have|has) not got)(?: an?)?)\b",
    ignore_case=True,
)
_EARLY = pattern(r"\b(?:even|also|already) before\b", ignore_case=True)
_ONCE = pattern(r"\b(?:only after|once|after|as soon as|not (?:\p{L}+ )?(?:before|until))\b", ignore_case=True)
_ALSO = pattern(r"\b(?:not )?(?:even|also) (?:if|when|in|on|with|for|at)\b", ignore_case=True)
_SETS = pattern(
    r"\b(?:if|only|unless|provided(?: that)?|except(?: for| in| on| if| when| where)?|(?:as|so) long as|on condition|in case|subject to|with the"
    r" (?:written )?(?:consent|approval|permission|agreement) of|until|before|without)\b",
    ignore_case=True,
)
_WHO = pattern(r"\b(?:who|whose|those)\b", ignore_case=True)
"""What tells one sort of people from another: *staff who work nights*."""
_BARS = word_set("without before until")
"""They set a condition only where something is denied: *none may enter without a badge*, but *it works without the internet*."""
_LIFTED = pattern(
    r"\b(?:even|whether|regardless|irrespective|no matter|also|with or without|either way|in any case)\b",
    ignore_case=True,
)
_EXCEPTS = pattern(
    r"\b(?:unless|except(?: for| in| on| if| when| where)?|not if|not when|not in|not on|(?:only )?if|(?:only )?when|in case|while|during|(?:as|so) long as|provided(?: that)?)\b",
    ignore_case=True,
)
_ANSWERS = word_set("yes no whether not sure course")
_ENDS = pattern(r"[,.;:!?]|\bbut\b|\bthough\b")
_ANSWERED = pattern(r"^\s*(?:yes|no)\b", ignore_case=True)
_OR_NOT = pattern(r"\b(\p{L}{4,}) or not\b", ignore_case=True)
_DEMANDS = pattern(
    r"\b(?:only (?:if|when|with|after|in|on|for|where|once)|unless|provided(?: that)?|on condition that|(?:as|so) long as)\b",
    ignore_case=True,
)
_LIFTS = pattern(
    r"\b(?:even (?:if|when|after|with|without|in|on|for|where)|whether or not|with or without|regardless of (?:whether)?|no matter (?:whether|if|when))\b",
    ignore_case=True,
)
_NOT_EVEN = pattern(r"\bnot even (?:if|when|after|with|in|on|at|for|by|as|then)?\b", ignore_case=True)
_FORBIDS = pattern(
    r"\b(?:must not|may not|no|never|do not|don['’]t|not allowed|not permitted|forbidden|prohibited|cannot)\b",
    ignore_case=True,
)
_ALLOWS = pattern(r"\b(?:may|can|allowed|permitted|admitted|accepted|taken|welcome|free to)\b", ignore_case=True)
_DOES_WELL = pattern(r"\b(?:fail|harm|damage|los[et]|hurt|affect|break|need|cost|stop|mind)\p{L}*", ignore_case=True)
"""What is good where it is denied: a lamp that never fails, not even in the rain, may be used then."""
_ONLY_IF = pattern(r"^(?:(?:only )?(?:if|when)|while|during|in case|(?:as|so) long as|provided)\b", ignore_case=True)
_BARRED = pattern(
    r"\b(?:not|never|no|nobody|nothing|cannot|skip(?:s|ped)?|omit(?:s|ted)?|leave out|left out|stop(?:s|ped)?|suspend(?:s|ed)?|cancel(?:s|led)?"
    r"|postpon(?:e|es|ed)|clos(?:e|es|ed)|shut|refus(?:e|es|ed)|void|laps(?:e|es|ed)|withheld|halt(?:s|ed)?|forbidden|prohibited|banned|barred)\b"
    r"|n['’]t\b",
    ignore_case=True,
)
"""What a sentence says does not happen in the case that it names: *skip the dose if you feel sick*."""
_NOT = pattern(r"\b(?:not|no|nobody|nothing|none|without)\b|n['’]t\b", ignore_case=True)
_PARTS = pattern(r";|\b(?:and|but|while|whereas)\b", ignore_case=True)
_SAME_CONDITION = {
    stem(word): stem(first)
    for first, *others in (
        (
            "agree",
            "agreement",
            "agrees",
            "consent",
            "consents",
            "approve",
            "approval",
            "permission",
            "permit",
            "authorisation",
            "authorization",
        ),
        ("respond", "responded", "response", "responder", "responders"),
        ("register", "registration", "registered", "enrolled", "enrolment"),
        ("pay", "payment", "paid"),
        ("member", "members", "membership"),
        ("insure", "insured", "insurance"),
        ("invite", "invited", "invitation"),
        ("order", "ordered", "orders"),
    )
    for word in (first, *others)
}
"""Words of one condition: *with or without your consent* lifts *only if you agree*."""
_LEAST = 0.5
_SURE = 2
_MOST = 8
"""Phrases of one sentence that lift a condition; more are no sentence that anybody reads so."""


def lifted(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the condition that *claim* lifts and that its source sets, or ``None``."""
    for written, stems, sets in _phrases(claim.text):
        around = _ANSWERED.sub("", claim.text.replace(written, " "))
        if has_negator(around):  # *no dogs, even on a lead* lifts nothing of what is allowed
            continue
        rest = _stems(around) - stems
        for source in evidence.passages:
            if _LIFTED.search(source.text) is not None:
                continue
            for condition in _conditions(source.text, sets):
                shared = stems & _stems(condition)
                if sets is _EXCEPTS and _ONLY_IF.match(condition) and not _is_barred(source.text, condition, written):
                    continue
                told = not rest or rest & _stems(source.text) or len(shared) >= _SURE
                if shared and len(shared) >= _LEAST * len(stems) and told:
                    return Misbinding(CONTEXT_STRIPPED, "condition", condition, written, source.text, source.fact_id)
    return _demanded(claim, evidence) or _allowed(claim, evidence)


def _demanded(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what a claim makes a condition and its source says makes no difference: *only if it rains* for *even if it is dry*."""
    if has_negator(claim.text) or _LIFTED.search(claim.text):
        return None
    for match in _DEMANDS.finditer(claim.text):
        told = _until_end(claim.text[match.end() :])
        own, rest = _stems(told), _stems(claim.text.replace(match[0] + told, " "))
        for source in evidence.passages:
            for lifts in _LIFTS.finditer(source.text):
                stated = _until_end(source.text[lifts.end() :])
                case, around = _stems(stated), _stems(source.text[: lifts.start()])
                if not _is_close(own, case) or len(rest & around) < _LEAST * len(rest) or _DEMANDS.search(source.text):
                    continue
                return Misbinding(
                    CONTEXT_STRIPPED, "condition", lifts[0] + stated, match[0] + told, source.text, source.fact_id
                )
    return None


def _is_close(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one & other) and len(one & other) >= _LEAST * min(len(one), len(other))


def _allowed(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the case in which a claim allows what its source forbids even then: *never, not even on Sundays*."""
    if has_negator(claim.text) or _ALLOWS.search(claim.text) is None:
        return None
    own = _stems(claim.text)
    for source in evidence.passages:
        for match in _NOT_EVEN.finditer(source.text):
            before, stated = source.text[: match.start()], _until_end(source.text[match.end() :])
            case, around = _stems(stated), _stems(before)
            if not _FORBIDS.search(before) or _DOES_WELL.search(before) or not case:
                continue
            if len(case & own) >= _LEAST * len(case) and own & around - case:
                return Misbinding(
                    CONTEXT_STRIPPED, "condition", match[0] + stated, claim.text, source.text, source.fact_id
                )
    return None


def _phrases(text: str) -> Iterator[tuple[str, frozenset[str], Any]]:
    """Yield each phrase that lifts a condition, the stems of what it lifts, and what sets that in a source.

    *Whether or not it rains* is at odds with *if it rains*. *Even if it rains* is not: it is at odds with *unless it rains* alone.
    """
    for match in _OR_NOT.finditer(text):
        yield match[0], _stems(match[1]), _SETS
    for lifts, sets in ((_EITHER, _SETS), (_ALSO, _EXCEPTS), (_EITHER, _WHO), (_EARLY, _ONCE)):
        for match in islice(lifts.finditer(text), _MOST):
            told = _until_end(text[match.end() :])
            if stems := _stems(told):
                yield match[0] + told, stems, sets


def _conditions(text: str, sets: Any) -> Iterator[str]:
    """Yield what a sentence sets as a condition or an exception, each with the word that sets it."""
    for match in sets.finditer(text):
        if match[0].casefold() not in _BARS or has_negator(text[: match.start()]):
            yield match[0] + _until_end(text[match.end() :])


def _is_barred(text: str, condition: str, written: str) -> bool:
    """Whether a sentence says that something does not happen in a case, or happens only where that is not so: *as long as none is there*."""
    if _NOT.search(written) is not None:
        return False
    rest = text.replace(condition, " ")
    return (len(_BARRED.findall(rest)) == 1) is not (_NOT.search(condition) is not None) and _PARTS.search(rest) is None


def _stems(text: str) -> frozenset[str]:
    return frozenset(_SAME_CONDITION.get(each, each) for each in map(stem, content_words(text) - STOP - _ANSWERS))


def _until_end(text: str) -> str:
    found = _ENDS.search(text)
    return text[: found.start()] if found is not None else text
