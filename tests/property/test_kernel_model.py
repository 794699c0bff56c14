"""The model of leases and permits: every state of it holds T1 to T5, and planted faults are found (KRN-12; docs/adr/0043)."""

from __future__ import annotations

import pytest

from docs.models.checker import Checked, Checker
from docs.models.kernel import Bounds, Model, started
from docs.models.kernel_faults import AnsweredBeforeTheSeal, ReturnedWithoutFence, SealedBesideTheChain
from docs.models.kernel_laws import check, same

LEASES, PERMITS = ("lease",) * 3, ("permit",) * 3

QUICK = [
    (Bounds(("lease",), operations=2, failovers=0, passes=1), 700),
    (Bounds(("lease",), cut_off=True, fine=True), 500),
    (Bounds(("permit",), limit=3, cut_off=True, fine=True), 300),
    (Bounds(LEASES, failovers=0, crashes=0), 500),
    (Bounds(PERMITS, limit=3, crashes=0), 8_000),
]
LONG = [
    (Bounds(LEASES, failovers=0), 60_000),
    (Bounds(PERMITS, limit=3, failovers=0), 6_000),
    (Bounds(("lease", "permit"), limit=3), 40_000),
]
FAULTS = [
    (ReturnedWithoutFence, Bounds(("lease",), operations=2, failovers=0, passes=1), "T1"),
    (AnsweredBeforeTheSeal, Bounds(LEASES, crashes=0), "T5"),
    (SealedBesideTheChain, Bounds(LEASES, crashes=0), "T5"),
]


def checked(model: Model) -> Checked:
    return Checker(model.successors, check, lambda world: same(world, model.bounds)).run(started(model.bounds))


@pytest.mark.req("KRN-2", "KRN-12")
@pytest.mark.parametrize(("bounds", "least"), QUICK)
def test_every_state_of_the_model_holds_the_laws(bounds, least):
    """Three agents, or one with more that goes wrong: crashes, failover, expiry, late and doubled requests, forgotten keys."""
    found = checked(Model(bounds))

    assert found.broken == "", "\n".join(found.trace)
    assert found.states >= least, "the model lost steps"


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.req("KRN-2", "KRN-12")
@pytest.mark.parametrize(("bounds", "least"), LONG)
def test_every_state_of_larger_bounds_holds_the_laws(bounds, least):
    """Three agents with a crash at any step; two with a failover too."""
    found = checked(Model(bounds))

    assert found.broken == "", "\n".join(found.trace)
    assert found.states >= least, "the model lost steps"


@pytest.mark.req("KRN-12")
@pytest.mark.parametrize(("faulty", "bounds", "law"), FAULTS)
def test_a_planted_fault_is_found(faulty, bounds, law):
    """A return without its fence, an answer before its seal and a seal beside the chain each break a law, with the steps to it."""
    found = checked(faulty(bounds))

    assert found.broken.startswith(law)
    assert found.trace
