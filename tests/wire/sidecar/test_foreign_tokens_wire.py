"""Tokens of another implementation, over HTTP and gRPC: a session of ours goes on with one, and nothing is weaker for it."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.runtime.keys.derivation import SIGN, load_keyring
from interlock.runtime.settings.model import Settings
from tests.attacks.tokens.test_a06_token_forging import b64, signed
from tests.attacks.tokens.test_a46_downgrade import written
from tests.support.session.session_client import payload
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.texts.canary import MASTER_KEY
from tests.unit.domain.session.test_foreign_tokens import EXAMPLE

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.finding("F-15"), pytest.mark.req("TOK-1", "TOK-2", "TOK-3")]


@pytest.fixture
async def mesh(tmp_path, upstream, redis_url):
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url, master_key=MASTER_KEY) as running:
        yield running


def foreign(token: str, *, key: bytes | None = None, **fields: Any) -> str:
    """The claims of a token as another gateway would sign them: a plain JSON double, no key version, other spacing."""
    said = {**payload(token), **fields}
    said = {name: value for name, value in said.items() if name != "kv" and value is not None}
    said["sb"] = float(said["sb"])
    if key is None:
        key = load_keyring(Settings(master_key=MASTER_KEY)).derive(1, said["sid"], SIGN)
    return signed(b64(json.dumps(said).encode()), key)


async def test_a_session_goes_on_with_a_foreign_token(mesh, provider):
    """Three windows by turns; the budget, the numbers and the chain are those of one session."""
    first = await mesh.chat()
    provider.answers("It is MEDIUM.")
    second = await mesh.chat(token=foreign(token_of(first)))
    third = await mesh.chat(token=foreign(token_of(second)))
    session = first.headers["crp-context-session-id"]

    assert [one.status_code for one in (first, second, third)] == [200, 200, 200]
    assert {one.headers["crp-context-session-id"] for one in (first, second, third)} == {session}
    assert [one.headers["crp-context-window"].split("/")[0] for one in (first, second, third)] == ["1", "2", "3"]
    assert [one.headers["crp-agent-safety-budget"] for one in (second, third)] == ["0.95", "0.90"]
    assert third.headers["crp-provenance-chain-integrity"] == "VALID"


async def test_a_foreign_token_names_its_session_for_everything_else(mesh):
    """The session's state is read with it, over HTTP and gRPC, and it ends it."""
    first = await mesh.chat()
    token = foreign(token_of(first))
    uri = f"/crp/v3/session/{first.headers['crp-context-session-id']}"
    shown = await mesh.client.get(uri, headers={"crp-session-token": token})
    over_grpc = await mesh.stub.GetSession(sidecar_pb2.GetSessionRequest(session_token=token))
    ended = await mesh.stub.Terminate(sidecar_pb2.TerminateRequest(session_token=token))

    assert (shown.status_code, len(shown.json()["windows"])) == (200, 1)
    assert over_grpc.session.session_id == ended.session.session_id == first.headers["crp-context-session-id"]


async def test_a_foreign_budget_neither_raises_nor_hides_what_was_spent(mesh, provider):
    """The store's budget stands above a token that says more; one that says less is believed."""
    provider.answers("It is HIGH.")
    first = await mesh.chat()
    provider.answers("It is fine.")
    more = await mesh.chat(token=foreign(token_of(first), sb=1.0))
    less = await mesh.chat(token=foreign(token_of(more), sb=0.05))

    assert more.headers["crp-agent-safety-budget"] == first.headers["crp-agent-safety-budget"] == "0.85"
    assert (less.status_code, reason_of(less)) == (451, "BUDGET_DEPLETED")


async def test_what_holds_our_tokens_holds_a_foreign_one(mesh, provider):
    """Signature, expiry, scope, nonce and chain tip, each by its own reason, before the provider is asked."""
    first = await mesh.chat()
    token = token_of(first)
    onward = await mesh.chat(token=foreign(token))
    asked = len(provider.received)
    refused = {
        name: await mesh.chat(token=text)
        for name, text in {
            "signature": foreign(token_of(onward), key=b"\x01" * 32),
            "expiry": foreign(token_of(onward), exp=payload(token)["iat"] - 1),
            "scope": foreign(token_of(onward), scope="crp_gw_prod_abc123"),
            "nonce": foreign(token_of(onward), nonce="base64:nZ8fXw=="),
            "stale": foreign(token),
            "tip": foreign(token_of(onward), ct="sha256:" + "0" * 64),
            "shape": foreign(token_of(onward), str="turbo"),
            "field": foreign(token_of(onward), adm=True),
        }.items()
    }

    assert {name: (one.status_code, reason_of(one)) for name, one in refused.items()} == {
        "signature": (401, "TOKEN_SIGNATURE_INVALID"),
        "expiry": (401, "TOKEN_EXPIRED"),
        "scope": (401, "TOKEN_SCOPE_MISMATCH"),
        "nonce": (401, "TOKEN_KEY_MISMATCH"),
        "stale": (409, "TOKEN_REPLAYED"),
        "tip": (409, "CONTINUATION_MISMATCH"),
        "shape": (401, "TOKEN_MALFORMED"),
        "field": (401, "TOKEN_MALFORMED"),
    }
    assert len(provider.received) == asked


async def test_a_session_of_another_implementation_is_not_held_here(mesh, provider):
    """Its token is read; its budget is not taken on trust: a new session is the way out (SESSION_STATE_LOST)."""
    scope = payload(token_of(await mesh.chat()))["scope"]
    asked = len(provider.received)
    said = json.loads(EXAMPLE) | {"scope": scope, "exp": 4_102_444_800}
    key = load_keyring(Settings(master_key=MASTER_KEY)).derive(1, said["sid"], SIGN)
    text = signed(b64(json.dumps(said).encode()), key)
    refused = await mesh.chat(token=text)
    expired = await mesh.chat(token=signed(b64(EXAMPLE.encode()), key))

    assert (refused.status_code, reason_of(refused)) == (503, "SESSION_STATE_LOST")
    assert refused.headers["x-should-retry"] == "false"
    assert (expired.status_code, reason_of(expired)) == (401, "TOKEN_EXPIRED")
    assert len(provider.received) == asked


async def test_a_foreign_token_reaches_no_session_of_another_key(tmp_path, upstream, redis_url):
    """Two master keys: the one that does not sign the session any more verifies, and is not taken for it (A-46)."""
    old, new = secrets.token_bytes(32), secrets.token_bytes(32)
    given = {"upstream": upstream, "redis_url": redis_url, "master_keys_file": written(tmp_path / "keys", old, new)}
    async with running_sidecar(tmp_path, **given) as sidecar:
        token = token_of(await sidecar.chat())
        ring = load_keyring(Settings(master_keys_file=tmp_path / "keys", state_dir=tmp_path / "other"))
        sid = payload(token)["sid"]
        stolen = await sidecar.chat(token=foreign(token, key=ring.derive(1, sid, SIGN)))
        onward = await sidecar.chat(token=foreign(token, key=ring.derive(2, sid, SIGN)))

    assert (stolen.status_code, reason_of(stolen)) == (401, "TOKEN_KEY_MISMATCH")
    assert onward.status_code == 200
