"""What the speaker can do, will do or cannot do for the reader: offers and refusals, which assert nothing else (ATT-6).

*I can open a ticket if you'd like* and *I can only help with trains, so I can't recommend a hotel* tell of the speaker alone. A
benefit that is promised (a refund, a discount) is a claim about what the reader gets, and so is a figure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from interlock.dpe.text.wordlists import word_set

_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "expl"})
_ABLE = frozenset({"can", "could", "ca", "may", "'d", "would", "'ll", "will", "wo"})
_LIMITS = frozenset({"only", "just"})
_FEELING = word_set("sorry afraid unable able glad happy unfortunate sure certain here ready")
_SERVICES = word_set(
    """
    add adjust answer arrange assist book calculate change check clarify compare compile convert create describe discuss draft edit
    elaborate explain expand find fix format generate give go help illustrate list look make offer open outline point prepare
    proofread provide put raise recap recommend rephrase reply reschedule review revise rewrite run search send set share shorten
    show simplify sketch sort start suggest summarise summarize support tell translate try turn update walk work write
    """
)
"""What an assistant does with words, or starts for the reader."""

_BENEFITS = word_set(
    """
    allowance benefit bonus compensation coupon credit discount exchange exemption exception extension free guarantee money permission
    price promise rebate refund reimbursement replacement upgrade voucher waive waiver warranty cure
    """
)
_WANTING = word_set(
    "like want wish prefer need help decide be please find useful helpful interested sound make easy easier ready work"
)
_CONDITIONS = frozenset({"if", "whenever", "once", "when", "should"})


def speaks_of_itself(verb: Any) -> bool:
    """Whether a clause only says what the speaker can or cannot do, or how it feels: *I can't recommend a hotel*."""
    own = [child for child in verb.children if child.dep_ in _SUBJECTS]
    if len(own) != 1 or own[0].lower_ != "i" or _promises(verb):
        return False
    if verb.lemma_.lower() == "be":
        return any(t.lemma_.lower() in _FEELING for t in verb.children if t.dep_ in {"acomp", "advmod"})
    able = any(t.dep_ == "aux" and t.lower_ in _ABLE for t in verb.children)
    refused = any(t.dep_ == "neg" or (t.dep_ == "advmod" and t.lower_ in _LIMITS) for t in verb.children)
    return able and (refused or verb.lemma_.lower() in _SERVICES)


def is_wanted(verb: Any) -> bool:
    """Whether a clause only says that the reader may want it: *if you'd like*, *if that helps you decide*."""
    marks = {t.lower_ for t in verb.children if t.dep_ in {"mark", "advmod", "aux"}}
    own = [t for t in verb.subtree if t.dep_ in _SUBJECTS]
    if verb.dep_ == "ccomp" and verb.head.dep_ == "advcl":
        return is_wanted(verb.head)
    plain = all(t.lower_ in {"you", "that", "it", "this"} for t in own)
    verbs = [t for t in verb.subtree if t.pos_ == "VERB" or (t.pos_ == "AUX" and t.dep_ not in {"aux", "auxpass"})]
    return bool(marks & _CONDITIONS) and plain and all(t.lemma_.lower() in _WANTING for t in verbs)


def offers_or_refuses(tokens: Sequence[Any]) -> bool:
    """Whether every clause of a sentence speaks of the speaker alone, or of what the reader may want."""
    inside = {token.i for token in tokens}
    heads = [t for t in tokens if any(c.dep_ in _SUBJECTS and c.i in inside for c in t.children)]
    spoken = [verb for verb in heads if speaks_of_itself(verb)]
    excused = all(verb in spoken or is_wanted(verb) or _is_undecided(verb) for verb in heads)
    return bool(spoken) and excused and _hangs_together(tokens, spoken)


def _is_undecided(verb: Any) -> bool:
    """Whether a clause is what a refusal leaves open: *whether the plant is edible*."""
    refused = any(t.dep_ == "neg" for t in verb.head.children)
    return (
        verb.dep_ == "ccomp"
        and refused
        and any(t.lower_ in {"whether", "if"} for t in verb.children if t.dep_ == "mark")
    )


def after_courtesies(words: Sequence[Any], courteous: Collection[str]) -> Sequence[Any]:
    """Return the words from the first that opens a wish, where only words of courtesy stand before: *Bye, and enjoy your trip*."""
    for place, token in enumerate(words):
        if token.lower_ in {"have", "enjoy"} and token.tag_ in {"VB", "VBP"}:
            return words[place:]
        if token.lower_ not in courteous and token.lower_ not in {"and", "then"}:
            break
    return words


def _hangs_together(tokens: Sequence[Any], spoken: Sequence[Any]) -> bool:
    """Whether no other finite verb tells something: *I can help, as shown*."""
    known = {verb.i for verb in spoken}
    others = [
        t
        for t in tokens
        if t.pos_ == "VERB"
        and t.i not in known
        and t.dep_ in {"conj", "advcl", "relcl", "acl", "ccomp", "parataxis", "ROOT"}
        and not is_wanted(t)
        and not _is_undecided(t)
    ]
    return all(
        t.dep_ == "conj" and (t.head.i in known or t.head.dep_ == "conj") and t.tag_ == "VB" and not _promises(t)
        for t in others
    )


def _promises(verb: Any) -> bool:
    return any(t.lemma_.lower() in _BENEFITS for t in verb.subtree)
