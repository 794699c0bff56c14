"""The audit log streamed to real receivers: signed, in order, at least once, nothing dropped (AUD-4)."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http
from cloudevents.core.formats.json import JSONFormat
from prometheus_client import REGISTRY

from interlock.api.common.v1 import common_pb2
from interlock.audit.erasure.erasure import truncate
from interlock.audit.store.log_sql import SqliteLog, SqliteReader
from interlock.domain.errors import Refused
from tests.support.audit.audit import MASTER, event, session_id, window
from tests.support.audit.streaming import OTHER, SECRET, events_of, streamed, url, verified
from tests.support.servers.processes import environment, run
from tests.support.servers.webhooks import Receiver

pytestmark = pytest.mark.req("AUD-4")


def own(receiver: Receiver) -> list:
    """What came of the calls themselves, deliveries left out."""
    return [one for one in events_of(receiver) if not one["type"].endswith("COMPLY_EXPORT")]


def sequences(receiver: Receiver, session: int = 1) -> list[int]:
    return [one["data"]["sequence"] for one in own(receiver) if one["subject"] == session_id(session)]


async def test_events_arrive_as_cloudevents_with_standard_webhook_signatures(tmp_path):
    """The libraries of both standards read them: ids, types, subject, time, and the event's line as data."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.seal(2)
        await receiver.until(lambda: len(own(receiver)) == 6)
        stored = one.service.log.chain(session_id()).events

    for posted in receiver.received:
        verified(posted)
        assert posted.headers["content-type"] == "application/cloudevents-batch+json"
        assert posted.headers["webhook-id"].startswith("msg_")
    for found in own(receiver):
        number = found["data"]["sequence"] - 1  # a delivery is an event too, and may come between two windows
        read = from_http(
            HTTPMessage({"content-type": "application/cloudevents+json"}, json.dumps(found).encode()), JSONFormat()
        )
        assert read.get_id() == f"{number}/{stored[number].hmac}"
        assert read.get_type() == f"io.crprotocol.audit.v3.{stored[number].event_type}"
        assert (read.get_subject(), read.get_source()) == (session_id(), "urn:interlock:audit")
        assert read.get_data()["hmac"] == stored[number].hmac


async def test_a_forged_message_does_not_verify(tmp_path):
    """One changed byte, or another secret: the receiver can tell."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.record()
        await receiver.until(lambda: receiver.received)
    posted = receiver.received[0]
    with pytest.raises(Exception, match="No matching signature"):
        verified(posted, OTHER)
    with pytest.raises(Exception, match="No matching signature"):
        verified(type(posted)(posted.path, posted.headers, posted.body.replace(b"INFO", b"WARN")))


async def test_while_a_secret_is_replaced_both_verify(tmp_path):
    """Two secrets, two signatures, and the file is read again when it changes."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        one.sinks(siem={"url": url(receiver), "secret": f"{OTHER} {SECRET}"})
        await asyncio.sleep(1)
        await one.service.record()
        await receiver.until(lambda: receiver.received)
    for secret in (SECRET, OTHER):
        verified(receiver.received[0], secret)


