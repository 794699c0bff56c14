"""Emergency actions while the store, the session service or the audit service is down, each really stopped and started (T8, KRN-2)."""

from __future__ import annotations

import contextlib
import json
import time

import httpx
import pytest

from tests.support.kernel_outages import outage_mesh, reason
from tests.support.kernels import failed
from tests.support.servers.processes import run, run_here

pytestmark = pytest.mark.req("KRN-2")

ACTING = {
    "execute": {"action": "small", "key": "late-execute"},
    "permit": {"action": "small", "key": "late-permit"},
    "lease": {"resource": "usd", "lifetime_ms": 1000, "key": "late-lease"},
    "evaluate": {"action": "small"},
}


@pytest.mark.parametrize("part", ["store", "session", "audit"])
def test_a_stop_is_recorded_stands_and_is_sealed_when_the_part_is_back(tmp_path, part):
    """Answered as allowed and not sealed; nothing is permitted from then on; in the chain once, signed, by itself."""
    with outage_mesh(tmp_path) as mesh:
        team = mesh.team()
        team.open()
        mesh.down(part)
        told, again = team.stop(), team.stop()
        refused = [reason(team.post(ask, **body)) for ask, body in ACTING.items()]
        mesh.up(part)
        [sealed] = team.sealed()
        after, shown, retried = team.post("execute", action="small", key="later").json(), team.describe(), team.stop()

    assert told["approved"] and told["recorded_at_ms"] == again["recorded_at_ms"] and told["sequence"] == "0"
    assert refused == ["KERNEL_STOPPED_HERE"] * 4
    assert failed(after["verdict"]) == ["KERNEL_STOPPED"]
    assert shown["stopped"]
    assert (
        retried["approved"] and "recorded_at_ms" not in retried and int(retried["sequence"]) == int(sealed["sequence"])
    )
    assert part == "audit" or sealed["recorded"]["at_ms"] == told["recorded_at_ms"]


def test_a_stop_stands_after_a_restart_while_the_store_is_down_still(tmp_path):
    """The sidecar is killed; the next process knows the kernel and its stop from its folder, and takes another emergency action."""
    with outage_mesh(tmp_path) as mesh:
        team = mesh.team()
        team.open()
        mesh.down("store")
        first = team.stop("first")
        mesh.sidecars[0].kill()
        mesh.sidecars[0].restart()
        refused = reason(team.post("execute", action="small", key="late"))
        again, second = team.stop("first"), team.stop("second")
        mesh.up("store")
        sealed = team.sealed(2)

    assert refused == "KERNEL_STOPPED_HERE"
    assert again["recorded_at_ms"] == first["recorded_at_ms"] and second["recorded_at_ms"]
    assert [one["key"] for one in sealed] == ["first", "second"]


@pytest.mark.parametrize("point", ["kernel.after_record", "kernel.after_append"])
def test_a_sidecar_that_dies_seals_each_once(tmp_path, point):
    """Killed between fsync and answer it was recorded; killed between append and removal it is not appended again."""
    with outage_mesh(tmp_path) as mesh:
        team, sidecar = mesh.team(), mesh.sidecars[0]
        team.open()
        sidecar.kill()
        sidecar.env["INTERLOCK_FAILPOINTS"] = f"{point}:kill"
        sidecar.restart()
        team.describe()
        mesh.down("store")
        with contextlib.suppress(httpx.HTTPError):
            assert team.stop()["recorded_at_ms"]
        if point == "kernel.after_append":
            mesh.up("store")
        sidecar.child.wait(30)
        del sidecar.env["INTERLOCK_FAILPOINTS"]
        sidecar.restart()
        if point == "kernel.after_record":
            mesh.up("store")
        team.sealed()
        told = team.stop()
        sealed, trace, pending = team.emergencies(), team.trace(), (mesh.spool() / "spool").read_text()

    assert told["approved"] and int(told["sequence"]) == 2
    assert len(sealed) == 1 and sealed[0]["recorded"] and len(trace) == 2
    assert '"what":"emergency"' not in pending


def test_a_recorded_stop_comes_before_anything_else_when_the_store_is_back(tmp_path):
    """The audit service is still down, so that it cannot be sealed: what the store would permit is not passed on."""
    with outage_mesh(tmp_path) as mesh:
        team = mesh.team()
        team.open()
        mesh.down("store")
        mesh.down("audit")
        team.stop()
        mesh.up("store")
        mesh.sidecars[0].kill()
        mesh.sidecars[0].restart()
        refused = reason(team.post("execute", action="small", key="early"))
        mesh.up("audit")
        answers = [team.post("execute", action="small", key=f"k{n}").json() for n in range(3)]
        kinds = [one["type"] for one in team.trace()]

    assert refused == "KERNEL_STOPPED_HERE"
    assert all("verdict" not in one or failed(one["verdict"]) == ["KERNEL_STOPPED"] for one in answers)
    assert kinds[:2] == ["KERNEL_OPENED", "KERNEL_EMERGENCY"] and "KERNEL_EXECUTED" not in kinds


