"""A-36: an id is an id: nothing else in any id field of any RPC becomes SQL, a Redis key, Lua, a path or a log line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.errors import to_message
from tests.support.sidecar.sidecar import running_sidecar, token_of
from tests.support.statuses import reason_of_status

pytest_plugins = ("tests.support.sidecar.fronts",)

GOOD = "crp_sess_" + "0a" * 16
HOSTILE = [
    "' OR '1'='1", "x'; DROP TABLE events; --", GOOD + "'--", GOOD + "\n", GOOD + "\r\nFLUSHALL\r\n", "}{il:*}:s:*",
    "return redis.call('FLUSHALL')", "*)(uid=*))(|(uid=*", "../../../etc/passwd", "crp_sess_" + "\uff10" * 32, GOOD + "\x00",
    "${jndi:ldap://a}", "%00", "\u202e" + GOOD, "a" * 20_000,
]  # fmt: skip
ID = re.compile(r"(?:^|_)ids?$|^(?:scope|cursor|after|trail|window|root)$")
OPEN = {"approval_id", "reviewer_id", "grant_id", "fact_ids", "left_out_ids", "claim_id", "source_id", "id", "scope"}
"""Ids of others, or names: they are bound parameters of SQL and arguments of Lua, and need not look like ours."""
PARTS = {"session": session_pb2, "audit": audit_pb2, "policy": policy_pb2}
MOST_DEPTH = 2


def id_fields(message: Descriptor, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the path to every text of a message that names something, in messages inside it too."""
    for field in message.fields:
        if field.type == FieldDescriptor.TYPE_STRING and ID.search(field.name):
            yield (field.name,)
        elif field.message_type and not field.message_type.GetOptions().map_entry and depth < MOST_DEPTH:
            if field.message_type.full_name != "interlock.api.dpe.v1.Report":
                yield from ((field.name, *rest) for rest in id_fields(field.message_type, depth + 1))


def put(message: Message, path: tuple[str, ...], value: str) -> None:
    """Set the text at *path*; a repeated field gets one."""
    name, *rest = path
    repeated = message.DESCRIPTOR.fields_by_name[name].is_repeated
    if rest:
        inner = getattr(message, name)
        put(inner.add() if repeated and not inner else inner[0] if repeated else inner, tuple(rest), value)
    elif repeated:
        del getattr(message, name)[:]
        getattr(message, name).append(value)
    else:
        setattr(message, name, value)


def methods(module: Any) -> Iterator[Any]:
    for service in module.DESCRIPTOR.services_by_name.values():
        yield from service.methods


def cases(module: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    for method in methods(module):
        for path in id_fields(method.input_type):
            yield method, path


def made(method: Any) -> Message:
    """An empty request of a method."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(method.input_type)()


def test_a36_every_id_field_is_found():
    """The descriptors name them; those that become keys are among them."""
    found = {name: {(method.name, path[-1]) for method, path in cases(module)} for name, module in PARTS.items()}

    assert sum(map(len, found.values())) > 60
    assert {("CommitWindow", "window_id"), ("OpenWindow", "continuation_ids"), ("GetDag", "root_session_id")} <= found[
        "session"
    ]
    assert {("Append", "parent_ids"), ("Export", "session_id"), ("GetReport", "window_id")} <= found["audit"]


async def answered(stub: Any, method: Any, request: Message) -> common_pb2.Refusal | None:
    """Ask, and return the refusal in the (first) answer."""
    try:
        call = getattr(stub, method.name)(request)
        answer = [answer async for answer in call][:1] if method.server_streaming else [await call]
    except Refused as refused:  # a stream refuses by its status
        return to_message(refused)
    answer = answer[0] if answer else None
    for part in (*getattr(answer, "records", ()), *getattr(answer, "results", ())):
        if "refusal" in part.DESCRIPTOR.fields_by_name and not answer.HasField("refusal"):
            answer = part  # of several trees each has its own
            break
    return answer.refusal if answer is not None and answer.HasField("refusal") else None


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("name", PARTS)
async def test_a36_no_hostile_id_is_a_defect_or_does_anything(tmp_path, upstream, provider, redis_url, name):
    """Every hostile text in every id field, with good ids in the others: refused by a reason, and nothing is changed."""
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url) as sidecar:
        first = await sidecar.chat()
        good = {
            "session_id": first.headers["crp-context-session-id"], "root_session_id": first.headers["crp-context-session-id"],
            "window_id": (await sidecar.settled(first, windows=1))["windows"][0]["window_id"],
        }  # fmt: skip
        database = redis.Redis.from_url(redis_url)
        before, events = set(database.keys()), len(await sidecar.events(good["session_id"]))
        odd = []
        for method, path in cases(PARTS[name]):
            for hostile in HOSTILE:
                request = made(method)
                for field, value in good.items():
                    if field in request.DESCRIPTOR.fields_by_name:
                        setattr(request, field, value)
                put(request, path, hostile)
                refusal = await answered(getattr(sidecar.mesh, name), method, request)
                passed = refusal is None and path[-1] not in OPEN
                if passed or (refusal is not None and refusal.kind in {Kind.INTERNAL, Kind.UNAVAILABLE}):
                    odd.append((method.name, path, hostile[:30], str(refusal)[:200]))
        after = set(database.keys())
        verdict = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=good["session_id"]))
        good_again = await sidecar.chat(token=token_of(first))
        kept = len(await sidecar.events(good["session_id"]))

    assert odd == []
    assert before <= after
    assert all(re.fullmatch(rb"il:\{[a-z0-9_:]+\}:[a-z0-9_:]+", key) for key in after)
    assert verdict.integrity in {common_pb2.CHAIN_INTEGRITY_VALID, common_pb2.CHAIN_INTEGRITY_UNVERIFIED}
    assert (good_again.status_code, kept > events) == (200, True)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-3", "DAG-4")
@pytest.mark.parametrize("hostile", HOSTILE[:10])
async def test_a36_hostile_ids_over_the_fronts_have_a_reason(shared_sidecar, provider, hostile):
    """In a path, a header, a body and a message of the sidecar's own API."""
    import grpc

    quoted = httpx_quoted(hostile)
    answers = [
        await shared_sidecar.client.get(f"/crp/v3/session/{quoted}", headers={"crp-session-token": "a.b"}),
        await shared_sidecar.client.get(f"/crp/v3/reports/{quoted}", headers={"crp-session-token": "a.b"}),
        await shared_sidecar.client.get(f"/crp/v3/trails/{quoted}", headers={"crp-session-token": "a.b"}),
        await shared_sidecar.chat(interlock={"sub_agent_results": [{"session_id": hostile, "hmac": hostile}]}),
    ]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await shared_sidecar.stub.GetSession(sidecar_pb2.GetSessionRequest(session_token=hostile))

    assert {answer.status_code for answer in answers} <= {400, 401, 403, 404}, [answer.text for answer in answers]
    assert reason_of_status(caught.value) in {"TOKEN_MALFORMED", "SESSION_TOKEN_REQUIRED"}
    assert provider.received == []


def httpx_quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
