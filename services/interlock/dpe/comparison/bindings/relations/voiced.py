"""Voiced: who says, asks, judges or decides what, by a verb or by a noun (SPEC-005 §5.3).

*The union complained about the seats*, *the complaint about the seats came from the union* and *according to the union the seats are
bad* have one voice. A pronoun speaks with the voice of the sentence before: *The fee had little effect, according to Mr Ray. He said …*
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.moods import SUBJECTS, is_hypothetical, is_negated
from interlock.dpe.comparison.bindings.predicates import REPORTING
from interlock.dpe.comparison.bindings.relations.order import LONGEST, bag, written
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP

_VERBS = REPORTING | word_set(
    "judge ask order demand request recommend advise decide criticise criticize praise condemn apologise apologize welcome urge instruct"
    " call describe fear hope consider regard blame credit thank vote propose suggest rule appeal oppose support object protest insist notice"
    " discover realise realize spot"
)
_ACTS = (
    "complaint=complain apology=apologise warning=warn request=ask demand=demand recommendation=recommend proposal=propose"
    " suggestion=suggest objection=object promise=promise order=order advice=advise criticism=criticise praise=praise decision=decide"
    " claim=claim statement=state announcement=announce report=report accusation=accuse appeal=appeal protest=protest remark=remark"
    " estimate=estimate forecast=forecast prediction=predict view=think opinion=think judgement=judge judgment=judge instruction=order"
)
_ACT_OF = {noun: verb for noun, _, verb in (each.partition("=") for each in _ACTS.split())}
_SPELT = {
    "apologize": "apologise",
    "criticize": "criticise",
    "request": "ask",
    "urge": "ask",
    "instruct": "order",
    "believe": "think",
}
_VOICED = word_set("come make issue raise voice give lodge file express utter")
_OF = word_set("from by of")
_PRONOUNS = word_set("he she they")


@dataclass(frozen=True)
class ToldVoice:
    """One who says something: its words, those of them that are names, what it says, by which act, and how it is written.

    ``names`` is empty of a voice without a name, and ``words`` where a pronoun speaks.
    """

    words: frozenset[str]
    names: frozenset[str]
    act: str
    said: frozenset[str]
    text: str


def voiced(sentence: Any) -> tuple[ToldVoice, ...]:
    """Return the voices of a parsed sentence, a spaCy span; a question has none."""
    if len(sentence) > LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(voice for token in sentence for voice in _of(token))


def _of(token: Any) -> Iterator[ToldVoice]:
    lemma = token.lemma_.lower()
    if token.pos_ == "VERB" and lemma in _VERBS and not is_negated(token) and not is_hypothetical(token):
        yield from _of_verb(token, _SPELT.get(lemma, lemma))
    elif token.pos_ in {"NOUN", "PROPN"} and lemma in _ACT_OF:
        yield from _of_noun(token, _ACT_OF[lemma])
    elif token.lower_ == "according":
        yield from _according(token)


def _of_verb(verb: Any, act: str) -> Iterator[ToldVoice]:
    subject = next((c for c in verb.children if c.dep_ in SUBJECTS), None)
    if subject is None and verb.dep_ == "conj" and verb.head.pos_ == "VERB":
        subject = next((c for c in verb.head.children if c.dep_ in SUBJECTS), None)
    if subject is not None and not any(c.dep_ == "auxpass" for c in verb.children):
        without = {t.i for t in subject.subtree}
        yield _voice(subject, act, (t for t in _own(verb) if t.i not in without and t.i != verb.i))
    for agent in (n for c in verb.children if c.dep_ == "agent" for n in c.children if n.dep_ == "pobj"):
        without = {t.i for t in agent.subtree}
        yield _voice(agent, act, (t for t in _own(verb) if t.i not in without and t.i != verb.i))


def _own(verb: Any) -> Iterator[Any]:
    """Yield what a verb governs, without what is only coordinated with it."""
    yield verb
    for child in verb.children:
        if child.dep_ not in {"conj", "advcl"} or child.pos_ not in {"VERB", "AUX"}:
            yield from child.subtree


def _of_noun(noun: Any, act: str) -> Iterator[ToldVoice]:
    """Yield whose act a noun is: *the complaint came from the union*, *the union's complaint*, *in the sponsor's view*."""
    owner = next((c for c in noun.children if c.dep_ == "poss"), None)
    if owner is not None:
        top = noun
        while top.head.i != top.i and top.dep_ in {"pobj", "prep"}:
            top = top.head
        without = {t.i for t in owner.subtree} | {noun.i}
        yield _voice(owner, act, (t for t in top.subtree if t.i not in without))
    verb = noun.head
    if noun.dep_ in {"nsubj", "nsubjpass"} and verb.lemma_.lower() in _VOICED:
        for preposition in (c for c in verb.children if c.lower_ in _OF):
            for speaker in (c for c in preposition.children if c.dep_ == "pobj"):
                without = {t.i for t in speaker.subtree} | {noun.i, verb.i}
                yield _voice(speaker, act, (t for t in verb.subtree if t.i not in without))


def _according(word: Any) -> Iterator[ToldVoice]:
    """Yield who says what a sentence tells: *according to the mayor, …*."""
    for preposition in (c for c in word.children if c.lower_ == "to"):
        for speaker in (c for c in preposition.children if c.dep_ == "pobj"):
            without = {t.i for t in word.subtree}
            yield _voice(speaker, "say", (t for t in word.sent if t.i not in without))


def _voice(speaker: Any, act: str, said: Iterable[Any]) -> ToldVoice:
    if speaker.lower_ in _PRONOUNS:
        return ToldVoice(frozenset(), frozenset(), act, bag(said), speaker.text)
    own = [
        t for t in speaker.subtree if not any(a.dep_ in {"relcl", "acl"} for a in (t, *t.ancestors) if a.i > speaker.i)
    ]
    told = [t for t in own if t.pos_ in {"NOUN", "PROPN", "ADJ"} and t.lower_ not in STOP]
    names = frozenset(key_of(t) for t in told if t.pos_ == "PROPN")
    return ToldVoice(frozenset(map(key_of, told)), names, act, bag(said), written(own))
