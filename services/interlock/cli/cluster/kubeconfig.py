"""How the operator reaches the cluster: as a kubeconfig says, or as the service account of the pod that the command runs in."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.runtime.egress.kubernetes import ClusterAccess, access_of_pod, read_token
from interlock.runtime.settings.strict_yaml import parse_yaml

HELPER_LIMIT_S = 3.0
LARGEST_BYTES = 1_048_576
IN_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def access(path: Path | None, context: str) -> ClusterAccess:
    """Return the access of a kubeconfig's context; without a file, of KUBECONFIG, of the pod's own account or of ~/.kube/config.

    Refused with KUBECONFIG_INVALID.
    """
    named = path or next((Path(one) for one in os.environ.get("KUBECONFIG", "").split(os.pathsep) if one), None)
    if named is None and (IN_POD / "token").exists():
        return access_of_pod("https://kubernetes.default.svc", IN_POD)
    return _access(named or Path.home() / ".kube" / "config", context)


def _access(path: Path, context: str) -> ClusterAccess:
    config = _read(path)
    chosen = _named(config, "contexts", "context", context or str(config.get("current-context") or ""), path)
    cluster = _named(config, "clusters", "cluster", str(chosen.get("cluster") or ""), path)
    user = _named(config, "users", "user", str(chosen.get("user") or ""), path)
    credentials = _Credentials(user, path.parent)
    url = str(cluster.get("server") or "")
    if not url.startswith("https://"):
        raise _broken(path, "its cluster has no server that starts with https://")

    def trusted() -> ssl.SSLContext:
        authority = _content(cluster, "certificate-authority", path.parent)
        made = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
        if cluster.get("insecure-skip-tls-verify") is True:
            made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        credentials.present(made)
        return made

    return ClusterAccess(url.rstrip("/"), trusted, credentials.token)


@dataclass(frozen=True)
class _Credentials:
    """A user of a kubeconfig: a certificate, a token, or a helper that prints either."""

    user: Mapping[str, Any]
    folder: Path

    def token(self) -> str:
        """Return the token; "" for a user with a certificate."""
        if given := self.user.get("token"):
            return str(given)
        if file := self.user.get("tokenFile"):
            return read_token(self.folder / str(file))
        return str(self._helped().get("token") or "")

    def present(self, context: ssl.SSLContext) -> None:
        """Have a context present the user's certificate."""
        certificate = _content(self.user, "client-certificate", self.folder)
        key = _content(self.user, "client-key", self.folder)
        helped = {} if certificate else self._helped()
        certificate = certificate or str(helped.get("clientCertificateData") or "").encode()
        key = key or str(helped.get("clientKeyData") or "").encode()
        if not certificate or not key:
            return
        with tempfile.NamedTemporaryFile(mode="wb") as file:  # ssl reads files alone; this one is its owner's
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)

    def _helped(self) -> Mapping[str, Any]:
        helper = self.user.get("exec")
        return _helped(json.dumps(helper, sort_keys=True)) if isinstance(helper, Mapping) else {}


@cache
def _helped(helper: str) -> Mapping[str, Any]:
    """Run a credential helper, such as a cloud's, once."""
    given = json.loads(helper)
    variables = {one["name"]: one["value"] for one in given.get("env") or []}
    asked = {"apiVersion": given.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own kubeconfig names it, as for kubectl
            [str(given["command"]), *map(str, given.get("args") or [])],
            env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
            capture_output=True, timeout=HELPER_LIMIT_S, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        status = json.loads(done.stdout)["status"]
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        raise invalid(
            "KUBECONFIG_INVALID", f"its credential helper gave nothing: {type(error).__name__}",
            hint="run kubectl once, so that the helper may ask what it needs",
        ) from None  # fmt: skip
    return status if isinstance(status, Mapping) else {}


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES)
    except OSError as error:
        raise _broken(path, f"it cannot be read: {type(error).__name__}") from None
    try:
        found = parse_yaml(content, path, secret=False)
    except Refused as refused:
        raise _broken(path, refused.message.removeprefix(f"{path}: ")) from None
    if not isinstance(found, Mapping):
        raise _broken(path, "it is no kubeconfig")
    return found


def _named(config: Mapping[str, Any], kind: str, member: str, name: str, path: Path) -> Mapping[str, Any]:
    for one in config.get(kind) or []:
        if isinstance(one, Mapping) and one.get("name") == name and isinstance(one.get(member), Mapping):
            found: Mapping[str, Any] = one[member]
            return found
    raise _broken(path, f"it has no {member} {name!r}")


def _content(held: Mapping[str, Any], name: str, folder: Path) -> bytes:
    """Return what is written in a kubeconfig, or in the file that it names."""
    if data := held.get(f"{name}-data"):
        return base64.b64decode(str(data))
    return (folder / str(held[name])).read_bytes() if held.get(name) else b""


def _broken(path: Path, why: str) -> Refused:
    return invalid("KUBECONFIG_INVALID", f"{path}: {why}", hint="name one with --kubeconfig and --context")
