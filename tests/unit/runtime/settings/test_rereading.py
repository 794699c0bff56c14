"""A file that is read again when it changes, and whose last good state stays in force."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from interlock.domain.errors import Refused, invalid
from interlock.runtime.settings.rereading import LARGEST_BYTES, Reread, read_content


def number(contents) -> int:
    if contents[0] == b"trips":
        raise RecursionError
    if not contents[0].isdigit():
        raise invalid("NO_NUMBER", "it is no number")
    return int(contents[0])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "number"
    path.write_text("1")
    return path


def told(setting: str, outcome: str) -> float:
    return REGISTRY.get_sample_value("interlock_file_reloads_total", {"setting": setting, "outcome": outcome}) or 0


def test_a_change_is_in_force_at_the_next_look(path):
    """It is counted and logged, without what the file says."""
    held, before = Reread([path], number, setting="changing"), told("changing", "accepted")
    path.write_text("2")
    with capture_logs() as lines:
        assert held.refresh() == held.refresh() == 2

    assert told("changing", "accepted") == before + 1
    assert [line["event"] for line in lines] == ["file.reloaded"]


@pytest.mark.parametrize("bad", ["x", "trips", None, "1" * (LARGEST_BYTES + 1)])
def test_what_cannot_be_used_is_told_once_and_the_good_value_stays(path, bad):
    """Nonsense, a reader that trips, a file that is gone, one that is too large: and back to good by itself."""
    held = Reread([path], number, setting="faulty")
    path.unlink() if bad is None else path.write_text(bad)
    with capture_logs() as lines:
        assert [held.refresh() for _ in range(3)] == [1, 1, 1]
    assert [line["event"] for line in lines] == ["file.refused"]
    assert REGISTRY.get_sample_value("interlock_file_faulty", {"setting": "faulty"}) == 1
    path.write_text("1")

    assert held.refresh() == 1
    assert REGISTRY.get_sample_value("interlock_file_faulty", {"setting": "faulty"}) == 0


def test_between_two_looks_the_file_is_not_read(path):
    """Asking often costs nothing: within the second the value is the one of before."""
    held = Reread([path], number, setting="resting")
    path.write_text("2")

    assert held.now() == 1


def test_the_first_state_must_be_good(path):
    """Nothing starts on a file that cannot be used."""
    path.write_text("x")
    with pytest.raises(Refused, match="NO_NUMBER"):
        Reread([path], number, setting="first")


@pytest.mark.parametrize(
    ("mode", "refused"), [(0o600, False), (0o640, False), (0o604, True), (0o602, True), (0o644, True)]
)
def test_a_secret_that_everybody_may_read_or_change_is_none(path, mode, refused):
    """Owner and group may; a mounted secret is often readable by its group."""
    path.chmod(mode)
    if refused:
        with pytest.raises(Refused, match="KEY_FILE_EXPOSED"):
            read_content(path, secret=True)
    else:
        assert read_content(path, secret=True) == b"1"


def test_a_folder_is_no_file(tmp_path):
    """Nor is a device or a pipe."""
    with pytest.raises(Refused, match="FILE_UNREADABLE"):
        read_content(tmp_path)