async def test_a_delivery_is_an_event_of_its_session_and_there_is_an_end(tmp_path):
    """COMPLY_EXPORT names the message and the events; of itself no further delivery is told."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.record(event("SESSION_CREATED"), event("SESSION_TERMINATED"))
        await receiver.until(lambda: len(events_of(receiver)) == 3)
        await asyncio.sleep(0.6)
        stored = one.service.log.chain(session_id()).events

    assert [found.event_type for found in stored] == ["SESSION_CREATED", "SESSION_TERMINATED", "COMPLY_EXPORT"]
    assert json.loads(stored[2].data_json) == {
        "comply_event_id": receiver.received[0].headers["webhook-id"], "sink": "siem", "first_sequence": 1,
        "last_sequence": 2, "events": 2,
    }  # fmt: skip


async def test_what_is_refused_for_a_while_arrives_in_order(tmp_path):
    """503s and a Retry-After; then everything, in order, none lost."""
    refusals = 4

    def answer(_posted):
        return (503, "retry-after: 0\r\n", 0) if len(receiver.received) <= refusals else (200, "", 0)

    async with (
        Receiver(answer=answer) as receiver,
        streamed(tmp_path, receiver, siem={"url": url(receiver), "batch": 3}) as one,
    ):
        await one.service.record(*(event() for _ in range(20)))
        await receiver.until(lambda: len(set(sequences(receiver))) == 20)
    assert sequences(receiver) == list(range(1, 21))
    ids = [posted.headers["webhook-id"] for posted in receiver.received[: refusals + 1]]
    assert len(set(ids)) == 1, "an attempt that is repeated keeps its id"


async def test_retry_after_is_waited_for(tmp_path):
    """A receiver that asks for two seconds is not asked before."""
    times: list[float] = []

    def answer(_posted):
        times.append(asyncio.get_running_loop().time())
        return (429, "retry-after: 1\r\n", 0) if len(times) == 1 else (200, "", 0)

    async with Receiver(answer=answer) as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.record()
        await receiver.until(lambda: len(times) >= 2)
    assert times[1] - times[0] >= 0.95


async def test_one_bad_event_is_given_up_alone_and_kept(tmp_path):
    """A 400 splits the batch until the one event at fault is alone; it is a dead letter, and the rest arrives."""

    def answer(posted):
        return (400, "", 0) if b"poison" in posted.body else (200, "", 0)

    async with Receiver(answer=answer) as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.record(*(event(data=f'{{"n":"{"poison" if n == 5 else n}"}}') for n in range(12)))

        def arrived():
            good = [posted for posted in receiver.received if b"poison" not in posted.body]
            return {one["data"]["sequence"] for posted in good for one in json.loads(posted.body)} >= {12}

        await receiver.until(arrived)
        dead = one.service.log.dead_letters("siem")
    taken = [found for posted in receiver.received if b"poison" not in posted.body for found in json.loads(posted.body)]
    good = [found["data"]["sequence"] for found in taken]
    assert [number for number in good if number <= 12] == [1, 2, 3, 4, 5, *range(7, 13)]
    assert [(found.first, found.last, found.reason) for found in dead] == [(5, 5, "HTTP_400")]


async def test_what_is_too_old_becomes_a_dead_letter_and_the_cursor_goes_on(tmp_path):
    """After max_age_s the batch is kept in the database; what comes later has its own chance."""
    down = True

    def answer(_posted):
        return (500, "", 0) if down else (200, "", 0)

    sink = {"max_age_s": 1}
    async with (
        Receiver(answer=answer) as receiver,
        streamed(tmp_path, receiver, siem={"url": url(receiver), **sink}) as one,
    ):
        await one.service.record(event(), event())
        await receiver.until(lambda: one.service.log.dead_letters("siem"))
        down = False
        await one.service.record(event("SESSION_TERMINATED"))
        await receiver.until(lambda: 3 in sequences(receiver))
        [dead] = one.service.log.dead_letters("siem")
    assert (dead.first, dead.last, dead.reason) == (0, 1, "HTTP_500")


async def test_410_suspends_a_sink_until_its_file_changes_and_loses_nothing(tmp_path):
    """The receiver wants no more: nobody calls it, the cursor stays, and a changed file starts anew."""
    gone = True

    def answer(_posted):
        return (410, "", 0) if gone else (200, "", 0)

    async with Receiver(answer=answer) as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.record()
        await receiver.until(lambda: receiver.received)
        await asyncio.sleep(0.5)
        assert len(receiver.received) == 1
        assert one.service.log.dead_letters("siem") == []
        gone = False
        one.sinks(siem={"url": url(receiver, "/new")})
        await receiver.until(lambda: receiver.received[-1].path == "/new")
    assert sequences(receiver) == [1]


async def test_one_slow_sink_makes_no_other_wait(tmp_path):
    """Ten sinks that hang, one that answers: it has everything while they have nothing."""
    async with Receiver() as slow, Receiver() as quick:
        slow.answer = lambda _posted: (200, "", 30)
        hanging = {f"slow{n}": {"url": url(slow)} for n in range(10)}
        async with streamed(tmp_path, slow, quick, quick={"url": url(quick)}, **hanging) as one:
            await one.service.record(*(event() for _ in range(30)))
            await quick.until(lambda: len(own(quick)) == 30)
            assert slow.most_open <= 2, "one origin holds two connections at most"
            lag = REGISTRY.get_sample_value("interlock_audit_stream_lag_entries", {"sink": "slow0"})
            assert lag is not None
            assert lag >= 30


async def test_a_required_sink_that_lags_stops_new_windows(tmp_path):
    """AUDIT_SINK_LAG, until the sink has caught up: back-pressure instead of loss."""
    down = True

    def answer(_posted):
        return (500, "", 0) if down else (200, "", 0)

    sink = {"required": True, "max_lag": 3}
    async with (
        Receiver(answer=answer) as receiver,
        streamed(tmp_path, receiver, siem={"url": url(receiver), **sink}) as one,
    ):
        [first] = await one.service.seal(1)
        await one.service.record(event())
        refused = await one.service.stub.Append(window(2, first.hmac))
        assert (refused.refusal.kind, refused.refusal.reason) == (common_pb2.REFUSAL_KIND_UNAVAILABLE, "AUDIT_SINK_LAG")
        assert refused.refusal.metadata["sink"] == "siem"
        down = False
        await receiver.until(lambda: own(receiver))
        await receiver.until(lambda: one.service.log.log_size() - one.service.log.cursor("siem") <= 1)
        again = await one.service.stub.Append(window(2, first.hmac))
    assert not again.HasField("refusal")


async def test_sinks_get_what_they_ask_for(tmp_path):
    """By severity, by type, from now on; a bearer where one is set."""
    async with Receiver() as receiver:
        (tmp_path / "token").write_text("token-12345678\n")
        (tmp_path / "token").chmod(0o600)
        sinks = {
            "warnings": {"url": url(receiver, "/warnings"), "min_severity": "WARN"},
            "halts": {"url": url(receiver, "/halts"), "event_types": ["SAFETY_HALT"], "bearer_file": "token"},
            "later": {"url": url(receiver, "/later"), "start": "now"},
        }
        async with streamed(tmp_path, receiver, **sinks) as one:
            await one.service.record(event("SESSION_CREATED"))
            await receiver.until(lambda: one.service.log.cursor("later#begun"))
            await one.service.record(event(), event("PII_DETECTED"), event("SAFETY_HALT"))
            await receiver.until(
                lambda: len({posted.path for posted in receiver.received if b"SAFETY_HALT" in posted.body}) == 3
            )
    by_path: dict[str, list[str]] = {}
    for posted in receiver.received:
        types = [found["type"].rpartition(".")[2] for found in json.loads(posted.body)]
        by_path.setdefault(posted.path, []).extend(kind for kind in types if kind != "COMPLY_EXPORT")
        assert posted.headers.get("authorization") == ("Bearer token-12345678" if posted.path == "/halts" else None)
    assert by_path["/warnings"] == ["PII_DETECTED", "SAFETY_HALT"]
    assert by_path["/halts"] == ["SAFETY_HALT"]
    assert by_path["/later"][-3:] == ["DPE_COMPLETED", "PII_DETECTED", "SAFETY_HALT"]


async def test_comply_gets_whole_chains_by_session(tmp_path):
    """SPEC-011 §5.1: events, session_id, chain_tip_hmac; every event, so that the chain verifies on import."""
    async with Receiver() as receiver:
        async with streamed(tmp_path, receiver, comply={"url": url(receiver), "format": "comply"}) as one:
            await asyncio.gather(*(one.service.record(event("FACT_RETRIEVED"), session=n) for n in (1, 2, 1, 2)))
            await receiver.until(
                lambda: sum(len(json.loads(posted.body)["events"]) for posted in receiver.received) >= 6
            )
    for session in (1, 2):
        bodies = [verified(posted) for posted in receiver.received]
        mine = [body for body in bodies if body["session_id"] == session_id(session)]
        told = [found for body in mine for found in body["events"]]
        assert [found["sequence"] for found in told] == list(range(1, len(told) + 1))
        assert all(body["chain_tip_hmac"] == body["events"][-1]["hmac"] for body in mine)


@pytest.mark.parametrize(("fields", "place"), [
    ({"url": "ftp://x"}, "sinks.siem.url"),
    ({"url": "http://siem.example.com/"}, "sinks.siem.url"),
    ({"url": "https://10.0.0.1/"}, "sinks.siem.url"),
    ({"secret": "hunter2"}, "sinks.siem.secret"),
    ({"secret": "whsec_c2hvcnQ="}, "sinks.siem.secret"),
    ({"secret": ""}, "sinks.siem.secret"),
    ({"min_severity": "CRITICAL"}, "sinks.siem.min_severity"),
    ({"event_types": ["NO_SUCH"]}, "sinks.siem.event_types"),
    ({"batch": 0}, "sinks.siem.batch"),
    ({"batch": True}, "sinks.siem.batch"),
    ({"format": "xml"}, "sinks.siem.format"),
    ({"required": "yes"}, "sinks.siem.required"),
    ({"bearer_env": "NOT_SET_ANYWHERE"}, "sinks.siem.bearer_env"),
    ({"unknown": 1}, "sinks.siem"),
])  # fmt: skip
async def test_a_bad_sinks_file_refuses_to_start(tmp_path, fields, place):
    """Naming the place, never the secret."""
    with pytest.raises(Refused) as refused:
        async with streamed(tmp_path, siem={"url": "https://siem.example.com/", **fields}):
            pass
    assert (refused.value.reason, refused.value.metadata["place"]) == ("SINKS_INVALID", place)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "sinks: [",
        "sinks: {siem: {url: 2026-13-45}}",
        "sinks: {siem: {batch: 0x_}}",
        'sinks: {siem: {secret_file: "a\\0b"}}',
    ],
)
async def test_a_file_that_turns_bad_leaves_the_good_sinks_in_place(tmp_path, text):
    """And the sinks go on being served."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        one.file.write_text(text)
        await asyncio.sleep(1)
        await one.service.record()
        await receiver.until(lambda: sequences(receiver) == [1])


