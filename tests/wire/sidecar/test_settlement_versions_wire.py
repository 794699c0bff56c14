"""A settlement that is replayed from the log, by sidecars and audit services that know its message and by those that know JSON."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.runtime import failpoints
from interlock.session.store.redis import key_of
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, onward

running, provider = answering.running, answering.provider


@pytest.fixture(autouse=True)
def _no_failpoints():
    yield
    failpoints.configure("")


class OldAudit(Hooked):
    """An audit service that does not know the message: it stores the JSON of a request and answers with JSON alone."""

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        if name not in {"Append", "GetWindow", "GetTreeRecord"}:
            return method

        async def unknowing(request: Any, context: Any) -> Any:
            if isinstance(request, audit_pb2.AppendRequest):
                request.ClearField("settlement")
            answer = await method(request, context)
            steps = answer.steps if isinstance(answer, audit_pb2.GetTreeRecordResponse) else [answer]
            for each in [] if name == "Append" else steps:
                each.ClearField("settlement")
            return answer

        return unknowing


async def from_an_older_sidecar(request: audit_pb2.AppendRequest) -> None:
    assert request.settle_json
    request.ClearField("settlement")


async def from_a_later_sidecar(request: audit_pb2.AppendRequest) -> None:
    assert request.HasField("settlement")
    request.ClearField("settle_json")


AUDITS = {
    "both know the message": Hooked,
    "an older sidecar sealed it": lambda audit: Hooked(audit, Append=from_an_older_sidecar),
    "a later sidecar sealed it": lambda audit: Hooked(audit, Append=from_a_later_sidecar),
    "an older audit service keeps it": OldAudit,
}


@pytest.mark.req("BUD-4", "BUD-8")
@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("audit", AUDITS)
async def test_what_was_sealed_is_settled_again(tmp_path, running, provider, redis_url, valkey, audit, lost):
    """A crash after the seal, with the store's state lost or kept: the settlement is read back whole and charged once."""
    provider.by_question = {"B?": "It is HIGH."}

    def wrap(services: dict[str, Any]) -> dict[str, Any]:
        return {**services, "audit": AUDITS[audit](services["audit"])}

    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Merger(), redis_url=redis_url, wrap=wrap
    ) as sidecar:
        first = await sidecar.chat("A?")
        session = first.headers["crp-context-session-id"]
        failpoints.configure("sidecar.after_seal:error@1")
        died = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
        failpoints.configure("")
        with valkey.client() as client:
            key = key_of(session, session)
            if lost:
                client.delete(key)
            else:
                client.hset(key, "epoch", "another")
        retried = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
        onwards = await sidecar.chat("C?", token=token_of(retried))
        left = await budget(sidecar, onwards)

    assert (died.status_code, retried.status_code) == (503, 409), retried.text
    assert reason_of(retried) == "WINDOW_ALREADY_SETTLED"
    assert (onwards.status_code, left) == (200, 850_000), onwards.text
