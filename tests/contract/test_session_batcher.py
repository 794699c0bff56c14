"""The connection to Redis or Valkey, against a real server and against servers that misbehave."""

from __future__ import annotations

import asyncio
import gc

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.session.store.batcher import Batcher, LuaScript
from interlock.session.store.connection import parse
from tests.support.servers.tcp import Proxy, listening
from tests.support.valkey import Valkey


@pytest.fixture
async def batcher(redis_url):
    made = Batcher(parse(redis_url))
    yield made
    await made.close()


@pytest.fixture(scope="module")
def own_valkey(tmp_path_factory):
    """A server of this module's own, for settings that no other test may see."""
    with Valkey(tmp_path_factory.mktemp("own"), "--unixsocket", "own.sock") as server:
        yield server


@pytest.fixture
def admin(own_valkey):
    with own_valkey.client() as client:
        yield client


async def refused(call) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


def error_of(found: Refused) -> str:
    assert (found.kind, found.reason) == (Kind.UNAVAILABLE, "SESSION_STORE_UNAVAILABLE")
    assert found.retry_after_ms > 0
    return found.metadata["error"]


async def talk(batcher: Batcher, text: str) -> str:
    return (await batcher.command("ECHO", text)).decode()


# Pipelining


async def test_calls_of_one_tick_go_out_together():
    """A server that answers nobody before it has heard all ten callers answers all ten."""
    heard: list[int] = []

    async def answer_after_ten(reader, writer):
        text = b""
        while text.count(b"ECHO") < 10:
            text += await reader.read(65536)
        heard.append(text.count(b"ECHO"))
        writer.write(b"".join(b":%d\r\n" % n for n in range(10)))
        await writer.drain()
        await reader.read()

    async with listening(answer_after_ten) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"))
        answers = await asyncio.gather(*(batcher.command("ECHO", str(n)) for n in range(10)))
        await batcher.close()

    assert (heard, answers) == ([10], list(range(10)))


async def test_a_thousand_callers_share_one_connection_and_get_their_own_answers(valkey, redis_url):
    """Replies come back in order; nobody gets another's."""
    proxy = Proxy(valkey.port)
    async with listening(proxy.handle) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"))
        answers = await asyncio.gather(*(talk(batcher, f"caller {n}") for n in range(1000)))
        await batcher.close()

    assert answers == [f"caller {n}" for n in range(1000)]
    assert proxy.connections == 1


async def test_a_caller_who_leaves_disturbs_nobody(batcher):
    """Every second call is cancelled in flight; the others still get their own answers."""
    await talk(batcher, "connected")
    calls = [asyncio.create_task(talk(batcher, str(n))) for n in range(200)]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert answers[1::2] == [str(n) for n in range(1, 200, 2)]
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[::2])
    assert await talk(batcher, "after") == "after"


async def test_a_caller_who_leaves_while_the_connection_is_made_disturbs_nobody(batcher):
    """The first caller starts the connection; the second one gets it although the first has gone."""
    first = asyncio.create_task(talk(batcher, "first"))
    second = asyncio.create_task(talk(batcher, "second"))
    await asyncio.sleep(0)
    first.cancel()

    assert await second == "second"
    assert first.cancelled() or first.cancelling()


async def test_more_callers_than_the_queue_holds_are_turned_away():
    """Overload is a refusal at once, not a queue without end."""

    async def silent(reader, _writer):
        await reader.read()

    async with listening(silent) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"), timeout_s=0.5, capacity=3)
        calls = [asyncio.create_task(batcher.command("PING")) for _ in range(3)]
        await asyncio.sleep(0)
        no = await refused(batcher.command("PING"))
        await asyncio.gather(*calls, return_exceptions=True)

        assert (no.kind, no.reason) == (Kind.UNAVAILABLE, "SESSION_STORE_BUSY")
        assert error_of(await refused(batcher.command("PING"))) == "TIMEOUT"
        await batcher.close()


# Scripts


async def test_a_server_that_forgot_the_scripts_learns_them_again(valkey, batcher):
    """After SCRIPT FLUSH, as after a restart or a failover, the call goes through, and EVALSHA works from then on."""
    script = LuaScript.load("abandon")
    with valkey.client() as client:
        client.script_flush()
        reply = await batcher.run(script, ("il:{x}:s:x",), "crp_win_x", 60)

        assert reply[0] == b"SESSION_NOT_FOUND"
        assert client.script_exists(script.sha) == [True]
        assert client.evalsha(script.sha, 1, "il:{x}:s:x", "crp_win_x", 60)[0] == b"SESSION_NOT_FOUND"


