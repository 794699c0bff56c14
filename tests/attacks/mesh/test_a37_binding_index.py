"""A-37: what is kept to find sessions again tells one tenant nothing of another, and holds nothing that was said."""

from __future__ import annotations

import pytest

from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.runtime.rpc.channel import LocalChannel
from interlock.runtime.settings.model import Settings
from interlock.session.store.redis_bindings import generations_of
from interlock.session.wiring import open_service
from tests.support.session.bindings import Talker, digest
from tests.support.session.session_client import MASTER, Client

pytestmark = pytest.mark.req("ATT-3")

OURS, THEIRS = "key_of_our_tenant", "key_of_their_tenant"
ANSWER = "The contract ends in March of next year."


@pytest.fixture
async def client(redis_url, tmp_path):
    settings = Settings(redis_url=redis_url, state_dir=tmp_path, master_key=MASTER.hex(), bindings_per_caller=16)
    service = await open_service(settings)
    yield Client(SessionServiceStub(LocalChannel(SessionService=service.servicer)))
    await service.close()


async def test_a37_one_tenants_flood_forgets_nothing_of_another(client):
    """An index has one owner: a caller that fills its own loses its own."""
    ours, theirs = Talker(client, OURS), Talker(client, THEIRS)
    kept = await ours.settle(await ours.begin(hint="kept"), ANSWER)
    for n in range(20):
        await theirs.settle(await theirs.begin(), f"Answer number {n} of a flood.", cookie=str(n))

    assert (await ours.open(ANSWER, hint="kept")).session_id == kept.session_id
    assert (await theirs.refused("Answer number 0 of a flood.")).reason == "SESSION_NOT_BOUND"


async def test_a37_an_entry_copied_into_another_tenants_index_binds_nothing(client, valkey):
    """Write access to the store is not enough: the session itself says whose it is."""
    ours, theirs = Talker(client, OURS), Talker(client, THEIRS)
    window = await ours.settle(await ours.begin(hint="h"), ANSWER)
    await theirs.settle(await theirs.begin(hint="x"), "Another answer altogether.")
    with valkey.client() as redis:
        entries = redis.hgetall(generations_of(OURS)[0])
        for value in entries.values():
            for kind, said in (("hint", "h"), ("cookie", "h"), ("turn", ANSWER)):
                redis.hset(generations_of(THEIRS)[0], bytes.fromhex(digest(THEIRS, kind, said)), value)

    for history, given in (((), {"hint": "h"}), ((), {"cookie": "h"}), ((ANSWER,), {})):
        refused = await theirs.refused(*history, **given)
        assert refused.reason == "SESSION_NOT_BOUND"
        assert window.session_id not in str(refused.metadata)


async def test_a37_the_index_holds_neither_keys_nor_names_nor_answers(client, valkey):
    """Only digests and ids, under keys that do not show whose they are."""
    ours = Talker(client, OURS)
    await ours.settle(await ours.begin(hint="a-telling-name"), ANSWER, cookie="a-telling-cookie")
    with valkey.client() as redis:
        keys = [key for key in redis.keys() if b"bind:" in key]
        stored = b"".join(keys) + b"".join(each for key in keys for pair in redis.hgetall(key).items() for each in pair)

    assert keys
    assert not [text for text in (OURS, "telling", "contract", "March") if text.encode() in stored]
