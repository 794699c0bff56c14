"""Assertions: what each clause of a sentence tells of which things, and whether it denies it (SPEC-005 §5.3).

A clause has one polarity, however its words are spread: *the hut has no stove*, *the hut lacks a stove* and *the hut is without a stove*
deny a stove of the hut. A phrase may have another than its clause: *they came without tools*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS, is_hypothetical
from interlock.dpe.comparison.bindings.told import denying
from interlock.dpe.comparison.bindings.told.clauses import (
    chain_of,
    is_head,
    is_noun,
    objects,
    phrase,
    stands_for,
    tells,
    things,
    walk,
    within,
)
from interlock.dpe.comparison.bindings.told.kin import meaning, meaning_of
from interlock.dpe.comparison.bindings.told.tempers import (
    cases,
    denied_before,
    is_case,
    is_denied_case,
    is_helped,
    is_limited,
    mood,
    must_not,
    past,
    spans,
    times,
)
from interlock.dpe.text.wordlists import word_set

_SUBJECTS = SUBJECTS | PASSIVE_SUBJECTS
_SAYING_MORE = word_set("take include contain use see show think know say feel")
_BARE = (predicates.LIGHT - _SAYING_MORE) | word_set(
    "exist occur happen apply bear carry receive fit equip suffer experience hold feature remain stay pass follow want wish go continue last"
)
"""Verbs that say little more than that something is there."""
_ELLIPTIC = word_set("be do have will can could would must may")
_COMPLEMENTS = frozenset({"attr", "acomp", "dobj", "xcomp", "ccomp", "expl", "oprd"})
_QUALIFYING = frozenset({"amod", "compound", "nmod", "poss"})


@dataclass(frozen=True)
class Assertion:
    """What one clause tells: its event, empty where its verb says little, its other words, and whether it is denied.

    ``against`` are the words of phrases whose polarity is not the clause's, ``excepted`` those of its exceptions, ``things`` those of
    which it says that there are none, and ``using`` those it has something with. ``heads`` are the nouns that it is about, ``actors``
    its subject and ``objects`` what its verb governs. ``case``: what holds when it does, or does not where that is ``unmet``; ``narrowed``: of which of its things. ``limited``: it holds in one case only.
    ``qualified`` has its nouns with what qualifies them, and ``listed`` those of them that stand in a list,
    and ``borrowed`` the words that it is read with from another sentence.
    """

    event: str
    denied: bool
    words: frozenset[str]
    against: frozenset[str]
    excepted: frozenset[str]
    things: frozenset[str]
    using: frozenset[str]
    heads: frozenset[str]
    actors: frozenset[str]
    objects: frozenset[str]
    times: frozenset[str]
    case: frozenset[str]
    narrowed: frozenset[str]
    unmet: bool
    spans: frozenset[str]
    modality: str
    past: bool | None
    limited: bool
    hypothetical: bool
    pronoun: bool
    qualified: frozenset[tuple[str, str]]
    listed: frozenset[str]
    at: int
    written: str
    keys: frozenset[str]
    borrowed: frozenset[str] = frozenset()

    def stands(self, word: str) -> bool:
        """Whether the clause asserts a word of what else it tells."""
        return self.denied is (word in self.against)


@dataclass(frozen=True)
class ToldSentence:
    """What a sentence tells, with the meanings of all its words."""

    assertions: tuple[Assertion, ...] = ()
    whole: frozenset[str] = frozenset()


NOTHING = ToldSentence()


def told(sentence: Any) -> ToldSentence:
    """Return what a parsed sentence, a spaCy span, tells."""
    found = assertions(sentence)
    own = frozenset(meaning(t) for t in sentence if tells(t))
    return ToldSentence(found, own.union(*(each.words for each in found)))


def assertions(sentence: Any) -> tuple[Assertion, ...]:
    """Return what a parsed sentence, a spaCy span, tells clause by clause."""
    found: list[Assertion] = []
    for token in sentence:
        if is_head(token):
            found.append(_elided(_assertion(token, found), token, found))
    return tuple(found)


def _assertion(verb: Any, before: list[Assertion]) -> Assertion:
    chain = chain_of(verb)
    main, base = chain[-1], denying.base_of(chain[-1])
    modality, norms = mood(chain, base)
    denied = sum(map(denying.denials_of, chain)) + norms + (base is not None) + denying.denials_above(verb)
    if modality == "must" and denied % 2 and must_not(chain):
        modality = "may"
    subjects = [_antecedent(c, verb) for each in chain for c in each.children if c.dep_ in _SUBJECTS]
    shared = (
        None if subjects or verb.dep_ != "conj" else next((e for e in reversed(before) if e.at == verb.head.i), None)
    )
    if verb.dep_ == "conj":
        denied += denied_before(verb, shares=shared is not None)
    held = cases(chain)
    walked = list(walk(verb, chain, base))
    said = [(t, flip) for t, flip in walked if tells(t) and (t not in chain or (t is main and base is None))]
    event = "" if base == "" else meaning_of(base) if base else _event(main)
    borrowed = shared.actors if shared is not None else frozenset[str]()
    if (
        not borrowed
        and before
        and any(s.tag_ == "PRP" or s.lower_ in {"some", "all", "none", "those"} for s in subjects)
    ):
        borrowed = before[-1].actors  # it may be another; what is shared with it is then less
    actors = borrowed | frozenset(meaning(t) for s in subjects for t in phrase(s) if tells(t))
    return Assertion(
        event=event,
        denied=bool(denied % 2),
        words=frozenset(meaning(t) for t, _ in said if t is not main or event) | actors | ({event} if event else set()),
        against=frozenset(meaning(t) for t, flip in said if flip) - frozenset(meaning(t) for t, flip in said if not flip),
        excepted=frozenset(within(chain, {"except", "excluding", "exception"})),
        things=frozenset(things(chain, base)),
        using=frozenset(within(chain, {"with", "including"})),
        heads=frozenset(meaning(t) for t, _ in said if is_noun(t)) | frozenset(meaning(s) for s in subjects if is_noun(s)) | borrowed,
        actors=actors,
        objects=frozenset(objects(chain)),
        times=frozenset(times(chain, walked)),
        case=frozenset(meaning(t) for c in held if c.dep_ == "advcl" for t in c.subtree if tells(t)),
        narrowed=frozenset(meaning(t) for c in held if c.dep_ == "relcl" for t in c.subtree if tells(t)),
        unmet=is_denied_case(held),
        spans=frozenset(spans(chain)),
        modality=modality,
        past=shared.past if shared is not None and not is_helped(verb) else past(chain),
        limited=is_limited(chain, norms) or denying.is_open(verb, main),
        hypothetical=is_hypothetical(verb) or is_case(verb),
        pronoun=(not subjects and shared is None) or any(stands_for(s) for s in subjects),
        qualified=frozenset((meaning(t), meaning(t.head)) for t, _ in said if t.dep_ in _QUALIFYING and t.head.pos_ in {"NOUN", "PROPN"}),
        listed=frozenset(meaning(t) for t, _ in said if t.dep_ == "conj" or any(c.dep_ == "conj" for c in t.children)),
        at=int(verb.i),
        written=" ".join(t.text for t in sorted((t for t, _ in walked if not t.is_punct), key=lambda t: int(t.i))),
        keys=frozenset(key_of(t) for t, _ in walked),
        borrowed=frozenset() if shared is not None else borrowed,
    )  # fmt: skip


def _antecedent(subject: Any, verb: Any) -> Any:
    """Return what a relative pronoun stands for: *the depot that was hit*."""
    return verb.head if verb.dep_ == "relcl" and subject.lower_ in {"that", "who", "which"} else subject


def _elided(made: Assertion, verb: Any, before: list[Assertion]) -> Assertion:
    """Return an assertion with the event that it leaves to the clause before it: *the lift runs; the stairs do not*."""
    bare = (verb.pos_ == "AUX" or verb.lemma_ == "do") and verb.lemma_ in _ELLIPTIC
    whole = any(
        c.i > verb.i and (c.dep_ in _COMPLEMENTS or (c.dep_ == "prep" and verb.lemma_ != "do")) for c in verb.children
    )
    inside = next((c for c in verb.children if c.dep_ == "ccomp" and c.i < verb.i), None)
    of = inside if inside is not None else verb.head if verb.dep_ in {"conj", "advcl", "parataxis"} else None
    last = None if of is None else next((each for each in before if each.at == of.i), None)
    if not bare or whole or last is None:
        return made
    rest = last.words - last.actors
    return replace(
        made, event=last.event, words=(made.words - {made.event}) | rest, heads=made.heads | (last.heads - last.actors), case=last.case,
        objects=last.objects, things=last.things - last.actors, modality=made.modality or last.modality, past=last.past,
    )  # fmt: skip


def _event(main: Any) -> str:
    """Return what a clause says that happens, empty where it says little more than that something is there."""
    if main.lemma_.lower() in _BARE and main.lower_ != "gone":
        return ""
    if main.lower_ == "gone":
        return meaning_of("disappear")
    if main.lemma_.lower() in denying.ALLOWING_ALONE:
        return meaning_of("allow")
    if main.lower_ == "open" and any(c.dep_ == "prep" and c.lower_ == "to" for c in main.children):
        return meaning_of("allow")
    return meaning(main)
