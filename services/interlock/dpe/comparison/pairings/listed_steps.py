"""Steps of an answer's numbered list that stand in another order than those of the source's list (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.document import Sentence

_MARK = frozenset({4, 5})
"""Characters between two items of a numbered list: the end of a line, the number, its point and a space."""
_LEAST, _MOSTLY, _LEAST_STEPS = 2, 0.5, 3


def items(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the first sentence of each item of the numbered list of an answer; none where too few stand like that."""
    found = [
        each
        for n, each in enumerate(sentences)
        if (each.start - sentences[n - 1].end in _MARK if n else each.start + 1 in _MARK)
    ]
    return found if len(found) >= _LEAST_STEPS else []


def misordered(listed: Sequence[ReadSentence], evidence: Evidence) -> Iterator[tuple[ReadSentence, Misbinding]]:
    """Yield the item that stands behind one which comes after it in the source, where all others stand in order."""
    for steps in evidence.steps:
        placed = _placed(listed, steps)
        places = [place for _, place in placed]
        if len(places) < _LEAST_STEPS:
            continue
        late = [n for n in range(len(placed)) if n and places[n] < places[n - 1]]
        if len(late) == 1:
            (item, place), (_, before) = placed[late[0]], placed[late[0] - 1]
            step = steps[place]
            yield (
                item,
                Misbinding(
                    NEGATION_FLIP,
                    "order",
                    f"step {place + 1}: {step.text}",
                    f"behind step {before + 1}: {item.text}",
                    step.text,
                    step.fact_id,
                    about=item.content,
                ),
            )


def _placed(listed: Sequence[ReadSentence], steps: Sequence[ReadSentence]) -> list[tuple[ReadSentence, int]]:
    """Return the items that tell a step more closely than the other items do, in their order, each with its step from 0.

    Of as many items as there are steps, one that is left over tells the step that is left over, if it has a word of it.
    """
    best: dict[int, tuple[int, int]] = {}
    for n, item in enumerate(listed):
        shared, place = _place(item, steps)
        if shared and shared > best.get(place, (0, 0))[0]:
            best[place] = (shared, n)
    found = {n: place for place, (_, n) in best.items()}
    if len(listed) == len(steps) == len(found) + 1:
        (item_left,) = set(range(len(listed))) - found.keys()
        (step_left,) = set(range(len(steps))) - set(found.values())
        if listed[item_left].told.whole & steps[step_left].told.whole:
            found[item_left] = step_left
    return [(listed[n], found[n]) for n in sorted(found)]


def _place(item: ReadSentence, steps: Sequence[ReadSentence]) -> tuple[int, int]:
    """Return how many words an item shares with the step that it tells, and which that is; 0 words where that is not clear."""
    said = item.told.whole
    ranked = sorted(((len(said & step.told.whole), -n) for n, step in enumerate(steps)), reverse=True)
    (best, place), (second, _) = ranked[0], ranked[1]
    return (best if best > second and best >= _LEAST and best >= _MOSTLY * len(said) else 0), -place