def test_a_store_that_was_set_back_gets_the_stop_from_the_spool_once(tmp_path):
    """Empty when it is back: the kernel is restored from its chain, and the recorded stop is decided on that."""
    with outage_mesh(tmp_path) as mesh:
        team = mesh.team()
        team.open()
        team.post("execute", action="task", key="one")
        mesh.down("store")
        team.stop()
        for file in (mesh.folder / "valkey").rglob("*.aof*"):
            file.unlink()
        for file in (mesh.folder / "valkey").rglob("*.manifest"):
            file.unlink()
        mesh.up("store")
        [sealed] = team.sealed()
        shown = team.describe()

    assert sealed["sequence"] == "3" and shown["stopped"]
    assert shown["state"]["active"] == {"number_micros": "1000000"}


def test_two_sidecars_that_record_the_same_action_seal_it_once(tmp_path):
    """Under one key it is one action; under keys of their own it is two, and both are in the chain."""
    with outage_mesh(tmp_path, sidecars=2) as mesh:
        one, other = mesh.team(0), mesh.team(1)
        one.open()
        other.open()
        mesh.down("store")
        told = [team.stop("both") for team in (one, other)] + [one.stop("one"), other.stop("other")]
        mesh.up("store")
        one.sealed(3)
        sealed, shown = other.sealed(3), other.describe()
        spools = [(mesh.spool(number) / "spool").read_text() for number in (0, 1)]
        deadline = time.monotonic() + 20
        while any('"emergency"' in text for text in spools) and time.monotonic() < deadline:
            time.sleep(0.1)
            spools = [(mesh.spool(number) / "spool").read_text() for number in (0, 1)]

    assert all(one["recorded_at_ms"] for one in told)
    assert sorted(one["key"] for one in sealed) == ["both", "one", "other"]
    assert shown["stopped"] and not any('"emergency"' in text for text in spools)
    assert len({one["recorded"]["spool"] for one in sealed}) == 2


def test_what_a_sidecar_does_not_know_is_refused(tmp_path):
    """Another action, another caller's kernel, a kernel that only another sidecar has seen, a child that is not there."""
    with outage_mesh(tmp_path, sidecars=2) as mesh:
        team, other = mesh.team(key="one"), mesh.team(1, key="one")
        team.open()
        team.post("open-child", child="writer", limits=[{"resource": "usd", "micros": 5_000_000}], key="c")
        mesh.down("store")
        refused = [
            team.post("emergency", action="task", key="a"),
            team.post("emergency", action="unknown", key="b"),
            team.post("emergency", action="leave", child="reader", stop=True, key="c"),
            mesh.team(key="two").post("emergency", action="leave", key="d"),
            mesh.team(name="other", key="one").post("emergency", action="leave", key="e"),
            other.post("emergency", action="leave", key="f"),
        ]  # fmt: skip
        malformed = team.post("emergency", action="leave", key="not a key")
        known = team.stop("g", child="writer")
        held = [*mesh.spool(1).glob("spool")]

    assert [reason(one) for one in refused] == ["KERNEL_EMERGENCY_UNKNOWN_HERE"] * 6
    assert {one.status_code for one in refused} == {503}
    assert reason(malformed) == "KERNEL_KEY_INVALID"
    assert known["recorded_at_ms"]
    assert not held, "nothing is recorded of what is not known"


def test_a_recorded_stop_of_a_child_stops_what_is_below_it_alone(tmp_path):
    """Its siblings wait for the kernel like everybody else; it is sealed as the stop of that child."""
    with outage_mesh(tmp_path) as mesh:
        team = mesh.team()
        team.open()
        limits = [{"resource": "usd", "micros": 20_000_000}]
        for child, parent in (("a", ""), ("b", "a"), ("c", "")):
            team.post("open-child", child=child, parent=parent, limits=limits, key=f"open-{child}")
        mesh.down("store")
        team.stop(child="a")
        refused = {
            child: reason(team.post("execute", action="small", child=child, key=f"x{child}")) for child in ("a", "b")
        }
        mesh.up("store")
        team.sealed()
        after = {
            child: team.post("execute", action="small", child=child, key=f"y{child}").json()["verdict"]["approved"]
            for child in "abc"
        }

    assert refused == {"a": "KERNEL_STOPPED_HERE", "b": "KERNEL_STOPPED_HERE"}
    assert after == {"a": False, "b": False, "c": True}


