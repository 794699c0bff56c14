"""Turned words: a clause that says of the same things the opposite of a word of its source (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import SenseBag, sense_of
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import same
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.order import told_from_the_other_end
from interlock.dpe.text.wordlists import lines, word_set
from interlock.dpe.values.dates import MONTHS

_LEAST = 2
_SIDES = frozenset("+-")
_LESSENED = sense_of("decrease")
_AWAITED = frozenset(map(sense_of, word_set("wait await pending")))
_TAKES_AWAY = frozenset(map(sense_of, word_set("pull remove disconnect detach")))
_CONVERSE = frozenset({"buy", "husband", "son", "mother", "join", "male", "old", "win"})
_CONVERSE_PAIRS = frozenset(
    frozenset(map(sense_of, pair.split("=")))
    for pair in ("lend=borrow", "import=export", "buy=sell", "credit=debit", "give=receive", "teach=learn")
)
_CONVERSE_VERBS = frozenset({"buy", "win"})
_ORDERED = frozenset(map(sense_of, word_set("before after ahead behind above below first last early late")))
_FIRST_AND_THEN = frozenset(map(sense_of, ("before", "after")))
_BEGUN_AND_ENDED = frozenset(map(sense_of, ("start", "end")))
_PHASES = _BEGUN_AND_ENDED | {sense_of("close")}
"""What everything does that lasts, so that the two are opposites only of one time."""
_DATES = frozenset(map(sense_of, [*MONTHS, *map(str, range(32))]))
"""What two events of one day share without being one."""
_DEEP = 3  # phrases within phrases
_MEASURED = frozenset(
    map(
        sense_of,
        word_set(
            "price cost fee rate number amount level share total value sale use demand quality speed risk chance need"
        ),
    )
)
"""What is measured of a thing, so that the thing is what is told of."""
_KINDS = frozenset({"opposite", "antonym"})


def _pairs() -> frozenset[frozenset[str]]:
    """Read the pairs of opposites, as clauses have their senses."""
    return frozenset(
        frozenset(sense_of(word) for word in pair.split("="))
        for line in lines("predicates.txt")
        for kind, _, words in (line.partition("|"),)
        if kind in _KINDS
        for pair in words.split()
    )


_PAIRS = _pairs()


def turned_word(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the word of a source that a clause of *claim* turns into its opposite, or ``None``."""
    for clause in claim.clauses:
        if clause.hypothetical:
            continue
        told = [(other, each) for each in evidence.passages if "|" not in each.text for other in each.clauses]
        for other, each in told:
            for mine, its in _opposed(clause, other):
                if _LESSENED not in {mine, its} and (_LESSENED in clause.senses) is not (_LESSENED in other.senses):
                    continue  # who spends less saves
                if not (are_opposite(mine, its) or _is_reversed(clause, other)) or _is_told(mine, clause, other, told):
                    continue
                if _is_of_another_word(mine, its, claim, clause, other) or _is_other_case(claim, each, clause, other):
                    continue
                if ("again" in claim.text.lower().split()) is not ("again" in each.text.lower().split()):
                    continue  # what has to be opened again is shut
                told_alike = {mine, its} <= _FIRST_AND_THEN and told_from_the_other_end(claim.text, each.text)
                if told_alike or (each.record and not _names_one(clause, other)):
                    continue  # a field is of whom its record names
                return Misbinding(NEGATION_FLIP, "predicate", its, mine, each.text, each.fact_id, about=clause.words)
    return None


def _is_of_another_word(mine: str, its: str, told: ReadSentence, claim: SenseBag, source: SenseBag) -> bool:
    """Whether a source says the opposite of another word: it has the *old bricks* of a claim, and a *new station* beside them.

    So it does where the claim says it of that word itself.
    """
    if source.qualified & {pair for each in told.clauses for pair in each.qualified if pair[0] == its}:
        return True
    own = {word for sense, word in claim.qualified if sense == mine}
    other = {word for sense, word in source.qualified if sense == its}
    return bool(own and other) and not own & other and own <= source.senses and not other & claim.senses


def _names_one(claim: SenseBag, source: SenseBag) -> bool:
    """Whether a claim names somebody whom its source names too."""
    return any(name.words & source.words for name in claim.names)


def _is_other_case(claim: ReadSentence, source: ReadSentence, mine: SenseBag, its: SenseBag) -> bool:
    """Whether both words tell when something holds, of which one side denies that it does: *closed, it is off; open, it is on*."""
    if not (mine.case and its.case):
        return False
    denied = [sum(each.negated for each in told.clauses if not each.case) % 2 for told in (claim, source)]
    return denied[0] != denied[1]


def tells_the_other_case(claim: ReadSentence, source: str, evidence: Evidence) -> bool:
    """Whether a claim says *not* of the case opposite to the one in which its source says that something holds."""
    cases = [clause for clause in claim.clauses if clause.case]
    return bool(cases) and any(
        _is_other_case(claim, each, mine, its) and bool(mine.words & its.words) and _has_opposites(claim, each)
        for each in evidence.passages
        if each.text == source
        for mine in cases
        for its in each.clauses
    )


