"""The five invariants of the window DAG, each broken alone, and the lineage of a path."""

from __future__ import annotations

import pytest

from interlock.domain.dag.dag import children, lineage_text, violations
from tests.support.session.sessions import node, seal, window_id

LINE = (node(1), node(2, 1), node(3, 2))
DIAMOND = (node(1), node(2, 1), node(3, 1, number=2), node(4, 2, 3, number=3))


@pytest.mark.req("DAG-2")
@pytest.mark.parametrize("nodes", [(), LINE, DIAMOND, (node(1), node(2, 1), node(5, 1, number=2), node(3, 2))])
def test_a_sound_graph_breaks_nothing(nodes):
    """No window, a line, a fan-out and a fan-in all hold."""
    assert violations(nodes) == ()


@pytest.mark.req("DAG-2")
@pytest.mark.parametrize(
    ("nodes", "broken"),
    [
        ((node(1), node(2, 3), node(3, 2)), "CYCLE"),
        ((node(1, 1),), "CYCLE"),
        ((node(1, 2), node(2, 1)), "NO_ROOT"),
        ((node(1), node(2, number=1)), "SECOND_ROOT"),
        ((node(1, number=2),), "ROOT_NUMBER"),
        ((node(1), node(2, 9)), "UNREACHABLE"),
        ((node(1), node(2, 1, seal=seal(2, hmac=""))), "NOT_CHAINED"),
        ((node(1), node(2, 1, seal=seal(1))), "NOT_CHAINED"),
        ((node(1), node(2, 1, number=4)), "NUMBERING"),
        ((node(1), node(2, 1, number=1)), "NUMBERING"),
        ((node(1), node(2, 1), node(2, 1)), "DUPLICATE_ID"),
    ],
)
def test_each_invariant_is_named_when_it_breaks(nodes, broken):
    """Acyclic, one root, connected, chained, numbered one further than the parent (SPEC-004 §3.3)."""
    assert broken in {found.partition(":")[0] for found in violations(nodes)}


@pytest.mark.req("DAG-1")
def test_children_are_the_other_side_of_parents():
    """Each node's child_ids follow from the parent_ids of the others, in order."""
    assert children(DIAMOND) == {
        window_id(1): (window_id(2), window_id(3)),
        window_id(2): (window_id(4),),
        window_id(3): (window_id(4),),
        window_id(4): (),
    }


@pytest.mark.req("DAG-11")
def test_the_lineage_of_a_line_runs_from_the_root():
    """CRP-Provenance-Window-Lineage of a linear path (SPEC-004 §4.2)."""
    assert lineage_text(each.window_id for each in LINE) == f"{window_id(1)} -> {window_id(2)} -> {window_id(3)}"
