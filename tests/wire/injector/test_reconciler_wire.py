"""Pods that run without their sidecar, found by the real injector from an API server over TLS."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.injector import reconciler
from interlock.injector.census import Why
from interlock.injector.reconciler import Reconciler
from interlock.injector.rules import InjectorRules, Reconciling
from interlock.runtime.egress.kubernetes import Cluster, access_of_pod
from tests.support.servers.api_server import ApiServer, running_api_server
from tests.support.servers.cluster import NAMESPACES, PODS, namespace
from tests.support.servers.processes import Processes
from tests.support.servers.tls import a_mesh_of_certificates, until
from tests.unit.injector.test_golden_pods import FOLDER, rules

pytestmark = [pytest.mark.req("KUB-3"), pytest.mark.timeout(120)]

OLD = "2026-01-01T00:00:00Z"
CONTAINERS = {"containers": [{"name": "app"}]}


@pytest.fixture(scope="module")
def standing(tmp_path_factory) -> Iterator[ApiServer]:
    with running_api_server(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def server(standing) -> ApiServer:
    """A labelled namespace with a pod from before the webhook, one that an annotation alone asks for, and one that is fine."""
    asks = {"annotations": {"interlock.dev/inject": "true"}}
    standing.posted = []
    standing.objects = {
        NAMESPACES: {"items": [namespace("agents", "enabled"), namespace("others"), namespace("mesh", "enabled")]},
        PODS: {"items": [pod("old", owner="rs-1"), pod("hopeful", "others", **asks), pod("fine", "others"), pod("own", "mesh")]},
    }  # fmt: skip
    return standing


def pod(name: str, place: str = "agents", *, owner: str = "", created: str = OLD, **metadata: Any) -> dict[str, Any]:
    owners = {"ownerReferences": [{"uid": owner, "controller": True}]} if owner else {}
    held = {"name": name, "namespace": place, "uid": f"uid-{name}", "creationTimestamp": created, **owners, **metadata}
    return {"metadata": held, "spec": CONTAINERS, "status": {"phase": "Running"}}


def asked(action: str = "report") -> InjectorRules:
    made = Reconciling(action=action, seconds=60, namespace="mesh")  # type: ignore[arg-type]
    return rules().model_copy(update={"reconcile": made})


def looking(server: ApiServer, found: InjectorRules, now: float = 1_800_000_000) -> Reconciler:
    access = access_of_pod(f"https://127.0.0.1:{server.port}", server.folder)
    return Reconciler(Cluster(access), lambda: found, now=lambda: now)


def paths(server: ApiServer, end: str) -> list[str]:
    return [path for path, _ in server.posted if path.endswith(end)]


def test_the_injector_tells_what_it_never_saw(server, tmp_path):
    """As a process: counted, logged, and an event beside each pod; told once, and taken back when the pod is gone."""
    a_mesh_of_certificates(tmp_path / "certificates")
    held = tmp_path / "certificates"
    file = tmp_path / "rules.yaml"
    file.write_text((FOLDER / "rules.yaml").read_text() + "reconcile: {seconds: 1, namespace: mesh}\n")
    settings = {
        "front_cert_file": held / "front.pem", "front_key_file": held / "front.key", "injector_file": file, "injector_port": 0,
        "metrics_access": "anyone", **server.settings,
    }  # fmt: skip
    with Processes(tmp_path, settings) as processes:
        process = processes.process("injector").start().wait()
        until(lambda: len(paths(server, "/events")) == 2)
        shown = metrics(process.ports["injector"], held / "ca.pem")
        server.objects[PODS] = {"items": []}
        until(lambda: 'pods{reason="SIDECAR_MISSING"} 0.0' in metrics(process.ports["injector"], held / "ca.pem"))
        logged = process.log()

    events = {body["involvedObject"]["name"]: body for _, body in server.posted}
    assert {"old", "hopeful"} == events.keys()
    assert ("SidecarMissing", "Warning", "agents") == tuple(
        events["old"]["involvedObject"]["namespace"] if key == "namespace" else events["old"][key]
        for key in ("reason", "type", "namespace")
    )
    assert "make it a label" in events["hopeful"]["message"]
    assert 'interlock_injector_ungoverned_pods{reason="SIDECAR_MISSING"} 1.0' in shown
    assert 'interlock_injector_ungoverned_pods{reason="ANNOTATION_NOT_SEEN"} 1.0' in shown
    assert 2 == logged.count('"event": "pod.ungoverned"')


def metrics(port: int, ca: Path) -> str:
    import ssl

    import httpx

    context = ssl.create_default_context(cafile=str(ca))
    return httpx.get(f"https://localhost:{port}/metrics", verify=context, timeout=30).text


async def test_who_evicts_lets_a_controller_make_the_pod_anew(server):
    """The pod that a controller owns, by its id; not the bare one, not one that an annotation alone asks for, and no healthy one."""
    server.objects[PODS]["items"].append(pod("bare"))
    one = looking(server, asked("evict"))
    found = await one.look()
    await one.close()

    evicted = [
        (path, body["deleteOptions"]["preconditions"]["uid"])
        for path, body in server.posted
        if path.endswith("/eviction")
    ]
    assert {"old", "bare", "hopeful"} == {one.pod for one in found}
    assert [("/api/v1/namespaces/agents/pods/old/eviction", "uid-old")] == evicted


async def test_a_pod_that_comes_back_without_its_sidecar_is_not_evicted_for_ever(server):
    """The webhook does not see its like, so that eviction would only stop the agent again and again; it stays counted."""
    one = looking(server, asked("evict"))
    await one.look()
    server.objects[PODS] = {
        "items": [pod("new", owner="rs-1", created="2027-06-01T00:00:00Z"), pod("older", owner="rs-1")]
    }
    found = await one.look()
    await one.close()

    assert {"new", "older"} == {one.pod for one in found}
    assert ["old", "older"] == [path.split("/")[-2] for path in paths(server, "/eviction")]


async def test_no_more_than_ten_are_evicted_in_a_round(server):
    """A mistake of the rules empties no cluster at once."""
    server.objects[PODS] = {"items": [pod(f"p{number}", owner=f"rs-{number}") for number in range(30)]}
    one = looking(server, asked("evict"))
    await one.look()
    await one.close()

    assert reconciler.MOST_EVICTED == len(paths(server, "/eviction"))


async def test_what_a_disruption_budget_holds_is_tried_again(server):
    """429 is an answer; the pod stays for the next round."""
    server.objects["/api/v1/namespaces/agents/pods/old/eviction"] = 429
    one = looking(server, asked("evict"))
    await one.look()
    del server.objects["/api/v1/namespaces/agents/pods/old/eviction"]
    await one.look()
    await one.close()

    assert 2 == len(paths(server, "/eviction"))


async def test_reporting_evicts_nobody_and_no_wish_asks_nothing(server):
    """The rules say what is done, and they are read again at each look."""
    one, none = looking(server, asked()), looking(server, rules())
    await one.look()
    await one.close()
    before = copy.copy(server.posted)
    assert () == await none.look()
    await none.close()

    assert not paths(server, "/eviction")
    assert before == server.posted


async def test_where_nobody_can_look_nothing_is_counted_anew(server):
    """A cluster that may not be listed is not a cluster without such pods."""
    one = looking(server, asked())
    await one.look()
    server.objects[PODS] = 403
    with pytest.raises(Exception, match="refused with 403"):
        await one.look()
    await one.close()

    assert 1 == reconciler.UNGOVERNED.labels(Why.MISSING)._value.get()


async def test_an_event_that_another_injector_wrote_is_told_once(server):
    """Two replicas look: the second one's event is there already (409), and the rest is told all the same."""
    server.objects["/api/v1/namespaces/agents/events"] = 409
    server.objects["/api/v1/namespaces/others/events"] = 500
    one = looking(server, asked())
    await one.look()
    await one.look()
    await one.close()

    assert ["agents", "others", "others"] == [path.split("/")[4] for path in paths(server, "/events")]