async def test_dead_letters_are_sent_again_by_the_command(tmp_path):
    """`interlock audit stream retry`, in a process of its own: accepted, on record, and a dead letter no more."""
    refuses = True
    async with Receiver(answer=lambda _posted: (400 if refuses else 200, "", 0)) as receiver:
        async with streamed(
            tmp_path, receiver, log=SqliteLog(tmp_path / "audit.db"), siem={"url": url(receiver)}
        ) as one:
            await one.service.record()
            await receiver.until(lambda: one.service.log.dead_letters("siem"))
        refuses = False
        settings = {
            "sinks_file": tmp_path / "sinks.yaml", "egress_allow": receiver.origin, "master_key": MASTER.hex(),
            "audit_url": f"sqlite:///{tmp_path / 'audit.db'}",
        }  # fmt: skip
        env = environment(tmp_path, settings)
        done = await asyncio.to_thread(partial(run, "audit", "stream", "retry", "siem", "-o", "json", env=env))
        assert (done.returncode, json.loads(done.stdout)) == (0, {"sink": "siem", "sent": 1, "left": []}), done.stderr
    reader = SqliteReader(tmp_path / "audit.db")
    assert reader.dead_letters("siem") == []
    assert [found.event_type for found in reader.chain(session_id()).events] == ["DPE_COMPLETED", "COMPLY_EXPORT"]
    reader.close()


