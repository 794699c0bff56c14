"""What of a TokenReview makes a pod known, and what of it does not."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.domain.errors import Refused
from interlock.domain.policy.pods import ACCOUNT, LONGEST_SCOPE, account_digest, account_scope, identified
from interlock.runtime.keys.api_keys import ApiKeys

pytestmark = pytest.mark.req("KUB-3")

EXTRA = "authentication.kubernetes.io/pod-"


def status(**changes: Any) -> dict[str, Any]:
    user = {
        "username": "system:serviceaccount:agents:billing",
        "extra": {f"{EXTRA}name": ["a-1"], f"{EXTRA}uid": ["u-1"], "authentication.kubernetes.io/node-name": ["n"]},
    }
    return {"authenticated": True, "audiences": ["mesh"], "user": {**user, **changes.pop("user", {})}, **changes}


def of(found: Any, uid: str = "u-1") -> str:
    try:
        pod = identified(found, audience="mesh", namespaces={"agents"}, uid=uid)
    except Refused as refused:
        return refused.reason
    return f"{pod.namespace}/{pod.account}/{pod.pod}/{pod.uid}"


def test_a_token_of_the_pod_for_this_mesh_names_it():
    """Namespace, account and pod are the API server's words."""
    assert "agents/billing/a-1/u-1" == of(status())


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({}, "POD_TOKEN_REJECTED"),
        (status(authenticated=False), "POD_TOKEN_REJECTED"),
        (status(authenticated="true"), "POD_TOKEN_REJECTED"),
        (status(audiences=["another"]), "POD_TOKEN_REJECTED"),
        (status(audiences=None), "POD_TOKEN_REJECTED"),
        (status(user={"username": "alice"}), "POD_TOKEN_UNBOUND"),
        (status(user={"username": "system:serviceaccount:agents"}), "POD_TOKEN_UNBOUND"),
        (status(user={"username": "system:serviceaccount:agents:a:b"}), "POD_TOKEN_UNBOUND"),
        (status(user={"username": "system:node:agents:billing"}), "POD_TOKEN_UNBOUND"),
        (status(user={"extra": None}), "POD_TOKEN_UNBOUND"),
        (status(user={"extra": {f"{EXTRA}name": ["a-1"], f"{EXTRA}uid": ["u-1", "u-2"]}}), "POD_TOKEN_UNBOUND"),
        (status(user={"extra": {f"{EXTRA}name": ["a-1"], f"{EXTRA}uid": "u-1"}}), "POD_TOKEN_UNBOUND"),
        ({**status(), "user": None}, "POD_TOKEN_UNBOUND"),
        (status(user={"extra": {f"{EXTRA}name": ["b"], f"{EXTRA}uid": ["u-2"]}}), "POD_TOKEN_OF_ANOTHER_POD"),
        (status(user={"username": "system:serviceaccount:elsewhere:billing"}), "POD_NAMESPACE_NOT_SERVED"),
    ],
)
def test_anything_else_names_nobody(found, reason):
    """An authenticator that knows no audiences leaves them out: its word counts for nothing here."""
    assert reason == of(found)


def test_no_key_has_the_scope_or_the_digest_of_a_service_account():
    """An agent that sends the text of an account as its key stays somebody else."""
    for key in ("pod:agents/billing", "agents/billing", "kubernetes_service_account_agents/billing"):
        caller = ApiKeys(None).caller([f"Bearer {key}"])
        assert account_scope("agents/billing") != caller.scope
        assert account_digest("agents/billing") not in caller.known_by
    with pytest.raises(Refused):
        ApiKeys(None).caller(["Bearer kubernetes service account agents/billing"])


def test_a_long_account_has_a_scope_of_its_own_that_fits():
    """Kubernetes takes names that no scope does; two of them stay two, and no real name can be a shortened one."""
    long = [f"{'n' * 63}/{'s' * 200}{end}" for end in "ab"]
    scopes = {account_scope(one) for one in long}

    assert 2 == len(scopes)
    assert all(len(one) <= LONGEST_SCOPE and not ACCOUNT.fullmatch(one.removeprefix("pod:")) for one in scopes)
