"""Transfers: what passes from one party to another, whichever of the two the sentence is about (SPEC-005 §5.3).

*The museum rents the hall from the parish*, *the parish lets the hall to the museum* and *the museum is a tenant of the parish* pass
one thing the same way. So do *the guard warned the porter* and *the porter heard of it from the guard*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, fillers, key, members, named
from interlock.dpe.comparison.bindings.moods import is_negated
from interlock.dpe.comparison.bindings.relations.pronouns import PERSONAL, antecedent, own_tokens, subject_of
from interlock.dpe.text.wordlists import lines, word_set

HANDS, PAYS, BACK, TELLS = "hands", "pays", "back", "tells"
_PARTIES = frozenset({FillerKind.NAME, FillerKind.NOUN})
_OF_WHICH = word_set("which whom that")
_OBJECTS = frozenset({"dobj", "dative", "obj"})
_PURSES = word_set("payout account salary wage wages pension budget pocket deposit profit share fund funds purse")
_MONEY = word_set(
    "money sum amount payment cash price rent fee salary wage compensation damages deposit premium payout"
)
_NEITHER = word_set("turn addition return fact particular full part advance")
_LONGEST = 60


@dataclass(frozen=True)
class Handover:
    """What passes from one to another: its kind, both parties, the senses of the thing and of the verb, and where it stands."""

    kind: str
    giver: Filler
    receiver: Filler
    thing: frozenset[str]
    verb: str
    at: int = 0


def _words() -> dict[tuple[str, str], str]:
    """Read the words of each end: which kind a word is of, where its subject gives, and where it receives."""
    return {
        (word, end): kind
        for line in lines("transfers.txt")
        for kind, end, words in [line.split("|")]
        for word in words.split()
    }


_WORDS = _words()


def transfers(sentence: Any) -> tuple[Handover, ...]:
    """Return the transfers of a parsed sentence, a spaCy span, in which both parties are named; none of a very long one."""
    if not 0 < len(sentence) <= _LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(each for token in sentence for each in (*_of_verb(token), *_of_noun(token)))


def _of_verb(verb: Any) -> Iterator[Handover]:
    lemma = verb.lemma_.lower()
    ordered = any(c.dep_ == "xcomp" for c in verb.children)  # *told to wait* says who is asked, not who hears of it
    if verb.pos_ != "VERB" or is_negated(verb) or ordered:
        return
    own = sorted(own_tokens(verb), key=lambda t: int(t.i))
    back = any(t.lower_ == "back" for t in own)
    ends = {end: _WORDS.get((lemma, end), "") for end in ("giver", "receiver")}
    if back or (lemma == "take" and _behind(own, "from")):
        ends = {
            end: BACK if back else HANDS
            for end in ends
            if ends[end] or (lemma in {"take", "claim"} and end == "receiver")
        }
    if not any(ends.values()):
        return
    passive = _is_passive(verb)
    objects = [_related(c, verb) for c in verb.children if c.dep_ in _OBJECTS and c.pos_ != "ADP"]
    subject = subject_of(verb)
    source, target = _behind(own, "from"), _behind(own, "to")
    if ends.get("receiver") and source is not None:
        receiver = _agent(own) if passive else subject
        yield from _made(ends["receiver"], source, receiver, [subject] if passive else objects, verb)
    elif kind := ends.get("giver"):
        giver = _agent(own) if passive else subject
        told = [subject, *objects] if passive and subject is not None else objects
        if lemma == "report":  # what to whom; who reports to somebody in general tells nothing
            goal, things = (target if told else None), told
        else:
            goal, things = _goal(kind, target, told, own)
        yield from _made(kind, giver, goal, things, verb)


def _related(thing: Any, verb: Any) -> Any:
    """Return what an object stands for: *the choir, which Ann supplies with scores*."""
    return verb.head if verb.dep_ == "relcl" and thing.lower_ in _OF_WHICH else thing


def _goal(kind: str, target: Any, told: list[Any], own: list[Any]) -> tuple[Any, list[Any]]:
    """Return who receives and what: *gave Ann a key*, *gave a key to Ann*, *Ann was given a key*, *repaid Ann for it*."""
    behind = {p: n for p in ("about", "of", "to", "for", "with") if (n := _behind(own, p)) is not None}
    if kind == TELLS:
        return (told[0], [behind[p] for p in ("about", "of", "to") if p in behind]) if told else (None, [])
    if target is not None:
        return target, told
    if len(told) > 1:
        return told[0], told[1:]
    alone = bool(told) and (kind == BACK or "with" in behind)
    return (told[0], [behind[p] for p in ("for", "with") if p in behind]) if alone else (None, [])


def _made(kind: str, giver: Any, receiver: Any, things: list[Any], verb: Any) -> Iterator[Handover]:
    one, other = _party(giver, verb), _party(receiver, verb)
    if one is None or other is None:
        return
    told = [t for thing in things if thing is not None for member in members(thing) for t in (member, *member.children)]
    thing = frozenset(sense(t) for t in told if t.pos_ in {"NOUN", "PROPN"} or (t.like_num and t.pos_ == "NUM"))
    money = any(t.lower_ in _MONEY or t.text in "$€£¥" for t in told)
    yield Handover(PAYS if kind == HANDS and money else kind, one, other, thing, sense(verb), int(verb.i))


def _of_noun(noun: Any) -> Iterator[Handover]:
    """Yield what somebody is called that gives or receives: *Orla is a tenant of the parish*."""
    ends = {end: kind for end in ("giver", "receiver") if (kind := _WORDS.get((noun.lemma_.lower(), f"{end}-noun")))}
    first = next((a for a in (noun, *noun.ancestors) if a.dep_ != "conj"), noun)
    if not ends or first.dep_ != "attr" or first.head.lemma_ != "be" or is_negated(first.head):
        return
    subject = subject_of(first.head)
    partner = next((n for c in noun.children if c.lower_ in {"of", "to"} for n in c.children if n.dep_ == "pobj"), None)
    partner = partner or next((c for c in noun.children if c.dep_ == "poss"), None)
    for end, kind in ends.items():
        giver, receiver = (subject, partner) if end == "giver" else (partner, subject)
        yield from _made(kind, giver, receiver, [], noun)


def _behind(own: list[Any], preposition: str) -> Any:
    """Return what stands behind a preposition, for a verb or its object: the last, which is the verb's own."""
    found = [n for t in own if t.lower_ == preposition for n in t.children if n.dep_ == "pobj"]
    last = next((n for n in reversed(found) if n.lower_ not in _NEITHER), None)
    related = last is not None and last.lower_ in _OF_WHICH
    return _antecedent_before(last) if related else last


