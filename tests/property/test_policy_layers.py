"""Whatever the layers say, the effective policy is at least as strict as each of them (I7; reliability.md A-12)."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.domain.policy.directives import NOTHING, Policy, canonical
from interlock.domain.policy.policy_layers import MODES, Layers, resolve
from interlock.domain.policy.policy_order import merge, relaxations
from interlock.domain.policy.policy_text import parse
from tests.support.policy.policies import joinable

MODE = st.sampled_from(["", "", *MODES])
OVERSIGHT = st.sampled_from(["", "", "auto", "human-review", "halt", "log-only"])
LINES = st.lists(joinable().filter(lambda policy: policy != NOTHING), max_size=3)


def resolved(
    default: Policy, base: Policy | None, lines: list[Policy], mode: str, oversight: str, agent: Policy = NOTHING
) -> Policy | None:
    """Return the effective policy; ``None`` when the layers are refused."""
    layers = Layers(
        default=default, base=base, lines=[canonical(line) for line in lines], mode=mode, oversight=oversight,
        report_only_lines=[], accept_risk="", accept_quality=[], agent=agent,
    )  # fmt: skip
    try:
        return resolve(layers)[0]
    except Refused as refused:
        event(refused.reason)
        return None


@pytest.mark.req("POL-2")
@given(joinable(), LINES, MODE, OVERSIGHT)
@settings(max_examples=200)
def test_a_root_is_as_strict_as_every_layer(default, lines, mode, oversight):
    """Neither the deployment's default nor a line, a mode or a header is relaxed by another layer."""
    effective = resolved(default, None, lines, mode, oversight)

    assert effective is not None
    layers = [default, *lines, MODES[mode or "permissive"]]
    layers += [parse(f"oversight {oversight}")] if oversight else []
    assert [found for layer in layers if layer != NOTHING for found in relaxations(layer, effective)] == []


@pytest.mark.req("POL-5", "POL-6")
@given(joinable(), joinable(), LINES, MODE, OVERSIGHT, st.booleans())
@settings(max_examples=300)
def test_a_child_is_as_strict_as_its_base_or_refused(default, base, lines, mode, oversight, tightening):
    """What is not refused relaxes nothing, and what relaxes nothing is not refused."""
    if tightening and lines:
        lines[0] = merge(base, lines[0])
    effective = resolved(default, base, lines, mode, oversight)

    if effective is None:
        assert lines
        assert not tightening
    else:
        assert relaxations(base, effective) == []


@pytest.mark.req("AGT-1", "POL-6")
@given(joinable(), st.none() | joinable(), LINES, joinable())
@settings(max_examples=300)
def test_an_agent_types_policy_only_tightens(default, base, lines, agent):
    """Whatever its type is registered with, an agent is held to it and to all that held before, and nothing is refused for it."""
    before = resolved(default, base, lines, "", "")
    effective = resolved(default, base, lines, "", "", agent)

    assert (effective is None) == (before is None)
    if effective is not None:
        layers = [layer for layer in (before, agent) if layer != NOTHING]
        assert [found for layer in layers for found in relaxations(layer, effective)] == []


@pytest.mark.req("POL-6")
@given(joinable(), st.lists(joinable().filter(lambda policy: policy != NOTHING), min_size=1, max_size=3))
def test_tightening_holds_through_any_depth(root, generations):
    """However deep the chain of agents, the last one is as strict as the first."""
    policy = root
    for asked in generations:
        policy = resolved(NOTHING, policy, [merge(policy, asked)], "", "") or policy

    assert relaxations(root, policy) == []