async def test_a_session_that_retention_removed_stays_removed(tmp_path):
    """Its mark is delivered, and no export of that is written behind it: a removed session does not begin again."""
    async with Receiver() as receiver, streamed(tmp_path, receiver, siem={"url": url(receiver)}) as one:
        await one.service.seal(1)
        await receiver.until(lambda: any("COMPLY_EXPORT" in found["type"] for found in events_of(receiver)))
        await one.service.appender.submit(partial(truncate, sealer=one.service.sealer, session_id=session_id()))
        await receiver.until(lambda: any("TRUNCATED" in found["type"] for found in events_of(receiver)))
        await receiver.until(lambda: one.service.log.cursor("siem") == one.service.log.log_size())
        assert [found.event_type for found in one.service.log.chain(session_id()).events] == ["TRUNCATED"]


async def test_what_retention_took_before_a_sink_got_so_far_is_counted(tmp_path):
    """Nobody can be sent it any more: it is told to who runs the service, and the rest arrives."""
    down = True

    def answer(_posted):
        return (500, "", 0) if down else (200, "", 0)

    def gone() -> float:
        return REGISTRY.get_sample_value("interlock_audit_stream_gone_total", {"sink": "behind"}) or 0.0

    before = gone()
    async with (
        Receiver(answer=answer) as receiver,
        streamed(tmp_path, receiver, behind={"url": url(receiver), "batch": 1}) as one,
    ):
        await one.service.record(event())
        await receiver.until(lambda: receiver.received)
        await one.service.seal(1, session=2)
        entries = one.service.log.log_size() - 1
        await one.service.appender.submit(partial(truncate, sealer=one.service.sealer, session_id=session_id(2)))
        down = False
        await receiver.until(lambda: any("TRUNCATED" in found["type"] for found in events_of(receiver)))
    assert gone() - before == entries
