"""The node: it registers itself, binds pods to itself, and runs them."""

from __future__ import annotations

import contextlib
import threading
import traceback
from pathlib import Path

from tests.kube.cluster.api import Api, Refusal
from tests.kube.cluster.control_plane import NODE
from tests.kube.node.container import Place
from tests.kube.node.image import Image
from tests.kube.node.network import Network
from tests.kube.node.pod import RunningPod
from tests.kube.node.proxy import Forwarder, ServiceProxy, links
from tests.kube.node.volumes import Volumes

NAME = "stand-in"


class Node:
    """Scheduler, kubelet and service proxy of a cluster with one node."""

    def __init__(self, api: Api, image: Image, folder: Path, network: Network, forwarder: Forwarder) -> None:
        self._api, self._image, self._folder, self._network = api, image, folder, network
        self.proxy = ServiceProxy(api, forwarder)
        self.pods: dict[str, RunningPod] = {}
        self.fault = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="node", daemon=True)

    def __enter__(self) -> Node:
        ready = [{"type": "Ready", "status": "True", "reason": "StandIn", "message": "pods run as processes"}]
        room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        node = {"metadata": {"name": NAME, "labels": {"kubernetes.io/hostname": NAME}}}
        self._api.create("nodes", node)
        status = {"conditions": ready, "capacity": room, "allocatable": room}
        self._api.patch("nodes", f"{NAME}/status", {"status": status})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(20)
        for pod in self.pods.values():
            pod.killed.set()
            pod.ending.set()
        for pod in self.pods.values():
            pod.thread.join(20)

    def running(self, namespace: str, name: str) -> RunningPod:
        """Return a pod by its name."""
        return next(one for one in self.pods.values() if (one.namespace, one.name) == (namespace, name))

    def folders(self, namespace: str) -> list[Path]:
        """Return the folders of all pods that a namespace has had."""
        return sorted((self._folder / namespace).glob("*"))

    def logs(self, namespace: str = "") -> str:
        """Return what the pods printed last, and a fault of the stand-in itself."""
        return self.fault + "\n".join(one.logs() for one in self.pods.values() if namespace in {"", one.namespace})

    def _follow(self) -> None:
        while not self._over.wait(0.15):
            try:
                self._step()
            except Exception:
                self.fault = traceback.format_exc()

    def _step(self) -> None:
        found = {one["metadata"]["uid"]: one for one in self._api.items("pods")}
        self.proxy.follow()
        for uid, pod in found.items():
            held, metadata = self.pods.get(uid), pod["metadata"]
            if "nodeName" not in pod["spec"]:
                self._bind(metadata["name"], metadata["namespace"])
            elif held is None and pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}:
                self._start(pod)
            elif held is not None and "deletionTimestamp" in metadata:
                held.grace_s = float(metadata.get("deletionGracePeriodSeconds", 30))
                held.ending.set()
        for uid in self.pods.keys() - found.keys():
            self.pods[uid].ending.set()
            if not self.pods[uid].thread.is_alive():
                del self.pods[uid]
        for held in self.pods.values():
            self._hosts(held.place)

    def _bind(self, name: str, namespace: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": NAME}
        with contextlib.suppress(Refusal):
            self._api.create("pods", {"metadata": {"name": name}, "target": target}, namespace, f"{name}/binding")

    def _start(self, pod: dict) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        folder = self._folder / metadata["namespace"] / f"{metadata['name']}-{metadata['uid'][:8]}"
        folder.mkdir(parents=True)
        network, address = self._network.join()
        known = links(self._api.items("services"), metadata["namespace"], enabled=spec.get("enableServiceLinks", True))
        place = Place(
            self._api, pod, network, address, folder, Volumes(self._api, pod, folder / "volumes"), self._image, known
        )
        self._hosts(place)
        made = RunningPod(place)
        self.pods[metadata["uid"]] = made
        made.thread.start()

    def _hosts(self, place: Place) -> None:
        """Write /etc/hosts in its place, since a container has the very file mounted."""
        file = place.folder / "hosts"
        said = f"127.0.0.1 localhost\n{place.address} {place.pod['metadata']['name']}\n{NODE} node\n{self.proxy.hosts}"
        if not file.exists() or file.read_text() != said:
            file.write_text(said)
