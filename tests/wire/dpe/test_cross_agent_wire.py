"""Fan-ins over real gRPC on the real models (SPEC-012 §9)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.dpe.wiring import open_service
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.texts import merged
from tests.support.texts.merged import FanIn

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

GREW, DECLINED = "Revenue grew 15 % in 2024.", "Revenue declined 3 % in 2024."
LINKED = dpe_pb2.LinkedResult(
    session_id="crp_sess_" + "a" * 26,
    window_id="crp_win_" + "b" * 26,
    hmac="sha256:" + "1" * 64,
    chain_tip="sha256:" + "2" * 64,
    agent_type="specialist_legal",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stub() -> AsyncIterator[dpe_pb2_grpc.DpeServiceStub]:
    """A client over a socket, of a service as a process opens it."""
    service = await open_service(
        Settings(max_prior_bytes=20_000, max_prior_windows=4, max_text_bytes=15_000, max_claims=40, max_choices=2)
    )
    server = RpcServer([service], Settings(allow_plaintext=True), port=0)
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield dpe_pb2_grpc.DpeServiceStub(channel)
    await server.drain()
    await service.close()


def answer(number: int, text: str, **fields: str) -> dpe_pb2.MergedAnswer:
    return dpe_pb2.MergedAnswer(source_id=f"win-{number}", text=text, **fields)


def asked(text: str, *answers: str | dpe_pb2.MergedAnswer, facts: tuple[str, ...] = (), **fields: object):
    return dpe_pb2.AnalyzeRequest(
        outputs=[dpe_pb2.Output(text=text)],
        merged=[answer(n, one) if isinstance(one, str) else one for n, one in enumerate(answers, 1)],
        facts=[common_pb2.Fact(id=f"f{n}", content=fact, importance=0.5) for n, fact in enumerate(facts, 1)],
        **fields,
    )


async def report(stub, text: str, *answers: str | dpe_pb2.MergedAnswer, **fields: object) -> dpe_pb2.Report:
    found = await stub.Analyze(asked(text, *answers, **fields), timeout=60)
    assert not found.HasField("refusal"), found.refusal
    return found.report


async def refusal(stub, text: str, *answers: str | dpe_pb2.MergedAnswer, **fields: object) -> common_pb2.Refusal:
    found = await stub.Analyze(asked(text, *answers, **fields), timeout=60)
    assert found.HasField("refusal")
    assert not found.HasField("report")
    return found.refusal


# --- coherence (§9.1) ---


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize(
    ("one", "other", "kind", "severity"),
    [
        ("revenue grew 15 %", "revenue declined 3 %", "NUMERICAL", "CRITICAL"),
        ("France has 68 million people.", "France has 84 million people.", "NUMERICAL", "CRITICAL"),
        ("The policy was approved by the board.", "The policy was rejected by the board.", "DIRECT", "HIGH"),
        ("The product launched in 2024.", "The product launched in 2025.", "TEMPORAL", "HIGH"),
        ("The reviews were generally positive.", "The reviews were largely negative.", "DIRECT", "MEDIUM"),
        ("The share was about 15%.", "The share was approximately 16%.", "NUMERICAL", "LOW"),
    ],
)
async def test_answers_that_contradict_each_other(stub, one, other, kind, severity):
    """With both sources and both claims; a synthesis that keeps out of it is flagged all the same."""
    now = "The report is now complete."
    found = await report(stub, now, f"Here is what I found. {one}", other, facts=(now,))
    [crossed] = found.cross_agent.contradictions

    assert (crossed.source_a, crossed.source_b, crossed.type, crossed.severity) == ("win-1", "win-2", kind, severity)
    assert (crossed.claim_a.strip("."), crossed.claim_b.strip(".")) == (one.strip("."), other.strip("."))
    assert (found.contradiction_count, found.contradiction_scope) == (1, "cross-window")
    assert [(c.severity, c.scope, c.window_id) for c in found.contradictions] == [(severity, "cross-window", "win-1")]
    assert ("CROSS_WINDOW_CONTRADICTION" in found.amplifiers_applied) == (severity != "LOW")
    assert ("CONTRADICTION_FOUND" in found.floors) == (severity != "LOW")
    assert (found.coherence_score < 1.0) == (severity != "LOW")


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("France has 68 million people.", "Germany has 84 million people."),
        ("Acme had a good year. Revenue grew 15 %.", "Globex had a bad year. Revenue declined 3 %."),
        ("Revenue was $4.2M in 2023.", "Revenue was $5.1M in 2024."),
        ("Norvik was founded in 1998.", "Hydra Shipping was founded in 2001."),
        ("The population of France is 68 million.", "The area of France is 551,500 square kilometres."),
        (merged.LEGAL, merged.FINANCIAL),
        (merged.LEGAL, merged.TECHNICAL),
        (merged.VALLEY_DATA, merged.VALLEY_VOICES),
    ],
)
async def test_answers_that_can_both_hold(stub, one, other):
    """Other subjects, other times, other matters; a synthesis that says both is no contradiction either."""
    found = await report(stub, f"{one}\n\n{other}", one, other)

    assert not found.cross_agent.contradictions
    assert (found.contradiction_count, found.contradiction_scope) == (0, "")
    assert "CROSS_WINDOW_CONTRADICTION" not in found.amplifiers_applied


@pytest.mark.req("DPE-19")
async def test_the_sub_query_tells_what_an_answer_speaks_of(stub):
    """The same words about two companies, and about one."""
    apart = (
        answer(1, "Revenue grew 15 %.", sub_query="Results of Acme"),
        answer(2, "Revenue declined 3 %.", sub_query="Results of Globex"),
    )
    alike = (apart[0], answer(2, "Revenue declined 3 %.", sub_query="Risks of Acme"))

    assert not (await report(stub, "Done.", *apart)).cross_agent.contradictions
    assert len((await report(stub, "Done.", *alike)).cross_agent.contradictions) == 1


@pytest.mark.req("DPE-19")
async def test_a_synthesis_that_states_one_side_is_flagged(stub):
    """It is grounded in what it states, and still not LOW: what it leaves out says the contrary."""
    alone = await report(stub, GREW, GREW, facts=(GREW,))
    beside = await report(stub, GREW, GREW, DECLINED, facts=(GREW,))

    assert alone.risk_level == common_pb2.RISK_LEVEL_LOW
    assert beside.risk_level > common_pb2.RISK_LEVEL_LOW
    assert beside.composite_score > alone.composite_score
    assert [(c.source_a, c.source_b) for c in beside.cross_agent.contradictions] == [("win-1", "win-2")]
    assert {c.window_id for c in beside.contradictions} == {"win-1", "win-2"}


@pytest.mark.req("DPE-19")
async def test_a_synthesis_that_no_answer_bears_out_is_flagged(stub):
    """The answer itself is held against what it was made from."""
    found = await report(stub, DECLINED, GREW)

    assert not found.cross_agent.contradictions
    assert [(c.scope, c.window_id, c.other_text) for c in found.contradictions] == [("cross-window", "win-1", GREW)]


@pytest.mark.req("DPE-19")
async def test_a_contradiction_hides_behind_nothing(stub):
    """Not in a long answer, not between the first and the last of four, not behind a mask."""
    cities = "Bergen Lyon Porto Riga Split Genoa Cadiz Turku Malmo Brest Varna Izmir".split()
    padding = " ".join(f"{city} has a pier that is made of oak." for city in cities)
    masked = DECLINED.replace("declined", "d\u200becl\u200bined")
    found = await report(
        stub, "Done.", f"{padding} {GREW}", "The harbour is old.", "It rained on Monday.", f"{masked} {padding}"
    )

    assert [(c.source_a, c.source_b) for c in found.cross_agent.contradictions] == [("win-1", "win-4")]


@pytest.mark.req("DPE-19")
async def test_a_prior_window_is_compared_as_before(stub):
    """What a fan-in's parents say and what an earlier window said both count, each once."""
    found = await report(
        stub, DECLINED, GREW, prior=[dpe_pb2.PriorWindow(window_id="win-0", text=GREW)], facts=(DECLINED,)
    )
    assert [c.window_id for c in found.contradictions] == ["win-0"]