async def test_a_server_that_refuses_script_load_still_runs_the_scripts(own_valkey, admin):
    """Only EVALSHA and EVAL are needed; SCRIPT is denied to this user, whose password is checked."""
    admin.script_flush()
    admin.acl_setuser(
        "narrow",
        enabled=True,
        passwords=["+s3cret pass"],
        commands=["+eval", "+evalsha", "+hmget", "-script"],
        keys=["*"],
    )
    batcher = Batcher(parse(f"redis://narrow:s3cret%20pass@127.0.0.1:{own_valkey.port}/0"))

    assert (await batcher.run(LuaScript.load("abandon"), ("il:{x}:s:x",), "w", 60))[0] == b"SESSION_NOT_FOUND"
    assert error_of(await refused(batcher.command("SCRIPT", "LOAD", "return 1"))) == "NOPERM"
    await batcher.close()


# Losing the connection


@pytest.mark.parametrize("answer", [b"", b"+OK\r\n", b"*9\r\n"])
async def test_a_connection_that_is_cut_fails_every_call_in_flight_and_the_next_one_connects_again(answer):
    """Cut after no answer, after the first one, and inside one: all others are told, none waits for ever."""
    seen: list[int] = []

    async def cut_once(reader, writer):
        seen.append(1)
        await reader.read(65536)
        if len(seen) > 1:
            writer.write(b"+PONG\r\n")
            await reader.read()
        writer.write(answer)
        await writer.drain()

    async with listening(cut_once) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"))
        answers = await asyncio.gather(*(batcher.command("PING") for _ in range(4)), return_exceptions=True)
        lost = [error_of(each) for each in answers if isinstance(each, Refused)]

        assert lost == ["CONNECTION_LOST"] * (3 if answer == b"+OK\r\n" else 4)
        assert await batcher.command("PING") == b"PONG"
        await batcher.close()


async def test_a_silent_server_is_given_up_and_what_it_says_later_belongs_to_nobody():
    """After the time limit the connection is closed, so that a late answer cannot be taken for another call's."""
    rounds: list[asyncio.StreamWriter] = []

    async def late(reader, writer):
        rounds.append(writer)
        await reader.read(65536)
        if len(rounds) == 2:
            rounds[0].write(b"+LATE\r\n")
            writer.write(b"+MINE\r\n")
        await reader.read()

    async with listening(late) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"), timeout_s=0.5)

        assert error_of(await refused(batcher.command("FIRST"))) == "TIMEOUT"
        assert await batcher.command("SECOND") == b"MINE"
        await batcher.close()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"+PONG\r\n+PONG\r\n"])
async def test_a_peer_that_speaks_something_else_is_hung_up_on(answer):
    """What is not RESP, or answers a question that nobody asked, ends the connection."""

    async def odd(reader, writer):
        await reader.read(65536)
        writer.write(answer)
        await reader.read()

    async with listening(odd) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"), timeout_s=1)
        answers = await asyncio.gather(batcher.command("PING"), return_exceptions=True)

        assert batcher._routes.entry.connection.closed
        assert answers[0] == b"PONG" or error_of(answers[0]) == "PROTOCOL"
        await batcher.close()


async def test_a_call_at_the_end_is_refused_and_nothing_is_left_behind(redis_url):
    """Closing tells whoever still waits."""
    batcher = Batcher(parse(redis_url))
    await batcher.command("PING")
    waiting = asyncio.create_task(batcher.command("BLPOP", "never", 0))
    await asyncio.sleep(0.01)
    await batcher.close()

    assert error_of(await refused(waiting)) == "CLOSED"
    gc.collect()


@pytest.mark.parametrize("word", ["READONLY", "OOM", "LOADING", "MISCONF", "CLUSTERDOWN"])
async def test_an_error_of_the_server_is_named_by_its_first_word(word):
    """A replica, a full memory, a loading or a failing server: refused, with the word that an operator looks up."""
    connections: list[int] = []

    async def failing(reader, writer):
        connections.append(1)
        while await reader.read(65536):
            writer.write(f"-{word} some text with user_script:1 in it\r\n".encode())

    async with listening(failing) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"))
        for _ in range(2):
            assert error_of(await refused(batcher.command("EVALSHA"))) == word
        await batcher.close()

    # A server that is no primary any more is not asked again on the same line.
    assert len(connections) == (2 if word == "READONLY" else 1)
