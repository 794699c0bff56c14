"""etcd, kube-apiserver and kube-controller-manager as processes, in the network namespace of the test."""

from __future__ import annotations

import json
import ssl
import subprocess
from pathlib import Path

import httpx

from tests.kube.cluster.api import Api, until
from tests.kube.cluster.authority import Authority, signing_key

NODE, SERVICES, POD_RANGE = "10.244.0.1", "10.96.0.0/16", "10.244.0.0/16"
ISSUER = "https://kubernetes.default.svc.cluster.local"
URL = f"https://{NODE}:6443"
HOSTS = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1", "10.96.0.1", NODE)


class ControlPlane:
    """A cluster without nodes, for as long as the ``with`` block lasts."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        folder.mkdir(parents=True)
        self.authority = Authority(folder)
        self.kubeconfig = folder / "admin.kubeconfig"
        self._children: list[subprocess.Popen[bytes]] = []
        self.admin = self._client()

    def context(self) -> ssl.SSLContext:
        """Return how a client without a certificate of its own speaks to the API server."""
        return ssl.create_default_context(cafile=str(self.authority.file))

    def log(self, name: str) -> str:
        """Return the end of a program's log."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    def __enter__(self) -> ControlPlane:
        self._start("etcd", "--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn")
        private, public = signing_key(self.folder)
        certificate, key = self.authority.issue("kube-apiserver", hosts=HOSTS)
        self._start(
            "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={NODE}",
            f"--client-ca-file={self.authority.file}", f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--service-account-key-file={public}", f"--service-account-signing-key-file={private}",
            f"--service-account-issuer={ISSUER}", f"--service-cluster-ip-range={SERVICES}",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--profiling=false",
        )  # fmt: skip
        until("the API server is ready", self._ready, 120, lambda: self.log("kube-apiserver"))
        # No kubelet reports the node's health, and no cloud gives addresses.
        self._start(
            "kube-controller-manager", f"--kubeconfig={self.kubeconfig}", f"--root-ca-file={self.authority.file}",
            f"--service-account-private-key-file={private}", "--use-service-account-credentials=true",
            "--leader-elect=false", "--controllers=*,-node-lifecycle-controller,-node-ipam-controller,-taint-eviction-controller",
        )  # fmt: skip
        until(
            "service accounts are made",
            lambda: self.admin.found("serviceaccounts", "default", "default"),
            60,
            lambda: self.log("kube-controller-manager"),
        )
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            child.terminate()
        for child in reversed(self._children):
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.admin.close()

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._children.append(
                subprocess.Popen([self.programs / name, *arguments], stdout=log, stderr=log, cwd=self.folder)
            )

    def _ready(self) -> bool:
        assert all(child.poll() is None for child in self._children), self.log("kube-apiserver") + self.log("etcd")
        try:
            return self.admin.text("/readyz") == "ok"
        except httpx.TransportError:  # nobody listens yet
            return False

    def _client(self) -> Api:
        """Return a client of the group system:masters, and write its kubeconfig."""
        certificate, key = self.authority.issue("admin", group="system:masters")
        context = self.context()
        context.load_cert_chain(certificate, key)
        cluster = {"server": URL, "certificate-authority": str(self.authority.file)}
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        said = {
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}], "users": [{"name": "it", "user": user}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }  # fmt: skip
        self.kubeconfig.write_text(json.dumps(said))
        return Api(URL, context)
