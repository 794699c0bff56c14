"""The API server, asked in JSON."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

Json = dict[str, Any]

CORE = {"pods", "services", "secrets", "configmaps", "namespaces", "nodes", "serviceaccounts", "events"}
GROUPS = {
    "deployments": "apps/v1", "replicasets": "apps/v1", "jobs": "batch/v1", "endpointslices": "discovery.k8s.io/v1",
    "roles": "rbac.authorization.k8s.io/v1", "rolebindings": "rbac.authorization.k8s.io/v1",
    "clusterroles": "rbac.authorization.k8s.io/v1", "clusterrolebindings": "rbac.authorization.k8s.io/v1",
    "networkpolicies": "networking.k8s.io/v1", "poddisruptionbudgets": "policy/v1", "tokenreviews": "authentication.k8s.io/v1",
    "mutatingwebhookconfigurations": "admissionregistration.k8s.io/v1",
}  # fmt: skip


class Refusal(Exception):
    """What the API server refused, with its own words."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class Api:
    """A client with a certificate, or with a token."""

    def __init__(self, url: str, context: ssl.SSLContext, *, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, verify=context, timeout=30, headers=headers)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def get(self, kind: str, name: str = "", namespace: str = "", **query: str) -> Json:
        """Return an object, or the list of a kind."""
        return self._asked("GET", path(kind, name, namespace), params=query)

    def items(self, kind: str, namespace: str = "", **query: str) -> list[Json]:
        """Return the objects of a kind."""
        found: list[Json] = self.get(kind, namespace=namespace, **query)["items"]
        return found

    def found(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """Return an object; None where there is none."""
        try:
            return self.get(kind, name, namespace)
        except Refusal as refusal:
            if refusal.code == 404:
                return None
            raise

    def create(self, kind: str, given: Mapping[str, Any], namespace: str = "", under: str = "") -> Json:
        """Create an object, or one of its subresources: *under* is NAME/SUBRESOURCE."""
        return self._asked("POST", path(kind, under, namespace), json=dict(given))

    def patch(self, kind: str, name: str, change: Mapping[str, Any], namespace: str = "") -> Json:
        """Merge a change into an object; *name* may be NAME/status."""
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._asked("PATCH", path(kind, name, namespace), json=dict(change), headers=headers)

    def delete(self, kind: str, name: str, namespace: str = "", **options: Any) -> Json:
        """Delete an object."""
        return self._asked("DELETE", path(kind, name, namespace), json=options or None)

    def tried(self, given: Json, place: str) -> list[str]:
        """Create an object without keeping it, every unknown member refused; return what the API server warns of."""
        group, kind = given["apiVersion"], given["kind"]
        start = "/api/v1" if group == "v1" else f"/apis/{group}"
        found = self._client.get(start).json()["resources"]
        resource = next(one for one in found if one["kind"] == kind and "/" not in one["name"])
        where = f"/namespaces/{given['metadata'].get('namespace', place)}" if resource["namespaced"] else ""
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = self._client.post(f"{start}{where}/{resource['name']}", params=query, json=given)
        if answer.is_error:
            raise Refusal(answer.status_code, answer.json()["message"])
        return answer.headers.get_list("warning")

    def text(self, url: str) -> str:
        """Return a page such as /readyz."""
        return self._client.get(url).text

    def _asked(self, method: str, url: str, **given: Any) -> Json:
        answer = self._client.request(method, url, **given)
        body = answer.json() if answer.content else {}
        if answer.is_error:
            raise Refusal(answer.status_code, body.get("message", ""))
        found: Json = body
        return found


def path(kind: str, name: str = "", namespace: str = "") -> str:
    """Return the path of a kind, or of one object."""
    group = "/api/v1" if kind in CORE else f"/apis/{GROUPS[kind]}"
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{group}{place}/{kind}" + (f"/{name}" if name else "")


def until(what: str, ask: Callable[[], Any], limit_s: float = 120, told: Callable[[], str] = str) -> Any:
    """Return what *ask* answers first that is not None or False; fails with *what* and what is *told* at the limit."""
    deadline = time.monotonic() + limit_s
    while True:
        if found := ask():
            return found
        assert time.monotonic() < deadline, f"{what}: not after {limit_s:.0f} s\n{told()}"
        time.sleep(0.1)
