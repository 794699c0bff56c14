"""Whatever graph of windows is sealed, in whatever order, it verifies, and every single change of it is found."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.audit import requests
from interlock.audit.sealing.prefixes import Prefixes
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import examine
from interlock.domain.chain.chain import Integrity
from tests.support.audit.audit import KEYRING, Ticking, hash_of, report, session_id, temporary_log, window, window_id

REPORT = report(0)


@st.composite
def graphs(draw):
    """A list of (pattern, positions of its parents), each of which comes before it; the first is the root."""
    shape: list[tuple[str, tuple[int, ...]]] = [("LINEAR", ())]
    for position in range(1, draw(st.integers(2, 9))):
        pattern = draw(st.sampled_from(["LINEAR", "FAN_OUT", "BRANCH", "FAN_IN"]))
        least = 2 if pattern == "FAN_IN" else 1
        if least > position:
            pattern, least = "BRANCH", 1
        parents = draw(st.lists(st.integers(0, position - 1), min_size=least, max_size=max(least, 3), unique=True))
        shape.append((pattern, tuple(parents if pattern == "FAN_IN" else parents[:1])))
    return shape


def sealed(shape):
    """Seal what may be sealed of *shape*; return the chain and how many windows it refused as overtaken."""
    sealer, prefixes = Sealer(KEYRING, Ticking(), os.urandom), Prefixes(KEYRING)
    with temporary_log() as log:
        rows: dict[int, object] = {}
        refused = 0
        for position, (pattern, parents) in enumerate(shape):
            if any(parent not in rows for parent in parents):
                continue
            number = max((rows[p].window_number for p in parents), default=0) + 1
            asked = window(
                number,
                "x",
                window_id=window_id(position),
                parent_ids=[window_id(parent) for parent in parents],
                parent_hmacs=[rows[parent].hmac for parent in parents],
                response_hash=hash_of(position),
                pattern=pattern,
                report=REPORT,
                events=[],
            )
            draft = requests.draft(asked)
            found = prefixes.verified(log, session_id())
            recheck = partial(prefixes.recheck, session_id=session_id())
            [outcome] = log.commit([partial(sealer.seal, draft=draft, verified=found, recheck=recheck)])
            if outcome.error is None:
                rows[position] = outcome.value.window
            else:
                assert outcome.error.reason == "CHAIN_CONFLICT"
                refused += 1
        return log.chain(session_id()), refused


@pytest.mark.req("PRV-1", "PRV-2", "DAG-3")
@settings(max_examples=60, deadline=None)
@given(graphs())
def test_every_graph_that_is_sealed_verifies(shape):
    """Only a linear window that comes too late is refused."""
    chain, refused = sealed(shape)
    late = refused == 0 or any(pattern == "LINEAR" for pattern, parents in shape if parents)

    found = examine(chain, session_id(), KEYRING)

    assert found.integrity is (Integrity.VALID if len(chain.windows) > 1 else Integrity.UNVERIFIED)
    assert found.windows + refused <= len(shape)
    assert late


@pytest.mark.req("PRV-2")
@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_every_change_of_a_window_is_found_at_that_window(shape, data):
    """Its parents, number, hashes, time, charge or status: the fault carries its id."""
    chain, _ = sealed(shape)
    position = data.draw(st.integers(0, len(chain.windows) - 1))
    victim = chain.windows[position]
    changes = {
        "parent_ids": tuple(
            w.window_id for w in chain.windows[: 1 + position % 2] if w.window_id not in victim.parent_ids
        ),
        "window_number": victim.window_number + 1,
        "response_hash": hash_of(999),
        "timestamp": "2020-01-01T00:00:00Z",
        "hmac": hash_of(998),
        "charge_micros": 0,
        "status": "HALTED",
    }
    field = data.draw(st.sampled_from([name for name, value in changes.items() if getattr(victim, name) != value]))
    windows = [replace(victim, **{field: changes[field]}) if w is victim else w for w in chain.windows]

    found = examine(replace(chain, windows=tuple(windows)), session_id(), KEYRING)

    assert found.integrity is Integrity.BROKEN
    assert victim.window_id in {fault.window_id for fault in found.faults}
