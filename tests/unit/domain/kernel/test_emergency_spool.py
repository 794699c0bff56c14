"""A spool of recorded emergency actions: what is read from it, what is noticed, what is believed, and what a stop stops (T8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.kernel.emergency import KernelSeen, entry_in, is_evidence, read_spool, stands
from tests.support.emergency_spools import SIGNED_BY, entry, foreign_key, key_named, read, with_entries, written

pytestmark = pytest.mark.req("KRN-2")


def test_what_was_written_is_read_without_what_is_sealed():
    """Entries in their order; one that is sealed is open no longer, and the reason of one that is stuck is there."""
    text, head = with_entries(3)
    found = read(text, head)
    assert not found.faults
    assert [*found.open] == [2, 3]
    assert found.latest == 3 and found.size == len(text)


def test_stuck_and_again_and_settled():
    """One that cannot be sealed waits for a person, who has it tried again or takes it out."""
    from interlock.domain.kernel.emergency import emergency_line

    lines = [emergency_line(entry(n)) for n in (1, 2)]
    stuck = [{"what": "stuck", "of": n, "reason": "KERNEL_NOT_FOUND"} for n in (1, 2)]
    found = read(*written([*lines, *stuck, {"what": "again", "of": 1}, {"what": "settled", "of": 2}]))
    assert [*found.open] == [1] and not found.stuck
    assert [one.number for one in found.due(entry(1).kernel_id)] == [1]


@pytest.mark.parametrize(
    ("text", "head", "fault"),
    [
        (None, None, ""),
        ("", None, "head"),
        ("", with_entries(0)[1], "gone"),
        (None, with_entries(2)[1], "gone"),
        (with_entries(2)[0], None, "head"),
        (with_entries(2)[0], "0" * 64 + " master-1 {}\n", "head"),
        (with_entries(2)[0], with_entries(3)[1], "cut off"),
        (with_entries(3)[0], with_entries(2)[1], "cut off"),
        (with_entries(2)[0] + "x", with_entries(2)[1], ""),
        (with_entries(2)[0] + "x\n", with_entries(2)[1], "does not follow"),
        (with_entries(2)[0][:-1], with_entries(2)[1], "does not follow"),
        (written([], generation=3)[0], with_entries(2)[1], "older or another"),
    ],
)  # fmt: skip
def test_what_is_gone_cut_or_another_is_noticed(text, head, fault):
    """A line that was being written behind the head was answered to nobody; everything else is a fault."""
    found = read(text, head)
    assert bool(found.faults) == bool(fault)
    assert fault in " ".join(found.faults)


def test_a_line_that_was_written_before_the_machine_stopped_is_read():
    """It is on the disk and its head is not: nobody was answered, and it is done all the same."""
    from interlock.domain.kernel.emergency import emergency_line

    before = written([emergency_line(entry(1))])
    text, _ = written([emergency_line(entry(1)), emergency_line(entry(2))])
    found = read(text, before[1])
    assert not found.faults and [*found.open] == [1, 2]


@pytest.mark.parametrize(
    "name", ["action", "child", "key", "kernel", "scope", "root", "stop", "at_ms", "number", "spool"]
)
def test_an_entry_in_which_anything_was_changed_is_not_believed(name):
    """Not for another kernel, caller or time either."""
    one = entry(1)
    changed = {str: "other", bool: not one.stop, int: 77}[type(getattr(one, name))]
    assert one.believed(key_named)
    assert not replace(one, **{name: changed}).believed(key_named)


def test_another_deployment_believes_nothing():
    """Its key has another value."""
    text, head = with_entries(3)
    found = read_spool(text, head, foreign_key)
    assert found.faults and not found.open


def test_the_sealed_record_alone_shows_that_the_action_was_signed():
    """What the record says is all that the signature covers."""
    one = entry(4, child="writer")
    data = {
        "action": one.action, "key": one.key,
        "recorded": {
            "spool": one.spool, "number": "4", "at_ms": str(one.at_ms), "signed_by": SIGNED_BY, "signature": one.signature,
            "stop": "1", "child": "writer",
        },
    }  # fmt: skip
    sealed = entry_in(one.kernel_id, data)
    assert sealed and sealed.genuine(key_named)
    assert not replace(sealed, stop=False).genuine(key_named)
    assert entry_in(one.kernel_id, {"action": "leave", "key": "k"}) is None


@pytest.mark.parametrize(
    ("change", "fits"),
    [({}, True), ({"spool": "x" * 32}, False), ({"number": 0}, False), ({"number": 2**53}, False), ({"at_ms": -1}, False),
     ({"signed_by": "master-0"}, False), ({"signed_by": "binding"}, True), ({"signature": ""}, False)],
)  # fmt: skip
def test_evidence_has_one_form(change, fits):
    """What cannot be evidence is refused before it gets into a record."""
    given = {"spool": "0a" * 16, "number": 1, "at_ms": 0, "signed_by": "master-1", "signature": "f" * 64}
    assert is_evidence(**{**given, **change}) is fits


SEEN = KernelSeen("crp_sess_x", "owner", "", "team", ("leave",), {"a": "", "b": "a", "c": ""})


@pytest.mark.parametrize(
    ("stopped", "child", "stops"),
    [("", "", True), ("", "a", True), ("a", "", False), ("a", "a", True), ("a", "b", True), ("a", "c", False), ("b", "a", False),
     ("a", "unknown", True)],
)  # fmt: skip
def test_a_stop_stops_its_part_and_all_below(stopped, child, stops):
    """A child that is not known here may be below the one that was stopped."""
    assert stands([entry(1, child=stopped)], child, SEEN) is stops
    assert not stands([], child, SEEN)
    assert stands([entry(1, child=stopped)], child or "any", None)


def test_what_is_known_of_a_kernel_is_read_for_that_kernel_alone():
    """A file that was changed, or is that of another kernel, says nothing."""
    text = SEEN.text(SIGNED_BY, key_named)
    assert KernelSeen.of("crp_sess_x", text, key_named) == SEEN
    assert KernelSeen.of("crp_sess_y", text, key_named) is None
    assert KernelSeen.of("crp_sess_x", text.replace("leave", "leap!"), key_named) is None
    assert KernelSeen.of("crp_sess_x", "", key_named) is None
