"""Stages 6 to 9 and 12 and the quality score, over real gRPC on the real models (SPEC-005 §8 to §11, §14, §18)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.dpe.quality.completeness import completeness
from interlock.dpe.quality.decomposition import decomposed
from interlock.dpe.wiring import open_service
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.dpe import pipeline
from tests.support.texts.needs import HELD_BACK, QUERIES, cases

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

FIRST = (
    "The EU AI Act classifies AI systems into four risk levels: unacceptable, high, limited, and minimal. "
    "Each level carries different regulatory obligations."
)
COMPARE = (
    "Compare EU AI Act and GDPR approaches to automated decision-making and list the compliance requirements for each"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stub() -> AsyncIterator[dpe_pb2_grpc.DpeServiceStub]:
    """A client over a socket, of a service as a process opens it."""
    service = await open_service(Settings(max_prior_bytes=20_000, max_prior_windows=4))
    server = RpcServer([service], Settings(allow_plaintext=True), port=0)
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield dpe_pb2_grpc.DpeServiceStub(channel)
    await server.drain()
    await service.close()


def asked(*texts: str, prior: tuple[str, ...] = (), facts: tuple[str, ...] = (), **fields: object):
    return dpe_pb2.AnalyzeRequest(
        outputs=[dpe_pb2.Output(choice_index=n, text=text) for n, text in enumerate(texts)],
        prior=[dpe_pb2.PriorWindow(window_id=f"win-{n}", text=text) for n, text in enumerate(prior, 1)],
        facts=[common_pb2.Fact(id=f"f{n}", content=fact, importance=0.5) for n, fact in enumerate(facts, 1)],
        **fields,
    )


async def report(stub, *texts, **fields) -> dpe_pb2.Report:
    answer = await stub.Analyze(asked(*texts, **fields), timeout=60)
    assert not answer.HasField("refusal"), answer.refusal
    return answer.report


def stage(found: dpe_pb2.Report, number: str) -> dpe_pb2.Stage:
    return next(each for each in found.stages if each.number == number)


@pytest.mark.req("DPE-6")
@pytest.mark.parametrize(
    ("before", "now", "severity"),
    [
        ("Acme had $4.2M revenue in 2024.", "Acme had $5.1M revenue in 2024.", "CRITICAL"),
        ("The policy was approved by the board.", "The policy was rejected by the board.", "HIGH"),
        ("The product launched in 2024.", "The product launched in 2025.", "HIGH"),
        ("The reviews were generally positive.", "The reviews were largely negative.", "MEDIUM"),
        ("The share was about 15%.", "The share was approximately 16%.", "LOW"),
        ("Revenue decreased 5% in 2024.", "Revenue increased 20% in 2024.", "CRITICAL"),
    ],
)
async def test_the_severities_of_the_text(stub, before, now, severity):
    """Each row of §8.2 and the example of §8.1, with both claims and the window."""
    found = await report(stub, now, prior=("Something else was said first.", before), facts=(now,))

    assert [(c.severity, c.scope, c.window_id, c.other_text) for c in found.contradictions] == [
        (severity, "cross-window", "win-2", before)
    ]
    claim = next(c for c in found.claims if c.claim_id == found.contradictions[0].claim_id)
    assert (claim.text, found.contradictions[0].other_claim_id) == (now, "")
    assert (found.contradiction_count, found.contradiction_scope) == (1, "cross-window")
    assert ("CROSS_WINDOW_CONTRADICTION" in found.amplifiers_applied) == (severity != "LOW")
    assert ("CONTRADICTION_FOUND" in found.floors) == (severity != "LOW")
    assert found.coherence_score == (1.0 if severity == "LOW" else 0.0)


@pytest.mark.req("DPE-6")
async def test_a_grounded_answer_that_contradicts_the_session_is_not_low(stub):
    """The amplifier leaves a base of nothing as it is; the floor does not."""
    now = "Acme had $5.1M revenue in 2024."
    alone = await report(stub, now, facts=(now,))
    after = await report(stub, now, facts=(now,), prior=("Acme had $4.2M revenue in 2024.",))

    assert alone.risk_level == common_pb2.RISK_LEVEL_LOW
    assert after.risk_level > common_pb2.RISK_LEVEL_LOW
    assert after.composite_score > alone.composite_score


@pytest.mark.req("DPE-6")
async def test_contradictions_inside_and_across_are_both(stub):
    """The scope names both, and the earlier window is found behind others that repeat each other."""
    same = "The bridge in Lyon is made of steel."
    found = await report(
        stub,
        "The bridge in Lyon opened in 1950. The bridge in Lyon opened in 1960.",
        prior=("The bridge in Lyon opened in 1940.", same, same, same),
    )
    assert found.contradiction_scope == "both"
    assert {c.window_id for c in found.contradictions if c.scope == "cross-window"} == {"win-1"}
    assert found.coherence_score == 0.0


@pytest.mark.req("DPE-6")
@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("France has 68 million people.", "Germany has 84 million people."),
        ("Revenue was $4.2M in 2023.", "Revenue was $5.1M in 2024."),
        ("The bridge opened in 1950.", "The bridge opened in 1950."),
    ],
)
async def test_what_can_both_hold_is_no_contradiction(stub, before, now):
    """Other subjects, other times, and the same words."""
    found = await report(stub, now, prior=(before,))

    assert (found.contradiction_count, found.contradiction_scope) == (0, "")
    assert found.coherence_score == 1.0
    assert "CROSS_WINDOW_CONTRADICTION" not in found.amplifiers_applied


@pytest.mark.req("DPE-6")
async def test_the_vector_of_a_cross_window_contradiction(stub):
    """TV-012 as printed."""
    found = await report(
        stub,
        "The company experienced strong revenue growth of 12% in the fiscal year.",
        prior=("The company's revenue declined by 3% in the fiscal year.",),
    )
    assert found.contradiction_scope == "cross-window"
    assert len([c for c in found.contradictions if c.scope == "cross-window"]) >= 1


@pytest.mark.req("DPE-7", "DPE-14")
async def test_the_vector_of_repetition(stub):
    """TV-013 as printed: one sentence of three is a copy, with half of the 4-grams."""
    found = await report(
        stub,
        "The EU AI Act classifies AI systems into four risk levels: unacceptable, high, limited, and minimal. "
        "The obligations vary by level. Each risk category carries different regulatory requirements.",
        prior=(FIRST,),
    )
    assert found.repetition_level == "SIGNIFICANT"
    assert found.repetition_overlap > 0.30
    assert found.semantic_repetition == pytest.approx(1 / 3)
    assert [(s.window_id, s.choice_index) for s in found.repeated_sentences] == [("win-1", 0)]
    assert "SEVERE_REPETITION" not in found.amplifiers_applied


@pytest.mark.req("DPE-7")
async def test_repetition_is_seen_through_spelling(stub):
    """Capitals, markup, spaces and hidden characters change nothing (A-24)."""
    masked = "**the eu ai act**  CLASSIFIES AI sys\u200btems into four risk levels: unacceptable, high, limited, and minimal."
    found = await report(stub, masked, prior=("Nothing of the kind was said.", FIRST))

    assert found.repetition_overlap == 1.0
    assert found.repetition_level == "SEVERE"
    assert "SEVERE_REPETITION" in found.amplifiers_applied


@pytest.mark.req("DPE-7")
async def test_a_new_text_repeats_nothing(stub):
    """NONE, with both ratios, and no amplifier."""
    found = await report(stub, "Bakers in Lyon start work at four in the morning.", prior=(FIRST,))

    assert (found.repetition_level, found.repetition_overlap, found.semantic_repetition) == ("NONE", 0.0, 0.0)
    assert "SEVERE_REPETITION" not in found.amplifiers_applied


@pytest.mark.req("DPE-8")
async def test_completeness_counts_the_whole_session(stub):
    """What the first window answered stays answered; the rest is named, in words and as header tokens."""
    first = "The EU AI Act regulates automated decision-making by the risk of the system that decides."
    then = (
        "Article 22 of the GDPR gives people the right not to be subject to solely automated decisions. "
        "The GDPR requires a legal basis and a data protection impact assessment as compliance measures."
    )
    one = await report(stub, first, query=COMPARE)
    both = await report(stub, then, query=COMPARE, prior=(first,))

    assert [s.text for s in one.sub_queries] == [
        "EU AI Act approach to automated decision-making",
        "GDPR approach to automated decision-making",
        "Comparison between the two approaches",
        "EU AI Act compliance requirements",
        "GDPR compliance requirements",
    ]
    assert {s.text for s in one.sub_queries if s.covered} < {s.text for s in both.sub_queries if s.covered}
    assert list(both.uncovered_sub_queries) == [s.text for s in both.sub_queries if not s.covered]
    assert both.sub_queries[2].token == "comparison-two-approaches"
    assert both.completeness_score == pytest.approx(sum(s.covered for s in both.sub_queries) / 5)


@pytest.mark.req("DPE-8")
async def test_without_a_query_completeness_is_absent(stub):
    """Not good, and not bad: stage 8 says why, and no quality score is made up."""
    found = await report(stub, FIRST)

    assert (stage(found, "8").status, stage(found, "8").detail) == (dpe_pb2.STAGE_STATUS_NOT_RUN, "no query")
    for field in ("completeness_score", "completeness_level", "quality_score"):
        assert not found.HasField(field)
    assert not found.sub_queries
    assert found.quality_tier == found.envelope_tier


@pytest.mark.req("DPE-8")
@pytest.mark.parametrize("text", ["", "I'm sorry, but I can't help with that."])
async def test_an_answer_that_says_nothing_is_incomplete(stub, text):
    """Nothing is covered by nothing."""
    found = await report(stub, text, query="What is the height of the Eiffel Tower and who built it?")

    assert (found.completeness_score, found.completeness_level) == (0.0, "INCOMPLETE")


@pytest.mark.req("DPE-9")
async def test_flow_tells_a_continuation_from_a_new_start(stub):
    """The two second windows of §11.2."""
    first = "The EU AI Act classifies AI systems into four risk levels."
    fresh = (
        "The EU AI Act introduces a risk-based approach to AI regulation. Systems are classified into four categories."
    )
    bridged = "Building on this classification framework, the Act defines specific obligations for each risk level."
    start, flowing = await report(stub, fresh, prior=(first,)), await report(stub, bridged, prior=(first,))

    assert (start.flow_signals.transition_presence, flowing.flow_signals.transition_presence) == (0.0, 1.0)
    assert flowing.flow_score > start.flow_score
    for found in (start, flowing):
        signals = found.flow_signals
        assert found.flow_score == pytest.approx(
            0.35 * signals.opening_coherence
            + 0.25 * signals.topic_continuity
            + 0.20 * signals.register_consistency
            + 0.20 * signals.transition_presence
        )


@pytest.mark.req("DPE-9")
async def test_flow_is_against_the_last_answer_that_says_something(stub):
    """An unrelated last window breaks it, an empty one is passed over."""
    now = "Each risk level of the AI Act carries its own obligations."
    near = await report(stub, now, prior=("Bread is cheap in Lyon.", FIRST))
    far = await report(stub, now, prior=(FIRST, "Bread is cheap in Lyon."))
    empty = await report(stub, now, prior=("Bread is cheap in Lyon.", FIRST, " "))

    assert far.flow_score < near.flow_score
    assert empty.flow_score == near.flow_score


@pytest.mark.req("DPE-9", "DPE-15")
@pytest.mark.parametrize("prior", [(), ("",)])
async def test_a_first_answer_has_no_flow(stub, prior):
    """It has nothing to flow from: absent, and 1.0 in the quality score alone."""
    found = await report(stub, FIRST, query="What is the EU AI Act?", prior=prior)

    assert not found.HasField("flow_score")
    assert not found.HasField("flow_signals")
    assert stage(found, "9").detail == "no earlier answer to flow from"
    assert found.quality_score == pytest.approx(0.65 + 0.35 * found.completeness_score)


@pytest.mark.req("DPE-15")
async def test_a_low_quality_score_lowers_the_tier(stub):
    """A copy of what was said caps what the envelope alone would have been."""
    facts = ("The EU AI Act classifies AI systems into four risk levels.",)
    query = "How does the EU AI Act classify AI systems into risk levels? What does bread cost? Who won in 1998?"
    found = await report(stub, FIRST, query=query, prior=(FIRST,), facts=facts)
    signals = (1.0 - max(found.repetition_overlap, found.semantic_repetition), found.completeness_score, found.flow_score, found.coherence_score)  # fmt: skip

    assert found.quality_score == pytest.approx(
        sum(w * s for w, s in zip((0.25, 0.35, 0.25, 0.15), signals, strict=True))
    )
    assert found.quality_score < 0.70
    assert found.quality_tier > found.envelope_tier


@pytest.mark.req("DPE-13")
async def test_no_choice_hides_what_another_one_did(stub):
    """The riskier choice is described; repetition and contradiction of the other are in the report all the same."""
    grounded = "Acme had $5.1M revenue in 2024."
    riskier = "Kurt Wagner of Berlin says that 17 bridges fell in 1971."
    found = await report(
        stub,
        grounded,
        riskier,
        prior=("Acme had $4.2M revenue in 2024.", FIRST),
        facts=(grounded,),
        query="What is Acme?",
    )
    copied = await report(stub, FIRST, riskier, prior=(FIRST,), facts=(FIRST,))

    assert (found.choice_index, copied.choice_index) == (1, 1)
    assert (found.contradiction_scope, found.coherence_score) == ("cross-window", 0.0)
    assert copied.repetition_level == "SEVERE"
    assert {s.choice_index for s in copied.repeated_sentences} == {0}


@pytest.mark.req("DPE-13")
async def test_the_same_session_has_the_same_report(stub):
    """Also when what is known of its earlier answers was forgotten, or came from analysing them."""
    now, before = "Each risk level of the AI Act carries obligations.", "The Act knows four levels of risk."
    one = await report(stub, now, prior=(before,), query="What is the AI Act?")
    await report(stub, before)

    assert await report(stub, now, prior=(before,), query="What is the AI Act?") == one


@pytest.mark.finding("F-17")
@pytest.mark.req("DPE-12")
@pytest.mark.parametrize(
    ("domain", "name", "ai_class", "tier"),
    [
        ("", "", "UNKNOWN", "TIER-2"), ("general", "general", "LIMITED", "TIER-2"),
        ("Employment", "employment", "HIGH", "TIER-3"), ("biometric_identification", "biometric-identification", "UNACCEPTABLE", "TIER-4"),
        ("entertainment", "creative", "MINIMAL", "TIER-1"),
    ],
)  # fmt: skip
async def test_the_registered_domain_is_classified(stub, domain, name, ai_class, tier):
    """§14.2, and the amplifier of §17 with it."""
    found = await report(stub, FIRST, domain=domain)

    assert (found.domain, found.eu_ai_act_class, found.nist_tier) == (name, ai_class, tier)
    assert ("EU_AI_ACT_HIGH_RISK" in found.amplifiers_applied) == (ai_class in {"HIGH", "UNACCEPTABLE"})


@pytest.mark.req("DPE-12")
async def test_personal_data_in_a_decision_upgrades_the_class(stub):
    """§14.2's override, with its amplifier."""
    decided = await report(stub, "The loan of jane.doe@example.com is rejected.", domain="general")
    told = await report(stub, "Write to jane.doe@example.com for a brochure.", domain="general")

    assert (decided.eu_ai_act_class, told.eu_ai_act_class) == ("HIGH", "LIMITED")
    assert "EU_AI_ACT_HIGH_RISK" in decided.amplifiers_applied
    assert told.controls_total == 3 + 11 + 11 + 13


