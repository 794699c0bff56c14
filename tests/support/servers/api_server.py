"""A stand-in for the API server of a cluster: it signs tokens of service accounts with a real key, and verifies what it is shown.

What it says of a token is said as kube-apiserver says it; ``tests/kube/test_identity.py`` asks the real one the same.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.servers.tls import a_mesh_of_certificates

ISSUER, OWN_TOKEN = "https://kubernetes.default.svc.cluster.local", "token-of-the-process"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
EXTRA = "authentication.kubernetes.io/"

Json = dict[str, Any]


class Signer:
    """The key of a cluster, by which its tokens are signed (RS256)."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65537, 2048)

    def token(self, account: str, pod: tuple[str, str] | None, *, audience: str, seconds: float = 600) -> str:
        """Return a token of NAMESPACE/NAME for an audience, bound to a pod's name and id; None: to no pod."""
        namespace, _, name = account.partition("/")
        bound = {"pod": {"name": pod[0], "uid": pod[1]}} if pod else {}
        claims = {
            "iss": ISSUER, "aud": [audience], "exp": int(time.time() + seconds), "sub": f"system:serviceaccount:{namespace}:{name}",
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name}, **bound},
        }  # fmt: skip
        told = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
        signature = self._key.sign(told.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{told}.{_encoded(signature)}"

    def claims(self, token: str) -> Json | None:
        """Return what a token of this cluster says; None for another's."""
        told, _, signature = token.rpartition(".")
        try:
            self._key.public_key().verify(_decoded(signature), told.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return None
        found: Json = json.loads(_decoded(told.split(".")[1]))
        return found


@dataclass
class ApiServer:
    """What runs for a test: where it is, what it has been asked, and what there is in the cluster."""

    folder: Path
    signer: Signer = field(default_factory=Signer)
    pods: set[str] = field(default_factory=set)
    """Ids of the pods that there are."""
    objects: dict[str, Any] = field(default_factory=dict)
    """Objects and lists by path; a function of the path may make one, or the number of a status."""
    posted: list[tuple[str, Json]] = field(default_factory=list)
    says: Any = None
    """What it answers to every review instead: bytes, or the number of a status."""
    waits_s: float = 0.0
    port: int = 0
    reviewed: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """How a process of the mesh finds it."""
        return {"kubernetes_url": f"https://127.0.0.1:{self.port}", "kubernetes_folder": self.folder}

    def status(self, token: str, audiences: list[str]) -> Json:
        """Return the status of a TokenReview."""
        claims = self.signer.claims(token)
        if claims is None or claims["exp"] <= time.time():
            return {"error": "[invalid bearer token]", "user": {}}
        shared = [one for one in claims["aud"] if one in audiences]
        held = claims["kubernetes.io"]
        pod = held.get("pod")
        if not shared or (pod and pod["uid"] not in self.pods):
            return {"error": "[invalid bearer token]", "user": {}}
        extra = {f"{EXTRA}pod-{kind}": [pod[kind]] for kind in ("name", "uid")} if pod else {}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{held['namespace']}", "system:authenticated"]
        user = {"username": claims["sub"], "uid": "a", "groups": groups, "extra": extra}
        return {"authenticated": True, "user": user, "audiences": shared}


@contextmanager
def running_api_server(folder: Path) -> Iterator[ApiServer]:
    """Serve one over TLS. *folder* gets the token and the authority that a process of the mesh has."""
    folder.mkdir(parents=True, exist_ok=True)
    held = a_mesh_of_certificates(folder / "certificates")
    (folder / "ca.crt").write_bytes((held / "ca.pem").read_bytes())
    (folder / "token").write_text(OWN_TOKEN)
    made = ApiServer(folder)
    server = _Server(("127.0.0.1", 0), _handler(made))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(held / "front.pem", held / "front.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join(5)


class _Server(ThreadingHTTPServer):
    request_queue_size = 64  # of five, one that comes with the others waits a second to be let in

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that have left."""


def _handler(cluster: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            found = cluster.objects.get(path, 404)
            self._answer(found(self.path) if callable(found) else found)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            cluster.posted.append((self.path, body))
            if self.path != REVIEWS:
                return self._answer(cluster.objects.get(self.path, body))
            cluster.reviewed += 1
            time.sleep(cluster.waits_s)
            if cluster.says is not None:
                return self._answer(cluster.says)
            spec = body["spec"]
            return self._answer({**body, "status": cluster.status(spec["token"], spec["audiences"])})

        def _answer(self, said: Any) -> None:
            if self.headers.get("Authorization") != f"Bearer {OWN_TOKEN}":
                said = 401
            code = said if isinstance(said, int) else 200
            text = {"kind": "Status", "message": "no"} if isinstance(said, int) else said
            body = text if isinstance(text, bytes) else json.dumps(text).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


def _part(value: Json) -> str:
    return _encoded(json.dumps(value).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
