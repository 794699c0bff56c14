"""A spending limit of a tree of agents through the served sidecar: reserved, settled, refused, on record (KRN-9)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.sidecar.call import spending as spent
from tests.support.servers.provider import completion, message
from tests.support.servers.streaming import chunk, spoken, streams
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("KRN-9")

PRICES = """
as_of: 2026-01-01
fallback: {input: 100, output: 400}
models:
  - {model: "test-model", input: 10, cached_input: 1, output: 100, max_output: 50}
  - {model: "test-embedding", input: 1000, output: 0}
"""
COST = 10 * 10 + 5 * 100
"""What the double's answer costs, millionths of a dollar: 10 tokens of prompt, 5 of output."""


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "prices.yaml"
    path.write_text(PRICES)
    return path


@pytest.fixture
async def limited(tmp_path, upstream, prices):
    """A sidecar whose trees may spend two cents."""
    async with running_sidecar(tmp_path, upstream=upstream, prices_file=prices, spending_limit_usd=0.02) as running:
        yield running


async def spending(sidecar, session_id: str) -> Any:
    asked = session_pb2.GetSessionRequest(session_id=session_id)
    return (await sidecar.mesh.session.GetSession(asked)).session.spending


async def events(sidecar, session_id: str) -> list[tuple[str, dict[str, Any]]]:
    return [(one.event_type, json.loads(one.data_json)) for one in await sidecar.events(session_id)]


