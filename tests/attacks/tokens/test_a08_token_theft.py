"""A-08: a stolen token in the hands of another key, or of none."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("TOK-3")

OWNER, THIEF = {"authorization": "Bearer sk-owner"}, {"authorization": "Bearer sk-thief"}


@pytest.mark.parametrize(
    "headers",
    [
        THIEF,
        {},
        {"authorization": "Bearer sk-owne"},
        {"authorization": "Bearer sk-owner2"},
        {"authorization": "Bearer SK-OWNER"},
    ],
    ids=["another key", "no key", "a prefix of the key", "more than the key", "another case"],
)
async def test_a08_a_token_is_of_use_to_its_own_key_alone(sidecar, provider, headers):
    """Whoever shows another key is refused, spends nothing and reaches no provider; the owner goes on."""
    token = token_of(await sidecar.chat(headers=OWNER))
    stolen = await sidecar.chat(token=token, headers=headers)
    asked = len(provider.received)
    onward = await sidecar.chat(token=token, headers=OWNER)

    assert (stolen.status_code, reason_of(stolen)) == (401, "TOKEN_SCOPE_MISMATCH")
    assert asked == 1
    assert onward.status_code == 200


@pytest.mark.parametrize("path", ["", "/dag"])
async def test_a08_a_session_cannot_be_read_with_a_stolen_token(sidecar, path):
    """What a session was charged and how it went is not shown to another key either."""
    first = await sidecar.chat(headers=OWNER)
    uri = f"/crp/v3/session/{first.headers['crp-context-session-id']}{path}"
    answers = {
        name: (await sidecar.client.get(uri, headers={**headers, "crp-session-token": token_of(first)})).status_code
        for name, headers in (("owner", OWNER), ("thief", THIEF))
    }

    assert answers["owner"] == 200
    assert answers["thief"] in {401, 404}


async def test_a08_a_key_that_was_taken_away_ends_with_its_sessions(tmp_path, upstream):
    """A key that is no longer listed is refused with its own token too."""
    keys = tmp_path / "keys.yaml"
    keys.write_text(f"owner: {hashlib.sha256(b'sk-owner').hexdigest()}\n")
    async with running_sidecar(tmp_path / "one", upstream=upstream, api_keys_file=keys) as sidecar:
        token = token_of(await sidecar.chat(headers=OWNER))
    keys.write_text(f"thief: {hashlib.sha256(b'sk-thief').hexdigest()}\n")
    async with running_sidecar(tmp_path / "one", upstream=upstream, api_keys_file=keys) as sidecar:
        answers = [await sidecar.chat(token=token, headers=headers) for headers in (OWNER, THIEF)]

    assert [answer.status_code for answer in answers] == [401, 401]
