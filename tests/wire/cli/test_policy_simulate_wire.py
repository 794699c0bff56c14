"""``interlock policy simulate`` over a real audit service: recorded answers decided again under another policy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from tests.support.policy import agents
from tests.support.servers.processes import environment, run_here
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.commanded import answering, command, commanded
from tests.support.sidecar.sidecar import RunningSidecar, a_report, token_of

pytestmark = pytest.mark.req("POL-2", "AUD-4")


@pytest.fixture(scope="module")
def provider():
    """A provider whose answer to each question names the risk that the dpe of these tests finds in it."""
    with RunningProvider(answering()) as running:
        yield running


async def ask(sidecar: RunningSidecar, *questions: str, policy: str = "", **more: str) -> None:
    """Ask each question in a session of its own."""
    for question in questions:
        headers = {**({"crp-safety-policy": policy} if policy else {}), **more}
        await sidecar.chat(question, headers=headers)


async def simulate(env: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run the command and return what it says to programs."""
    done = await command(env, "policy", "simulate", *arguments, "-o", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 0, told
    return dict(told)


async def test_answers_are_decided_again_as_they_were(tmp_path, provider):
    """Under the policy that they were decided by, all come out as recorded, and a stricter one stops more, by name."""
    policy = "halt-on CRITICAL; warn-on HIGH"
    async with commanded(tmp_path, provider.base_url) as (sidecar, env):
        await ask(sidecar, "a", "a", "b", "c", "c", "d", policy=policy)
        same = await simulate(env, policy)
        stricter = await simulate(env, "halt-on HIGH")
        looser = await simulate(env, "block-pii")
        text = await command(env, "policy", "simulate", "halt-on HIGH", "--last", "1h")

    assert (same["answers"], same["sessions"], same["own_policy_agrees"]) == (6, 6, 6)
    assert same["recorded"] == same["then"] == {"delivered": 5, "held": 0, "halted": 1, "refused": 0}
    assert (stricter["then"]["halted"], stricter["newly_kept_back"], stricter["kept_back_by"]) == (3, 2, {"halt-on": 2})
    assert [(one["risk"], one["recorded"], one["then"]) for one in stricter["moved"]] == [
        ("HIGH", "delivered", "halted")
    ] * 2
    assert (looser["newly_delivered"], looser["then"]["halted"]) == (1, 0)
    assert text.stdout.startswith("would have halted 3 of 6 answers in the last 1h\n")
    assert "under their own policies 6 of 6 come out as they are recorded" in text.stdout


async def test_held_and_refused_answers_and_the_callers_own_bounds_are_replayed(tmp_path, provider):
    """What a reviewer is asked about, what lacks its tier and what a caller did not accept come out as recorded."""
    async with commanded(tmp_path, provider.base_url) as (sidecar, env):
        await ask(sidecar, "c", policy="oversight human-review")
        await ask(sidecar, "a", policy="require-quality S")
        await ask(sidecar, "b", **{"crp-accept-risk": "LOW"})
        reviewed = await simulate(env, "block-pii", "--reviewer")
        alone = await simulate(env, "oversight human-review", "--no-reviewer")

    assert reviewed["recorded"] == {"delivered": 0, "held": 1, "halted": 1, "refused": 1}
    assert reviewed["own_policy_agrees"] == 3
    # What the caller itself did not accept, no policy lets out.
    assert reviewed["then"] == {"delivered": 2, "held": 0, "halted": 1, "refused": 0}
    assert alone["then"]["halted"] == 2
    assert alone["own_policy_agrees"] == 2, (
        "without a reviewer, what is recorded as held is decided otherwise, and said so"
    )


async def test_the_budget_and_the_breaker_of_then_count(tmp_path, provider):
    """A session that lost half its budget has its answers reviewed: the replay knows from the chain what it had."""
    async with commanded(tmp_path, provider.base_url) as (sidecar, env):
        token = None
        for question in ("c", "c", "c", "c", "c"):
            answer = await sidecar.chat(question, token=token)
            if "crp-set-session" not in answer.headers:
                break
            token = token_of(answer)
        told = await simulate(env, "warn-on HIGH", "--reviewer")

    assert told["own_policy_agrees"] == told["answers"] >= 4
    assert told["recorded"]["held"] > 0
    assert told["then"] == told["recorded"], "the breaker holds under any policy"


async def test_what_was_only_watched_counts_as_what_would_have_been_done(tmp_path, provider):
    """In observe an answer is delivered; the record says what would have been, and the replay agrees."""
    async with commanded(tmp_path, provider.base_url, profile="observe", default_policy="halt-on CRITICAL") as (
        sidecar,
        env,
    ):
        await ask(sidecar, "a", "d")
        told = await simulate(env, "halt-on HIGH")

    assert (told["answers"], told["only_watched"], told["own_policy_agrees"]) == (2, 1, 2)
    assert told["recorded"]["halted"] == told["then"]["halted"] == 1


async def test_on_top_keeps_each_answers_own_policy(tmp_path, provider):
    """With --on-top a looser policy changes nothing; without it, it takes the place."""
    async with commanded(tmp_path, provider.base_url) as (sidecar, env):
        await ask(sidecar, "c", policy="halt-on HIGH")
        instead, joined = await simulate(env, "block-pii"), await simulate(env, "block-pii", "--on-top")

    assert (instead["then"]["halted"], joined["then"]["halted"]) == (0, 1)


async def test_what_cannot_be_read_again_is_counted_and_not_guessed(tmp_path, provider):
    """An erased report is left out by its reason; an answer before the time, or beyond --most, is not looked at."""
    async with commanded(tmp_path, provider.base_url) as (sidecar, env):
        await ask(sidecar, "a", "b")
        listed = await sidecar.mesh.audit.ListSessions(audit_pb2.ListSessionsRequest(limit=1))
        erased = audit_pb2.EraseSessionRequest(
            session_id=listed.sessions[0].session_id,
            approval_id="crp_appr_" + "1" * 32,
            reviewer_id=agents.REVIEWER,
            reason="ERASURE_REQUEST",
        )
        assert not (await sidecar.mesh.audit.EraseSession(erased)).HasField("refusal")
        told = await simulate(env, "halt-on HIGH")
        latest = await simulate(env, "halt-on HIGH", "--most", "1")
        none = await simulate(env, "halt-on HIGH", "--last", "0s")

    assert (told["answers"], told["left_out"]) == (1, {"CONTENT_ERASED": 1})
    assert latest["more"] is True
    assert (none["answers"], none["left_out"]) == (0, {})


async def test_a_stage_that_did_not_run_is_not_made_up(tmp_path, provider):
    """The stored report says that it did not run: a policy that asks for its figure halts, as it would have."""
    async with commanded(tmp_path, provider.base_url) as (sidecar, env):
        await ask(sidecar, "a")
        others = [stage for stage in a_report().stages if stage.number != "8"]
        ran = dpe_pb2.Stage(number="8", status=dpe_pb2.STAGE_STATUS_RAN)
        sidecar.dpe.report = a_report(completeness_score=0.9, stages=[*others, ran])
        await ask(sidecar, "a")
        told = await simulate(env, "require-completeness 0.80")

    assert told["then"] == {"delivered": 1, "held": 0, "halted": 1, "refused": 0}
    assert [one["reason"] for one in told["moved"]] == ["SIGNAL_NOT_AVAILABLE"]


def test_without_an_audit_service_it_says_what_to_start(tmp_path):
    """Exit 2, a stable reason and a hint; a wrong span and a wrong policy are refused before."""
    env = environment(tmp_path / "state", {"rpc_timeout_s": 1})
    nobody = run_here("policy", "simulate", "halt-on HIGH", env=env)
    span = run_here("policy", "simulate", "halt-on HIGH", "--last", "soon", env=env)
    policy = run_here("policy", "simulate", "halt-on HIHG", env=env)

    assert (nobody.returncode, "AUDIT_UNAVAILABLE" in nobody.stderr, "interlock serve" in nobody.stderr) == (
        2,
        True,
        True,
    )
    assert (span.returncode, "TIME_SPAN_INVALID" in span.stderr) == (2, True)
    assert (policy.returncode, "did you mean HIGH?" in policy.stderr) == (2, True)
