"""Grounding modes on the real models: what is judged without a source, and what a policy still requires (ATT-8)."""

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
from tests.support.texts.courtesies import CLAIMLESS, CLAIMLESS_LATER

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

LOW, MEDIUM, HIGH = common_pb2.RISK_LEVEL_LOW, common_pb2.RISK_LEVEL_MEDIUM, common_pb2.RISK_LEVEL_HIGH
PROGRAM = "```python\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n```"
SOURCELESS = (
    "The capital of France is Paris.",
    "2 + 2 = 4.",
    PROGRAM,
    "Hello! How can I help you today?",
    "Yes.",
    "Die Hauptstadt von Frankreich ist Paris.",
    "Marie Curie won the Nobel Prize in Physics in 1903 and in Chemistry in 1911.",
    "A binary search halves the interval at each step, so it needs about log2(n) comparisons.",
)
INSTRUCTED = ("You are a helpful assistant.", "Answer in one sentence.", "Today's date is 2026-03-02.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stub() -> AsyncIterator[dpe_pb2_grpc.DpeServiceStub]:
    """A client over a socket, of a service as a process opens it."""
    service = await open_service(Settings())
    server = RpcServer([service], Settings(allow_plaintext=True), port=0)
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield dpe_pb2_grpc.DpeServiceStub(channel)
    await server.drain()
    await service.close()


async def answered(
    stub, text: str, *facts: str, prior: tuple[str, ...] = (), **fields: object
) -> dpe_pb2.AnalyzeResponse:
    return await stub.Analyze(
        dpe_pb2.AnalyzeRequest(
            outputs=[dpe_pb2.Output(text=text)],
            facts=[common_pb2.Fact(id=f"f{n}", content=fact, importance=0.5) for n, fact in enumerate(facts, 1)],
            prior=[dpe_pb2.PriorWindow(window_id=f"win-{n}", text=one) for n, one in enumerate(prior, 1)],
            **fields,
        ),
        timeout=60,
    )


async def report(stub, text: str, *facts: str, **fields: object) -> dpe_pb2.Report:
    answer = await answered(stub, text, *facts, **fields)
    assert not answer.HasField("refusal"), answer.refusal
    return answer.report


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize("text", SOURCELESS)
@pytest.mark.parametrize("facts", [(), INSTRUCTED], ids=["nothing", "instructions"])
async def test_without_a_source_knowledge_raises_nothing(stub, text, facts):
    """A system message that only instructs is no source. LOW says in words what it does not mean."""
    found = await report(stub, text, *facts)

    assert (found.risk_level, found.composite_score) == (LOW, 0.0)
    assert (found.basis, found.grounding_mode) == ("no-sources", "open")
    assert found.meaning.startswith("LOW: nothing was found.")
    assert not found.HasField("grounding_pct")
    assert not found.HasField("entailment_score")


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    "text", ["The capital of France is Paris.", "2 + 2 = 4.", "Marie Curie was born in Warsaw in 1867."]
)
@pytest.mark.parametrize(
    "fields", [{"grounding_required": True}, {"grounding_mode": "context-strict"}, {"grounding_required": True, "grounding_mode": "open"}]
)  # fmt: skip
async def test_where_grounding_is_required_no_source_is_no_excuse(stub, text, fields):
    """As before: a statement without a basis. A caller's open does not undo what a policy requires."""
    found = await report(stub, text, **fields)

    assert found.risk_level >= HIGH
    assert (found.basis, found.grounding_pct) == ("no-sources", 0.0)
    assert "no statement has a basis" in found.meaning


@pytest.mark.req("ATT-6", "ATT-8")
async def test_small_talk_needs_no_basis_even_where_grounding_is_required(stub):
    """It makes no statement."""
    found = await report(stub, "Hello! How can I help you today?", grounding_required=True)

    assert (found.risk_level, list(found.floors)) == (LOW, [])


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    "text",
    [
        "The museum was built in 1889. The museum was built in 1925.",
        "The shop is open on Sundays. It sells bread. The shop is closed on Sundays.",
        "The trial had 412 patients. Most of them were women. The trial had 530 patients.",
    ],
)
async def test_an_answer_that_contradicts_itself_is_found_without_a_source(stub, text):
    """What can be judged without sources is."""
    found = await report(stub, text)

    assert found.contradiction_count
    assert found.risk_level >= MEDIUM


