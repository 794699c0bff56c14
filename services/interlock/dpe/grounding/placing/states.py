"""States: what a record says is on, allowed or required, and a claim that says so or the opposite (SPEC-005 §5.3).

``tls: true`` is no sentence, and the model that reads it hears *TLS is disabled* as the same. Each clause of a claim is held against
the one field whose key it has, of the record or the section that it is about. Where two fields could be meant, a condition is set, or
another text of the sources speaks of it, nothing is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from interlock.dpe.comparison.cues import NEGATION_FLIP
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.placing.scopes import Scope, Scopes
from interlock.dpe.grounding.placing.words import among, names_all, stem_of
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values import states
from interlock.dpe.values.cells import cells_of, label_of
from interlock.dpe.values.frames import STOP
from interlock.dpe.values.states import State, denied_form, is_negation, words_in

_HEDGED = word_set(
    "if unless whether when might could would should until once previously formerly earlier planned will shall out except others other only "
    "all most some every each both neither either rather instead than unlike"
)
_SPLITTING = frozenset({"and", "but", "while", "whereas", "although", "though"})
_FINITE = word_set("is are was were has have had does do did can may must cannot will") | word_set(
    "there needs takes costs"
)
_LIGHT = word_set(
    "use uses used using is has have with of mode status state flag option setting supported support supports work works working run runs "
    "running hold holds comes get gets there turned switched set make makes default currently yes system take takes wear wears bring keep give join "
)
_EXISTS = word_set("configured set defined specified there given")
_OF_PLAIN = frozenset({None, states.SWITCH, states.PERMISSION, states.INCLUSION, states.PRESENCE})
_ABSENT_FAMILIES = frozenset({states.SWITCH, states.PRESENCE, states.PERMISSION})
_MOST_STRANGE, _MOST_STRANGE_PLAIN = 2, 1


@dataclass(frozen=True)
class RecordStates:
    """What the records say of a claim's states: the findings, and the sentences that bear out all of its clauses."""

    moved: tuple[Distortion, ...] = ()
    premises: tuple[str, ...] = ()
    whole: bool = False
    """Whether every clause of the claim agrees with a field."""

    @property
    def agree(self) -> bool:
        """Whether fields have the states that the claim gives them."""
        return bool(self.premises) and not self.moved


@dataclass(frozen=True)
class _Held:
    """A field with a state: the stems of its key without the words that name the state, and those of its section."""

    scope: Scope
    key: frozenset[str]
    state: State | None
    """``None`` for a key without a value."""
    noun: str
    written: str
    section: frozenset[str]
    alone: bool
    of_section: bool
    """Whether the key only names the state, *enabled*, so that its section is what has it."""


@dataclass(frozen=True)
class _Clause:
    """A clause of a claim: its words, the stems of those with content, and which words deny."""

    words: tuple[str, ...]
    stems: frozenset[str]
    text: str


def stated(claim: Claim, known: Scopes) -> RecordStates:
    """Return what the fields of the sources say of a claim's states."""
    held = _held(known)
    asks = claim.text.rstrip().endswith("?")
    if not held or asks or cells_of(claim.text) is not None or label_of(claim.text) is not None:
        return RecordStates()
    clauses = list(_clauses(claim.text))
    moved: list[Distortion] = []
    premises: list[str] = []
    agreed = 0
    for clause in clauses:
        judged = _judged(clause, claim.text, held, known)
        if judged is None:
            continue
        field, agrees = judged
        if agrees:
            agreed += not _strange(clause, field)  # a word of nowhere is for the model to judge
            premises.append(field.scope.text)
        elif not _told_elsewhere(field, known):
            moved.append(Distortion(NEGATION_FLIP, field.written, clause.text, field.scope.fact_id, slot=field.noun))
    return RecordStates(tuple(moved), tuple(dict.fromkeys(premises)), bool(agreed) and agreed == len(clauses))


