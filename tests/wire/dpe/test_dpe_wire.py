"""The dpe service over real gRPC on the real models."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.domain.errors import Refused
from interlock.dpe.inference.places import WITHOUT_PLACE
from interlock.dpe.report.message import STAGES
from interlock.dpe.servicer import DpeServicer
from interlock.dpe.wiring import FULL_NAME, open_service
from interlock.runtime.rpc.channel import LocalContext
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from tests.support.dpe import own_model, pipeline

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

TOWER = (
    "The Eiffel Tower is 330 metres tall.",
    "It was completed in 1889 by the company of Gustave Eiffel.",
    "About seven million people visit the Eiffel Tower each year.",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service() -> AsyncIterator[Service]:
    """The service as a process opens it."""
    opened = await open_service(Settings(max_claims=40, max_facts=20, max_text_bytes=20_000, max_choices=3))
    yield opened
    await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stub(service: Service) -> AsyncIterator[dpe_pb2_grpc.DpeServiceStub]:
    """A client over a socket."""
    settings = Settings(allow_plaintext=True)
    server = RpcServer([service], settings, port=0)
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield dpe_pb2_grpc.DpeServiceStub(channel)
    await server.drain()


def asked(*outputs: str | dpe_pb2.Output, facts=TOWER, **fields: object) -> dpe_pb2.AnalyzeRequest:
    return dpe_pb2.AnalyzeRequest(
        outputs=[o if isinstance(o, dpe_pb2.Output) else dpe_pb2.Output(text=o) for o in outputs],
        facts=[
            f if isinstance(f, common_pb2.Fact) else common_pb2.Fact(id=f"f{n}", content=f, importance=0.5)
            for n, f in enumerate(facts, 1)
        ],
        **fields,
    )


async def report(stub, *outputs, **fields) -> dpe_pb2.Report:
    answer = await stub.Analyze(asked(*outputs, **fields), timeout=60)
    assert not answer.HasField("refusal"), answer.refusal
    return answer.report


async def refusal(stub, *outputs, **fields) -> common_pb2.Refusal:
    answer = await stub.Analyze(asked(*outputs, **fields), timeout=60)
    assert answer.HasField("refusal")
    assert not answer.HasField("report")
    return answer.refusal


@pytest.mark.req("DPE-1", "DPE-2", "DPE-4", "DPE-5")
async def test_a_faithful_answer_is_low(stub):
    """Paraphrased, supported, with the usual courtesy around it."""
    found = await report(
        stub,
        "Sure! The Eiffel Tower stands 330 metres tall. It was completed in 1889 by Gustave Eiffel's company, and it "
        "attracts about 7 million visitors each year. I hope this helps!",
        query="Tell me about the Eiffel Tower.",
    )
    assert found.risk_level == common_pb2.RISK_LEVEL_LOW
    assert found.grounding_pct == 1.0
    assert found.entailment_score > 0.5
    assert not found.floors
    assert found.claims_by_type["META"] == 2


@pytest.mark.req("DPE-2", "DPE-3", "DPE-5")
async def test_one_bad_claim_is_found_and_named(stub):
    """The claim, its fact, both values, and its place in the answer."""
    answer = "The Eiffel Tower is 390 metres tall. It was completed in 1889 by the company of Gustave Eiffel."
    found = await report(stub, answer)
    bad = next(claim for claim in found.claims if claim.distortions)

    assert answer[bad.start : bad.end] == "The Eiffel Tower is 390 metres tall."
    assert (bad.fact_id, bad.distortions[0].type) == ("f1", "NUMBER_CHANGED")
    assert "330" in bad.distortions[0].source_value
    assert bad.attribution == dpe_pb2.ATTRIBUTION_MIXED
    assert "DISTORTION_FOUND" in found.floors
    assert found.risk_level > common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("DPE-5")
async def test_without_facts_nothing_is_supported(stub):
    """Where a policy requires grounding, an answer that rests on nothing is at least HIGH."""
    found = await report(stub, "The Eiffel Tower is 330 metres tall.", facts=(), grounding_required=True)

    assert found.grounding_pct == 0.0
    assert found.entailment_score == 0.0
    assert found.risk_level >= common_pb2.RISK_LEVEL_HIGH
    assert found.quality_tier == "D"


@pytest.mark.req("DPE-5")
@pytest.mark.parametrize(
    ("text", "floor"),
    [("", "EMPTY_RESPONSE"), (" \n ", "EMPTY_RESPONSE"), ("!!!", "NO_CHECKABLE_CLAIM")],
)
async def test_nothing_to_check_is_not_low(stub, text, floor):
    """Reliability row 25: what could not be read is not without risk, and no score is made up."""
    found = await report(stub, text)

    assert found.risk_level == common_pb2.RISK_LEVEL_MEDIUM
    assert list(found.floors) == [floor]
    assert not found.HasField("grounding_pct")
    assert not found.HasField("entailment_score")
    assert not found.HasField("fidelity_score")


@pytest.mark.req("DPE-5")
async def test_no_output_at_all_is_not_low(stub):
    """A dispatch without outputs is an empty answer."""
    assert list((await report(stub)).floors) == ["EMPTY_RESPONSE"]


@pytest.mark.req("DPE-1")
async def test_hidden_characters_hide_nothing_and_raise_risk(stub):
    """A-24: the changed number is seen through zero-width characters, and they are held against the answer."""
    clean = await report(stub, "The Eiffel Tower is 330 metres tall.")
    hidden = await report(stub, "The Eif\u200bfel Tower is 3\u200b30 metres tall.")
    changed = await report(stub, "The Eif\u200bfel Tower is 3\u200b90 metres tall.")

    assert clean.risk_level == common_pb2.RISK_LEVEL_LOW
    assert list(hidden.floors) == ["HIDDEN_CHARACTERS"]
    assert hidden.grounding_pct == 1.0
    assert "NUMBER_CHANGED" in changed.distortion_types


@pytest.mark.req("DPE-3")
async def test_claims_that_contradict_each_other_are_found(stub):
    """Both claims are named, and other subjects are left alone."""
    found = await report(
        stub,
        "The bridge in Lyon opened in 1950. The bridge in Lyon opened in 1960.",
        facts=["The bridge in Lyon opened in 1950."],
    )
    assert (found.contradiction_count, found.contradiction_scope) == (1, "intra")
    assert found.contradictions[0].method == "dates"
    assert "CONTRADICTION_FOUND" in found.floors


@pytest.mark.req("DPE-10")
async def test_an_important_fact_left_out_is_an_omission(stub):
    """By importance, and only what no sentence covers."""
    facts = [
        common_pb2.Fact(id="told", content=TOWER[0], importance=1.0),
        common_pb2.Fact(id="untold", content="The lifts are closed every Monday for repairs.", importance=0.95),
        common_pb2.Fact(id="minor", content="Its paint is brown.", importance=0.1),
    ]
    found = await report(stub, "The Eiffel Tower is 330 metres tall.", facts=facts)

    assert [(o.fact_id, o.severity) for o in found.omissions] == [("untold", "CRITICAL")]
    assert found.omission_summary == {"CRITICAL": 1, "HIGH": 0, "MEDIUM": 0}


@pytest.mark.req("DPE-11", "DPE-14")
async def test_personal_data_is_found_and_amplifies(stub):
    """In the response and in the prompt, named by kind and place, never by content."""
    text = "The Eiffel Tower is 390 metres tall. Write to jane.doe@example.com."
    found = await report(stub, text, prompt="My e-mail is john.roe@example.com.")
    kinds = {(f.type, f.where) for f in found.pii}

    assert found.gdpr_pii_detected
    assert ("EMAIL_ADDRESS", "response") in kinds
    assert ("EMAIL_ADDRESS", "prompt") in kinds
    assert "GDPR_PII" in found.amplifiers_applied
    mail = next(f for f in found.pii if f.where == "response")
    assert text[mail.start : mail.end] == "jane.doe@example.com"
    assert found.composite_score == pytest.approx(min(1.0, found.base_composite * 1.30))


@pytest.mark.req("DPE-13", "DPE-20")
async def test_the_report_is_whole(stub):
    """All stages are listed and ran; what a first window cannot say is absent."""
    found = await report(stub, "The Eiffel Tower is 330 metres tall.", query="How tall is the Eiffel Tower?")

    assert [(s.number, s.name) for s in found.stages] == list(STAGES)
    assert all(s.status == dpe_pb2.STAGE_STATUS_RAN for s in found.stages)
    for field in ("repetition_level", "repetition_overlap", "semantic_repetition", "completeness_score", "completeness_level", "quality_score", "coherence_score", "eu_ai_act_class", "nist_tier", "controls_met", "controls_total"):  # fmt: skip
        assert found.HasField(field), field
    for field in ("flow_score", "flow_signals", "flow_remediation"):
        assert not found.HasField(field), field
    assert {m.slot for m in found.models} == {"nli", "embed", "ner", "parser"}
    assert all(m.hash.startswith("sha256:") and m.name and m.runtime == "embedded" for m in found.models)
    assert found.envelope_etag.startswith("sha256:")
    assert (found.facts_total, found.envelope_tokens > 20, found.quality_tier in set("SABC")) == (3, True, True)
    assert sum(found.attribution_breakdown.values()) == 1
    assert sum(found.claims_by_type.values()) == found.claims_total == len(found.claims)


@pytest.mark.req("DPE-13")
async def test_the_same_request_has_the_same_report(stub):
    """A verdict can be repeated, whatever was analysed in between."""
    one = await report(stub, "The Eiffel Tower is 330 metres tall. Bread is cheap in Lyon.")
    await report(stub, "Something else about 12 bridges.")

    assert one == await report(stub, "The Eiffel Tower is 330 metres tall. Bread is cheap in Lyon.")


@pytest.mark.req("DPE-13")
async def test_every_choice_is_analysed_and_the_worst_is_reported(stub):
    """A bad choice cannot hide behind a good one, wherever it stands."""
    good, bad = "The Eiffel Tower is 330 metres tall.", "The Eiffel Tower is in Berlin, says Kurt Wagner."
    for order in ((good, bad), (bad, good)):
        outputs = [dpe_pb2.Output(choice_index=n, text=text) for n, text in enumerate(order)]
        found = await report(stub, *outputs)

        assert [c.choice_index for c in found.choices] == [0, 1]
        assert found.choice_index == order.index(bad)
        assert found.composite_score == max(c.composite_score for c in found.choices)
        assert found.choices[order.index(good)].risk_level == common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("DPE-1")
async def test_a_tool_call_is_analysed_with_its_choice(stub):
    """Arguments are text; a changed number in them is found."""
    found = await report(
        stub,
        dpe_pb2.Output(text="The Eiffel Tower is 330 metres tall.", kind="content"),
        dpe_pb2.Output(text='{"note": "The Eiffel Tower is 390 metres tall."}', kind="tool_call"),
    )
    assert "NUMBER_CHANGED" in found.distortion_types
    assert len(found.choices) == 1


@pytest.mark.req("DPE-2")
@pytest.mark.parametrize("position", [0, 3, 7])
async def test_where_a_bad_claim_stands_changes_nothing(stub, position):
    """A-25: padding pushes no claim out of sight."""
    sentences = [f"The bridge number {n} is made of steel." for n in range(7)]
    facts = [*sentences, TOWER[0]]
    sentences.insert(position, "The Eiffel Tower is 390 metres tall.")
    found = await report(stub, " ".join(sentences), facts=facts)

    assert found.distortion_count == 1
    assert found.risk_level > common_pb2.RISK_LEVEL_LOW


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"facts": [common_pb2.Fact(id="a", content="x", importance=math.nan)]}, "FACT_IMPORTANCE_INVALID"),
        ({"facts": [common_pb2.Fact(id="", content="x")]}, "FACT_ID_INVALID"),
        ({"facts": [common_pb2.Fact(id="a", content="x"), common_pb2.Fact(id="a", content="y")]}, "DUPLICATE_FACT_ID"),
        ({"facts": ["x"] * 21}, "FACT_LIMIT_EXCEEDED"),
        ({"query": "x" * 20_001}, "TEXT_TOO_LARGE"),
        ({"prompt": "é" * 10_001}, "TEXT_TOO_LARGE"),
    ],
)
async def test_bad_evidence_is_refused(stub, fields, reason):
    """Each with its reason, and nothing dropped to make it fit."""
    assert (await refusal(stub, "Text.", **fields)).reason == reason


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        (["Paris is big. " * 50], "CLAIM_LIMIT_EXCEEDED"),
        (["x" * 20_001], "TEXT_TOO_LARGE"),
        ([dpe_pb2.Output(choice_index=n, text="x") for n in range(4)], "CHOICE_LIMIT_EXCEEDED"),
        ([dpe_pb2.Output(choice_index=-1, text="x")], "OUTPUT_INVALID"),
        ([dpe_pb2.Output(text="x", kind="thought")], "OUTPUT_INVALID"),
    ],
)
async def test_bad_outputs_are_refused(stub, outputs, reason):
    """Too much or malformed is refused, never skipped."""
    assert (await refusal(stub, *outputs)).reason == reason


async def test_an_unsplittable_answer_is_checked_in_parts(stub):
    """Thousands of words without an end are neither skipped nor endless: each part is checked."""
    text = " ".join(f"tower{n}" for n in range(800))
    found = await report(stub, text)

    assert found.claims_total >= 15
    assert " ".join(claim.text for claim in found.claims) == text
    assert sum(found.attribution_breakdown.values()) == found.claims_total
    assert found.risk_level >= common_pb2.RISK_LEVEL_HIGH


async def test_running_out_of_time_is_a_refusal():
    """No partial verdict: what is not finished is not answered."""
    servicer = DpeServicer(pipeline(), timeout_s=0.001, workers=1)
    answer = await servicer.Analyze(asked("The Eiffel Tower is 330 metres tall."), LocalContext(None))

    assert answer.refusal.reason == "ANALYSIS_DEADLINE_EXCEEDED"
    assert answer.refusal.kind == common_pb2.REFUSAL_KIND_TIMEOUT


async def test_the_callers_deadline_counts():
    """An analysis ends before its caller stops waiting."""
    servicer = DpeServicer(pipeline(), timeout_s=60, workers=1)
    answer = await servicer.Analyze(asked("The Eiffel Tower is 330 metres tall."), LocalContext(0.002))

    assert answer.refusal.reason == "ANALYSIS_DEADLINE_EXCEEDED"


async def test_too_many_at_once_are_sent_away():
    """What comes without a place is bounded; who is sent away hears when to come back."""
    servicer = DpeServicer(pipeline(), timeout_s=60, workers=1)
    calls = [servicer.Analyze(asked(""), LocalContext(60.0)) for _ in range(1 + WITHOUT_PLACE + 5)]
    answers = await asyncio.gather(*calls)
    busy = [a.refusal for a in answers if a.HasField("refusal")]

    assert len(busy) == 5
    assert {(r.reason, r.kind, r.retry_after_ms > 0) for r in busy} == {
        ("OVERLOADED", common_pb2.REFUSAL_KIND_EXHAUSTED, True)
    }
    assert (await servicer.Analyze(asked(""), LocalContext(60.0))).HasField("report")


@pytest.mark.req("DPE-14", "DPE-17")
async def test_describe_tells_the_calibration(stub):
    """Weights, factors, thresholds and models, for the conformance report."""
    found = await stub.Describe(dpe_pb2.DescribeRequest(), timeout=10)

    assert math.fsum(found.weights.values()) == pytest.approx(1.0)
    assert found.amplifiers["GDPR_PII"] == pytest.approx(1.30)
    assert found.thresholds["risk.critical"] == 0.70
    assert [model.slot for model in found.models] == ["nli", "embed", "ner", "parser"]


async def test_ready_when_open(service):
    """A service that opened misses nothing."""
    assert (service.full_names, dict(await service.unready_dependencies())) == ((FULL_NAME,), {})


@pytest.mark.req("DPE-17")
async def test_a_tampered_model_does_not_start(tmp_path):
    """DPE-17: a mismatch refuses to start, with its reason."""
    folder = own_model(tmp_path / "nli", [1.0, 0.0, 0.0], ("entailment", "neutral", "contradiction"))
    with (folder / "model.onnx").open("ab") as file:
        file.write(b"\0")

    with pytest.raises(Refused, match="MODEL_HASH_MISMATCH"):
        await open_service(Settings(nli_model_dir=folder))


@pytest.mark.req("DPE-17")
async def test_a_model_that_fails_is_named_and_fails_closed(tmp_path):
    """A model whose answers are no numbers: every analysis is refused, and readiness says which slot."""
    folder = own_model(tmp_path / "nli", [math.nan, 0.0, 0.0], ("entailment", "neutral", "contradiction"))
    opened = await open_service(Settings(nli_model_dir=folder))
    answer = await opened.servicer.Analyze(asked("The Eiffel Tower is tall."), LocalContext(60.0))
    missing = await opened.unready_dependencies()
    await opened.close()

    assert (answer.refusal.reason, answer.refusal.kind) == ("MODEL_OUTPUT_INVALID", common_pb2.REFUSAL_KIND_UNAVAILABLE)
    assert list(missing) == ["nli"]


@pytest.mark.finding("F-20")
async def test_a_place_is_taken_used_and_given_back_over_the_wire(stub):
    """The answer of a call with a place is judged; places end, and then there is room again."""
    places: list[str] = []
    while not (given := await stub.ReservePlace(dpe_pb2.ReservePlaceRequest(lease_ms=60_000))).HasField("refusal"):
        places.append(given.place_id)
    judged = await report(stub, TOWER[0], place_id=places[0])
    kept = await stub.ReservePlace(dpe_pb2.ReservePlaceRequest(lease_ms=60_000, place_id=places[0]))
    for place in places:
        await stub.ReleasePlace(dpe_pb2.ReleasePlaceRequest(place_id=place))
    again = await stub.ReservePlace(dpe_pb2.ReservePlaceRequest(lease_ms=60_000))
    await stub.ReleasePlace(dpe_pb2.ReleasePlaceRequest(place_id=again.place_id))

    assert (given.refusal.reason, given.refusal.kind) == ("OVERLOADED", common_pb2.REFUSAL_KIND_EXHAUSTED)
    assert given.refusal.retry_after_ms > 0
    assert judged.claims_total == 1
    assert kept.place_id == places[0]
    assert again.place_id and again.place_id not in places


@pytest.mark.finding("F-20")
async def test_an_analysis_may_take_a_place_of_its_own(stub):
    """It is refused while all are held, and judged when one is free; it holds none afterwards."""
    places: list[str] = []
    while not (given := await stub.ReservePlace(dpe_pb2.ReservePlaceRequest(lease_ms=60_000))).HasField("refusal"):
        places.append(given.place_id)
    refused = await stub.Analyze(asked(TOWER[0], place_for=""))
    for place in places:
        await stub.ReleasePlace(dpe_pb2.ReleasePlaceRequest(place_id=place))
    judged = [await report(stub, TOWER[0], place_for="caller") for _ in range(2 * len(places))]

    assert (refused.refusal.reason, refused.refusal.kind) == ("OVERLOADED", common_pb2.REFUSAL_KIND_EXHAUSTED)
    assert refused.refusal.retry_after_ms > 0
    assert {one.claims_total for one in judged} == {1}


@pytest.mark.finding("F-20")
@pytest.mark.parametrize("lease_ms", [0, -1, 900_001])
async def test_a_lease_has_an_end(stub, lease_ms):
    """None that never ends may be asked for."""
    refused = await stub.ReservePlace(dpe_pb2.ReservePlaceRequest(lease_ms=lease_ms))

    assert refused.refusal.reason == "INVALID_PARAMETER"


@pytest.mark.finding("F-20")
@pytest.mark.req("DPE-11")
async def test_a_short_answer_ends_before_a_long_one_that_came_first():
    """They take turns, so that the short one waits for slices of the long one and not for all of it."""
    servicer = DpeServicer(pipeline(), timeout_s=120, workers=1)
    ended: list[str] = []

    async def judged(name: str, *texts: str, facts=TOWER) -> None:
        answer = await servicer.Analyze(asked(*texts, facts=facts), LocalContext(120.0))
        assert answer.HasField("report"), answer.refusal
        ended.append(name)

    lines = [
        f"Unit {n} of the plant was replaced in {1900 + n} by the company of engineer Number{n}." for n in range(60)
    ]
    long = asyncio.create_task(judged("long", " ".join(lines), facts=lines[:20]))
    await asyncio.sleep(0.05)
    await asyncio.gather(long, *(judged(f"short {n}", f"The tower of {n} is {n} metres tall.") for n in range(2)))

    assert ended[-1] == "long"
