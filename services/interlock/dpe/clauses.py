"""Clauses of a compound sentence, each made able to stand alone (SPEC-005 §3.4).

Clauses that are coordinated and have verbs of their own become claims of their own, with the subject and the
auxiliaries that they share; rather one claim too many than a fabrication hidden in a compound sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.layout import Kind
from interlock.dpe.segmentation import Parsed
from interlock.dpe.text import Text, joined
from interlock.dpe.wording import SUBJECTS

_AUXILIARIES = frozenset({"aux", "auxpass", "neg"})


def clauses(parsed: Parsed) -> list[Text]:
    """Return the sentence's coordinated clauses; the whole sentence when it has one."""
    if parsed.kind is not Kind.PROSE:
        return [parsed.text]
    heads = _heads(parsed.tokens.root)
    if len(heads) == 1:
        return [parsed.text]
    return [clause for head in heads if (clause := _clause(parsed, head, heads)).chars]


def _heads(root: Any) -> list[Any]:
    """Return the root and the verbs coordinated with it, in text order. What "or" joins stays one claim."""
    found, todo = [root], [root]
    while todo:
        head = todo.pop()
        for child in head.children:
            own = child.pos_ in {"VERB", "AUX"} and child.tag_ != "VBG"
            if (child.dep_ == "conj" and own and not _is_alternative(head)) or (own and _is_beside(child, head)):
                found.append(child)
                todo.append(child)
    return sorted(found, key=lambda token: token.i)


def _is_alternative(head: Any) -> bool:
    return any(c.dep_ in {"cc", "preconj"} and c.lower_ in {"or", "nor", "either", "neither"} for c in head.children)


def _is_beside(child: Any, head: Any) -> bool:
    """Whether a clause stands beside its head's, parted by a semicolon, rather than inside it."""
    if child.dep_ not in {"ccomp", "parataxis"} or not any(c.dep_ in SUBJECTS for c in child.children):
        return False
    low, high = sorted((child.i, head.i))
    return any(token.text in {";", "—", "–"} for token in child.doc[low:high])


def _clause(parsed: Parsed, head: Any, heads: Sequence[Any]) -> Text:
    inner = {t.i for other in heads if other is not head and head.is_ancestor(other) for t in other.subtree}
    own = [t for t in head.subtree if t.i not in inner]
    while own and (
        own[-1].dep_ == "cc" or own[-1].is_space or own[-1].text in {",", ";", ":", "—", "–", "-", ".", "!"}
    ):
        own.pop()
    while own and (own[0].dep_ in {"cc", "preconj"} or own[0].is_space or own[0].is_punct):
        own.pop(0)
    shared = _shared(head, heads)
    return joined([part for part in (*_runs(parsed, shared), *_runs(parsed, own)) if part.chars])


def _shared(head: Any, heads: Sequence[Any]) -> list[Any]:
    """Return the subject that *head* has from the clause it is coordinated with, and its auxiliaries if it has none."""
    if head.dep_ != "conj" or any(c.dep_ in SUBJECTS for c in head.children):
        return []
    origin = head.head
    while origin.dep_ == "conj" and origin in heads and not any(c.dep_ in SUBJECTS for c in origin.children):
        origin = origin.head
    subject = [t for c in origin.children if c.dep_ in SUBJECTS and c.i < origin.i for t in c.subtree]
    bare = head.tag_ in {"VB", "VBN"} and not any(c.dep_ in {"aux", "auxpass"} for c in head.children)
    helpers = [c for c in origin.children if c.dep_ in _AUXILIARIES and c.i < origin.i] if bare else []
    if bare and not helpers and origin.pos_ == "AUX":
        helpers = [origin]
    return sorted({t.i: t for t in (*subject, *helpers)}.values(), key=lambda token: token.i)


def _runs(parsed: Parsed, tokens: Sequence[Any]) -> Iterator[Text]:
    """Yield the text of each run of neighbouring tokens."""
    first = 0
    for n in range(1, len(tokens) + 1):
        if n == len(tokens) or tokens[n].i != tokens[n - 1].i + 1:
            if n > first:
                yield parsed.between(tokens[first].idx, tokens[n - 1].idx + len(tokens[n - 1]))
            first = n