def _judged(clause: _Clause, text: str, held: Sequence[_Held], known: Scopes) -> tuple[_Held, bool] | None:
    """Return the field that a clause is about and whether both agree, or ``None`` where that is not sure."""
    if _HEDGED.intersection(clause.words):
        return None
    field = _meant(_fitting(clause, text, held, known), clause)
    if field is None or _strange(clause, field) > _MOST_STRANGE:
        return None
    found = states.of_words(clause.words)
    denied = (
        sum(map(is_negation, clause.words))
        + states.awaits(clause.words)
        + sum(_denies_key(word, field) for word in clause.words)
    )
    if field.state is None:
        return _of_absent(field, clause, {each.family for each in found}, denied)
    return _of_state(field, field.state, clause, found, denied)


def _fitting(clause: _Clause, text: str, held: Sequence[_Held], known: Scopes) -> list[_Held]:
    """Return the fields whose key a clause has: of the only record of its kind, or of the one of several that it names."""
    named = [scope for group in (known.named(clause.text) or known.named(text)).values() for scope in group]
    kinds = Counter(scope.group for scope in named)
    return [
        each
        for each in held
        if _has_key(each, clause) and (each.alone or (kinds[each.scope.group] == 1 and each.scope in named))
    ]


def _of_state(
    field: _Held, own: State, clause: _Clause, found: Sequence[State], denied: int
) -> tuple[_Held, bool] | None:
    family = _family(own.family, found, clause.words)
    plain = family is None and (
        field.of_section or _strange(clause, field) > _MOST_STRANGE_PLAIN or len(clause.words) <= len(field.key)
    )
    if family is _NO_FAMILY or plain:
        return None
    sides = [each.positive for each in found if each.family == family]
    positive = (sides[0] if sides else True) != bool(denied % 2)
    return field, positive == own.positive


_NO_FAMILY = "?"


def _family(own: str, found: Sequence[State], words: Sequence[str]) -> str | None:
    """Return the family of the state that a clause names for a field of a family, ``None`` for a plain statement."""
    families = [each.family for each in found]
    if len(set(families)) > 1 or len(families) > 1:
        return _NO_FAMILY
    family = families[0] if families else None
    modal = {"may", "can"} & set(words)
    if modal and family != states.PERMISSION:
        return _NO_FAMILY
    if own in {states.PLAIN, states.SWITCH}:
        return family if family in _OF_PLAIN else _NO_FAMILY
    if own == states.PRESENCE and family is None:
        return None
    return family if family == own else _NO_FAMILY


def _of_absent(field: _Held, clause: _Clause, families: set[str], denied: int) -> tuple[_Held, bool] | None:
    """Judge a clause on a key without a value: *no cache is configured*."""
    if not families <= _ABSENT_FAMILIES or _strange(clause, field) > _MOST_STRANGE_PLAIN:
        return None
    if denied % 2:
        return field, True
    return (field, False) if _EXISTS.intersection(clause.words) else None


def _meant(fitting: Sequence[_Held], clause: _Clause) -> _Held | None:
    """Return the one field that a clause can mean: the longest key, and of equal keys the one whose section it names."""
    longest = max((len(each.key) for each in fitting), default=0)
    best = [each for each in fitting if len(each.key) == longest]
    sections = [each for each in best if each.section and each.section <= clause.stems]
    best = sections or best
    told = {(each.key, each.state.positive if each.state else None) for each in best}
    return best[0] if len(told) == 1 else None


def _has_key(field: _Held, clause: _Clause) -> bool:
    return bool(field.key) and names_all(clause.stems, field.key)


def _denies_key(word: str, field: _Held) -> bool:
    hidden = denied_form(word)
    return bool(hidden) and among(field.key, stem_of(hidden))


def _strange(clause: _Clause, field: _Held) -> int:
    """Return how many words of a clause are neither of its record nor light ones nor words of states."""
    named = {n for each in states.of_words(clause.words) for n in each.words}
    own = field.scope.stems | field.key | field.section
    rest = [word for n, word in enumerate(clause.words) if n not in named and _counts(word)]
    rest = [word for word in rest if not _denies_key(word, field)]
    return sum(not among(own, stem_of(word)) for word in dict.fromkeys(rest))


