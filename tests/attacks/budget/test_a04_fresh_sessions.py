"""A-04: a new session does not lead out of a spent budget: roots are counted by key, in the store that processes share."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)

MOST, TRIES = 3, 5
AGENT, OTHER = {"authorization": "Bearer agent"}, {"authorization": "Bearer other"}


def refused() -> float:
    return REGISTRY.get_sample_value("interlock_roots_refused_total") or 0.0


@pytest.mark.req("BUD-4", "SVC-9")
async def test_a04_a_key_that_begins_too_many_roots_is_stopped_on_every_instance(
    tmp_path, upstream, provider, redis_url
):
    """Two sidecars with session services of their own share one Valkey: together a key begins so many roots, no more."""
    limits = {"upstream": upstream, "redis_url": redis_url, "max_roots_per_minute": MOST}
    before = refused()
    async with running_sidecar(tmp_path / "one", **limits) as one, running_sidecar(tmp_path / "two", **limits) as two:
        answers = [await sidecar.chat(headers=AGENT) for _ in range(TRIES) for sidecar in (one, two)]
        onward = await one.chat(token=token_of(answers[0]), headers=AGENT)
        stranger = await two.chat(headers=OTHER)

    # The minute may end on the way, and each minute counts its own: never more than two minutes' worth.
    late = [answer for answer in answers if answer.status_code != 200]
    assert len(late) >= len(answers) - 2 * MOST > 0
    assert {(answer.status_code, reason_of(answer)) for answer in late} <= {(429, "ROOT_SESSIONS_EXCEEDED")}
    assert all(int(answer.headers["retry-after"]) <= 61 for answer in late)
    assert refused() - before == len(late)
    assert onward.status_code == stranger.status_code == 200
    assert len(provider.received) == len(answers) - len(late) + 2


@pytest.mark.parametrize("store", ["memory", "redis"])
async def test_a04_the_count_is_by_key_and_by_minute(request, store):
    """Both stores: each root raises the count of its key in its minute, and of nothing else; the count runs out."""
    made = MemoryStore()
    if store == "redis":
        made = RedisStore(Batcher(parse(request.getfixturevalue("redis_url"))), token_lifetime_s=3600)
    counts = [await made.count_root(*at) for at in [("aa", 1), ("aa", 1), ("bb", 1), ("aa", 2), ("aa", 2)]]
    lives = await made._batcher.command("TTL", "il:{roots:aa}:1") if store == "redis" else 1
    await made.close()

    assert counts == [1, 2, 1, 1, 2]
    assert 0 < lives <= 120


@pytest.mark.req("AGT-4")
async def test_a04_what_an_escaped_agent_says_cannot_be_used(tmp_path, upstream, provider):
    """A sub-agent that begins a root of its own instead of a child: its result has no parent, and is not consumed."""
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        orchestrator, escaped = await sidecar.chat(), await sidecar.chat()
        result = {
            "session_id": escaped.headers["crp-context-session-id"],
            "hmac": escaped.headers["crp-provenance-hmac"],
        }
        asked = len(provider.received)
        used = await sidecar.chat(token=token_of(orchestrator), interlock={"sub_agent_results": [result]})

    assert (used.status_code, reason_of(used)) == (403, "RESULT_NOT_LINKED"), used.text
    assert len(provider.received) == asked
