"""Clause splitting: the clauses of a compound sentence, each made able to stand alone (SPEC-005 §3.4).

Separate claims come from coordinated clauses, clauses with while, although and whereas, reported clauses,
non-restrictive relative clauses and appositions. Each carries what it shares with its neighbours: the subject, the
auxiliaries, the setting that opens the sentence ("In May, …", "If it rains, …") and the reporting clause. One claim too
many is better than a fabrication hidden in a compound sentence. But a clause that would not be a well-formed
proposition stays in place, and no word is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.claims.asides import antecedent, copula, is_aside
from interlock.dpe.claims.wellformed import has_subject, is_alternative, is_finite, is_phrase, is_verb, shares_form
from interlock.dpe.claims.wording import SUBJECTS
from interlock.dpe.text.layout import BlockKind
from interlock.dpe.text.segmentation import Parsed
from interlock.dpe.text.text import Text, joined

_BESIDE = frozenset({"while", "although", "though", "whereas"})
_SETTINGS = frozenset({"prep", "npadvmod", "advcl"})
_AUXILIARIES = frozenset({"aux", "auxpass", "neg"})
_EDGES = frozenset({",", ";", ":", "—", "–", "-", ".", "!", "(", ")"})
_OPENING = frozenset({'"', "“", "'", "‘", "[", "#"})
_LONGEST_REPEATED = 4
_GAPS = frozenset({",", ";", "—", "–", "-", "(", ")"})


@dataclass(frozen=True)
class Clause:
    """The text of a clause. ``borrowed`` tells that its subject comes from a neighbour."""

    text: Text
    borrowed: bool = False


@dataclass(frozen=True)
class _Head:
    """The head of a clause: the tokens it borrows (in order), an inserted word, and the tokens it leaves out."""

    token: Any
    borrowed: tuple[Any, ...] = ()
    inserted: str = ""
    without: frozenset[int] = frozenset()
    has_subject: bool = False
    taken: frozenset[int] = frozenset()
    """Tokens of its own that the parse gives to a neighbour."""


def clauses(parsed: Parsed) -> list[Clause]:
    """Return the clauses of a sentence, or the whole sentence when there is only one."""
    if parsed.kind is not BlockKind.PROSE:
        return [Clause(parsed.text)]
    heads = sorted(_heads(parsed.tokens.root), key=lambda head: int(head.token.i))
    if len(heads) == 1:
        return [Clause(parsed.text)]
    return [clause for head in heads if (clause := _clause(parsed, head, heads)).text.chars]


def _heads(root: Any) -> Iterator[_Head]:
    """Yield the heads of the root's clause and of the clauses coordinated with it or inside it."""
    yield from _with_neighbours(_Head(root, has_subject=has_subject(root)))
    for token in root.subtree:
        for child in token.children:
            if is_aside(child):
                subject = tuple(antecedent(child))
                relative = [c.i for c in child.children if c.lower_ in {"who", "which", "where"} and c.i < child.i]
                own = has_subject(child, besides=relative)
                yield from _with_neighbours(
                    _Head(child, () if own else subject, without=frozenset(relative), has_subject=True)
                )
            elif verb := copula(child):
                yield _Head(child, tuple(antecedent(child)), verb, has_subject=True)


def _with_neighbours(head: _Head) -> Iterator[_Head]:
    """Yield a head and the heads that are coordinated with it, juxtaposed to it, or reported by the same verb."""
    yield head
    for child in head.token.children:
        if _is_coordinated(child):
            yield from _with_neighbours(_coordinated(child, head))
        elif _is_beside(child, head.token):
            yield from _with_neighbours(_Head(child, has_subject=True))
        elif (mark := _contrast(child)) is not None:
            yield from _with_neighbours(_Head(child, without=frozenset({mark.i}), has_subject=True))
        elif child.dep_ == "ccomp" and child.i > head.token.i and _affirms(head.token, child):
            reporting = (*head.borrowed, *(t for t in head.token.subtree if t.i < child.left_edge.i and not t.is_punct))
            for each in child.children:
                quoted = any(token.is_quote for token in child.doc[child.left_edge.i - 1 : each.i])
                if _is_coordinated(each) and not quoted:  # the extent of a quotation is not known
                    inner = _coordinated(each, _Head(child, has_subject=has_subject(child)))
                    carried = tuple(t for t in reporting if t.i not in head.without)
                    yield _Head(each, (*carried, *inner.borrowed), has_subject=True)


