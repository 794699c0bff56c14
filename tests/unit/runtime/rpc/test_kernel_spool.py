"""The spool of recorded emergency actions on the disk: durable, bounded, shared, and put aside where others changed it (T8)."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace

import pytest

from interlock.domain.errors import Refused
from interlock.domain.kernel.definition import kernel_id_of
from interlock.domain.kernel.emergency import EmergencyEntry
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.keys.emergency_keys import EmergencyKeys
from interlock.runtime.rpc.kernels.spool import DOUBTED, SpoolFile

pytestmark = pytest.mark.req("KRN-2")

KEYS = EmergencyKeys(Keyring({1: bytes(range(32))}))
NOW_US = 1_800_000_000_000_000


def asked(key: str = "k", *, stop: bool = True, kernel: str = "team") -> EmergencyEntry:
    return EmergencyEntry("", 0, kernel_id_of("me", "", kernel), "me", "", kernel, "leave", stop, "", key, 5, "")


def spool_in(folder, *, most_bytes: int = 100_000, keys: EmergencyKeys = KEYS) -> SpoolFile:
    return SpoolFile(folder / "emergencies", keys, most_bytes)


def test_what_was_recorded_is_there_after_a_restart(tmp_path):
    """Signed, under its number, until it is sealed; then the file begins anew."""
    first = spool_in(tmp_path)
    one, two = (first.record(asked(key), NOW_US) for key in ("a", "b"))
    again = spool_in(tmp_path)
    assert list(again.look().open.values()) == [one, two]
    assert one.genuine(KEYS.named) and two.number == one.number + 1
    again.note(one.number, "sealed", sequence=7)
    again.note(two.number, "sealed", sequence=8)
    last = spool_in(tmp_path).look()
    assert not last.open and not last.faults and last.latest == two.number
    assert last.size < 400, "what is sealed takes no room"


def test_the_same_key_is_recorded_once(tmp_path):
    """Asked again it is the same; for something else it is refused; another kernel has keys of its own."""
    spool = spool_in(tmp_path)
    one = spool.record(asked(), NOW_US)
    assert spool.record(asked(), NOW_US + 5) == one
    with pytest.raises(Refused, match="KERNEL_KEY_REUSED"):
        spool.record(asked(stop=False), NOW_US)
    assert spool.record(asked(kernel="other"), NOW_US) != one


def test_a_full_spool_refuses_and_loses_nothing(tmp_path):
    """What is in it stays, and can be noted as sealed; then there is room again."""
    spool, kept = spool_in(tmp_path, most_bytes=3_000), list[EmergencyEntry]()
    with pytest.raises(Refused, match="KERNEL_EMERGENCIES_FULL"):
        for number in range(100):
            kept.append(spool.record(asked(f"k{number}"), NOW_US))
    assert list(spool_in(tmp_path).look().open.values()) == kept
    spool.note(kept[0].number, "sealed", sequence=1)
    spool.note(kept[1].number, "sealed", sequence=2)
    assert spool.record(asked("later"), NOW_US).key == "later"
    assert [one.key for one in spool_in(tmp_path).look().open.values()] == [one.key for one in kept[2:]] + ["later"]


def test_processes_that_share_a_folder_share_the_spool(tmp_path):
    """What one recorded the other sees; neither gives a number twice."""
    one, other = spool_in(tmp_path), spool_in(tmp_path)
    first = one.record(asked("a"), NOW_US)
    assert other.changed() and other.look().open == {first.number: first}
    second = other.record(asked("b"), NOW_US)
    assert second.number > first.number
    assert [*one.look().open.values()] == [first, second]
    one.note(first.number, "sealed", sequence=1)
    assert [*other.look().open] == [second.number]


def recorded_by_a_process(folder, name: str) -> None:
    spool = spool_in(folder)
    for number in range(20):
        spool.record(asked(f"{name}{number}"), NOW_US)


def test_processes_that_record_at_once_lose_nothing(tmp_path):
    """Each waits for the other, and goes on behind what that has written."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=recorded_by_a_process, args=(tmp_path, name)) for name in "ab"]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    found = spool_in(tmp_path).look()
    assert sorted(one.key for one in found.open.values()) == sorted(
        f"{name}{number}" for name in "ab" for number in range(20)
    )
    assert not found.faults


@pytest.mark.parametrize("how", ["edited", "cut", "gone", "head", "older", "all gone"])
@pytest.mark.parametrize("running", [True, False])
def test_what_others_changed_is_put_aside_until_a_person_has_looked(tmp_path, how, running):
    """A running process knows what was open and keeps it; a new one keeps what is signed and is there. Whole folders set back show to the first alone."""
    spool = spool_in(tmp_path)
    first = spool.record(asked("a"), NOW_US)
    path, head = spool.folder / "spool", spool.folder / "head"
    before = path.read_text()
    second = spool.record(asked("b"), NOW_US)
    content = path.read_text()
    changes = {
        "edited": lambda: path.write_text(content.replace('"key":"b"', '"key":"c"')),
        "cut": lambda: path.write_text(before),
        "gone": path.unlink,
        "head": head.unlink,
        "older": lambda: (path.unlink(), path.write_text(before + "x\n")),
        "all gone": lambda: (path.unlink(), head.unlink()),
    }
    changes[how]()
    now = spool if running else spool_in(tmp_path)
    found = [*now.look().open.values()]
    if how == "all gone" and not running:
        assert not now.doubted, "nothing in the folder says that there was something"
        return
    if how == "head" and running:
        assert not now.doubted, "the spool is as it was; the next line writes the head again"
        return
    assert now.doubted
    assert [*now.folder.glob(DOUBTED + "*")]
    assert found == ([first, second] if running or how == "head" else [first] if how != "gone" else [])
    assert not spool_in(tmp_path).look().faults, "the new file verifies"
    spool_in(tmp_path).looked_at()
    now.look()
    assert not now.doubted
    assert [*now.folder.glob("seen-*")], "what was changed stays"


def test_numbers_go_on_where_a_folder_was_set_back(tmp_path):
    """By the clock: a kernel takes each number of a spool once, so that one which was given twice would be lost."""
    spool = spool_in(tmp_path)
    one = spool.record(asked("a"), NOW_US)
    assert spool.record(asked("b"), NOW_US - 10).number == one.number + 1
    assert spool.record(asked("c"), NOW_US + 900).number == NOW_US + 900


def test_a_key_that_is_not_at_hand_believes_nothing(tmp_path):
    """What another key signed is put aside, and is not sealed."""
    spool_in(tmp_path).record(asked(), NOW_US)
    other = spool_in(tmp_path, keys=EmergencyKeys(None, bytes(range(1, 33))))
    assert not other.look().open and other.doubted


def test_a_disk_that_takes_nothing_is_a_refusal(tmp_path):
    """Nobody is told that it is recorded."""
    (tmp_path / "emergencies").write_text("not a folder")
    with pytest.raises(Refused, match="KERNEL_EMERGENCY_UNRECORDED"):
        spool_in(tmp_path).record(asked(), NOW_US)


def test_a_line_that_was_cut_off_while_it_was_written_is_written_over(tmp_path):
    """It was answered to nobody."""
    spool = spool_in(tmp_path)
    one = spool.record(asked("a"), NOW_US)
    with (spool.folder / "spool").open("a") as file:
        file.write("0123 {")
    again = spool_in(tmp_path)
    two = again.record(asked("b"), NOW_US)
    assert [*spool_in(tmp_path).look().open.values()] == [one, two]
    assert not again.doubted
    assert replace(one, key="x").signature == one.signature
