"""What the fuzz targets were given and found, once more without the fuzzer: a bug that was found stays found."""

from __future__ import annotations

import pytest

from fuzz import harness

CASES = [(name, path) for name in harness.names() for path in harness.corpus(name)]


@pytest.mark.parametrize(("name", "path"), CASES, ids=[f"{name}-{path.name}" for name, path in CASES])
def test_every_checked_in_input_holds(name, path):
    """Each input of a target's corpus, regressions among them, breaks nothing that the target holds."""
    harness.load(name).TestOneInput(path.read_bytes())


@pytest.mark.parametrize("name", harness.names())
def test_the_seeds_are_checked_in(name):
    """What a target begins with is what it says it begins with."""
    kept = {path.name: path.read_bytes() for path in harness.corpus(name)}

    assert {seed: kept.get(seed) for seed in harness.load(name).seeds()} == harness.load(name).seeds()


def test_a_target_sees_what_it_is_for():
    """The differential of the JSON gate is a differential: a value that two parsers read differently fails it."""
    gate = harness.load("json_gate")

    assert not gate.same(18446744073709551616, 18446744073709551616.0)
    assert not gate.same(1, True)
    assert not gate.same(-0.0, 0.0)


def test_the_seed_of_a_session_is_a_session():
    """The target begins with a hash that is read: one that the reader refuses at once would fuzz nothing."""
    target = harness.load("session_record")

    assert len(target._state(target._fields()).nodes) == 2
