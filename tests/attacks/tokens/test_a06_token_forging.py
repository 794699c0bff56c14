"""A-06: a session token that was forged, mutated, cut, or signed under another algorithm or an empty key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import random

import pytest

from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.domain.errors import Refused
from interlock.runtime.keys.derivation import SIGN, load_keyring
from interlock.runtime.rpc.channel import LocalChannel
from interlock.runtime.settings.model import Settings
from interlock.session.wiring import open_service
from tests.support.session.session_client import Client, opening
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.texts.canary import MASTER_KEY

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("TOK-1")

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"CRP"}').rstrip(b"=")


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signed(payload: str, key: bytes, *, header: bytes = HEADER, algorithm: str = "sha256") -> str:
    return f"{payload}.{b64(hmac.new(key, header + b'.' + payload.encode(), algorithm).digest())}"


async def begun(sidecar, provider) -> str:
    """Begin a session, forget its call, and return its token."""
    token = token_of(await sidecar.chat())
    provider.received.clear()
    return token


async def test_a06_no_byte_of_a_token_can_be_changed(tmp_path):
    """Each byte with each of its bits flipped is refused by the session service; the untouched token opens its window."""
    service = await open_service(Settings(redis_url="memory://", state_dir=tmp_path))
    client = Client(SessionServiceStub(LocalChannel(SessionService=service.servicer)))
    token = (await client.start()).token
    reasons = set()
    for place, bit in itertools.product(range(len(token)), range(7)):
        mutant = token[:place] + chr(ord(token[place]) ^ 1 << bit) + token[place + 1 :]
        reasons.add((await client.refused("OpenWindow", opening(mutant))).reason)
    opened = await client.open(token)
    await service.close()

    assert reasons <= {"TOKEN_MALFORMED", "TOKEN_SIGNATURE_INVALID", "TOKEN_KEY_UNKNOWN"}
    assert opened.window_number == 1


async def test_a06_a_changed_token_is_401_at_the_front(sidecar, provider):
    """A byte in each part of the token, replaced by another of the alphabet: 401, and the provider is not asked."""
    token, choices = await begun(sidecar, provider), random.Random(6)
    for place in range(0, len(token), 40):
        other = choices.choice([c for c in ALPHABET + "." if c != token[place]])
        response = await sidecar.chat(token=token[:place] + other + token[place + 1 :])
        assert response.status_code == 401, place

    assert provider.received == []
    assert (await sidecar.chat(token=token)).status_code == 200


async def test_a06_a_truncated_mac_is_no_mac(sidecar, provider):
    """Shorter MACs down to none, and longer ones, are refused: a prefix of the right bytes proves nothing."""
    token = await begun(sidecar, provider)
    payload, mac = token.split(".")
    raw = unb64(mac)
    for text in (*(b64(raw[:length]) for length in range(0, len(raw), 3)), b64(raw + b"\0"), b64(raw * 2)):
        assert (await sidecar.chat(token=f"{payload}.{text}")).status_code == 401, text

    assert provider.received == []


async def test_a06_the_algorithm_is_not_the_tokens_to_choose(tmp_path, upstream, provider):
    """A header of the attacker's, the right key under another hash, no MAC at all: the one algorithm alone is taken."""
    async with running_sidecar(tmp_path, upstream=upstream, master_key=MASTER_KEY) as sidecar:
        token = await begun(sidecar, provider)
        payload, session = token.split(".")[0], json.loads(unb64(token.split(".")[0]))["sid"]
        key = load_keyring(Settings(master_key=MASTER_KEY)).derive(1, session, SIGN)
        none = b64(b'{"alg":"none","typ":"CRP"}')
        forged = [
            f"{none}.{payload}.", f"{none}.{payload}.{token.split('.')[1]}", f"{payload}.",
            signed(payload, key, algorithm="sha512"), signed(payload, key, algorithm="sha1"),
            signed(payload, key, header=none.encode()), f"{payload}.{b64(hashlib.sha256(payload.encode()).digest())}",
        ]  # fmt: skip
        assert signed(payload, key) == token  # the attacker's own arithmetic is right
        refused = [(await sidecar.chat(token=text)).status_code for text in forged]

    assert refused == [401] * len(forged)
    assert provider.received == []


@pytest.mark.parametrize("key", [b"", b"\0" * 32, b"secret", b"HS256"], ids=["empty", "zeros", "secret", "alg"])
async def test_a06_a_guessed_key_signs_nothing(sidecar, provider, key):
    """A token signed under an empty or a guessed key, with a full budget in it, is refused."""
    token = await begun(sidecar, provider)
    payload = json.loads(unb64(token.split(".")[0]))
    payload["sb"] = 1
    raised = json.dumps(payload, separators=(",", ":")).replace('"sb":1,', '"sb":1.000000,')
    response = await sidecar.chat(token=signed(b64(raised.encode()), key))

    assert (response.status_code, reason_of(response)) == (401, "TOKEN_SIGNATURE_INVALID")
    assert provider.received == []


@pytest.mark.parametrize("weak", ["", "00" * 32, "ff" * 64, "deadbeef" * 8, "0123456789abcdef" * 2])
def test_a06_nothing_starts_on_a_weak_master_key(weak):
    """Empty, short and repeating master keys are refused before any token is made."""
    with pytest.raises(Refused, match="MASTER_KEY_WEAK"):
        load_keyring(Settings(master_key=weak))
