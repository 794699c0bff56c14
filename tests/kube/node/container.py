"""One container of a pod as a process: its variables, its command, its probes."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.kube.cluster.api import Api, Json
from tests.kube.node.image import ENTRYPOINT, ENV, Image
from tests.kube.node.volumes import Volumes, decoded

LAUNCH = Path(__file__).with_name("launch.py")
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_ANYONE = ssl.create_default_context()
_ANYONE.check_hostname, _ANYONE.verify_mode = False, ssl.CERT_NONE  # as a kubelet's HTTPS probe


def expanded(text: str, env: Mapping[str, str]) -> str:
    """Return *text* with $(NAME) replaced; what is not known stays."""
    return _REFERENCE.sub(lambda found: env.get(found[1], found[0]), text)


@dataclass
class Place:
    """What a container shares with the others of its pod."""

    api: Api
    pod: Json
    network: str
    address: str
    folder: Path
    volumes: Volumes
    image: Image
    links: Mapping[str, str]


@dataclass
class Container:
    """A container that may be started again."""

    spec: Json
    place: Place
    restarts: int = 0
    ready: bool = False
    started: bool = False
    ended: int | None = None
    """Exit status of the last process, once it is over."""
    process: subprocess.Popen[bytes] | None = None
    _due: dict[str, float] = field(default_factory=dict)
    _failed: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        found: str = self.spec["name"]
        return found

    @property
    def log(self) -> Path:
        return self.place.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start its process. Raises Refusal where a Secret or ConfigMap of its variables is not there."""
        self.env = self._env()
        command = self.spec.get("command") or ENTRYPOINT
        argv = [expanded(one, self.env) for one in [*command, *self.spec.get("args", ())]]
        pod, own = self.place.pod["spec"].get("securityContext", {}), self.spec.get("securityContext", {})
        gid = own.get("runAsGroup", pod.get("runAsGroup", 0))
        uid = own.get("runAsUser", pod.get("runAsUser", 10001))
        assert not (uid == 0 and own.get("runAsNonRoot", pod.get("runAsNonRoot"))), f"{self.name} would run as root"
        self.user = (uid, gid)
        root = self.place.folder / f"root-{self.name}-{self.restarts}"
        root.mkdir(exist_ok=True)
        spec = {
            "root": str(root), "mounts": self._mounts(), "read_only": own.get("readOnlyRootFilesystem", False),
            "uid": uid, "gid": gid, "groups": [pod["fsGroup"]] if "fsGroup" in pod else [],
            "cwd": self.spec.get("workingDir", "/var/lib/interlock"), "argv": argv, "env": self.env,
        }  # fmt: skip
        file = self.place.folder / f"{self.name}.json"
        file.write_text(json.dumps(spec))
        inside = ["nsenter", f"--net=/run/netns/{self.place.network}", "unshare", "--mount", "--propagation", "private"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*inside, sys.executable, "-I", "-S", str(LAUNCH), str(file)],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.began, self.ready, self.ended = time.monotonic(), False, None
        self.started = "startupProbe" not in self.spec
        self._due, self._failed = {}, {}

    def _mounts(self) -> list[list[Any]]:
        made: list[list[Any]] = [[source, place, True] for source, place in self.place.image.mounts]
        made.append([str(self.place.folder / "hosts"), "/etc/hosts", True])
        for one in self.spec.get("volumeMounts", ()):
            made.append([str(self.place.volumes.path(one["name"])), one["mountPath"], one.get("readOnly", False)])
        return made

    def _env(self) -> dict[str, str]:
        made = {**ENV, **self.place.links, "HOSTNAME": self.place.pod["metadata"]["name"]}
        namespace = self.place.pod["metadata"]["namespace"]
        for source in self.spec.get("envFrom", ()):
            for kind, name in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if kind in source:
                    held = decoded(self.place.api.get(name, source[kind]["name"], namespace))
                    made |= {source.get("prefix", "") + key: value.decode() for key, value in held.items()}
        for one in self.spec.get("env", ()):
            made[one["name"]] = self._value(one, made)
        return made

    def _value(self, variable: Json, before: Mapping[str, str]) -> str:
        source = variable.get("valueFrom")
        if not source:
            return expanded(variable.get("value", ""), before)
        namespace = self.place.pod["metadata"]["namespace"]
        for kind, name in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
            if kind in source:
                held = decoded(self.place.api.get(name, source[kind]["name"], namespace))
                return held[source[kind]["key"]].decode()
        found = {
            "metadata.name": self.place.pod["metadata"]["name"], "metadata.namespace": namespace,
            "metadata.uid": self.place.pod["metadata"]["uid"], "status.podIP": self.place.address,
            "spec.serviceAccountName": self.place.pod["spec"]["serviceAccountName"],
        }  # fmt: skip
        said: str = found[source["fieldRef"]["fieldPath"]]
        return said

    def alive(self) -> bool:
        """Return whether its process runs; keeps the status of one that has ended."""
        if self.process is None:
            return False
        code = self.process.poll()
        if code is not None:
            self.ended, self.ready, self.started, self.process = code, False, False, None
        return code is None

    def probe(self) -> bool:
        """Ask what is due, and return whether it has to be started again."""
        if not self.started:
            if self._asked("startupProbe") is True:
                self.started = True
            return self._over("startupProbe")
        ready = self._asked("readinessProbe") if "readinessProbe" in self.spec else True
        if ready is not None:
            self.ready = ready
        if "livenessProbe" in self.spec:
            self._asked("livenessProbe")
        return self._over("livenessProbe")

    def _over(self, kind: str) -> bool:
        limit = self.spec.get(kind, {}).get("failureThreshold", 3)
        return self._failed.get(kind, 0) >= limit

    def _asked(self, kind: str) -> bool | None:
        """Return a probe's answer; None where it is not due."""
        probe, now = self.spec[kind], time.monotonic()
        if now < self._due.get(kind, self.began + probe.get("initialDelaySeconds", 0)):
            return None
        well = self._well(probe)
        # Until it is ready it is asked more often than a kubelet would: a test's time is dear.
        self._due[kind] = now + (probe.get("periodSeconds", 10) if self.ready else 0.3)
        self._failed[kind] = (
            0 if well else self._failed.get(kind, 0) + (1 if self.ready or kind != "startupProbe" else 0)
        )
        if (
            kind == "startupProbe"
            and not well
            and now - self.began > probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
        ):
            self._failed[kind] = probe.get("failureThreshold", 3)
        return well

    def _well(self, probe: Json) -> bool:
        limit = probe.get("timeoutSeconds", 1)
        if "exec" in probe:
            return self.run(probe["exec"]["command"], limit).returncode == 0
        if "httpGet" in probe:
            asked = probe["httpGet"]
            url = f"{asked.get('scheme', 'HTTP').lower()}://{self.place.address}:{self.port(asked['port'])}{asked['path']}"
            try:
                return 200 <= httpx.get(url, timeout=limit, verify=_ANYONE).status_code < 400
            except httpx.HTTPError:
                return False
        with grpc.insecure_channel(f"{self.place.address}:{probe['grpc']['port']}") as channel:
            try:
                said = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=limit)
            except grpc.RpcError:
                return False
        return bool(said.status == health_pb2.HealthCheckResponse.SERVING)

    def port(self, named: int | str) -> int:
        """Return a port by its number or its name."""
        ports = {one.get("name"): one["containerPort"] for one in self.spec.get("ports", ())}
        return named if isinstance(named, int) else ports[named]

    def run(self, command: list[str], limit_s: float) -> subprocess.CompletedProcess[bytes]:
        """Run a command inside the container, as an exec probe, a preStop hook or `kubectl exec`; 124 at the limit, as of timeout(1)."""
        process = self.process
        if process is None or not Path(f"/proc/{process.pid}/root{command[0]}").exists():
            return subprocess.CompletedProcess(command, 127, b"", b"the container does not run")
        uid, gid = self.user
        inside = ["nsenter", "-t", str(process.pid), "--mount", "--net", "--root", "--wd"]
        try:
            return subprocess.run(
                [*inside, "--setgid", str(gid), "--setuid", str(uid), *command],
                env=self.env, capture_output=True, timeout=limit_s, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, b"", b"it took too long")

    def stop(self, deadline: float) -> None:
        """Run its preStop hook, then SIGTERM, then SIGKILL at the deadline (monotonic)."""
        if not self.alive():
            return
        assert self.process
        hook = self.spec.get("lifecycle", {}).get("preStop")
        if hook:
            self.run(hook["exec"]["command"], max(0.1, deadline - time.monotonic()))
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.alive()