def _is_coordinated(child: Any) -> bool:
    """Whether a verb is coordinated with its head and can stand alone. Clauses joined by "or" stay one claim."""
    if child.dep_ != "conj" or not is_verb(child) or is_alternative(child.head):
        return False
    if has_subject(child):
        return (is_finite(child) or shares_form(child)) and not is_phrase(child)
    joined_by = any(token.dep_ == "cc" or token.text == ";" for token in child.doc[child.head.i : child.i])
    return joined_by and shares_form(child)


def _coordinated(child: Any, origin: _Head) -> _Head:
    """Return the head of a coordinated clause with the setting, the subject and the auxiliaries that it shares."""
    first = origin.token
    nearby = [c for part in (first, *first.lefts) if part is first or part.dep_ == "aux" for c in part.children]
    subject = [c for c in nearby if c.dep_ in SUBJECTS and c.i not in origin.without]
    start = min([first.i, *(c.left_edge.i for c in subject)])
    setting = [t for c in first.children if _is_setting(c, start) for t in (*c.subtree, c.right_edge.nbor())]
    carried = [t for t in origin.borrowed if t.i < first.i] if not subject else []
    if has_subject(child):
        return _Head(child, tuple(_in_order([*carried, *setting] if setting else [])), has_subject=True)
    if own := _repeated_subject(child, subject):
        taken = frozenset(token.i for token in own)
        return _Head(child, tuple(_in_order([*carried, *setting, *own])), has_subject=True, taken=taken)
    shared = [t for c in subject if c.i < first.i for t in c.subtree if t.i not in origin.without]
    auxiliaries = _auxiliaries(child, first)
    return _Head(child, tuple(_in_order([*carried, *setting, *shared, *auxiliaries])), has_subject=origin.has_subject)


def _repeated_subject(child: Any, subject: Sequence[Any]) -> list[Any]:
    """Return the subject that the parse takes from a clause: *port 22* of *Port 443 is open and port 22 is closed*.

    It stands between the conjunction and the verb, and repeats the noun of the first clause with another number or letter.
    """
    start = min([child.i, *(c.i for c in child.children if c.dep_ in _AUXILIARIES and c.i < child.i)])
    first = start - 1
    while first > 0 and start - first <= _LONGEST_REPEATED and child.doc[first].dep_ != "cc":
        first -= 1
    own = list(child.doc[first + 1 : start]) if child.doc[first].dep_ == "cc" else []
    named = {token.lower_ for one in subject for token in one.subtree if token.pos_ in {"NOUN", "PROPN"}}
    member = len(own) > 1 and (own[-1].like_num or (len(own[-1].text) == 1 and own[-1].is_upper))
    return own if member and own[-2].lower_ in named else []


def _is_setting(child: Any, start: int) -> bool:
    """Whether a phrase opens the sentence and is its setting: "In May,", "If it rains,"."""
    after = child.right_edge.i + 1
    comma = after < len(child.doc) and child.doc[after].text == ","
    return child.dep_ in _SETTINGS and after <= start and comma and _contrast(child) is None


def _auxiliaries(child: Any, first: Any) -> list[Any]:
    bare = child.tag_ in {"VB", "VBN"} and not any(c.dep_ in {"aux", "auxpass"} for c in child.children)
    found = [c for c in first.children if c.dep_ in _AUXILIARIES and c.i < first.i] if bare else []
    return found or ([first] if bare and first.pos_ == "AUX" else [])


def _in_order(tokens: Sequence[Any]) -> list[Any]:
    return sorted({token.i: token for token in tokens}.values(), key=lambda token: int(token.i))


