"""Events that a sentence tells as done, or only as planned, awaited or asked for (SPEC-005 §5.3).

*The regulator approved the merger* tells one as done; *the merger needs the approval of the regulator*, *a fix is planned* and *the
council discussed a ban* tell theirs as still to come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.comparison.bindings.moods import is_hypothetical, is_negated
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.dates import MONTHS, WEEKDAYS
from interlock.dpe.values.frames import STOP

_PLANS = word_set(
    "plan intend expect aim hope want wish offer promise propose schedule seek consider prepare request ask due set about go"
)
"""Verbs and adjectives whose infinitive is still to come."""
_AWAITS = word_set(
    "plan intend expect propose schedule seek consider prepare request discuss need require await demand promise debate"
)
"""Verbs whose object, or whose subject in the passive, is still to come."""
_COMING = word_set("planned proposed pending upcoming future expected scheduled outstanding requested")
_WILL = word_set("will shall 'll")
_HELPS = word_set("have has had 've was were been")
_PLAIN = word_set("be have do get make take go say")
_TOLD = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "NUM"})
_CASES = word_set("if unless whether when once whenever")
_TIMES = word_set("tomorrow tonight next soon later spring summer autumn winter")
_YEAR = 4
_LONGEST = 60


@dataclass(frozen=True)
class ToldEvent:
    """An event by its verb, whether it is told as done, the senses of the words around it, and how it is written."""

    event: str
    done: bool
    around: frozenset[str]
    text: str


def events(sentence: Any) -> tuple[ToldEvent, ...]:
    """Return the events that a parsed sentence, a spaCy span, tells as done or as still to come. A question tells none."""
    if len(sentence) > _LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(each for token in sentence for each in _of(token))


def _of(token: Any) -> Iterator[ToldEvent]:
    lemma = token.lemma_.lower()
    if token.pos_ == "VERB" and lemma not in _PLAIN:
        if _is_done(token):
            yield _told(token, predicates.canonical(lemma), done=True)
        elif _is_ahead(token):
            yield _told(token, predicates.canonical(lemma), done=False)
    elif token.pos_ == "NOUN" and _is_awaited(token):
        yield _told(token, predicates.verb_of(lemma) or predicates.canonical(lemma), done=False)


def _told(token: Any, event: str, *, done: bool) -> ToldEvent:
    near = [c for c in token.children if c.dep_ in {"aux", "auxpass"}]
    around = frozenset(
        sense(t)
        for t in token.sent
        if t.i != token.i and t.pos_ in _TOLD and t.lower_ not in STOP and t.lemma_.lower() not in _AWAITS
    )
    return ToldEvent(event, done, around, " ".join(t.text for t in sorted((*near, token), key=lambda t: int(t.i))))


def _is_done(verb: Any) -> bool:
    """Whether a main clause tells an event of the past: *approved*, *has been fixed*, but not *is closed* or *would open*."""
    if verb.dep_ not in {"ROOT", "conj"} or is_negated(verb) or is_hypothetical(verb) or _only_tells(verb):
        return False
    helped = [c.lower_ for c in verb.children if c.dep_ in {"aux", "auxpass"}]
    if verb.tag_ == "VBD":
        return not helped
    return verb.tag_ == "VBN" and bool(helped) and all(each in _HELPS for each in helped)


def _only_tells(verb: Any) -> bool:
    """Whether a verb only says that something is told, by nobody: *the mill is to close, it has been announced*."""
    return verb.lemma_.lower() in predicates.REPORTING and any(
        c.dep_ in {"nsubj", "nsubjpass"} and c.lower_ == "it" for c in verb.children
    )


def _is_ahead(verb: Any) -> bool:
    """Whether an event will happen, or is what somebody plans, offers or asks for."""
    if is_negated(verb) or _is_supposed(verb):
        return False
    helped = {c.lower_ for c in verb.children if c.dep_ == "aux"}
    governed = "to" in helped and verb.dep_ in {"xcomp", "ccomp", "acl"}
    yet = verb.head.lemma_.lower() == "have" and any(c.lower_ == "yet" for c in (*verb.head.children, *verb.children))
    return (bool(helped & _WILL) and _is_dated(verb.sent)) or (governed and (yet or verb.head.lemma_.lower() in _PLANS))


def _is_supposed(verb: Any) -> bool:
    """Whether a plan is that of whoever it may be, or holds in one case: *if the tenant wants to leave*, *those who ask to pay*."""
    for token in (verb, *verb.ancestors):
        if token.dep_ == "relcl" or any(c.dep_ in {"mark", "advmod"} and c.lower_ in _CASES for c in token.children):
            return True
    return False


def _is_dated(sentence: Any) -> bool:
    """Whether a sentence names a time: without one, *will* may tell a rule (*the program will delete old files*)."""
    return any(
        t.lower_ in _TIMES
        or (t.text[:1].isupper() and (t.lower_ in MONTHS or t.lower_ in WEEKDAYS))
        or (t.is_digit and len(t.text) == _YEAR)
        for t in sentence
    )


def _is_awaited(noun: Any) -> bool:
    if any(c.dep_ == "amod" and c.lower_ in _COMING for c in noun.children):
        return True
    return noun.dep_ in {"dobj", "nsubjpass"} and noun.head.lemma_.lower() in _AWAITS and not is_negated(noun.head)
