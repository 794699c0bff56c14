"""A pod's life: volumes, init containers, native sidecars, containers, probes, restarts, status, and its end."""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tests.kube.cluster.api import Json, Refusal
from tests.kube.cluster.control_plane import NODE
from tests.kube.node.container import Container, Place
from tests.kube.node.network import Network

STEP_S, REFRESH_S, BACK_OFF_S = 0.1, 3.0, 1.0


class RunningPod:
    """One pod on this node, in a thread of its own until it is gone."""

    def __init__(self, place: Place) -> None:
        self.place, metadata = place, place.pod["metadata"]
        self.name, self.namespace = metadata["name"], metadata["namespace"]
        spec = place.pod["spec"]
        self._init = [Container(one, place) for one in spec.get("initContainers", ())]
        self._apps = [Container(one, place) for one in spec["containers"]]
        self._said: Any = None
        self._reason, self._began = "ContainerCreating", datetime.now(UTC).isoformat(timespec="seconds")[:19] + "Z"
        self.ending = threading.Event()
        self.killed = threading.Event()
        """Set when its processes are to die without a word, as with the machine."""
        self.grace_s = float(spec.get("terminationGracePeriodSeconds", 30))
        self.thread = threading.Thread(target=self._live, name=f"pod-{self.name}", daemon=True)

    def containers(self) -> list[Container]:
        """Return every container, init containers first."""
        return [*self._init, *self._apps]

    def logs(self) -> str:
        """Return what its containers printed last."""
        said = [f"--- {self.namespace}/{self.name} ({self._reason})"]
        for one in self.containers():
            if one.log.exists():
                said.append(f"[{one.name}] {one.log.read_text(errors='replace')[-1500:]}")
        return "\n".join(said)

    def _live(self) -> None:
        try:
            self._prepare()
            self._run()
        except Exception:
            self._reason = traceback.format_exc()
        finally:
            self._end()

    def _prepare(self) -> None:
        """Wait until every volume can be made."""
        while not self.ending.is_set():
            try:
                self.place.volumes.update()
                return
            except Refusal as refusal:
                self._reason = f"FailedMount: {refusal}"
                self._say("Pending")
                self.ending.wait(0.5)

    def _run(self) -> None:
        refreshed = time.monotonic()
        for one in self._init:
            self._initial(one)
        for one in self._apps:
            self._started(one)
        while not self.ending.is_set():
            self._watch([*(one for one in self._init if _sidecar(one)), *self._apps])
            phase = self._phase()
            self._say(phase)
            if phase in {"Succeeded", "Failed"}:
                self._stop_sidecars(time.monotonic() + self.grace_s)
                self._say(phase)
                self.ending.wait()
            if time.monotonic() - refreshed > REFRESH_S:
                refreshed = time.monotonic()
                with contextlib.suppress(Refusal):
                    self.place.volumes.update()
            self.ending.wait(STEP_S)

    def _initial(self, one: Container) -> None:
        """Run an init container to its end, or a native sidecar until it has started."""
        self._started(one)
        while not self.ending.is_set():
            sidecars = [other for other in self._init if _sidecar(other) and other.process]
            self._watch(sidecars)
            if _sidecar(one):
                if one.started and one.alive():
                    return
            elif not one.alive() and one.ended is not None:
                if one.ended == 0:
                    return
                one.restarts += 1
                self.ending.wait(BACK_OFF_S)
                self._started(one)
            self._say("Pending")
            self.ending.wait(STEP_S)

    def _started(self, one: Container) -> None:
        while not self.ending.is_set():
            try:
                one.start()
                self._reason = ""
                return
            except Refusal as refusal:
                self._reason = f"CreateContainerConfigError: {refusal}"
                self._say("Pending")
                self.ending.wait(0.5)

    def _watch(self, those: Sequence[Container]) -> None:
        """Ask the probes, and start again what has to be."""
        for one in those:
            if one.alive():
                if one.probe():
                    one.stop(time.monotonic() + self.grace_s)
            elif one.ended is not None and self._again(one):
                one.restarts += 1
                self.ending.wait(BACK_OFF_S)
                if not self.ending.is_set():
                    self._started(one)

    def _again(self, one: Container) -> bool:
        policy = self.place.pod["spec"].get("restartPolicy", "Always")
        return _sidecar(one) or policy == "Always" or (policy == "OnFailure" and one.ended != 0)

    def _phase(self) -> str:
        over = [one.ended for one in self._apps if one.process is None and one.ended is not None]
        if len(over) < len(self._apps) or any(self._again(one) for one in self._apps):
            return "Running"
        return "Failed" if any(over) else "Succeeded"

    def _end(self) -> None:
        """Stop the containers together, then the sidecars; give the address back and let the object go."""
        self.ending.wait()
        deadline = time.monotonic() + (0.1 if self.killed.is_set() else self.grace_s)
        if self.killed.is_set():
            for one in self.containers():
                if one.process:
                    one.process.kill()
        threads = [threading.Thread(target=one.stop, args=(deadline,)) for one in self._apps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._stop_sidecars(deadline)
        Network.leave(self.place.network)
        with contextlib.suppress(Refusal):
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.place.pod["metadata"]["uid"]}}
            self.place.api.delete("pods", self.name, self.namespace, **options)

    def _stop_sidecars(self, deadline: float) -> None:
        for one in reversed(self._init):
            one.stop(max(deadline, time.monotonic() + 2))

    def _say(self, phase: str) -> None:
        """Write the status, where it has changed."""
        shown = [one for one in self._init if _sidecar(one)] + self._apps
        ready = phase == "Running" and all(one.ready for one in shown)
        initialised = all(one.started if _sidecar(one) else one.ended == 0 for one in self._init)
        conditions = {"PodScheduled": True, "Initialized": initialised, "ContainersReady": ready, "Ready": ready}
        status: Json = {
            "phase": phase, "hostIP": NODE, "podIP": self.place.address, "podIPs": [{"ip": self.place.address}],
            "startTime": self._began, "message": self._reason,
            "conditions": [{"type": name, "status": str(value)} for name, value in conditions.items()],
            "containerStatuses": [_status(one) for one in self._apps],
            "initContainerStatuses": [_status(one) for one in self._init],
        }  # fmt: skip
        if status == self._said:
            return
        with contextlib.suppress(Refusal):
            self.place.api.patch("pods", f"{self.name}/status", {"status": status}, self.namespace)
            self._said = status


def _sidecar(one: Container) -> bool:
    return one.spec.get("restartPolicy") == "Always"


def _status(one: Container) -> Json:
    if one.process is not None:
        state: Json = {"running": {}}
    elif one.ended is not None:
        code = one.ended if one.ended >= 0 else 128 - one.ended
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    else:
        state = {"waiting": {"reason": "PodInitializing"}}
    return {
        "name": one.name, "image": one.spec["image"], "imageID": "stand-in", "ready": one.ready or one.ended == 0,
        "started": one.started, "restartCount": one.restarts, "state": state,
    }  # fmt: skip