@pytest.mark.req("DPE-12")
async def test_controls_are_those_that_this_call_evidences(stub):
    """A window of a session with a query meets more than a bare text, and never all."""
    bare = await report(stub, FIRST)
    whole = await report(
        stub, FIRST, query="What is the EU AI Act?", session_id="s", window_id="w", domain="general"
    )  # fmt: skip

    assert bare.controls_met < whole.controls_met < whole.controls_total == bare.controls_total
    assert "A.9.3" in whole.iso_42001_controls
    assert "A.9.3" not in bare.iso_42001_controls


@pytest.mark.req("DPE-9")
async def test_the_remedy_is_in_the_report(stub):
    """What this answer is the outcome of; absent when of none."""
    found = await report(stub, FIRST, flow_remediation="stitched")

    assert found.flow_remediation == "stitched"
    assert not (await report(stub, FIRST)).HasField("flow_remediation")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"prior": ("x" * 10_001, "y" * 10_000)}, "PRIOR_TOO_LARGE"),
        ({"prior": ("a", "b", "c", "d", "e")}, "PRIOR_LIMIT_EXCEEDED"),
        ({"domain": "recruting"}, "AI_DOMAIN_UNKNOWN"),
        ({"flow_remediation": "none\r\nx: y"}, "FLOW_REMEDIATION_UNKNOWN"),
    ],
)
async def test_a_session_above_a_bound_is_refused(stub, fields, reason):
    """Never cut, never passed over."""
    assert (await stub.Analyze(asked("Text.", **fields), timeout=60)).refusal.reason == reason


