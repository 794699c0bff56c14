"""Lifted conditions: a claim that says that a condition of its source makes no difference (SPEC-005 §5.3).

*You may keep a dog if the neighbours agree* told as *whether or not the neighbours agree*, *even without their consent*. The words behind
the lifting phrase must be those that the source sets as a condition or an exception; a source that lifts something itself, or that only
goes on to say what holds otherwise, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP, stem

_LIFTS = pattern(
    r"\b(?:whether or not|whether they|even without|even if|even when|even in|even on|even with|even for|even at|with or without|regardless of"
    r"|no matter (?:whether|if|how|what|when|who)|irrespective of|also if|also when|also in|also on|also without|without needing)\b",
    ignore_case=True,
)
_SETS = pattern(
    r"\b(?:if|only|unless|provided(?: that)?|except(?: for| in| on| if| when| where)?|as long as|on condition|in case|subject to|with the"
    r" (?:written )?(?:consent|approval|permission|agreement) of|requires?|required|needs?|must|until|before|without)\b",
    ignore_case=True,
)
_LIFTED = pattern(
    r"\b(?:even|whether|regardless|irrespective|no matter|also|with or without|either way|in any case)\b",
    ignore_case=True,
)
_EXCEPTS = pattern(
    r"\b(?:unless|except(?: for| in| on| if| when| where)?|not if|not when|not in|not on)\b", ignore_case=True
)
_ANSWERS = word_set("yes no whether not sure course")
_ENDS = pattern(r"[,.;:!?]|\bbut\b|\bthough\b")
_LEAST = 0.5


def lifted(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the condition that *claim* lifts and that its source sets, or ``None``."""
    for written, stems in _phrases(claim.text):
        rest = _stems(claim.text.replace(written, " ")) - stems
        for source in evidence.passages:
            if _LIFTED.search(source.text) is not None:
                continue
            for condition in _conditions(source.text, excepted=written.casefold().startswith("also")):
                shared = stems & _stems(condition)
                told = not rest or rest & _stems(source.text)
                if shared and len(shared) >= _LEAST * len(stems) and told:
                    return Misbinding(CONTEXT_STRIPPED, "condition", condition, written, source.text, source.fact_id)
    return None


def _phrases(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each phrase that lifts a condition, with the stems of what it lifts."""
    for match in _LIFTS.finditer(text):
        told = _until_end(text[match.end() :])
        if stems := _stems(told):
            yield match[0] + told, stems


def _conditions(text: str, *, excepted: bool) -> Iterator[str]:
    """Yield what a sentence sets as a condition, or as an exception alone, each with the word that sets it."""
    for match in (_EXCEPTS if excepted else _SETS).finditer(text):
        yield match[0] + _until_end(text[match.end() :])


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text) - STOP - _ANSWERS)


def _until_end(text: str) -> str:
    found = _ENDS.search(text)
    return text[: found.start()] if found is not None else text