# --- completeness (§9.2) ---


def credited(case: FanIn, found: dpe_pb2.Report) -> int:
    """Count the sub-queries that get the credit, and leave open the details, that a person gives."""
    wanted = list(zip(case.credits, case.uncovered, strict=True))
    return sum(
        (c.credit, tuple(c.uncovered)) == want for c, want in zip(found.cross_agent.coverage, wanted, strict=True)
    )


@pytest.mark.req("DPE-19")
async def test_the_printed_example(stub):
    """Legal complete, financial in part, technical complete: 0.83, and what is open is named."""
    case = merged.TUNED[0]
    found = await report(stub, "\n\n".join(case.answers), *case.answers, sub_queries=case.sub_queries)

    assert round(found.cross_agent.completeness, 2) == 0.83
    assert [(c.sub_query, c.credit, c.source_id, list(c.uncovered)) for c in found.cross_agent.coverage] == [
        ("Legal analysis", 1.0, "win-1", []),
        ("Financial analysis", 0.5, "win-2", ["financial-detail"]),
        ("Technical analysis", 1.0, "win-3", []),
    ]
    assert (round(found.completeness_score, 2), found.completeness_level) == (0.83, "MOSTLY_COMPLETE")
    assert [(s.token, s.covered) for s in found.sub_queries] == [
        ("legal-analysis", True), ("financial-detail", False), ("technical-analysis", True),
    ]  # fmt: skip


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize("case", merged.TUNED, ids=lambda case: case.name)
async def test_partial_credit(stub, case):
    """Every sub-query of the cases that the rule was made on, in any order of the answers."""
    for answers in (case.answers, case.answers[::-1]):
        assert credited(case, await report(stub, "Done.", *answers, sub_queries=case.sub_queries)) == len(case.credits)


