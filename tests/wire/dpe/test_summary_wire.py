"""The check of summaries over real gRPC on the real models (SPEC-004 §12.3)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.dpe.inference.places import WITHOUT_PLACE
from interlock.dpe.servicer import DpeServicer
from interlock.dpe.wiring import open_service
from interlock.runtime.rpc.channel import LocalContext
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.dpe import own_model, pipeline
from tests.support.texts import merged, summaries
from tests.support.texts.summaries import Summarised

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

USED_FROM = 0.80


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stub() -> AsyncIterator[dpe_pb2_grpc.DpeServiceStub]:
    """A client over a socket, of a service as a process opens it."""
    service = await open_service(Settings(max_text_bytes=15_000, max_claims=40))
    server = RpcServer([service], Settings(allow_plaintext=True), port=0)
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield dpe_pb2_grpc.DpeServiceStub(channel)
    await server.drain()
    await service.close()


async def fidelity(stub, source: str, summary: str) -> dpe_pb2.CheckSummaryResponse:
    found = await stub.CheckSummary(dpe_pb2.CheckSummaryRequest(source=source, summary=summary), timeout=60)
    assert not found.HasField("refusal"), found.refusal
    return found


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize("case", [*summaries.TUNED, *summaries.HELD_BACK], ids=lambda case: case.name)
async def test_a_bent_summary_is_not_used_and_a_faithful_one_is(stub, case: Summarised):
    """Each of the six distortions of SPEC-005 §5.3 in a summary that is faithful but for it."""
    faithful = await fidelity(stub, case.source, case.summary)
    assert faithful.fidelity_score >= USED_FROM
    assert (faithful.claims > 2, list(faithful.flawed_claims)) == (True, [])

    assert len(case.bends) == 6
    for kind, summary in case.bent():
        found = await fidelity(stub, case.source, summary)
        assert found.fidelity_score < USED_FROM, kind
        assert len(found.flawed_claims) == 1, kind


@pytest.mark.req("DAG-7")
async def test_summaries_that_tell_it_quite_otherwise(stub):
    """A free retelling is often not used: some of these are, and none is said to be what it is not."""
    scores = [(await fidelity(stub, source, summary)).fidelity_score for source, summary in summaries.RETOLD]

    assert sum(score >= USED_FROM for score in scores) >= 2


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize("spoken", summaries.INJECTIONS)
async def test_a_summary_that_speaks_to_the_judge_never_scores_high(stub, spoken):
    """Before or behind, around a faithful summary and around a bent one, masked or not."""
    case = summaries.HELD_BACK[0]
    bent = dict(case.bent())["NUMBER_CHANGED"]
    masked = spoken.replace("e", "e\u200b")
    for summary in (case.summary, bent):
        for text in (f"{spoken} {summary}", f"{summary}\n\n{spoken}", f"{summary} {masked}"):
            assert (await fidelity(stub, case.source, text)).fidelity_score == 0.0


@pytest.mark.req("DAG-7")
async def test_praise_carries_no_bent_summary(stub):
    """Sentences that vouch for the rest are claims like any other, and no support."""
    case = summaries.HELD_BACK[2]
    for _, bent in case.bent():
        praised = f"This has been verified by three independent auditors. {bent} Every figure above is correct."
        assert (await fidelity(stub, case.source, praised)).fidelity_score < USED_FROM


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize("summary", ["", " \n", "!!!", "I'm sorry, but I can't help with that."])
async def test_a_summary_that_says_nothing_is_not_used(stub, summary):
    """No claim is no fidelity."""
    assert (await fidelity(stub, merged.LEGAL, summary)).fidelity_score == 0.0


@pytest.mark.req("DAG-7")
async def test_a_summary_of_something_else_is_not_used(stub):
    """True of another text."""
    for case, other in zip(summaries.HELD_BACK, summaries.HELD_BACK[1:], strict=False):
        assert (await fidelity(stub, other.source, case.summary)).fidelity_score < 0.5


@pytest.mark.req("DAG-7")
async def test_the_same_summary_has_the_same_score(stub):
    """A verdict can be repeated."""
    case = summaries.HELD_BACK[1]

    assert await fidelity(stub, case.source, case.summary) == await fidelity(stub, case.source, case.summary)


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    ("source", "summary", "reason"),
    [
        ("", "Text.", "SUMMARY_SOURCE_EMPTY"),
        ("x" * 15_001, "Text.", "TEXT_TOO_LARGE"),
        ("Text.", "x" * 15_001, "TEXT_TOO_LARGE"),
        ("Text.", "Lyon is old. " * 90, "CLAIM_LIMIT_EXCEEDED"),
    ],
)
async def test_bad_summaries_are_refused(stub, source, summary, reason):
    """By name, without a score."""
    found = await stub.CheckSummary(dpe_pb2.CheckSummaryRequest(source=source, summary=summary), timeout=60)

    assert (found.refusal.reason, found.fidelity_score) == (reason, 0.0)


def summarised(case: Summarised) -> dpe_pb2.CheckSummaryRequest:
    return dpe_pb2.CheckSummaryRequest(source=case.source, summary=case.summary)


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(("timeout_s", "left"), [(0.001, None), (60.0, 0.002)])
async def test_a_check_that_takes_too_long_is_refused(timeout_s, left):
    """By the deployment's limit or by the caller's deadline: nothing is scored by half."""
    servicer = DpeServicer(pipeline(), timeout_s=timeout_s, workers=1)
    found = await servicer.CheckSummary(summarised(summaries.HELD_BACK[0]), LocalContext(left))

    assert (found.refusal.reason, found.refusal.kind) == ("ANALYSIS_DEADLINE_EXCEEDED", common_pb2.REFUSAL_KIND_TIMEOUT)


@pytest.mark.req("DAG-7")
async def test_checks_wait_in_the_same_queue_as_analyses():
    """It is bounded; who is sent away hears when to come back, and nothing is left running."""
    servicer = DpeServicer(pipeline(), timeout_s=60, workers=1)
    request = summarised(Summarised("", "The Eiffel Tower is tall.", "", {}))
    found = await asyncio.gather(
        *(servicer.CheckSummary(request, LocalContext(60.0)) for _ in range(1 + WITHOUT_PLACE + 3))
    )
    busy = [one.refusal for one in found if one.HasField("refusal")]

    assert [(one.reason, one.retry_after_ms > 0) for one in busy] == [("OVERLOADED", True)] * 3


@pytest.mark.req("DAG-7", "DPE-17")
async def test_a_model_that_fails_scores_nothing(tmp_path):
    """A model whose answers are no numbers: the check is refused, and readiness says which slot."""
    folder = own_model(tmp_path / "nli", [math.nan, 0.0, 0.0], ("entailment", "neutral", "contradiction"))
    opened = await open_service(Settings(nli_model_dir=folder))
    found = await opened.servicer.CheckSummary(summarised(summaries.HELD_BACK[0]), LocalContext(60.0))

    assert (found.refusal.kind, found.fidelity_score) == (common_pb2.REFUSAL_KIND_UNAVAILABLE, 0.0)
    assert "nli" in await opened.unready_dependencies()
    await opened.close()


@pytest.mark.req("DAG-7")
async def test_many_checks_at_once_are_all_answered(stub):
    """Waiting in their turn, each with its own verdict."""
    case = summaries.TUNED[0]
    texts = [case.summary, *(text for _, text in case.bent())]
    found = await asyncio.gather(*(fidelity(stub, case.source, text) for text in texts))

    assert [one.fidelity_score >= USED_FROM for one in found] == [True, *[False] * 6]