@pytest.mark.req("ATT-8")
async def test_an_earlier_answer_is_not_contradicted_for_free(stub):
    """Earlier windows need no source either."""
    found = await report(stub, "The trial had 530 patients.", prior=("The trial had 412 patients.",))

    assert found.contradiction_scope == "cross-window"
    assert found.risk_level >= MEDIUM


@pytest.mark.req("ATT-8")
async def test_with_a_source_the_answer_is_judged_against_it(stub):
    """Auto is context-preferred then, also when most of the context only instructs."""
    found = await report(stub, "The tower is 390 metres tall.", *INSTRUCTED, "The tower is 330 metres tall.")

    assert (found.basis, found.grounding_mode) == ("sources", "context-preferred")
    assert found.distortion_count == 1
    assert found.risk_level > LOW


@pytest.mark.req("ATT-8")
async def test_open_by_request_still_finds_what_bends_a_source(stub):
    """What is from memory passes; what misstates a source that is there does not."""
    fact = "The tower is 330 metres tall."
    added = await report(stub, "The painter Claude Monet lived in Giverny.", fact, grounding_mode="open")
    bent = await report(stub, "The tower is 390 metres tall.", fact, grounding_mode="open")

    assert (added.risk_level, added.basis) == (LOW, "sources")
    assert bent.risk_level > LOW


@pytest.mark.req("ATT-8")
async def test_strict_is_stricter(stub):
    """One addition among grounded statements is a finding in context-strict."""
    facts = [f"Plant {name} opened in {year}." for name, year in zip("ABCDEFGH", range(1990, 1998), strict=True)]
    text = " ".join(facts) + " Steel is heavy."
    strict = await report(stub, text, *facts, grounding_mode="context-strict")
    preferred = await report(stub, text, *facts)

    assert "PARAMETRIC_CONTENT" in strict.floors
    assert "PARAMETRIC_CONTENT" not in preferred.floors
    assert strict.composite_score >= preferred.composite_score


@pytest.mark.req("ATT-6")
async def test_a_source_that_does_not_say_is_no_finding(stub):
    """A refusal is what is wanted of an answer whose sources are silent."""
    found = await report(stub, "The sources do not say who designed the building.", "The building opened in 1931.")

    assert (found.risk_level, found.basis) == (LOW, "sources")


@pytest.mark.req("ATT-8")
async def test_an_unknown_mode_is_refused(stub):
    """It is not taken for the mildest."""
    answer = await answered(stub, "Yes.", grounding_mode="lenient")

    assert answer.refusal.reason == "GROUNDING_MODE_UNKNOWN"


CLEAN = (
    "Rome was founded, according to legend, in 753 BC.",
    "A cache keeps what was computed, so that it need not be computed again.",
    "To boil an egg, put it into hot water for eight minutes.",
    "| Language | Year |\n|---|---|\n| Python | 1991 |\n| Go | 2009 |",
    '{"city": "Paris", "unit": "celsius"}',
    "1. Open the settings.\n2. Choose a language.\n3. Save.",
    "The word is spelled with two letters s.",
    "In 2024 it was 15 percent, and in 2023 it was 12 percent.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "El agua hierve a 100 grados al nivel del mar.",
)
TOLD = (
    ("The lease runs for five years.", "The lease runs for five years [1]."),
    ("Orders over 50 euros ship free.", "Orders over 50 euros ship free.¹"),
    ("The clinic is closed on Sundays.", "The clinic is closed on Sundays (source 1)."),
    ("The train to Graz leaves at 10:10.", "Yes! The train to Graz leaves at 10:10."),
    ("The warranty covers parts and labour.", "Sure. The warranty covers parts and labour. Anything else?"),
)


@pytest.mark.req("ATT-6", "ATT-8")
async def test_a_hundred_clean_turns_cost_next_to_nothing(stub):
    """Small talk beside a source, knowledge without one, and cited answers: at most 0.10 of the budget in all."""
    turns = [(text, ("The building opened in 1931.",)) for text in [*CLAIMLESS[:30], *CLAIMLESS_LATER[:30]]]
    turns += [(text, ()) for text in (*SOURCELESS, *CLEAN, *SOURCELESS[:7])]
    turns += [(text, (fact,)) for fact, text in TOLD * 3]
    cost = {LOW: 0.0, MEDIUM: 0.05, HIGH: 0.15, common_pb2.RISK_LEVEL_CRITICAL: 0.35}
    found = {text: (await report(stub, text, *facts)).risk_level for text, facts in turns}

    assert len(turns) == 100
    assert sum(cost[found[text]] for text, _ in turns) <= 0.10, {t: r for t, r in found.items() if r != LOW}
