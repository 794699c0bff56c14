"""Grouped: a claim that puts a thing of one group under the label of another (SPEC-005 §5.3).

*Meat dishes: stew, roast* and *the stew is a vegetarian dish*; *included: towels; not included: breakfast* and *breakfast is included*.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.groupings.group import Group, Grouping, denies, words_of
from interlock.dpe.text.patterns import pattern

_STATEMENTS = pattern(r"[:]\s|[;—–]|\s+(?:while|whereas|but|because|since|as|so|if|than|except|unlike|instead)\s+")
_CLAUSES = pattern(r"[,:]\s|[;—–]|\s+(?:and|while|whereas|but|because|since|as|so|if|than|except|unlike|instead)\s+")
_MOST_OTHER = 1


def grouped(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* puts into another group than its source does, or ``None``."""
    if claim.text.rstrip().endswith("?") or not evidence.groupings:
        return None
    for grouping in evidence.groupings:
        for clause, several in _clauses(claim.text):
            found = _among(clause, grouping) if several else _in_clause(clause, grouping)
            if found is not None and not _is_told(found[2], grouping, evidence):
                source, said, _ = found
                kind = NEGATION_FLIP if source == f"not {said}" or said == f"not {source}" else ENTITY_SUBSTITUTED
                return Misbinding(kind, "group", source, said, grouping.text, grouping.fact_id)
    return None


def _clauses(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the clauses of a text, those that may name several things behind those that *and* and a comma part."""
    for split, several in ((_CLAUSES, False), (_STATEMENTS, True)):
        yield from ((part, several) for part in split.split(text.rstrip(".!")) if part.strip())


def _among(clause: str, grouping: Grouping) -> tuple[str, str, frozenset[str]] | None:
    """Return what ``_in_clause`` does for one of several things that a clause puts under one label: *Mia and Pete are in team B*."""
    said = words_of("x " + clause) - {"x"}
    holders = [
        (group, item) for group in grouping.groups if not group.least and (item := _named(said, group, grouping))
    ]
    labelled = _labelled(said, grouping)
    if len(labelled) != 1 or denies(clause) or said - words_of(grouping.text):
        return None
    moved = ((group, item) for group, item in holders if group is not labelled[0])
    return next(((_written(g), _written(labelled[0]), i | grouping.label_of(labelled[0])) for g, i in moved), None)


def _labelled(said: frozenset[str], grouping: Grouping) -> list[Group]:
    return [each for each in grouping.groups if grouping.label_of(each) and grouping.label_of(each) <= said]


def _in_clause(clause: str, grouping: Grouping) -> tuple[str, str, frozenset[str]] | None:
    """Return the label of an item's group, the one that a clause gives it, and the words that say so."""
    said = words_of("x " + clause) - {"x"}
    holders = [(group, item) for group in grouping.groups if (item := _named(said, group, grouping))]
    if len({id(group) for group, _ in holders}) != 1 or len(said - words_of(grouping.text)) > _MOST_OTHER:
        return None
    group, item = holders[0]
    labelled = _labelled(said, grouping)
    if len(labelled) == 1 and labelled[0] is not group and not denies(clause):
        return _written(group), _written(labelled[0]), item | grouping.label_of(labelled[0])
    if _differ_by_denial(grouping) and group.label <= said and denies(clause) is not group.denied:
        label = " ".join(sorted(group.label))
        return (f"not {label}", label, item) if group.denied else (label, f"not {label}", item)
    return None


def _named(said: frozenset[str], group: Group, grouping: Grouping) -> frozenset[str]:
    """Return the words by which a clause names an item of a group, or none."""
    for item in grouping.items_of(group):
        shared = item & said
        if item and (item <= said if not group.least else len(shared) >= min(group.least, len(item))):
            return shared
    return frozenset()


def _differ_by_denial(grouping: Grouping) -> bool:
    labels = {group.label for group in grouping.groups}
    return (
        len(grouping.groups) == 2 and len(labels) == 1 and any(labels) and len({g.denied for g in grouping.groups}) == 2
    )


def _written(group: Group) -> str:
    return " ".join(sorted(group.label))


def _is_told(words: frozenset[str], grouping: Grouping, evidence: Evidence) -> bool:
    """Whether a line of prose outside the groups has both the item and the label that the claim gives it."""
    own = words_of(grouping.text) | words_of("x respectively")
    lines = (line for each in evidence.passages for line in each.text.split("\n") if ":" not in line)
    return any(words <= (told := words_of("x " + line)) and not told <= own | {"x"} for line in lines)
