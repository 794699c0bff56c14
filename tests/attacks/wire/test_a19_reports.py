"""A-19: a violation report carries nothing out: ids and scores, signed, to hosts that the deployment names (POL-9)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from prometheus_client import REGISTRY

from interlock.audit.streams.delivery import report_of
from interlock.domain.chain.chain import EventRecord
from tests.support.audit.streaming import QUICK, SECRET, url, verified, write_sinks
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.servers.webhooks import Receiver, certificate
from tests.support.sidecar.sidecar import DpeDouble, a_report, running_sidecar

pytestmark = pytest.mark.req("POL-9")

_ID = {"type": "string", "pattern": r"^crp_[a-z]+_[0-9a-f]{32}$"}
_SCORE = {"type": ["number", "null"]}
SCHEMA = Draft202012Validator(
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["crp_version", "session_id", "window_id", "timestamp", "violation_type", "directive_violated"],
        "properties": {
            "crp_version": {"const": "3.0.0"},
            "session_id": _ID,
            "window_id": _ID,
            "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$"},
            "violation_type": {"type": "string", "pattern": r"^[A-Z_]{3,64}$"},
            "directive_violated": {"type": "string", "pattern": r"^[a-z-]+( [A-Za-z0-9.'-]+){0,4}$"},
            "report_only": {"type": "boolean"},
            "risk_level": {"enum": ["LOW", "MEDIUM", "HIGH", "CRITICAL", None]},
            "hallucination_score": _SCORE,
            "grounding_pct": _SCORE,
            "fabrication_count": {"type": ["integer", "null"]},
            "audit_trail_uri": {"type": "string", "pattern": r"^https?://[^ ]+/crp/v3/[a-z]+/crp_[a-z]+_[0-9a-f]{32}$"},
        },
    }
)
CANARIES = ("CANARY-PROMPT", "CANARY-FACT", "CANARY-ANSWER", "CANARY-ENTITY", "CANARY-TOOL")


@pytest.fixture
def provider():
    made = Provider()
    with RunningProvider(made) as running:
        yield made, running.base_url


async def _halted(sidecar, policy: str, **more) -> Any:
    body = {"interlock": {"facts": [{"id": "CANARY-FACT is a text", "content": "CANARY-FACT"}]}}
    answer = await sidecar.chat("CANARY-PROMPT", headers={"crp-safety-policy": policy}, **(body | more))
    assert answer.status_code == 451, answer.text
    return answer


def _judge() -> DpeDouble:
    report = a_report("CRITICAL", fabrication_count=1, fabricated_entities=["CANARY-ENTITY"], grounding_pct=0.25)
    report.claims[0].text = "CANARY-ANSWER"
    report.claims[0].fabrications.append("CANARY-ENTITY")
    return DpeDouble(report=report)


def _settings(tmp_path, receiver: Receiver, ca, **more) -> dict[str, Any]:
    return {
        "egress_allow": f"localhost:{receiver.port},{receiver.origin}", "egress_ca_file": ca, "report_secret": SECRET,
        "report_uri_hosts": "localhost", **more,
    }  # fmt: skip


async def test_a19_a_report_holds_ids_and_scores_and_no_text(tmp_path, provider):
    """Prompt, fact, answer and entity are in the session; none is in the report, which the strict schema accepts."""
    ca, tls = certificate(tmp_path, "localhost")
    async with Receiver(tls) as receiver, Receiver() as siem:
        made, upstream = provider
        made.answers("CANARY-ANSWER about CANARY-ENTITY")
        sinks = tmp_path / "sinks.yaml"
        write_sinks(sinks, siem={"url": url(siem), "min_severity": "DEBUG"})
        settings = _settings(tmp_path, receiver, ca, sinks_file=sinks)
        settings["egress_allow"] += f",{siem.origin}"
        async with running_sidecar(tmp_path, upstream=upstream, dpe=_judge(), **settings) as sidecar:
            policy = f"halt-on CRITICAL; block-fabrication; report-uri https://localhost:{receiver.port}/in?team=7"
            await _halted(sidecar, policy)
            await receiver.until(lambda: len(receiver.received) >= 2)
            await siem.until(lambda: any(b"REPORT_DELIVERED" in posted.body for posted in siem.received))
    for posted in receiver.received:
        told = verified(posted)
        assert [error.message for error in SCHEMA.iter_errors(told)] == []
        assert (posted.path, told["risk_level"], told["grounding_pct"]) == ("/in?team=7", "CRITICAL", 0.25)
    assert {json.loads(posted.body)["directive_violated"] for posted in receiver.received} == {
        "halt-on CRITICAL", "block-fabrication",
    }  # fmt: skip
    everything = b"".join(
        posted.body + repr(posted.headers).encode() for posted in (*receiver.received, *siem.received)
    )
    assert [word for word in CANARIES if word.encode() in everything] == []


async def test_a19_a_host_that_the_deployment_does_not_name_is_told_nothing(tmp_path, provider):
    """The policy of a caller cannot choose where reports go: none is sent, and each is counted."""
    ca, tls = certificate(tmp_path, "localhost")
    before = REGISTRY.get_sample_value("interlock_audit_reports_refused_total", {"reason": "HOST_NOT_ALLOWED"}) or 0
    async with Receiver(tls) as receiver:
        settings = _settings(tmp_path, receiver, ca, report_uri_hosts="reports.example.test")
        async with running_sidecar(tmp_path, upstream=provider[1], dpe=_judge(), **settings) as sidecar:
            await _halted(sidecar, f"halt-on CRITICAL; report-uri https://localhost:{receiver.port}/")
            audit_log = sidecar.services["audit"].servicer._reader._log
            await receiver.until(
                lambda: audit_log.cursor("report-uri:reports.example.test") >= audit_log.log_size() > 0
            )
    assert receiver.connections == 0
    after = REGISTRY.get_sample_value("interlock_audit_reports_refused_total", {"reason": "HOST_NOT_ALLOWED"})
    assert after == before + 1


async def test_a19_a_named_host_on_a_private_address_is_told_nothing(tmp_path, provider):
    """An allow-listed name does not open loopback: the report is a dead letter that says why."""
    ca, tls = certificate(tmp_path, "localhost")
    async with Receiver(tls) as receiver:
        settings = _settings(tmp_path, receiver, ca, egress_allow="")
        async with running_sidecar(tmp_path, upstream=provider[1], dpe=_judge(), **settings) as sidecar:
            await _halted(sidecar, f"halt-on CRITICAL; report-uri https://localhost:{receiver.port}/")
            audit_log = sidecar.services["audit"].servicer._reader._log
            await receiver.until(lambda: audit_log.dead_letters("report-uri:localhost"))
            [dead] = audit_log.dead_letters("report-uri:localhost")
    assert (dead.reason, receiver.connections) == ("EGRESS_HOST_REFUSED", 0)


async def test_a19_an_address_that_refuses_keeps_no_report_from_another(tmp_path, provider):
    """Two addresses on one host: the one that answers 404 is given up and kept, the other has its report, once."""
    ca, tls = certificate(tmp_path, "localhost")
    async with Receiver(tls) as receiver:
        receiver.answer = lambda posted: (404 if posted.path == "/gone" else 200, "", 0)
        at = f"https://localhost:{receiver.port}"
        settings = _settings(tmp_path, receiver, ca)
        async with running_sidecar(tmp_path, upstream=provider[1], dpe=_judge(), **settings) as sidecar:
            answer = await _halted(sidecar, f"halt-on CRITICAL; report-uri {at}/gone; report-uri {at}/here")
            audit_log = sidecar.services["audit"].servicer._reader._log
            await receiver.until(lambda: audit_log.dead_letters("report-uri:localhost"))
            [dead] = audit_log.dead_letters("report-uri:localhost")
            chain = audit_log.chain(answer.headers["crp-context-session-id"])
    assert dead.reason == "HTTP_404"
    assert sorted(posted.path for posted in receiver.received) == ["/gone", "/here"]
    assert [event.event_type for event in chain.events].count("REPORT_DELIVERED") == 1


async def test_a19_report_to_names_a_sink_of_the_deployment(tmp_path, provider):
    """A group is a name, not an address: its sink gets the same report, once it is accepted that is in the chain."""
    async with Receiver() as receiver:
        sinks = tmp_path / "sinks.yaml"
        write_sinks(sinks, safety={"url": url(receiver), "format": "report"})
        settings = {"sinks_file": sinks, "egress_allow": receiver.origin}
        async with running_sidecar(tmp_path, upstream=provider[1], dpe=_judge(), **settings) as sidecar:
            answer = await _halted(sidecar, "halt-on CRITICAL; report-to safety; report-to nobody")
            session_id = answer.headers["crp-context-session-id"]
            await receiver.until(lambda: receiver.received)
            audit_log = sidecar.services["audit"].servicer._reader._log
            await receiver.until(
                lambda: any(e.event_type == "REPORT_DELIVERED" for e in audit_log.chain(session_id).events)
            )
    assert [error.message for error in SCHEMA.iter_errors(verified(receiver.received[0]))] == []


async def test_a19_a_policy_that_is_only_observed_reports_to_its_own_address(tmp_path, provider):
    """CRP-Safety-Policy-Report-Only: the answer is delivered, the report says that it was only observed."""
    async with Receiver() as receiver:
        sinks = tmp_path / "sinks.yaml"
        write_sinks(sinks, safety={"url": url(receiver), "format": "report"})
        settings = {"sinks_file": sinks, "egress_allow": receiver.origin}
        dpe = DpeDouble(report=a_report("HIGH"))
        async with running_sidecar(tmp_path, upstream=provider[1], dpe=dpe, remediation="none", **settings) as sidecar:
            answer = await sidecar.chat(headers={"crp-safety-policy-report-only": "halt-on HIGH; report-to safety"})
            assert answer.status_code == 200
            await receiver.until(lambda: receiver.received)
    told = verified(receiver.received[0])
    assert (told["report_only"], told["directive_violated"]) == (True, "halt-on HIGH")


TEXT = st.sampled_from([
    "CANARY-ANSWER", "It sank\nin 1700, CANARY-ANSWER.", "\x1b[2J CANARY-ANSWER", {"a": "CANARY-ANSWER"}, ["CANARY-ANSWER"],
])  # fmt: skip
FIELDS = (
    "directive", "report_only", "violation_details", "risk_level", "hallucination_score", "grounding_pct",
    "fabrication_count", "audit_trail_uri", "claims", "answer",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(FIELDS), TEXT, min_size=1))
def test_a19_no_sentence_gets_into_a_report_whatever_the_event_holds(data):
    """A report is made of fields with an alphabet each: what looks like a text is left out, wherever it stands."""
    session_id, time = "crp_sess_" + "0" * 32, "2026-05-25T10:00:00Z"
    event = EventRecord(session_id, 1, "", "POLICY_VIOLATION", 3, time, json.dumps(data), 1, "")
    told = report_of(event, data)
    told.pop("violation_type"), told.pop("directive_violated")
    assert "CANARY" not in json.dumps(told)
    full = report_of(
        event, data | {"directive": "It sank\nin 1700, CANARY.", "violation_details": {"type": "It, CANARY"}}
    )
    assert (full["directive_violated"], full["violation_type"]) == (None, None)


def test_a19_the_schema_refuses_a_text():
    """The schema test can fail: a text in any field of words is not accepted."""
    good = {
        "crp_version": "3.0.0", "session_id": "crp_sess_" + "0" * 32, "window_id": "crp_win_" + "0" * 32,
        "timestamp": "2026-05-25T10:00:00Z", "violation_type": "HALT_ON_CRITICAL", "directive_violated": "halt-on CRITICAL",
    }  # fmt: skip
    assert list(SCHEMA.iter_errors(good)) == []
    for name in good:
        assert list(SCHEMA.iter_errors(good | {name: "The harbour opened in 1850."})), name
    assert list(SCHEMA.iter_errors(good | {"answer": "x"}))
    assert re.fullmatch(r"whsec_\S+", QUICK["secret"])