def _antecedent_before(relative: Any) -> Any:
    """Return the noun that stands right before *to which* or *from whom*, with what it governs."""
    before = [t for t in relative.sent if t.i < relative.i and t.pos_ in {"NOUN", "PROPN"}]
    noun = before[-1] if before else None
    while noun is not None and noun.dep_ in {"pobj", "compound"} and noun.head.head.pos_ in {"NOUN", "PROPN"}:
        noun = noun.head if noun.dep_ == "compound" else noun.head.head
    return noun


def _agent(own: list[Any]) -> Any:
    return next((n for t in own if t.lower_ == "by" for n in t.children if n.dep_ == "pobj"), None)


def _is_passive(verb: Any) -> bool:
    return any(c.dep_ == "auxpass" for c in verb.children) or (verb.dep_ == "acl" and verb.tag_ == "VBN")


def _party(token: Any, verb: Any) -> Filler | None:
    """Return who a token names; who a pronoun stands for, where only one can be meant."""
    if token is None:
        return None
    if token.lower_ in PERSONAL:
        token = antecedent(token, verb)
        if token is None:
            return None
    owner = next((c for c in token.children if c.dep_ == "poss" and c.pos_ != "PRON"), None)
    if token.lemma_.lower() in _PURSES and owner is not None:
        return _called(owner)
    if token.pos_ in {"ADV", "ADJ", "INTJ"} or token.dep_ == "poss":
        return _called(token)
    found = named(token) if token.pos_ in {"NOUN", "PROPN"} else fillers(token)
    return found[0] if len(found) == 1 and found[0].kind in _PARTIES and found[0].words else None


def _called(token: Any) -> Filler:
    """Return who is named by an owner, or by a word that the parser took for none."""
    own = [*(c for c in token.children if c.dep_ in {"compound", "amod"} and c.i < token.i), token]
    kind = FillerKind.NAME if token.text[:1].isupper() else FillerKind.NOUN
    return Filler(" ".join(t.text for t in own), kind, key(token.text), frozenset(key(t.text) for t in own))
