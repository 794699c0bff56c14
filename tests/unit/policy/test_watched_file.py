"""A file that is read again when it changes: the last good state stays in force, and a bad one is told once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from interlock.domain.agents import read_registry
from interlock.domain.errors import Refused
from interlock.policy.watched import LARGEST_BYTES, WatchedFile
from tests.support.policy.agents import SPECIFICATION, digest, fields, write

OTHER = {"agents": {"other": fields("k")}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "agents.yaml", SPECIFICATION)


@pytest.fixture
def watched(path: Path) -> WatchedFile:
    return WatchedFile(path, read_registry, setting="agents_file")


def names(watched: WatchedFile) -> list[str]:
    return list(watched.now.value.by_name)


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, {"setting": "agents_file", **labels}) or 0.0


@pytest.mark.req("AGT-1")
def test_a_changed_file_comes_into_force(watched, path):
    """With its hash, and counted."""
    before, accepted = watched.now.hash, sample("interlock_policy_file_reloads_total", outcome="accepted")
    write(path, OTHER)

    watched.refresh()

    assert names(watched) == ["other"]
    assert watched.now.hash != before
    assert sample("interlock_policy_file_reloads_total", outcome="accepted") == accepted + 1


@pytest.mark.req("AGT-1")
def test_a_change_within_one_tick_of_the_clock_is_noticed(watched, path):
    """Size and times may be the same; the content is not."""
    times = path.stat()
    path.write_text(path.read_text().replace("specialist_legal", "specialist_legak"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    watched.refresh()

    assert names(watched) == ["orchestrator", "specialist_legak"]


BAD = {
    "bad field": '{"agents": {"a": {"api_key": "crp_gw_secret"}}}',
    "no YAML": "agents: [",
    "a key twice": "agents: {}\nagents: {}\n",
    "an agent twice": f'agents:\n  a: {{api_key: "sha256:{digest("x")}"}}\n  a: {{api_key: "sha256:{digest("y")}"}}\n',
    "an alias": (
        f'agents:\n  a: {{api_key: "sha256:{digest("x")}", safety_policy: &p halt-on HIGH}}\n'
        f'  b: {{api_key: "sha256:{digest("y")}", safety_policy: *p}}\n'
    ),
    "an object": "agents: !!python/object/apply:os.system [id]\n",
    "two documents": "agents: {}\n---\nagents: {}\n",
    "bottomless": "[" * 50_000,
    "a mapping as key": "? {a: b}\n: c\n",
    "empty": "",
    "too large": "#" * (LARGEST_BYTES + 1),
}


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_while_the_good_one_stays(watched, path, text):
    """Told in the log, in a metric and in the state, once; a key that was written plainly is told nowhere."""
    refused = sample("interlock_policy_file_reloads_total", outcome="refused")
    path.write_text(text)

    with capture_logs() as lines:
        watched.refresh()
        watched.refresh()

    assert names(watched) == ["orchestrator", "specialist_legal"]
    assert watched.now.fault.partition(":")[0] in {"AGENTS_INVALID", "FILE_MALFORMED", "FILE_TOO_LARGE"}
    assert [line["event"] for line in lines] == ["policy.file.refused"]
    assert sample("interlock_policy_file_reloads_total", outcome="refused") == refused + 1
    assert sample("interlock_policy_file_faulty") == 1
    assert "secret" not in f"{watched.now.fault} {lines}"


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_file_refuses_to_start(tmp_path, text):
    """Nothing starts on a registry that cannot be read."""
    path = tmp_path / "bad.yaml"
    path.write_text(text)

    with pytest.raises(Refused):
        WatchedFile(path, read_registry, setting="agents_file")


def test_a_line_that_cannot_be_read_is_named(watched, path):
    """By line and column."""
    path.write_text("agents:\n  a: {api_key: x\n")
    watched.refresh()

    assert "line 3" in watched.now.fault


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize("content", [SPECIFICATION, OTHER])
def test_a_file_that_is_mended_is_in_force_again(watched, path, content):
    """Whether it is the old one or another."""
    path.write_text("agents: [")
    watched.refresh()

    write(path, content)
    watched.refresh()

    assert (watched.now.fault, names(watched)) == ("", list(content["agents"]))
    assert sample("interlock_policy_file_faulty") == 0


@pytest.mark.req("AGT-1")
def test_a_file_that_vanishes_and_comes_back(watched, path):
    """While it is away the last good one holds, and the fault says so."""
    aside = path.rename(path.with_suffix(".aside"))
    watched.refresh()
    assert watched.now.fault.startswith("FILE_UNREADABLE")
    assert names(watched) == ["orchestrator", "specialist_legal"]

    aside.rename(path)
    watched.refresh()

    assert watched.now.fault == ""


def test_what_is_no_regular_file_is_not_waited_for(watched, path):
    """A pipe in the place of the file would be read for ever."""
    path.unlink()
    os.mkfifo(path)

    watched.refresh()

    assert "not a regular file" in watched.now.fault
