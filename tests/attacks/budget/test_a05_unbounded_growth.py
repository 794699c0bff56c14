"""A-05: delegation, fan-out and the DAG stop at their limits, however many ask at once and whatever depth they name."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from interlock.api.session.v1 import session_pb2
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)

MOST, TRIES = 3, 12


def outcomes(answers) -> Counter:
    return Counter(200 if answer.status_code == 200 else reason_of(answer) for answer in answers)


async def granted(sidecar, token: str):
    return await sidecar.client.post("/crp/v3/delegations", json={}, headers={"crp-session-token": token})


@pytest.mark.req("AGT-3", "DAG-2")
async def test_a05_a_fan_out_ends_exactly_at_its_limit_under_concurrency(tmp_path, upstream, provider, redis_url):
    """Twelve branches of one window at once, three allowed: three are answered, and the rest never reach the model."""
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url, max_fan_out=MOST) as sidecar:
        root = await sidecar.chat()
        headers = {
            "crp-context-strategy": "fan-out",
            "crp-context-continuation-id": root.headers["crp-context-continuation-id"],
        }
        branches = await asyncio.gather(*(sidecar.chat(token=token_of(root), headers=headers) for _ in range(TRIES)))
        asked = len(provider.received)

    assert outcomes(branches) == {200: MOST, "MAX_FAN_OUT_EXCEEDED": TRIES - MOST}
    assert asked == 1 + MOST


@pytest.mark.req("AGT-2", "AGT-3")
async def test_a05_children_end_exactly_at_their_limit_under_concurrency(tmp_path, upstream, provider, redis_url):
    """Twelve grants used at once, three delegations allowed: three children begin."""
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url, max_delegations=MOST) as sidecar:
        root = await sidecar.chat()
        grants = await asyncio.gather(*(granted(sidecar, token_of(root)) for _ in range(TRIES)))
        usable = [grant.json()["headers"] for grant in grants if grant.status_code == 200]
        children = await asyncio.gather(*(sidecar.chat(headers=headers) for headers in usable))
        asked = len(provider.received)

    assert len(usable) >= MOST
    assert outcomes(children) == {200: MOST, "MAX_DELEGATIONS_EXCEEDED": len(usable) - MOST}
    assert asked == 1 + MOST


@pytest.mark.req("AGT-3")
async def test_a05_a_grant_is_used_once_under_concurrency(tmp_path, upstream, provider, redis_url):
    """Twelve agents with one grant: one child begins."""
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url) as sidecar:
        root = await sidecar.chat()
        headers = (await granted(sidecar, token_of(root))).json()["headers"]
        children = await asyncio.gather(*(sidecar.chat(headers=headers) for _ in range(TRIES)))

    assert outcomes(children) == {200: 1, "GRANT_ALREADY_USED": TRIES - 1}


@pytest.mark.req("AGT-3", "HDR-1")
async def test_a05_the_depth_is_counted_by_the_grant_and_by_no_header(tmp_path, upstream, provider):
    """A chain of agents that all claim depth 0 ends at the depth that the deployment allows."""
    async with running_sidecar(tmp_path, upstream=upstream, max_loop_depth=2) as sidecar:
        last = await sidecar.chat()
        reached, forged = 0, []
        for _ in range(4):
            grant = await granted(sidecar, token_of(last))
            if grant.status_code != 200:
                break
            sent = grant.json()["headers"]
            forged.append(await sidecar.chat(headers={**sent, "CRP-Agent-Loop-Depth": "0"}))
            last = await sidecar.chat(headers=sent)
            reached = int(last.headers["crp-agent-loop-depth"])

    assert {(answer.status_code, reason_of(answer)) for answer in forged} == {(409, "LOOP_DEPTH_MISMATCH")}
    assert reached == 2
    assert (grant.status_code, reason_of(grant)) == (403, "MAX_LOOP_DEPTH_EXCEEDED")


@pytest.mark.req("DAG-2")
async def test_a05_a_window_is_nobodys_ancestor_twice_and_never_its_own(tmp_path, upstream, provider):
    """Over the session service itself: a window that names itself, or one that does not exist, as its parent is refused."""
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        root = await sidecar.chat()
        opened = await sidecar.mesh.session.OpenWindow(
            session_pb2.OpenWindowRequest(token=token_of(root), scope="anonymous")
        )
        window = opened.window
        reasons = []
        for parents in ([window.window_id], [*window.parent_ids, window.window_id], ["crp_win_" + "0" * 32]):
            commit = session_pb2.CommitWindowRequest(
                session_id=window.session_id, root_session_id=window.root_session_id, window_id=window.window_id,
                parent_ids=parents, window_number=2, charge_micros=0, ceiling_micros=1_000_000, risk_level=1,
                hmac="sha256:" + "a" * 64, timestamp="2026-05-25T10:00:00Z", response_hash="sha256:" + "b" * 64,
                quality_tier="A", status="COMPLETED",
            )  # fmt: skip
            reasons.append((await sidecar.mesh.session.CommitWindow(commit)).refusal.reason)
        shown = await sidecar.settled(root, windows=1)

    assert all(reasons), reasons
    assert len(shown["windows"]) == 1
