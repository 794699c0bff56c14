"""What led to a window: brackets around what ran in parallel, quality beside it, and degradation."""

from __future__ import annotations

import pytest

from interlock.domain.dag.dag import FAN_IN, FAN_OUT, NO_SEAL
from interlock.domain.dag.lineage import (
    LINEAGE_KEPT,
    LONGEST_TEXT,
    NO_HISTORY,
    Degradation,
    Step,
    as_steps,
    find_degradation,
    trace_history,
)
from tests.support.session.sessions import node, window_id


def step(name: str, number: int, tier: str, *parents: int) -> Step:
    return Step(name, number, tier, "COMPLETED", "LINEAR", parents)


APPENDIX_A = [
    step("w1", 1, "A"),
    step("w2a", 2, "A", 0),
    step("w2b", 2, "A", 0),
    step("w2c", 2, "B", 0),
    step("w3a", 3, "B", 1),
    step("w4", 4, "B", 4, 2, 3),
]
CROSSED = [
    step("r", 1, "A"),
    step("a", 2, "A", 0),
    step("b", 2, "B", 0),
    step("c", 2, "B", 0),
    step("i", 3, "C", 1, 2),
    step("j", 3, "C", 2, 3),
    step("e", 4, "D", 4, 5),
]
NESTED = [
    step("r", 1, "A"),
    step("a", 2, "A", 0),
    step("b", 2, "A", 0),
    step("a1", 3, "A", 1),
    step("a2", 3, "B", 1),
    step("am", 4, "A", 3, 4),
    step("e", 5, "A", 2, 5),
]


@pytest.mark.req("DAG-11", "DAG-8")
@pytest.mark.parametrize(
    ("steps", "places", "lineage", "quality"),
    [
        (APPENDIX_A, [0], "w1", "A"),
        (APPENDIX_A, [4], "w1 -> w2a -> w3a", "A,A,B"),
        (APPENDIX_A, [5], "w1 -> [w2a -> w3a, w2b, w2c] -> w4", "A,[A,A,B],[B],B"),
        (APPENDIX_A, [2, 3, 4], "w1 -> [w2a -> w3a, w2b, w2c]", "A,[A,A,B],[B]"),
        (NESTED, [6], "r -> [a -> [a1, a2] -> am, b] -> e", "A,[A,A],[A,B],[A],A"),
        (CROSSED, [6], "r -> [a, b, c] -> [i, j] -> e", "A,[A,B,B],[C,C],D"),
    ],
)
def test_parallel_windows_stand_in_brackets(steps, places, lineage, quality):
    """As SPEC-004 Appendix A writes it: threads with their own arrows, one bracket per level of quality."""
    found = trace_history(steps, places)

    assert (found.lineage_text, found.quality_text) == (lineage, quality)


def test_windows_that_did_not_lead_here_are_left_out():
    """A sibling and its line are no part of a window's history."""
    found = trace_history(APPENDIX_A, [2])

    assert (found.lineage, found.tiers) == (("w1", "w2b"), ("A", "A"))


@pytest.mark.req("DAG-11")
def test_every_ancestor_stands_after_its_own_parents():
    """The list of ids can be read from left to right."""
    lineage = trace_history(NESTED, [6]).lineage

    assert sorted(lineage) == sorted(each.window_id for each in NESTED)
    for each in NESTED:
        assert all(lineage.index(NESTED[at].window_id) < lineage.index(each.window_id) for at in each.parents)


def test_a_parallel_lineage_beyond_the_bound_has_no_text():
    """Thousands of windows side by side are not drawn; the latest of any line are listed."""
    wide = [step("r", 1, "A"), *(step(f"c{n}", 2, "B", 0) for n in range(LONGEST_TEXT))]
    wide.append(step("e", 3, "B", *range(1, LONGEST_TEXT + 1)))
    line = [step(f"w{n}", n, "A", *([n - 2] if n > 1 else [])) for n in range(1, 1001)]
    found = trace_history(wide, [len(wide) - 1])

    assert (found.lineage_text, len(found.lineage)) == ("", LINEAGE_KEPT)
    assert trace_history(line, [999]).lineage[-2:] == ("w999", "w1000")
    assert trace_history(line, [LINEAGE_KEPT - 1]).lineage_text.endswith(f"w{LINEAGE_KEPT - 1} -> w{LINEAGE_KEPT}")


def test_nothing_has_no_history():
    """Before the first window there is none."""
    assert trace_history([], []) == NO_HISTORY


def test_nodes_are_steps_whose_parents_are_places():
    """The nodes of a session, a failed one among them."""
    nodes = (
        node(1),
        node(2, 1, pattern=FAN_OUT, seal=NO_SEAL),
        node(3, 1, number=2),
        node(4, 3, number=3, pattern=FAN_IN),
    )
    steps = as_steps(nodes)

    assert [each.parents for each in steps] == [(), (0,), (0,), (2,)]
    assert (steps[1].status, steps[1].pattern, steps[3].number) == ("FAILED", FAN_OUT, 3)
    assert trace_history(steps, [3]).lineage == (window_id(1), window_id(3), window_id(4))


@pytest.mark.req("DAG-8")
@pytest.mark.parametrize(
    ("tiers", "found"),
    [
        ("", Degradation.NONE),
        ("D", Degradation.NONE),
        ("AA", Degradation.NONE),
        ("CB", Degradation.NONE),
        ("AB", Degradation.FIRST_DROP),
        ("AAB", Degradation.FIRST_DROP),
        ("BBD", Degradation.FIRST_DROP),
        ("ABC", Degradation.SUSTAINED),
        ("SAB", Degradation.SUSTAINED),
        ("BCD", Degradation.CRITICAL),
        ("ABD", Degradation.CRITICAL),
        ("DD", Degradation.PERSISTENT),
        ("SDD", Degradation.PERSISTENT),
        ("DDC", Degradation.NONE),
    ],
)
def test_the_end_of_a_path_shows_its_degradation(tiers, found):
    """The four patterns of SPEC-004 §13.2, and what is none of them."""
    assert find_degradation(tiers) is found