@pytest.mark.req("DPE-19")
async def test_partial_credit_on_texts_that_it_was_not_made_on(stub):
    """At least 19 of 21 sub-queries, by credit and by what is left open."""
    right = total = 0
    for case in merged.HELD_BACK:
        right += credited(case, await report(stub, "Done.", *case.answers, sub_queries=case.sub_queries))
        total += len(case.credits)

    assert total == 21
    assert right >= total - 2


@pytest.mark.req("DPE-19")
async def test_an_answer_that_was_left_out_lowers_the_completeness(stub):
    """Each of the three: its sub-query gets nothing, and the other two keep what they had."""
    case = merged.TUNED[1]
    for number in range(3):
        kept = [one for n, one in enumerate(case.answers) if n != number]
        found = await report(stub, "Done.", *kept, sub_queries=case.sub_queries)
        assert [c.credit for c in found.cross_agent.coverage] == [float(n != number) for n in range(3)]


@pytest.mark.req("DPE-19")
async def test_without_sub_queries_the_query_is_taken_apart(stub):
    """Each need of stage 8 is a sub-query; without a query there is no completeness."""
    height, builder = "The Eiffel Tower is 330 metres tall.", "It was built by the company of Gustave Eiffel."
    found = await report(stub, height, height, query="What is the height of the Eiffel Tower and who built it?")
    both = await report(stub, height, height, builder, query="What is the height of the Eiffel Tower and who built it?")

    assert [(c.credit, c.source_id) for c in found.cross_agent.coverage] == [(1.0, "win-1"), (0.0, "")]
    assert (found.cross_agent.completeness, both.cross_agent.completeness) == (0.5, 1.0)
    assert not (await report(stub, height, height)).cross_agent.HasField("completeness")


@pytest.mark.req("DPE-19")
async def test_what_only_says_that_nothing_was_found_covers_nothing(stub):
    """However near to the sub-query it is in its words."""
    regret = "I could not find any passenger numbers for the Lyon metro."
    found = await report(stub, regret, regret, sub_queries=["Passenger numbers of the Lyon metro"])

    assert (found.cross_agent.completeness, found.completeness_score) == (0.0, 0.0)


# --- flow (§9.3) ---


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize("lines", ["\n\n", " "], ids=["paragraphs", "in one line"])
@pytest.mark.parametrize(
    ("reports", "synthesis"),
    [
        ((merged.FINANCE_TERSE, merged.LEGAL_FORMAL, merged.TECH_CHATTY), merged.SYNTHESIS),
        ((merged.VALLEY_DATA, merged.VALLEY_VOICES, merged.VALLEY_LAW), merged.VALLEY_SYNTHESIS),
    ],
)
async def test_reports_pasted_together_flow_less_than_a_synthesis(stub, reports, synthesis, lines):
    """Three reports in three registers, in each order, against one text that was written."""
    written = await report(stub, synthesis.replace("\n\n", lines), *reports)

    for order in (reports, reports[::-1], (reports[1], reports[2], reports[0])):
        pasted = await report(stub, lines.join(order), *reports)
        assert 0.0 <= pasted.cross_agent.flow < written.cross_agent.flow <= 1.0