def _counts(word: str) -> bool:
    return word not in STOP and word not in _LIGHT and not is_negation(word)


def _told_elsewhere(field: _Held, known: Scopes) -> bool:
    """Whether a text of another source speaks of a field too, so that it may say otherwise."""
    return any(
        not each.slots and each.fact_id != field.scope.fact_id and names_all(each.stems, field.key)
        for each in known.all
    )


@lru_cache(maxsize=16)
def _held(known: Scopes) -> tuple[_Held, ...]:
    """Return the fields of all records that state a condition, or that have no value."""
    found: list[_Held] = []
    sizes: dict[frozenset[str], int] = {}
    for scope in known.all:
        sizes[scope.group] = sizes.get(scope.group, 0) + 1
    seen: set[tuple[frozenset[str], str, str, frozenset[str]]] = set()
    for scope in known.all:
        section = _section(scope)
        for noun, written, state in _fields(scope):
            own, words = states.of_key(words_in(noun))
            named = frozenset(stem_of(word) for word in words if _counts(word))
            key = named or section
            if own is not None and state is not None and state.family not in {states.PLAIN, states.SWITCH}:
                continue  # a state of a state
            told = State(own.family, own.positive == state.positive) if own and state else state
            if (key, noun, written, section if sizes[scope.group] == 1 else scope.stems) not in seen:
                seen.add((key, noun, written, section if sizes[scope.group] == 1 else scope.stems))
                found.append(_Held(scope, key, told, noun, written, section, sizes[scope.group] == 1, not named))
    return tuple(found)


def _fields(scope: Scope) -> Iterator[tuple[str, str, State | None]]:
    for slot in scope.slots:
        if (state := states.of_value(slot.field.value)) is not None:
            yield slot.field.key.noun, slot.field.value, state
        elif slot.field.value.casefold() in {"none", "n/a", "-", "–"}:
            yield slot.field.key.noun, "none", None
    for noun in scope.absent:
        yield noun, "none", None


def _section(scope: Scope) -> frozenset[str]:
    """Return the stems of the section that a record is the content of."""
    names = [slot.field.value for slot in scope.slots if not slot.field.key.noun]
    return frozenset(stem_of(word) for word in words_in(names[-1]) if _counts(word)) if names else frozenset()


def _clauses(text: str) -> Iterator[_Clause]:
    """Yield the clauses of a claim: cut at marks and conjunctions, where both sides say something."""
    parts: list[list[str]] = [[]]
    for word in text.replace(";", " , ").replace(",", " , ").replace(":", " , ").split():
        if word == "," or word.casefold() in _SPLITTING:
            parts.append([])
        else:
            parts[-1].append(word)
    if len(parts) > 1 and [word.casefold() for word in parts[0]] in (["yes"], ["no"]):
        parts = parts[1:]
    joined: list[str] = []
    for part, after in pairwise([*map(" ".join, parts), ""]):
        joined.append(part)
        if _says(" ".join(joined)) and (_says(after) or not after):
            yield from _clause(" ".join(joined))
            joined = []
    if joined:
        yield from _clause(" ".join(joined))


def _says(text: str) -> bool:
    words = words_in(text)
    return (
        words[:1] == ["no"]
        or bool(states.of_words(words))
        or any(word in _FINITE or word.endswith("n't") for word in words)
    )


def _clause(text: str) -> Iterator[_Clause]:
    words = words_in(text)
    if not words:
        return
    pairs = [one + other for one, other in pairwise(words)]
    denied = [hidden for word in words if (hidden := denied_form(word))]
    stems = frozenset(stem_of(word) for word in (*words, *pairs, *denied) if _counts(word))
    yield _Clause(tuple(words), stems, text.strip().rstrip(".!"))