def _is_beside(child: Any, head: Any) -> bool:
    """Whether a clause is juxtaposed to its head's clause by a semicolon or a dash, or drawn from it with "so"."""
    if child.dep_ not in {"ccomp", "parataxis"} or not is_verb(child) or not has_subject(child):
        return False
    low, high = sorted((child.i, head.i))
    between = child.doc[low:high]
    drawn = any(t.lower_ == "so" and t.head == head and t.nbor(-1).text == "," for t in between) and has_subject(head)
    drawn = drawn and not any(c.dep_ in SUBJECTS and c.lower_ in {"i", "we"} for c in child.children)
    return drawn or any(token.text in {";", "—", "–"} for token in between)


def _contrast(child: Any) -> Any:
    """Return the while or although of a clause that makes an assertion of its own, or ``None``."""
    if child.dep_ != "advcl" or not has_subject(child) or not is_finite(child):
        return None
    mark = next((c for c in child.children if c.dep_ == "mark" and c.lower_ in _BESIDE), None)
    return None if mark is not None and _is_condition(mark, child) else mark


def _is_condition(mark: Any, clause: Any) -> bool:
    """Whether a while tells only when its head holds: *deploys are only frozen while the lag is high* asserts no high lag."""
    if mark.lower_ != "while" or clause.head.i > clause.i or clause.doc[max(0, clause.left_edge.i - 1)].is_punct:
        return False
    return any(t.lower_ == "only" for t in clause.doc[clause.head.left_edge.i : clause.left_edge.i])


def _affirms(verb: Any, reported: Any) -> bool:
    """Whether the reported clauses hold one by one: said that …, but not if or whether, and not a negated verb."""
    marks = {c.lower_ for c in reported.children if c.dep_ == "mark"}
    return not any(c.dep_ == "neg" for c in verb.children) and not marks & {"if", "whether"} and has_subject(reported)


def _clause(parsed: Parsed, head: _Head, heads: Sequence[_Head]) -> Clause:
    inner = {
        t.i for other in heads if other is not head and head.token.is_ancestor(other.token) for t in other.token.subtree
    } | head.without
    inner |= {at for other in heads if other is not head for at in other.taken}
    own = _in_order([t for t in head.token.subtree if t.i not in inner])
    _trim(own, _EDGES)
    parts = [*_runs(parsed, head.borrowed, marks=frozenset())]
    if head.inserted:
        at = parts[-1].ends[-1] if parts else parsed.text.origin[0]
        parts.append(Text(head.inserted, [at] * len(head.inserted), [at] * len(head.inserted)))
    parts += _runs(parsed, own, marks=_GAPS)
    return Clause(joined([part for part in parts if part.chars]), bool(head.borrowed) and head.has_subject)


def _trim(tokens: list[Any], marks: frozenset[str]) -> None:
    """Remove conjunctions and punctuation from both ends of a clause."""
    while tokens and (tokens[-1].dep_ == "cc" or tokens[-1].is_space or tokens[-1].text in marks - {")"}):
        tokens.pop()
    if tokens and tokens[-1].text == ")" and all(token.text != "(" for token in tokens):
        tokens.pop()
    while tokens and (
        tokens[0].dep_ in {"cc", "preconj"}
        or tokens[0].is_space
        or (tokens[0].is_punct and tokens[0].text not in _OPENING)
    ):
        tokens.pop(0)
    if tokens and sum(token.text == '"' for token in tokens) % 2:  # the matching quote went with a neighbour
        for edge in (0, -1):
            if tokens[edge].text == '"':
                tokens.pop(edge)
                break


def _runs(parsed: Parsed, tokens: Sequence[Any], *, marks: frozenset[str]) -> Iterator[Text]:
    """Yield the text of each run of adjacent tokens, without *marks* and conjunctions next to a gap."""
    runs: list[list[Any]] = []
    for token in tokens:
        if runs and token.i == runs[-1][-1].i + 1:
            runs[-1].append(token)
        else:
            runs.append([token])
    for number, run in enumerate(runs):
        while run and number + 1 < len(runs) and (run[-1].text in marks or run[-1].dep_ == "cc"):
            run.pop()
        while run and number and run[0].text in marks:
            run.pop(0)
        if run:
            yield parsed.between(run[0].idx, run[-1].idx + len(run[-1]))