def session_of(answer) -> str:
    return answer.headers["crp-context-session-id"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_is_charged_what_the_provider_counted(limited, stream):
    """The reservation is on record before the call, the settlement takes its place, and the header tells what is left."""
    answer = await limited.chat(**({"stream": True} if stream else {}))
    assert answer.status_code == 200
    told = await spending(limited, session_of(answer))
    assert (told.tokens, told.usd_micros, told.reserved_usd_micros, told.limit_usd_micros) == (15, COST, 0, 20_000)
    assert answer.headers["crp-spending-left"] == "usd=0.0194"
    names = [name for name, _ in await events(limited, session_of(answer))]
    assert names.index("SPENDING_RESERVED") < names.index("DISPATCH_STARTED") < names.index("WINDOW_SEALED")
    window = (
        await limited.mesh.session.GetSession(session_pb2.GetSessionRequest(session_id=session_of(answer)))
    ).session
    sealed = await limited.mesh.audit.GetWindow(_window_request(session_of(answer), window.windows[0].window_id))
    assert (sealed.settlement.spent_tokens, sealed.settlement.spent_usd_micros) == (15, COST)


def _window_request(session_id: str, window_id: str):
    from interlock.api.audit.v1 import audit_pb2

    return audit_pb2.GetWindowRequest(session_id=session_id, window_id=window_id)


async def test_a_call_that_the_limit_does_not_hold_never_reaches_the_provider(limited, provider):
    """429 with what is left and of which session; nothing is spent, the session goes on with a smaller call."""
    first = await limited.chat()
    provider.received.clear()
    refused = await limited.chat(token=token_of(first), max_tokens=1000)
    assert (refused.status_code, reason_of(refused)) == (429, "SPENDING_LIMIT")
    told = refused.json()["metadata"]
    assert (told["resource"], told["limit"], told["left"]) == ("usd", "20000", str(20_000 - COST))
    assert told["limited_session_id"] == session_of(first)
    assert refused.headers["crp-spending-left"] == "usd=0.0194"
    assert provider.received == []
    assert (await spending(limited, session_of(first))).reserved_usd_micros == 0
    both = await limited.chat(token=token_of(first), max_tokens=1000, max_completion_tokens=1)
    assert reason_of(both) == "SPENDING_LIMIT", "which of two bounds a provider goes by is its own matter"
    assert (await limited.chat(token=token_of(first), max_tokens=5)).status_code == 200


async def test_what_the_provider_does_not_count_is_charged_at_its_bound(limited, provider):
    """An answer without usage costs what was reserved for it; a refusal of the provider costs nothing."""
    provider.fails(400)
    first = await limited.chat()
    assert first.status_code == 400
    assert (await spending(limited, session_of(first))).reserved_usd_micros == 0
    provider.completes({**completion(message("The answer is fine.")), "usage": None})
    answer = await limited.chat(max_tokens=7)
    told = await spending(limited, session_of(answer))
    assert told.tokens > 1000 + 7
    assert told.usd_micros == (told.tokens - 7) * 10 + 700
    assert told.reserved_usd_micros == 0


async def test_a_call_that_broke_off_is_charged_at_its_bound(limited, provider):
    """Whether the provider counted it nobody knows: the reservation is the charge, once, and on record."""
    first = await limited.chat()
    provider.closes_mid_body()
    assert (await limited.chat(token=token_of(first), max_tokens=5)).status_code == 502
    told, named = await spending(limited, session_of(first)), await events(limited, session_of(first))
    charged = [data for name, data in named if name == "SPENDING_CHARGED"]
    assert [one["usd_micros"] for one in charged] == [told.usd_micros - COST]
    assert charged[0]["usd_micros"] > 10_000
    assert told.reserved_usd_micros == 0


async def test_a_stream_that_broke_off_is_charged_at_its_bound_whatever_it_counted_so_far(limited, provider):
    """Some providers count as they go: what they told before the end is not what the answer cost."""
    so_far = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    begun = [chunk({"role": "assistant", "content": ""}, usage=so_far), *spoken("The sky is blue.", " The sea is")[1:3]]
    streams(provider, [*begun, b'data: {"error": {"message": "no"}}\n\n'])
    answer = await limited.chat(stream=True, max_tokens=7)
    told = await spending(limited, session_of(answer))
    assert told.tokens > 1000 + 7
    assert told.reserved_tokens == 0


async def test_calls_side_by_side_never_overspend(limited, provider):
    """Twenty at once in one session's fan-out of trees: the sum of what is charged stays below the limit."""
    first = await limited.chat()
    continued = first.headers["crp-context-continuation-id"]
    fan = {"crp-agent-dispatch-strategy": "fan-out", "crp-context-continuation-id": continued}
    provider.completes({**completion(message("Fine.")), "usage": None})
    calls = [limited.chat(token=token_of(first), headers=fan, max_tokens=1) for _ in range(8)]
    ended = [one.status_code for one in await asyncio.gather(*calls)]
    told = await spending(limited, session_of(first))
    assert set(ended) == {200, 429}
    assert told.usd_micros + told.reserved_usd_micros <= 20_000


async def test_a_child_spends_its_parents_limit_and_may_have_a_lower_one(limited, provider):
    """What a sub-agent spends counts in its root; its own policy sets it a lower limit."""
    parent = await limited.chat(headers={"crp-safety-policy": "max-spend-usd 0.018"})
    sent = {"crp-session-token": token_of(parent)}
    grant = (await limited.client.post("/crp/v3/delegations", json={}, headers=sent)).json()["headers"]
    child = await limited.chat(headers={**grant, "crp-safety-policy": "max-spend-usd 0.0170; max-spend-tokens 1300"})
    assert child.status_code == 200, child.text
    above, below = await spending(limited, session_of(parent)), await spending(limited, session_of(child))
    assert (above.usd_micros, above.own_usd_micros, below.usd_micros) == (2 * COST, COST, COST)
    assert (above.limit_usd_micros, below.limit_usd_micros, below.limit_tokens) == (18_000, 17_000, 1300)
    assert child.headers["crp-spending-left"] == "tokens=1285, usd=0.0164"
    refused = await limited.chat(token=token_of(child), max_tokens=300)
    assert refused.json()["metadata"]["limited_session_id"] == session_of(child)


async def test_without_a_limit_no_service_is_asked_more_often(tmp_path, upstream, prices):
    """What calls cost is counted and sealed all the same; nothing is reserved."""
    hooked: dict[str, Any] = {}

    def wrap(services):
        hooked.update({name: Hooked(services[name]) for name in ("session", "audit")})
        return {**services, **hooked}

    async with running_sidecar(tmp_path, upstream=upstream, prices_file=prices, wrap=wrap) as running:
        answer = await running.chat()
        assert "SpendWindow" not in hooked["session"].calls
        told = await spending(running, session_of(answer))
        assert (told.tokens, told.usd_micros, told.HasField("limit_usd_micros")) == (15, COST, False)
        assert "crp-spending-left" not in answer.headers


async def test_what_a_call_spent_that_failed_is_counted_without_a_limit_too(tmp_path, upstream, prices):
    """The provider was paid and no window was sealed: the metrics say so, though no session does."""

    def counted() -> tuple[float, float]:
        return spent.TOKENS.labels("")._value.get(), spent.USD.labels("")._value.get()

    async with running_sidecar(tmp_path, upstream=upstream, prices_file=prices) as running:
        before = counted()
        running.dpe.failure = Refused(Kind.UNAVAILABLE, "DPE_DOWN", "down by the test")
        assert (await running.chat()).status_code == 503
        once = counted()
        running.dpe.failure = None
        answer = await running.chat()
        assert (await spending(running, session_of(answer))).usd_micros == COST
    assert [after - was for was, after in zip(before, once, strict=True)] == [15, COST]
    assert [after - was for was, after in zip(once, counted(), strict=True)] == [15, COST], (
        "one that is sealed is counted once"
    )


async def test_a_model_without_a_price_is_charged_the_fallback_or_refused(tmp_path, upstream, prices, provider):
    """By setting; refused before the provider is asked."""
    async with running_sidecar(tmp_path / "a", upstream=upstream, prices_file=prices) as running:
        answer = await running.client.post("/v1/chat/completions", json=_asked("another-model"))
        assert (await spending(running, session_of(answer))).usd_micros == 10 * 100 + 5 * 400
    provider.received.clear()
    async with running_sidecar(
        tmp_path / "b", upstream=upstream, prices_file=prices, unknown_model_price="refuse"
    ) as running:
        answer = await running.client.post("/v1/chat/completions", json=_asked("another-model"))
        assert (answer.status_code, reason_of(answer)) == (403, "MODEL_PRICE_UNKNOWN")
        assert provider.received == []


def _asked(model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "What is it?"}]}