@pytest.mark.parametrize("how", ["edited", "cut", "swapped"])
def test_a_spool_that_others_changed_is_not_believed(tmp_path, how):
    """What verifies is sealed, what does not is not; nothing is permitted until a person has looked, and everybody is told."""
    with outage_mesh(tmp_path) as mesh:
        team, sidecar = mesh.team(), mesh.sidecars[0]
        team.open()
        mesh.down("store")
        path = mesh.spool() / "spool"
        team.stop("first")
        before = path.read_text()
        team.stop("second")
        sidecar.kill()
        text = path.read_text()
        path.write_text(
            {"edited": text.replace('"key":"second"', '"key":"forged"'), "cut": before, "swapped": before[::-1]}[how]
        )
        sidecar.restart()
        env = {**sidecar.env}
        checked = run("check", "-o", "json", env=env)
        mesh.up("store")
        sealed = team.sealed() if how != "swapped" else []
        refused = team.post("execute", action="small", key="k")
        shown = run_here("kernel", "emergencies", "-o", "json", env=env)
        metrics = httpx.get(f"{team.url}/metrics").text
        run_here("kernel", "emergencies", "--looked", env=env)
        after = team.post("execute", action="small", key="l").json()["verdict"]
        log = sidecar.log()

    assert [one["key"] for one in sealed] == (["first"] if how != "swapped" else [])
    assert reason(refused) == "KERNEL_EMERGENCIES_DOUBTED"
    assert "kernel.emergencies_doubted" in log
    assert "interlock_kernel_emergencies_doubted 1.0" in metrics
    found = [one for one in json.loads(checked.stdout)["findings"] if one["group"] == "emergencies"]
    assert found[0]["status"] == "FAIL" and "changed by others" in found[0]["detail"]
    assert shown.returncode == 1 and json.loads(shown.stdout)["doubted"]
    assert failed(after) == (["KERNEL_STOPPED"] if how != "swapped" else [])


def test_a_kernel_that_is_gone_needs_a_person(tmp_path):
    """The audit service comes back with another log: what was recorded is kept, said, and taken out by a person alone."""
    with outage_mesh(tmp_path) as mesh:
        team, sidecar = mesh.team(), mesh.sidecars[0]
        team.open()
        for part in ("store", "audit", "session"):
            mesh.down(part)
        team.stop()
        for file in [*(tmp_path / "state").glob("audit.db*"), *(tmp_path / "valkey").rglob("*.*")]:
            file.unlink()
        for part in ("store", "audit", "session"):
            mesh.up(part)
        env, deadline, told = {**sidecar.env}, time.monotonic() + 20, {}
        while not any(one.get("stuck") for one in told.get("emergencies", ())) and time.monotonic() < deadline:
            told = json.loads(run_here("kernel", "emergencies", "-o", "json", env=env).stdout)
            time.sleep(0.1)
        [stuck] = told["emergencies"]
        team.open()
        refused = reason(team.post("execute", action="small", key="k"))
        checked = run("check", "-o", "json", env=env)
        settled = run_here("kernel", "emergencies", "--settle", str(stuck["number"]), env=env)
        after = team.post("execute", action="small", key="k").json()["verdict"]

    assert stuck["stuck"] == "KERNEL_NOT_FOUND" and stuck["key"] == "stop"
    assert refused == "KERNEL_STOPPED_HERE", "it was answered, whatever became of the kernel"
    assert "KERNEL_NOT_FOUND" in checked.stdout
    assert settled.returncode == 0
    assert after["approved"]


def test_a_full_spool_refuses_and_what_is_in_it_is_sealed(tmp_path):
    """Nothing that was answered is lost."""
    with outage_mesh(tmp_path, emergency_bytes=16_384) as mesh:
        team = mesh.team()
        team.open()
        mesh.down("session")
        answers = [team.post("emergency", action="leave", key=f"k{number}") for number in range(40)]
        mesh.up("session")
        kept = [number for number, one in enumerate(answers) if one.status_code == 200]
        sealed = team.sealed(len(kept))

    assert 5 < len(kept) < 40
    assert {reason(one) for one in answers if one.status_code != 200} == {"KERNEL_EMERGENCIES_FULL"}
    assert [one["key"] for one in sealed] == [f"k{number}" for number in kept]
