"""A-46: an older key, an older file of keys, an older protocol or an older policy, beside newer ones."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.errors import Refused
from interlock.runtime.keys import keys_file
from interlock.runtime.keys.derivation import GRANT, HMAC, SIGN, load_keyring
from interlock.runtime.keys.masters import Masters
from interlock.runtime.settings.model import Settings
from tests.attacks.tokens.test_a06_token_forging import b64, signed, unb64
from tests.support.session.session_client import payload
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("TOK-4")

FIRST, SECOND, THIRD = (secrets.token_bytes(32) for _ in range(3))


def written(path: Path, *keys: bytes, minimum: int = 1) -> Path:
    """Write a file of keys, versions from 1."""
    keys_file.write(path, keys_file.as_yaml(Masters(dict(enumerate(keys, 1)), minimum=minimum)))
    return path


async def test_a46_old_and_new_key_versions_live_beside_one_another(tmp_path, upstream, redis_url):
    """A session of version 1 goes on, and a new one begins with 2, on an instance that knows both; both chains verify."""
    path = written(tmp_path / "keys", FIRST)
    given = {"upstream": upstream, "redis_url": redis_url, "master_keys_file": path}
    async with running_sidecar(tmp_path, **given) as sidecar:
        old = await sidecar.chat()
    written(path, FIRST, SECOND)
    async with running_sidecar(tmp_path, **given) as sidecar:
        onward, fresh = await sidecar.chat(token=token_of(old)), await sidecar.chat()
        sessions = [one.headers["crp-context-session-id"] for one in (onward, fresh)]
        found = [await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=one)) for one in sessions]

    assert [payload(token_of(one))["kv"] for one in (onward, fresh)] == [1, 2]
    assert not any(one.faults for one in found)


async def test_a46_an_instance_without_the_new_key_takes_no_token_of_it(tmp_path, upstream, redis_url, provider):
    """An old replica refuses what it cannot verify; it does not fall back to the version it has."""
    new = {"upstream": upstream, "redis_url": redis_url, "master_keys_file": written(tmp_path / "new", FIRST, SECOND)}
    old = {**new, "master_keys_file": written(tmp_path / "old", FIRST)}
    async with running_sidecar(tmp_path / "a", **new) as sidecar:
        token = token_of(await sidecar.chat())
    asked = len(provider.received)
    async with running_sidecar(tmp_path / "b", **old) as sidecar:
        refused = await sidecar.chat(token=token)

    assert (refused.status_code, reason_of(refused)) == (401, "TOKEN_KEY_UNKNOWN")
    assert len(provider.received) == asked


async def test_a46_a_token_cannot_choose_an_older_key(tmp_path, upstream, provider):
    """A holder of the stolen version 1 cannot sign for a session of version 2, nor for any once 1 is retired."""
    path = written(tmp_path / "keys", FIRST, SECOND)
    async with running_sidecar(tmp_path / "a", upstream=upstream, master_keys_file=path) as sidecar:
        token = token_of(await sidecar.chat())
        said = unb64(token.split(".")[0]).decode().replace('"kv":2', '"kv":1')
        stolen = load_keyring(Settings(master_key=FIRST.hex())).derive(1, json.loads(said)["sid"], SIGN)
        forged = signed(b64(said.encode()), stolen)
        before = await sidecar.chat(token=forged)
        reading = await sidecar.client.get(
            f"/crp/v3/session/{json.loads(said)['sid']}", headers={"crp-session-token": forged}
        )
        written(path, FIRST, SECOND, minimum=2)
        _look_again(sidecar)
        after = await sidecar.chat(token=forged)
        goes_on = await sidecar.chat(token=token)

    assert (before.status_code, reason_of(before)) == (401, "TOKEN_KEY_MISMATCH")
    assert goes_on.status_code == 200
    assert (after.status_code, reason_of(after)) == (401, "TOKEN_KEY_UNKNOWN")
    assert reading.status_code == 401
    assert len(provider.received) == 2


def _look_again(sidecar) -> None:
    """Let the session service of this process look at its file now, and not within the second."""
    sidecar.services["session"].servicer._ledger.keyring._held.refresh()


def test_a46_a_retired_version_signs_and_delegates_no_more_but_verifies(tmp_path):
    """Below the minimum there are no keys for tokens and grants, and the one for the chain stays."""
    keyring = load_keyring(
        Settings(master_keys_file=written(tmp_path / "keys", FIRST, SECOND, minimum=2), state_dir=tmp_path / "state")
    )

    assert keyring.derive(1, "s", SIGN) is None
    assert keyring.derive(1, "s", GRANT) is None
    assert keyring.derive(1, "s", HMAC)
    assert keyring.derive(2, "s", SIGN)


@pytest.mark.parametrize(
    "older", [lambda p: written(p, FIRST), lambda p: written(p, FIRST, SECOND, minimum=1)], ids=["keys", "minimum"]
)
def test_a46_older_keys_than_were_used_here_start_nothing(tmp_path, older):
    """A file of keys that was put back to an earlier state is refused: what was retired does not come back."""
    path = written(tmp_path / "keys", FIRST, SECOND, minimum=2)
    settings = Settings(master_keys_file=path, state_dir=tmp_path / "state")
    load_keyring(settings)
    older(path)

    with pytest.raises(Refused, match="MASTER_KEYS_ROLLED_BACK"):
        load_keyring(settings)


def test_a46_nor_does_the_single_key_of_before(tmp_path):
    """Taking the setting of the file away does not lead back to version 1."""
    path = written(tmp_path / "keys", FIRST, SECOND)
    load_keyring(Settings(master_keys_file=path, state_dir=tmp_path))

    with pytest.raises(Refused, match="MASTER_KEYS_ROLLED_BACK"):
        load_keyring(Settings(master_key=FIRST.hex(), state_dir=tmp_path))


def test_a46_a_running_process_keeps_the_newest_keys_it_had(tmp_path):
    """A file that goes back under a running process is told and not taken."""
    path = written(tmp_path / "keys", FIRST, SECOND)
    keyring = load_keyring(Settings(master_keys_file=path, state_dir=tmp_path))
    written(path, FIRST)
    keyring._held.refresh()
    assert keyring.current == 2
    written(path, FIRST, SECOND, THIRD)
    keyring._held.refresh()

    assert keyring.current == 3


@pytest.mark.parametrize("version", ["2.0.0", "3.0.1", "4.0.0", "1.0.0", ""])
async def test_a46_another_version_of_the_token_is_no_token(tmp_path, upstream, provider, version):
    """A token that says it is of another protocol is refused, though its signature holds."""
    async with running_sidecar(tmp_path, upstream=upstream, master_key=FIRST.hex()) as sidecar:
        token = token_of(await sidecar.chat())
        said = unb64(token.split(".")[0]).decode().replace('"v":"3.0.0"', f'"v":"{version}"')
        key = load_keyring(Settings(master_key=FIRST.hex())).derive(1, json.loads(said)["sid"], SIGN)
        answer = await sidecar.chat(token=signed(b64(said.encode()), key))

    assert (answer.status_code, reason_of(answer)) == (401, "TOKEN_MALFORMED")
    assert len(provider.received) == 1


async def test_a46_an_old_replica_with_an_older_policy_relaxes_no_session(tmp_path, upstream, redis_url):
    """A session that began under the deployment's new, tight policy keeps it at an instance that still has the old one."""
    given = {"upstream": upstream, "redis_url": redis_url, "master_key": FIRST.hex()}
    async with running_sidecar(tmp_path, **given, default_policy="halt-on HIGH; require-grounding 0.75") as new:
        first = await new.chat()
    async with running_sidecar(tmp_path, **given, default_policy="halt-on CRITICAL") as old:
        second = await old.chat(token=token_of(first))

    assert second.status_code == 200
    assert second.headers["crp-safety-policy-applied"] == first.headers["crp-safety-policy-applied"]
