"""Everything that the HTTP front serves beside the governed call."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)


@pytest.mark.req("PRV-2", "TOK-3")
async def test_reports_are_served_to_their_own_scope_only(sidecar):
    """The URIs of the headers lead to the report for its caller, and to nothing for anybody else (A-37)."""
    own, other = {"authorization": "Bearer one"}, {"authorization": "Bearer two"}
    response = await sidecar.chat(headers=own)
    report, trail = (response.headers[name] for name in ("crp-provenance-report-uri", "crp-compliance-audit-trail-uri"))
    mine, record = await sidecar.client.get(report, headers=own), await sidecar.client.get(trail, headers=own)

    assert mine.json()["risk_level"] == "RISK_LEVEL_LOW"
    assert record.json()["window_hmac"] == response.headers["crp-provenance-hmac"]
    assert "sha256:" + hashlib.sha256(mine.content).hexdigest() == record.json()["report_hash"]
    for uri in (report, trail):
        stranger = await sidecar.client.get(uri, headers=other)
        unknown = await sidecar.client.get(uri[:-4] + "0000", headers=own)
        malformed = await sidecar.client.get(uri + "'--", headers=own)
        assert (stranger.status_code, reason_of(stranger)) == (404, "REPORT_NOT_FOUND")
        assert stranger.json() == unknown.json()
        assert (malformed.status_code, reason_of(malformed)) == (400, "INVALID_ID")


async def test_a_session_is_shown_and_ended_by_its_token(sidecar):
    """SPEC-016 §2.2: GET shows, DELETE ends for good, the header does the same, and each only with the token."""
    first = await sidecar.chat()
    uri, token = f"/crp/v3/session/{first.headers['crp-context-session-id']}", {"crp-session-token": token_of(first)}
    shown = await sidecar.client.get(uri, headers=token)
    foreign = await sidecar.client.get("/crp/v3/session/crp_sess_" + "0" * 32, headers=token)
    without = await sidecar.client.delete(uri)
    ended = await sidecar.client.delete(uri, headers=token)
    after = await sidecar.chat(token=token["crp-session-token"])
    events = [event.event_type for event in await sidecar.events(first.headers["crp-context-session-id"])]

    assert shown.json()["safety_budget_micros"] == 1_000_000
    assert (foreign.status_code, reason_of(foreign)) == (404, "SESSION_NOT_FOUND")
    assert (without.status_code, reason_of(without)) == (401, "SESSION_TOKEN_REQUIRED")
    assert ended.json()["status"] == "SESSION_STATUS_TERMINATED"
    assert (after.status_code, reason_of(after)) == (409, "SESSION_TERMINATED")
    assert events.count("SESSION_TERMINATED") == 1


async def test_the_terminate_header_ends_a_session_without_a_call(sidecar, provider):
    """SPEC-007 §4.5: CRP-Session-Action: terminate."""
    first = await sidecar.chat()
    ended = await sidecar.chat(token=token_of(first), headers={"crp-session-action": "terminate"})

    assert ended.json()["status"] == "SESSION_STATUS_TERMINATED"
    assert len(provider.received) == 1


@pytest.mark.req("TOK-3")
async def test_only_listed_keys_are_accepted(tmp_path, upstream, provider):
    """With a list of keys everybody else is 401, for models and reports too, and nothing is dispatched."""
    keys = tmp_path / "keys.yaml"
    keys.write_text("team-a: " + hashlib.sha256(b"key-a").hexdigest())
    async with running_sidecar(tmp_path, upstream=upstream, api_keys_file=keys) as sidecar:
        good = await sidecar.chat(headers={"authorization": "Bearer key-a"})
        bad = [await sidecar.chat(headers=h) for h in ({}, {"authorization": "Bearer key-b"})]
        bad.append(await sidecar.client.get("/v1/models"))

    assert good.status_code == 200
    assert [(r.status_code, reason_of(r)) for r in bad] == [(401, "API_KEY_INVALID")] * 3
    assert bad[0].headers["www-authenticate"] == "Bearer"
    assert len(provider.received) == 1


@pytest.mark.req("SVC-4", "SVC-9")
async def test_readiness_names_what_is_missing(sidecar):
    """Liveness does not depend on anything; readiness names each missing part with its hint."""
    ready = await sidecar.client.get("/readyz")
    sidecar.missing["redis"] = "start it"
    not_ready = await sidecar.client.get("/readyz")

    assert (await sidecar.client.get("/healthz")).status_code == 200
    assert ready.status_code == 200
    assert not_ready.status_code == 503
    assert not_ready.json()["missing"] == {"redis": "start it"}


@pytest.mark.req("SVC-5")
async def test_metrics_are_served_without_ids(sidecar):
    """Prometheus text with our names, and no session id as a label."""
    response = await sidecar.chat()
    metrics = (await sidecar.client.get("/metrics")).text

    assert "interlock_overhead_seconds_count" in metrics
    assert "interlock_policy_decisions_total" in metrics
    assert response.headers["crp-context-session-id"] not in metrics
    assert "interlock_failopen" not in metrics


async def test_the_gateway_describes_itself(sidecar):
    """SPEC-016 §2.5: version, an honest conformance level, limits, and the table of what is scanned."""
    described = (await sidecar.client.get("/.well-known/crp-gateway.json")).json()

    assert (described["crp_version"], described["conformance_level"]) == ("3.0.0", "standard")
    assert described["endpoints"]["inference"] == sidecar.http + "/v1"
    assert (described["max_loop_depth"], described["max_fan_out"], described["max_dag_nodes"]) == (5, 10, 800)
    assert "/v1/*" in {row["path"] for row in described["scanning"]}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-2")
@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("PUT", "/v1/responses", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/v1/audio/speech", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("POST", "/v1/messages/batches", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("POST", "/v1/messages/count_tokens", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("GET", "/v1/completions", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/v1/embeddings", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/v1/models/test-model", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("GET", "/v1/files/abc", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("POST", "/v1/chat/completions/", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("POST", "/v1//chat/completions", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("POST", "/v1/CHAT/completions", 501, "ENDPOINT_NOT_SUPPORTED"),
        ("GET", "/v1/chat/completions", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/v1/models", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/healthz", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/", 404, "PATH_NOT_FOUND"),
        ("GET", "/v2/chat/completions", 404, "PATH_NOT_FOUND"),
        ("GET", "/healthz/", 404, "PATH_NOT_FOUND"),
    ],
)
async def test_every_other_path_gets_a_clear_answer(shared_sidecar, provider, method, path, status, reason):
    """Nothing is passed on unscanned, redirected or answered with a puzzle; the body says what there is."""
    response = await shared_sidecar.client.request(
        method, path, json={"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}
    )

    assert (response.status_code, reason_of(response)) == (status, reason)
    assert response.json()["error"]["message"]
    assert (response.json().get("type") == "error") == path.startswith("/v1/messages")
    assert provider.received == []


@pytest.mark.req("API-7")
@pytest.mark.parametrize(("header", "value"), [("anthropic-version", "2023-06-01"), ("x-api-key", "k")])
async def test_another_path_is_refused_in_the_shape_of_the_api_that_asks(sidecar, header, value):
    """A client of Anthropic's gets Anthropic's error for a path of no API; one of OpenAI's gets OpenAI's."""
    theirs = await sidecar.client.get("/v1/files", headers={header: value})
    openai = await sidecar.client.get("/v1/files")

    assert (theirs.status_code, theirs.json()["type"], theirs.json()["error"]["type"]) == (501, "error", "api_error")
    assert (openai.status_code, "type" in openai.json(), openai.json()["error"]["code"]) == (
        501, False, "endpoint_not_supported",
    )  # fmt: skip
    assert "POST /v1/messages" in theirs.json()["error"]["message"]


async def test_models_are_listed_anew(sidecar, provider):
    """The provider's list without its extras and its cookies, and without our headers on the way."""
    response = await sidecar.client.get("/v1/models", headers={"authorization": "Bearer k"})
    again = await sidecar.client.get("/v1/models", headers={"authorization": "Bearer k"})

    assert response.json() == {
        "object": "list",
        "data": [{"id": "test-model", "object": "model", "created": 1, "owned_by": "provider"}],
    }
    assert "set-cookie" not in response.headers
    assert again.status_code == 200
    assert provider.received[1].header("cookie") is None


