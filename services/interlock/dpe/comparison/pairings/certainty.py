"""Certainty and quantity: a claim that is sure, or says it of all, where its source supposes, or says it of some (SPEC-005 §5.3)."""

from __future__ import annotations

import re

from interlock.dpe.comparison.bindings.evidence import Evidence, about
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern

_SURE = re.compile(
    r"\b(definitely|certainly|undoubtedly|unquestionably|indisputably|conclusively|inevitably|guaranteed?|guarantees"
    r"|prove[sdn]?|(?:has|have|had) (?:established|confirmed|proved|proven|shown conclusively)|(?:beyond|without|no) (?:any )?doubt"
    r"|for certain|for sure|is certain|are certain|is sure to|are sure to|bound to|(?:is|are) final|every single|without fail"
    r"|always|invariably)\b",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b((?-i:may)|might|could|possibly|probably|perhaps|likely|unlikely|suspect(?:s|ed)?|suggest(?:s|ed|ing)?|expect(?:s|ed)?|appears?|seems?"
    r"|preliminary|provisional|believes?|believed|thinks?|assumes?|planned|estimated?|presumably|can|hopes?|aims?|intends?"
    r"|sometimes|often|usually|normally|generally|typically|occasionally|mostly|rarely|at times)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(not|n't|never|no|nobody|nothing|neither|cannot|without)\b|n't\b", re.IGNORECASE)
_ALL = re.compile(
    r"\b(all|every|each|everyone|everybody|every one|nearly all|almost all|virtually all|without exception|entirely|exclusively)\b",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"\b(hardly any|almost none|none|nobody|no one|hardly any of|barely any|scarcely any)\b", re.IGNORECASE
)
_PART = re.compile(
    r"\b((?<!at )most|some|many|several|few|half|a minority|a majority|the majority|part|a third|two thirds|a quarter|fewer than half"
    r"|more than half|less than half|certain|the rest|\d[\d,.]* of (?:which|whom|them|these|those))\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"^only (?:the |a |an |our |its )?(\w+)", re.IGNORECASE)
_EVERY = re.compile(r"\b(?:all|every|each|everyone|everybody|any)\b(?: of)?", re.IGNORECASE)
_CLAUSES = re.compile(r"[,;:]\s|\s(?:but|while|whereas)\s")
_MOST = re.compile(
    r"\b((?<!at )most|all|every|each|many|a majority|the majority|more than half|two thirds)\b", re.IGNORECASE
)
_APART = pattern(
    r"\b(?:apart from|aside from|except|excluding|other than|besides|but for|save for)\b", ignore_case=True
)
"""Words before those of whom a claim does not say its *none*."""
_NEAR = 25  # letters


def overstated(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the word by which *claim* is surer, or says more, than the only sentence of the sources on it; or ``None``."""
    for stronger, weaker, slot in (
        (_SURE, _UNSURE, "certainty"),
        (_ALL, _PART, "quantifier"),
        (_NONE, _MOST, "quantifier"),
    ):
        own = stronger.search(claim.text)
        if own is None or weaker.search(claim.text) or (stronger is not _NONE and _is_denied(claim.text, own)):
            continue
        followed = None if stronger is _NONE and _APART.search(claim.text) else about(claim, evidence)
        if followed is None or stronger.search(followed.text):
            continue
        stated = weaker.search(followed.text)
        if stated is not None and not (stronger is _SURE and _DENIED.search(followed.text)):
            return Misbinding(CONTEXT_STRIPPED, slot, stated[0], own[0], followed.text, followed.fact_id)
    return _widened(claim, evidence)


def _widened(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the *all* of a claim where its only source has *only*, of others than those: *only the suites have a kitchen*."""
    for clause in _CLAUSES.split(claim.text):
        every = _EVERY.search(clause)
        said = words_of("x " + clause[every.end() :]) - {"x"} if every else frozenset()
        if every is None or not said or has_negator(clause):
            continue
        for source in evidence.passages:
            only = _ONLY.search(source.text)
            if only is None or has_negator(source.text) or _CLAUSES.search(source.text.rstrip(".")):
                continue
            few, rest = words_of("x " + only[1]) - {"x"}, words_of("x " + source.text[only.end() :]) - {"x"}
            if rest and rest <= said and len(said - rest) <= 1 and few and not few & said:
                return Misbinding(CONTEXT_STRIPPED, "quantifier", only[0], every[0], source.text, source.fact_id)
    return None


def _is_denied(text: str, found: re.Match[str]) -> bool:
    """Whether a denial stands near a word: *it is not certain*, but not *he found no fault, and it is certain*."""
    return bool(_DENIED.search(text[max(0, found.start() - _NEAR) : found.end() + _NEAR]))
