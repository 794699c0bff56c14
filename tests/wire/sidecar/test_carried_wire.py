"""What /.well-known claims of SPEC-014 is what a served sidecar sends and what the tests that it names show."""

from __future__ import annotations

import re

import pytest

from interlock.domain.conformance import carried
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX
from interlock.domain.headers.headers import KNOWN
from tests.support.paths import ROOT
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import DpeDouble, a_report, running_sidecar, token_of
from tests.support.sidecar.windows import onward

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

WHOLE = {
    "quality_score": 0.9, "repetition_level": "NONE", "completeness_level": "COMPLETE", "completeness_score": 1.0,
    "flow_score": 0.9, "nist_tier": "TIER-2", "iso_42001_controls": ["A.6.1.2"], "controls_met": 3, "controls_total": 4,
    "domain": "general", "eu_ai_act_class": "LIMITED", "basis": "sources", "grounding_mode": "context-preferred",
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}]


async def sent(sidecar, provider) -> set[str]:
    """Every header that a few calls come back with: two windows, a loop with a tool, a halt and a child session."""
    found: set[str] = set()
    first = await sidecar.chat("First?")
    then = await sidecar.chat("And then?", token=token_of(first), headers=onward(first))
    agentic = await sidecar.chat("Loop?", headers={"crp-context-strategy": "agentic"}, tools=TOOLS)
    provider.by_question["Halt?"] = "This is CRITICAL."
    halted = await sidecar.chat("Halt?", headers={"crp-safety-policy": "halt-on CRITICAL"})
    minted = await sidecar.client.post("/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(first)})
    below = {name: value for name, value in minted.json().get("headers", {}).items() if isinstance(value, str)}
    child = await sidecar.chat("Below?", headers=below)
    for response in (first, then, agentic, halted, child):
        found |= set(response.headers)
    return found


class Whole(DpeDouble):
    """An analysis whose every stage ran."""

    async def Analyze(self, request, context):
        said = " ".join(output.text for output in request.outputs)
        report = a_report("CRITICAL" if "CRITICAL" in said else "LOW", **WHOLE)
        for stage in report.stages:
            stage.status = 1
        self.report = report
        return await super().Analyze(request, context)


@pytest.mark.finding("F-19")
@pytest.mark.req("HDR-4")
async def test_every_mandatory_header_of_the_claimed_level_is_sent(tmp_path, running, provider):
    """Over real HTTP: each response header that a row of the claimed level names, and every field that is said to be sent."""
    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Whole(), data_region="EU", ai_domain="general"
    ) as one:
        described = (await one.client.get("/.well-known/crp-gateway.json")).json()
        found = await sent(one, provider)
    levels = carried.LEVELS[: carried.LEVELS.index(described["conformance_level"]) + 1]
    mandatory = {name for row in carried.REQUIREMENTS if row.level in levels for name in row.headers}
    told = {field for field, use in described["conformance"]["fields"].items() if use.startswith("sent")}

    assert described["conformance_level"] == "standard"
    assert {name for name in mandatory & RESPONSE_SYNTAX.keys() if name.lower() not in found} == set()
    # A budget warning or a nonce of a later window comes and goes with the state; every other field was just seen.
    assert {field for field in told if field.lower() not in found} == set()


@pytest.mark.finding("F-19")
def test_every_field_of_the_specification_has_its_use_or_its_reason():
    """No field is unaccounted for: it is sent or read, or it says why it is not; a request field that is read is in the vocabulary."""
    unused = {field for field in carried.FIELDS if carried.use_of(field) == "not applicable"}

    assert unused == carried.NOT_APPLICABLE.keys()
    assert len(carried.FIELDS) == len(set(carried.FIELDS))
    assert {field.lower() for field in carried.FIELDS} <= KNOWN


@pytest.mark.finding("F-19")
@pytest.mark.parametrize("row", carried.REQUIREMENTS, ids=lambda row: f"{row.level}-{row.what}")
def test_every_requirement_names_a_test_that_is_there_or_says_why_not(row):
    """A row that is carried names a test of ours, one that is not names none, and its headers are known."""
    path, _, name = row.test.partition("::")

    assert bool(row.test) is row.carried
    assert not row.test or re.search(rf"def {name}\(", (ROOT / "tests" / path).read_text())
    assert {header for header in row.headers if header.lower() not in KNOWN} == set()


@pytest.mark.finding("F-19")
def test_a_level_is_claimed_only_while_all_its_rows_are_carried(monkeypatch):
    """One row of basic that is not carried leaves no level to claim, one of standard leaves basic."""
    for level, left in (("basic", ""), ("standard", "basic"), ("full", "standard")):
        lacking = carried.Requirement(level, "something", "SPEC", (), "", "not built")
        monkeypatch.setattr(carried, "REQUIREMENTS", (*carried.REQUIREMENTS, lacking))
        assert carried.claimed() == left
        monkeypatch.undo()