@pytest.mark.req("API-3")
async def test_a_model_is_retrieved_by_its_name(sidecar, provider):
    """One of the list, a name with a slash too; a name that is not in it is 404, and Anthropic's clients get their shape."""
    provider.lists({"data": [{"id": "org/test", "created": 1, "secret": "x"}]})
    found = await sidecar.client.get("/v1/models/org/test")
    missing = await sidecar.client.get("/v1/models/org/../test")
    theirs = await sidecar.client.get("/v1/models/org/test", headers={"x-api-key": "k"})
    listed = await sidecar.client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})

    assert found.json() == {"id": "org/test", "object": "model", "created": 1, "owned_by": "provider"}
    assert (missing.status_code, reason_of(missing)) == (404, "MODEL_NOT_FOUND")
    assert (theirs.json()["type"], theirs.json()["display_name"]) == ("model", "org/test")
    assert (listed.json()["first_id"], listed.json()["has_more"]) == ("org/test", False)


@pytest.mark.req("SVC-9")
async def test_without_a_provider_it_says_so(tmp_path):
    """503 with a reason and what to set; no session is begun."""
    async with running_sidecar(tmp_path) as sidecar:
        for response in (await sidecar.chat(), await sidecar.client.get("/v1/models")):
            assert (response.status_code, reason_of(response)) == (503, "UPSTREAM_NOT_CONFIGURED")
            assert "INTERLOCK_UPSTREAM_BASE_URL" in response.json()["metadata"]["hint"]
            assert response.headers["x-should-retry"] == "false"
