"""Which pod of a cluster a caller is, by what the API server says of a service account's token (TokenReview).

A token counts that the API server knows for our audience, that is bound to a pod, and whose pod is the one that presents it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused, forbidden, unauthenticated

ACCOUNT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
"""A service account as NAMESPACE/NAME."""
TOKEN = re.compile(r"[A-Za-z0-9_-]{1,4096}\.[A-Za-z0-9_-]{1,8192}\.[A-Za-z0-9_-]{1,2048}", re.ASCII)
UID = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)

LONGEST_SCOPE = 128
_USER = "system:serviceaccount:"
_EXTRA = "authentication.kubernetes.io/pod-"


@dataclass(frozen=True)
class PodIdentity:
    """A pod and its service account."""

    namespace: str
    account: str
    pod: str
    uid: str

    @property
    def scope(self) -> str:
        """The scope of its sessions: that of its service account, so that a pod goes on with what the one before it began."""
        return account_scope(f"{self.namespace}/{self.account}")

    @property
    def digest(self) -> str:
        """By which an agent type is registered for its service account."""
        return account_digest(f"{self.namespace}/{self.account}")


def account_scope(account: str) -> str:
    """Return the scope of a service account. No key that is listed, and none that is not, has one such."""
    scope = f"pod:{account}"
    if len(scope) <= LONGEST_SCOPE:
        return scope
    return f"pod:{account.partition('/')[0]}/:{hashlib.sha256(account.encode()).hexdigest()[:32]}"


def account_digest(account: str) -> str:
    """Return the digest of a service account. No API key has it: the text has spaces, and a key has none."""
    return hashlib.sha256(f"kubernetes service account {account}".encode()).hexdigest()


def identified(status: Mapping[str, Any], *, audience: str, namespaces: Collection[str], uid: str) -> PodIdentity:
    """Return the pod that the *status* of a TokenReview is about; *uid* is of the pod that presented the token.

    Refused with POD_TOKEN_REJECTED (expired, of another cluster or audience, of a pod or an account that is gone),
    POD_TOKEN_UNBOUND, POD_TOKEN_OF_ANOTHER_POD or POD_NAMESPACE_NOT_SERVED.
    """
    if status.get("authenticated") is not True or audience not in (status.get("audiences") or ()):
        raise unauthenticated("POD_TOKEN_REJECTED", "the API server does not know this token for this mesh")
    found = _pod(status.get("user"))
    if found.uid != uid:
        raise unauthenticated(
            "POD_TOKEN_OF_ANOTHER_POD", "the token is bound to another pod than the one that presents it"
        )
    if found.namespace not in namespaces:
        raise forbidden(
            "POD_NAMESPACE_NOT_SERVED", f"pods of the namespace {found.namespace} have no part in this mesh"
        )
    return found


def _pod(user: object) -> PodIdentity:
    """Return the pod of a user. Refused with POD_TOKEN_UNBOUND: a person, or a token that outlives every pod."""
    held = user if isinstance(user, Mapping) else {}
    name, extra = str(held.get("username") or ""), held.get("extra") or {}
    account = name.removeprefix(_USER).replace(":", "/", 1)
    pod, uid = (_only(extra.get(_EXTRA + kind)) for kind in ("name", "uid"))
    if not name.startswith(_USER) or not ACCOUNT.fullmatch(account) or not pod or not uid:
        raise _unbound()
    namespace, _, short = account.partition("/")
    return PodIdentity(namespace, short, pod, uid)


def _only(values: object) -> str:
    return values[0] if isinstance(values, list) and len(values) == 1 and isinstance(values[0], str) else ""


def _unbound() -> Refused:
    return unauthenticated(
        "POD_TOKEN_UNBOUND", "the token is of no pod's service account: it has to be a projected one"
    )