def _has_opposites(claim: ReadSentence, source: ReadSentence) -> bool:
    return any(predicates.opposite(mine.predicate, its.predicate) for mine in claim.frames for its in source.frames)


def _opposed(claim: SenseBag, source: SenseBag) -> Iterator[tuple[str, str]]:
    shared = claim.senses & source.senses
    if (claim.senses | source.senses) & _AWAITED:
        return  # what is waited for is not there
    if claim.senses & source.denied or source.senses & claim.denied or not _is_of_one(claim, source, shared):
        return
    mine, its = claim.senses - shared, source.senses - shared
    for one in mine:
        for other in its:
            if {one, other} <= _PHASES and not _is_of_one_time(claim, source, timed={one, other} == _BEGUN_AND_ENDED):
                continue
            if claim.senses & _TAKES_AWAY and other.endswith(one):
                continue  # who pulls the plug unplugs
            if are_opposite(one, other) or _are_converse(one, other):
                yield one, other


def _is_of_one_time(claim: SenseBag, source: SenseBag, *, timed: bool) -> bool:
    """Whether two clauses have the same dates, so that they tell one time; that they have any is asked of what is *timed*."""
    dated = [{w for w in each.senses if w in _DATES or any(c.isdigit() for c in w)} for each in (claim, source)]
    return (bool(dated[0]) or not timed) and dated[0] == dated[1]


def _is_of_one(claim: SenseBag, source: SenseBag, shared: frozenset[str]) -> bool:
    """Whether two clauses are about one thing. What is compared with another must be the same."""
    mine, its = claim.senses - shared, source.senses - shared
    least = _LEAST if len(mine) > 1 else 1
    if len(shared) < least or claim.negated != source.negated or source.hypothetical:
        return False
    if "than" in claim.marks & source.marks or _are_parts_of_others(claim, source, shared):
        return False
    about = frozenset(word for actor in claim.actors for word in actor.all)
    compared = "than" in claim.marks | source.marks or bool(_ORDERED & (mine | its))
    acting = frozenset(word for actor in source.actors for word in actor.all)
    if compared and not about <= acting:
        return False
    if not about and shared <= _DATES:
        return False  # *It starts on 1 September* tells of another event of that day than what closes then
    if about and not about & (acting if len(shared) < _LEAST else source.words):
        return False
    return 2 * len(shared) >= min(len(mine), len(its))


def _are_parts_of_others(claim: SenseBag, source: SenseBag, shared: frozenset[str]) -> bool:
    """Whether all that two clauses share only says in one of them which thing is meant, of which the other does not speak."""
    return shared <= _parts_of_another(claim, source) | _parts_of_another(source, claim)


def _parts_of_another(one: SenseBag, other: SenseBag) -> frozenset[str]:
    """Return the words that in one clause only say which thing is meant, one of which the other clause says nothing.

    The *insulin pump* of a claim is not the *insulin pump market*; but who says that *tickets* got dearer says it of the *price of tickets*.
    """
    wholes: dict[str, set[str]] = {}
    for word, whole in one.compounds:
        wholes.setdefault(word, set()).add(whole)
    parts: set[str] = set()
    for _ in range(_DEEP):
        parts = {w for w, at in wholes.items() if all(x in parts or x not in other.senses | _MEASURED for x in at)}
    return frozenset(parts)


def are_opposite(one: str, other: str) -> bool:
    """Whether two senses of words say the opposite."""
    if one[-1:] in _SIDES and other[-1:] in _SIDES:
        return one[:-1] == other[:-1] and one != other and one[:-1] not in _CONVERSE
    if frozenset({one, other}) in _CONVERSE_PAIRS:
        return False
    return frozenset({one, other}) in _PAIRS or predicates.opposite(one, other)


def _are_converse(one: str, other: str) -> bool:
    """Whether two verbs tell one event from its two sides: *beat* and *lose to*."""
    if one[-1:] in _SIDES and other[-1:] in _SIDES:
        return one[:-1] == other[:-1] and one != other and one[:-1] in _CONVERSE_VERBS
    return (
        (one in _CONVERSE_VERBS and other == f"{one}-")
        or (other in _CONVERSE_VERBS and one == f"{other}-")
        or frozenset({one, other}) in _CONVERSE_PAIRS
    )


def _is_reversed(claim: SenseBag, source: SenseBag) -> bool:
    """Whether two clauses with converse verbs have the same one act towards the same other: *A beat B*, *A lost to B*."""
    if not claim.actors or not source.actors or "by" in claim.marks | source.marks:
        return False
    acting = same(claim.actors[0], source.actors[0])
    own = claim.actors[0].all | source.actors[0].all
    towards = {word for name in claim.names for word in name.words} & {
        word for name in source.names for word in name.words
    } - own
    return acting and bool(towards)


def _is_told(mine: str, claim: SenseBag, source: SenseBag, told: list[tuple[SenseBag, ReadSentence]]) -> bool:
    """Whether another clause of a source uses the claim's own word of as much of what it tells."""
    shared = len(claim.senses & source.senses)
    return any(mine in each.senses and len(claim.senses & each.senses - {mine}) >= shared - 1 for each, _ in told)