async def test_legacy_completions_spend_too(limited):
    """They are chat calls to the provider."""
    answer = await limited.client.post(
        "/v1/completions", json={"model": "test-model", "prompt": "Say it.", "max_tokens": 5}
    )
    assert (await spending(limited, session_of(answer))).usd_micros == COST


async def test_embeddings_of_a_session_spend_its_limit(limited, provider):
    """They are reserved, charged once and on record; what the limit does not hold never reaches the provider."""
    first = await limited.chat()
    sent = {"crp-session-token": token_of(first)}
    body = {"model": "test-embedding", "input": "Where does it lie?"}
    provider.received.clear()
    refused = await limited.client.post("/v1/embeddings", json=body, headers=sent)
    assert (refused.status_code, reason_of(refused), provider.received) == (429, "SPENDING_LIMIT", [])
    body = {"model": "test-model", "input": "Where does it lie?"}
    answer = await limited.client.post("/v1/embeddings", json=body, headers=sent)
    assert answer.status_code == 200, answer.text
    told = await spending(limited, session_of(first))
    assert (told.tokens, told.usd_micros, told.reserved_usd_micros) == (15 + 3, COST + 3 * 10, 0)
    assert answer.headers["crp-spending-left"] == "usd=0.01937"
    charged = [data for name, data in await events(limited, session_of(first)) if name == "SPENDING_CHARGED"]
    assert charged == [{"tokens": 3, "usd_micros": 30}]