@pytest.mark.parametrize("ids", [("",), ("w", "w"), ("w" * 257,)])
async def test_windows_have_ids_of_their_own(stub, ids):
    """A finding must be able to name its window."""
    request = asked("Text.")
    request.prior.extend(dpe_pb2.PriorWindow(window_id=name, text="Text.") for name in ids)

    assert (await stub.Analyze(request, timeout=60)).refusal.reason == "PRIOR_WINDOW_INVALID"


@pytest.mark.req("DPE-15")
async def test_describe_tells_the_quality_calibration(stub):
    """Weights, bands and the method, for the conformance report."""
    found = await stub.Describe(dpe_pb2.DescribeRequest(), timeout=10)

    assert found.quality_weights == {"repetition": 0.25, "completeness": 0.35, "flow": 0.25, "coherence": 0.15}
    assert found.method == "nli+values"
    assert found.thresholds["repetition.overlap.severe_above"] == 0.30
    assert found.thresholds["quality.tier.S"] == 0.85


@pytest.mark.req("DPE-8")
@pytest.mark.parametrize(("queries", "at_least"), [(QUERIES, 0.92), (HELD_BACK, 0.87)])
async def test_the_nearest_need_decides_better_than_the_plain_cosine(queries, at_least):
    """Balanced accuracy over needs that are and are not covered; 0.70 of cosine finds a third of the covered ones."""
    figures = {method: await _balanced(queries, method) for method in ("nli", "cosine")}

    assert figures["nli"] >= at_least
    assert figures["cosine"] <= 0.70


async def _balanced(queries, method) -> float:
    """Return the balanced accuracy of stage 8; a query that is not taken apart as by hand counts as all wrong."""
    hits = {True: 0, False: 0}
    seen = {True: 0, False: 0}
    engine = pipeline()
    for query, said, labels in cases(queries):
        needs, _ = decomposed(query, engine.language)
        vectors = await engine.inference.embed([need.text for need in needs])
        found = completeness(needs, vectors, said, await engine.inference.embed(said), method=method)
        alike = len(needs) == len(labels)
        for number, label in enumerate(labels):
            seen[label] += 1
            hits[label] += alike and found.needs[number].covered is label
    return sum(hits[label] / seen[label] for label in (True, False)) / 2