@pytest.mark.req("DPE-19")
@pytest.mark.parametrize("text", ["", "Revenue grew 15 % in 2024.", "# Result\n\nRevenue grew."])
async def test_a_short_answer_has_no_flow(stub, text):
    """Absent, not good."""
    assert not (await report(stub, text, GREW, DECLINED)).cross_agent.HasField("flow")


# --- the interface ---


@pytest.mark.req("DPE-19", "DPE-20")
async def test_without_merged_answers_nothing_is_said_of_them(stub):
    """And nothing merged is nothing linked."""
    found = await report(stub, GREW)

    assert not found.HasField("cross_agent")
    assert not found.linked_results


@pytest.mark.req("PRV-3")
async def test_linked_results_are_in_the_report(stub):
    """As they came, with or without texts of theirs."""
    assert list((await report(stub, GREW, linked_results=[LINKED])).linked_results) == [LINKED]


@pytest.mark.req("DPE-19", "AGT-4")
@pytest.mark.parametrize(
    ("answers", "fields", "reason", "kind"),
    [
        (("a",) * 5, {}, "MERGED_LIMIT_EXCEEDED", common_pb2.REFUSAL_KIND_EXHAUSTED),
        (("x" * 14_000,) * 2, {}, "MERGED_TOO_LARGE", common_pb2.REFUSAL_KIND_EXHAUSTED),
        (("x" * 15_001,), {}, "TEXT_TOO_LARGE", common_pb2.REFUSAL_KIND_EXHAUSTED),
        ((answer(1, "a"), answer(1, "b")), {}, "MERGED_ANSWER_INVALID", common_pb2.REFUSAL_KIND_INVALID),
        ((dpe_pb2.MergedAnswer(text="a"),), {}, "MERGED_ANSWER_INVALID", common_pb2.REFUSAL_KIND_INVALID),
        ((answer(1, "a", sub_query="q" * 501),), {}, "MERGED_ANSWER_INVALID", common_pb2.REFUSAL_KIND_INVALID),
        (("Lyon is old. " * 90,), {}, "CLAIM_LIMIT_EXCEEDED", common_pb2.REFUSAL_KIND_EXHAUSTED),
        ((), {"sub_queries": [" "]}, "SUB_QUERY_INVALID", common_pb2.REFUSAL_KIND_INVALID),
        ((), {"sub_queries": ["q" * 501]}, "SUB_QUERY_INVALID", common_pb2.REFUSAL_KIND_INVALID),
        ((), {"sub_queries": ["Costs", " costs "]}, "SUB_QUERY_INVALID", common_pb2.REFUSAL_KIND_INVALID),
        ((), {"sub_queries": [f"cost {n}" for n in range(65)]}, "SUB_QUERY_LIMIT_EXCEEDED", common_pb2.REFUSAL_KIND_EXHAUSTED),
        ((), {"linked_results": [dpe_pb2.LinkedResult()]}, "LINKED_RESULT_INVALID", common_pb2.REFUSAL_KIND_INVALID),
        ((), {"linked_results": [LINKED, LINKED]}, "LINKED_RESULT_INVALID", common_pb2.REFUSAL_KIND_INVALID),
    ],
)  # fmt: skip
async def test_what_is_too_much_or_malformed_is_refused_by_name(stub, answers, fields, reason, kind):
    """Never skipped, and nothing is analysed without it."""
    found = await refusal(stub, GREW, *answers, **fields)

    assert (found.reason, found.kind) == (reason, kind)


@pytest.mark.req("DPE-19")
async def test_answers_that_together_claim_too_much_are_refused(stub):
    """Each of them alone is not too long."""
    bulk = [f"{' '.join(f'The pier {n} of harbour {h} is made of oak.' for n in range(30))}" for h in range(3)]
    found = await refusal(stub, GREW, *bulk)

    assert (found.reason, found.metadata["limit"]) == ("MERGED_CLAIM_LIMIT_EXCEEDED", "80")


@pytest.mark.req("DPE-19")
async def test_sub_queries_that_ask_for_too_much_are_refused(stub):
    """Counted by what they ask for."""
    many = [f"Costs, risks, benefits, duties and limits of plan {n}" for n in range(14)]

    assert (await refusal(stub, GREW, sub_queries=many)).reason == "SUB_QUERY_LIMIT_EXCEEDED"
