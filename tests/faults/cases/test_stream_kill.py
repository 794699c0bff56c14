"""Streaming through kill -9: every event arrives, in order, some perhaps twice (AUD-4)."""

from __future__ import annotations

import json
import random
import secrets
from contextlib import AsyncExitStack

import grpc
import pytest

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.audit.store.log_postgres import PostgresLog
from interlock.domain.chain.chain import Integrity
from interlock.runtime import failpoints
from tests.support.audit.audit import event, session_id
from tests.support.audit.streaming import events_of, streamed, url, verified, write_sinks
from tests.support.servers.processes import Processes
from tests.support.servers.webhooks import Receiver

pytestmark = pytest.mark.req("AUD-4")


def in_order_without_gap(receiver: Receiver, sessions: int) -> None:
    """Assert that the first arrivals of each session are 1, 2, 3 …, and each message is in order by itself."""
    for posted in receiver.received:
        verified(posted)
        positions = [int(one["position"]) for one in json.loads(posted.body)]
        assert positions == sorted(positions)
    for session in range(1, sessions + 1):
        mine = [one["data"]["sequence"] for one in events_of(receiver) if one["subject"] == session_id(session)]
        assert mine == list(range(1, len(mine) + 1)), f"session {session}"


@pytest.mark.parametrize("point", ["stream.before_send", "stream.after_send"])
async def test_a_failure_around_a_send_repeats_and_loses_nothing(tmp_path, point):
    """After the send it is repeated under the same id; before, it is sent once."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver), "batch": 5}) as one:
        failpoints.configure(f"{point}:error@2")
        try:
            await one.service.record(*(event() for _ in range(20)))
            await receiver.until(lambda: len({found["data"]["sequence"] for found in events_of(receiver)}) >= 20)
        finally:
            failpoints.configure("")
    in_order_without_gap(receiver, 1)
    ids = [posted.headers["webhook-id"] for posted in receiver.received]
    assert (len(ids) > len(set(ids))) == (point == "stream.after_send")


@pytest.mark.long
async def test_a_service_that_is_killed_again_and_again_loses_no_event(tmp_path):
    """kill -9 before and after sends and at random moments, with writes in between; duplicates are allowed."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance, sessions, sent = random.Random(seed), 3, 0
    async with Receiver() as receiver:
        sinks = tmp_path / "sinks.yaml"
        write_sinks(sinks, siem={"url": url(receiver), "batch": 4})
        settings = {"sinks_file": sinks, "egress_allow": receiver.origin, "master_key": secrets.token_hex(32)}
        with Processes(tmp_path, settings) as processes:
            for point in ("stream.before_send:kill@2", "stream.after_send:kill@1", "stream.after_send:kill@3", "", ""):
                process = processes.process("audit")
                process.env["INTERLOCK_FAILPOINTS"] = point
                process.start().wait()
                sent += await _write(process.ports["audit"], chance, sessions)
                if point:
                    await receiver.until(lambda process=process: process.child.poll() is not None)
                process.kill()
            last = processes.process("audit").start().wait()
            async with grpc.aio.insecure_channel(f"127.0.0.1:{last.ports['audit']}") as channel:
                stub = audit_pb2_grpc.AuditServiceStub(channel)
                stored = await _stored(stub, sessions)
                await receiver.until(lambda: len(_own(receiver)) == stored)
                for session in range(1, sessions + 1):
                    found = await stub.Verify(audit_pb2.VerifyRequest(session_id=session_id(session)))
                    assert found.integrity in {Integrity.VALID, Integrity.UNVERIFIED}
    in_order_without_gap(receiver, sessions)
    assert stored >= sent >= 30  # what was not acknowledged may be there all the same


def _own(receiver: Receiver) -> list[str]:
    return [one["id"] for one in events_of(receiver) if one["type"].endswith("DPE_COMPLETED")]


async def _stored(stub: audit_pb2_grpc.AuditServiceStub, sessions: int) -> int:
    asked = [audit_pb2.ExportRequest(session_id=session_id(session)) for session in range(1, sessions + 1)]
    found = [answer.event.event_type for request in asked async for answer in stub.Export(request)]
    return found.count("DPE_COMPLETED")


async def _write(port: int, chance: random.Random, sessions: int) -> int:
    """Record events until enough are acknowledged or the service dies; return how many were acknowledged."""
    acknowledged = 0
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = audit_pb2_grpc.AuditServiceStub(channel)
        for _ in range(chance.randint(4, 8)):
            events = [event() for _ in range(chance.randint(1, 6))]
            named = session_id(chance.randint(1, sessions))
            try:
                answer = await stub.Record(audit_pb2.RecordRequest(session_id=named, events=events), timeout=10)
            except grpc.aio.AioRpcError:
                break
            assert not answer.HasField("refusal"), answer.refusal
            acknowledged += len(events)
    return acknowledged


@pytest.mark.long
async def test_of_two_services_on_one_postgresql_one_streams_and_the_other_takes_over(tmp_path, postgres_url):
    """Nothing is sent twice while both live; when the one that streams ends, the other continues from the same place."""
    async with Receiver() as receiver, AsyncExitStack() as ends:
        folders = [tmp_path / name for name in ("one", "two")]
        services = []
        for folder in folders:
            folder.mkdir()
            begun = streamed(folder, receiver, log=PostgresLog(postgres_url), siem={"url": url(receiver), "batch": 3})
            services.append((begun, await begun.__aenter__()))
        leader, other = services if services[0][1].service.log.leads("stream") else services[::-1]
        ends.push_async_exit(other[0].__aexit__)
        for number in range(1, 6):
            await services[number % 2][1].service.record(*(event() for _ in range(4)), session=number)
        await receiver.until(lambda: len(_own(receiver)) == 20)
        sent = [posted.headers["webhook-id"] for posted in receiver.received]
        assert len(sent) == len(set(sent))
        await leader[0].__aexit__(None, None, None)
        await other[1].service.record(*(event() for _ in range(6)), session=1)
        await receiver.until(lambda: len(_own(receiver)) == 26)
    in_order_without_gap(receiver, 5)


async def test_a_store_that_cannot_be_written_delays_and_loses_nothing(tmp_path):
    """The delivery cannot be recorded for a while: it is repeated with growing pauses, and then the stream continues."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.record(event(), event())
        await receiver.until(lambda: one.service.log.cursor("siem") >= 2)
        failpoints.configure("audit.before_commit:error")
        try:
            one.sinks(late={"url": url(receiver, "/late")})
            await receiver.until(lambda: sum(posted.path == "/late" for posted in receiver.received) >= 2)
        finally:
            failpoints.configure("")
        await receiver.until(lambda: one.service.log.cursor("late") >= 2)
    in_order_without_gap(receiver, 1)
