"""Limits of the real Envoy on the budgets of a kernel: what may be charged goes on, and everything else ends (MSH-3)."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest
import yaml

from tests.support.paths import ROOT
from tests.support.servers.envoy import first_filter, manager, needs_envoy
from tests.support.servers.ports import free_port
from tests.support.sidecar.behind_envoy import BehindEnvoy, behind_envoy

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [needs_envoy, pytest.mark.req("MSH-3")]

KEY, UNIT = "sk-gateway", 1_000_000
PER_ROUTE = "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute"
MAPPING = ROOT / "deploy" / "envoy" / "limits-mapping.yaml"
KERNEL: dict[str, Any] = {
    "resources": [{"name": "requests", "limit_micros": 3 * UNIT}, {"name": "usd", "limit_micros": 4 * UNIT}],
    "actions": [
        {"id": "search", "name": "Search", "costs": [{"resource": "usd", "micros": 2 * UNIT}]},
        {"id": "request", "name": "Request", "costs": [{"resource": "requests", "micros": UNIT}]},
    ],
    "open_registry": True,
}


@pytest.fixture
def settings(tmp_path) -> dict[str, Any]:
    keys = tmp_path / "keys.yaml"
    keys.write_text(f"gateway: {hashlib.sha256(KEY.encode()).hexdigest()}\n", encoding="utf-8")
    return {"api_keys_file": keys, "rate_limits_file": MAPPING}


def routed(config: dict[str, Any]) -> None:
    """Lead both routes to a path that the scripted server has: here it is a tool server."""
    for one in manager(config)["route_config"]["virtual_hosts"][0]["routes"]:
        one["route"]["regex_rewrite"] = {"pattern": {"regex": "^.*$"}, "substitution": "/v1/models"}


@pytest.fixture
async def limited(tmp_path, upstream, settings):
    async with behind_envoy(tmp_path, upstream, config="limits", change=routed, **settings) as one:
        yield one


async def opened(limited: BehindEnvoy, **more: Any) -> None:
    """Open the kernel, as its owner does."""
    body = {"definition": {**KERNEL, **more}}
    response = await limited.sidecar.client.post(
        "/crp/v3/kernel/team/open", json=body, headers={"authorization": f"Bearer {KEY}"}
    )
    assert response.status_code == 200, response.text


async def left(limited: BehindEnvoy) -> dict[str, float]:
    """What is left of each budget of the kernel."""
    response = await limited.sidecar.client.get("/crp/v3/kernel/team", headers={"authorization": f"Bearer {KEY}"})
    return {one["name"]: int(one["remaining_micros"]) / UNIT for one in response.json()["resources"]}


async def asked(limited: BehindEnvoy, path: str = "/any", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=limited.envoy.url, trust_env=False, timeout=20) as client:
        return await client.get(path, headers=headers)


async def test_requests_go_on_while_the_budget_holds_them(limited, provider):
    """Each takes one of three; the fourth ends with the reason, and the upstream hears nothing of it."""
    await opened(limited)
    answers = [await asked(limited) for _ in range(4)]

    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    assert answers[3].json()["reason"] == "RATE_LIMIT_REACHED"
    assert answers[3].json()["metadata"]["limit"] == "request"
    assert len(provider.received) == 3
    assert await left(limited) == {"requests": 0, "usd": 4}


async def test_an_action_is_charged_what_it_costs(limited, provider):
    """Two searches spend the money; the third is rejected, with what a model is told, and its request is given back."""
    await opened(limited)
    answers = [await asked(limited, "/search") for _ in range(3)]

    assert [one.status_code for one in answers] == [200, 200, 429]
    assert answers[2].json()["metadata"]["limit"] == "search"
    assert answers[2].json()["metadata"]["for_model"]
    assert await left(limited) == {"requests": 1, "usd": 0}
    assert len(provider.received) == 2


async def test_what_was_charged_is_given_back_where_a_later_limit_refuses(limited, provider):
    """The money of a search that has no request left is not spent."""
    resources = [{"name": "requests", "limit_micros": 0}, KERNEL["resources"][1]]
    await opened(limited, resources=resources)
    refused = await asked(limited, "/search")

    assert (refused.status_code, refused.json()["metadata"]["limit"]) == (429, "request")
    assert await left(limited) == {"requests": 0, "usd": 4}
    assert not provider.received


async def test_hits_are_charged_one_by_one_out_of_what_is_reserved(tmp_path, upstream, provider, settings):
    """Two hits take two of three. Where two are reserved and three are asked for, nothing is taken."""

    def counted(hits: int):
        def change(config: dict[str, Any]) -> None:
            routed(config)
            route = manager(config)["route_config"]["virtual_hosts"][0]["routes"][1]
            (limit,) = route["route"].pop("rate_limits")  # there Envoy reads no hits
            own = {"@type": PER_ROUTE, "rate_limits": [{**limit, "hits_addend": {"number": hits}}]}
            route["typed_per_filter_config"] = {"envoy.filters.http.ratelimit": own}

        return change

    two = [{"id": "request", "name": "Request", "costs": [{"resource": "requests", "micros": 2 * UNIT}]}]
    seen = []
    for hits in (2, 3):
        folder = tmp_path / str(hits)
        async with behind_envoy(folder, upstream, config="limits", change=counted(hits), **settings) as limited:
            await opened(limited, actions=two)
            answer = await asked(limited)
            seen.append((answer.status_code, (await left(limited))["requests"]))

    assert seen == [(200, 1), (429, 3)]


async def test_a_rate_is_an_invariant(limited):
    """A window of the kernel holds over every sidecar: uses of an action in the last minute."""
    await opened(limited, invariants=[{"name": "rate", "expression": "uses(search, 60) <= 1"}])
    answers = [await asked(limited, "/search") for _ in range(2)]

    assert [one.status_code for one in answers] == [200, 429]
    assert "rate" in answers[1].json()["metadata"]["for_model"]


async def test_no_header_of_ours_reaches_the_upstream(limited, provider):
    """The route removes them, as in every configuration that is shipped."""
    await opened(limited)
    await asked(limited, **{"crp-session-token": "secret", "crp-safety-policy": "halt-on HIGH"})

    assert not [name for name, _ in provider.received[0].headers if name.startswith("crp-")]


async def test_without_its_kernel_nothing_goes_on(limited, provider):
    """Nobody has opened it: the reason says so, and the status is that of a limit."""
    refused = await asked(limited)

    assert (refused.status_code, refused.json()["reason"]) == (429, "KERNEL_NOT_FOUND")
    assert not provider.received


async def test_a_request_that_nobody_mapped_goes_nowhere(tmp_path, upstream, provider, settings):
    """So it is where no file is set at all; a filter that would let errors pass changes nothing, as it is no error."""

    def careless(config: dict[str, Any]) -> None:
        routed(config)
        first_filter(config)["failure_mode_deny"] = False

    del settings["rate_limits_file"]
    async with behind_envoy(tmp_path, upstream, config="limits", change=careless, **settings) as limited:
        refused = await asked(limited)

    assert (refused.status_code, refused.json()["reason"]) == (429, "RATE_LIMIT_UNMAPPED")
    assert not provider.received


async def test_without_interlock_nothing_goes_on(tmp_path, upstream, provider, settings):
    """Where nothing answers Envoy, failure_mode_deny ends the request."""
    async with behind_envoy(
        tmp_path, upstream, config="limits", change=routed, asked=free_port(), **settings
    ) as limited:
        refused = await asked(limited)

    assert refused.status_code == 503
    assert not provider.received


def test_the_shipped_mapping_fits_the_shipped_filter():
    """Both name the same domain."""
    told = yaml.safe_load(MAPPING.read_text(encoding="utf-8"))
    shipped = yaml.safe_load((ROOT / "deploy" / "envoy" / "limits.yaml").read_text(encoding="utf-8"))

    assert told["domain"] == first_filter(shipped)["domain"]
