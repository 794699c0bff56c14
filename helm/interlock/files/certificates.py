"""Write the mesh's certificates into Secrets.

certificates.py NAMESPACE NAME DAYS MEMBER=NAMESPACE/SECRET…

The authority is kept in the Secret NAME-authority and used again. Runs in a Job of the release, with a token for these Secrets alone.
"""

import base64
import json
import os
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from interlock.cli.keys.certificates import make

ACCOUNT = Path(os.environ.get("ACCOUNT_DIR", "/var/run/secrets/kubernetes.io/serviceaccount"))
API = os.environ.get("KUBERNETES_API", "https://kubernetes.default.svc")


def asked(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the API server's answer; None where there is no such object."""
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(API + path, data=data, headers=headers, method=method)
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt")) if API.startswith("https") else None
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def kept(namespace: str, name: str, files: dict[str, bytes]) -> None:
    """Write a Secret: make it, or replace what it holds."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    data = {key: base64.b64encode(content).decode() for key, content in files.items()}
    held = asked("GET", f"{path}/{name}")
    labels = {"app.kubernetes.io/name": "interlock", "app.kubernetes.io/component": "certificates"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}, "data": data}
    if held is None:
        asked("POST", path, secret)
    else:
        asked("PUT", f"{path}/{name}", {**held, "data": data})


def main(namespace: str, name: str, days: str, *members: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        authority = f"{name}-authority"
        held = asked("GET", f"/api/v1/namespaces/{namespace}/secrets/{authority}")
        for file, content in ((held or {}).get("data") or {}).items():
            (folder / file).write_bytes(base64.b64decode(content))
            (folder / file).chmod(0o600)
        make(folder, trust_domain="interlock", days=int(days))
        if held is None:
            kept(namespace, authority, {file: (folder / file).read_bytes() for file in ("ca.pem", "ca.key")})
        for one in members:
            member, _, place = one.partition("=")
            files = {"tls.crt": f"{member}.pem", "tls.key": f"{member}.key", "ca.crt": "ca.pem"}
            owner, _, secret = place.partition("/")
            kept(owner, secret, {key: (folder / file).read_bytes() for key, file in files.items()})
            print(f"certificates: {member} in {place}")


if __name__ == "__main__":
    main(*sys.argv[1:])
