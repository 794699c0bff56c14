"""Plain clients over real HTTP: each conversation ends in the right session, whatever its client keeps and resends."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import AsyncExitStack

import anthropic
import openai
import pytest
from starlette.responses import JSONResponse

from tests.support.paths import ROOT
from tests.support.servers.provider import completion, message
from tests.support.sidecar import plain as clients
from tests.support.sidecar.plain import Chat, StrippingProxy, asked
from tests.support.sidecar.sidecar import another_sidecar, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("ATT-1")
plain = clients.plain

USERS = 100
NODE_PACKAGE = ROOT / "tests" / "agents" / "node" / "node_modules"
NODE = """
import OpenAI from 'openai';
const client = new OpenAI({ maxRetries: 0 });
const messages = [];
for (const text of ['What is the Elbe?', 'And the Oder?', 'Which one is longer?']) {
  messages.push({ role: 'user', content: text });
  const { data, response } = await client.chat.completions.create({ model: 'm', messages }).withResponse();
  messages.push(data.choices[0].message);
  console.log(JSON.stringify([response.headers.get('crp-session-binding'), response.headers.get('crp-context-session-id')]));
}
"""


@pytest.fixture(autouse=True)
def answering(provider):
    """A provider that answers each question with a sentence of its own."""

    def reply(_request):
        received = provider.received[-1].body["messages"]
        text = f"This is what is known about it: {received[-1]['content']} It is answer number {len(received)}."
        return JSONResponse(completion(message(text)))

    provider._reply = reply
    return provider


async def three(chat: Chat, subject: str = "the Elbe"):
    """Three turns of a conversation."""
    return [await chat.say(f"{start} {subject}?") for start in ("What is", "How long is", "Who has described")]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_with_cookies_stays_in_its_session(sidecar, stream, plain):
    """The package's client keeps the cookie by itself; it is set once, streamed answers too."""
    turns = await three(Chat(plain(sidecar.http), stream=stream))

    assert [turn.binding for turn in turns] == ["caller", "cookie", "cookie"]
    assert [(turn.window, turn.lineage) for turn in turns] == [(1, 1), (2, 2), (3, 3)]
    assert len({turn.session for turn in turns}) == 1
    assert ["set-cookie" in turn.headers for turn in turns] == [True, False, False]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(turns[0].headers["set-cookie"].split("; "))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_without_cookies_is_known_by_its_conversation(sidecar, stream, plain):
    """It resends what it was answered."""
    turns = await three(Chat(plain(sidecar.http, cookies=False), stream=stream))

    assert [turn.binding for turn in turns] == ["caller", "conversation", "conversation"]
    assert [turn.lineage for turn in turns] == [1, 2, 3]
    assert len({turn.session for turn in turns}) == 1


async def test_a_proxy_that_strips_cookies_changes_nothing(sidecar, plain):
    """The conversation itself is left, and it is enough."""
    with StrippingProxy(sidecar.http) as proxy:
        turns = await three(Chat(plain(proxy.http)))

    assert [turn.binding for turn in turns] == ["caller", "conversation", "conversation"]
    assert len({turn.session for turn in turns}) == 1


async def test_an_edited_history_goes_on_where_it_was_edited(sidecar, plain):
    """The user rewrites the second question: the new answer is a branch beside the old one, in the same session."""
    chat = Chat(plain(sidecar.http, cookies=False))
    turns = await three(chat)
    edited = Chat(chat.client, chat.messages[:2])
    again = await edited.say("How deep is the Elbe?")
    after = await edited.say("And how wide?")

    assert (again.binding, again.session, again.lineage) == ("conversation", turns[0].session, 2)
    assert (after.session, after.lineage) == (turns[0].session, 3)


async def test_two_branches_of_one_conversation_share_its_session(sidecar, plain):
    """The same history is continued twice with other questions, side by side."""
    chat = Chat(plain(sidecar.http, cookies=False))
    first = await chat.say("What is the Elbe?")
    branches = [Chat(chat.client, list(chat.messages)) for _ in range(3)]
    turns = [await branch.say(f"Branch {number}, please go on.") for number, branch in enumerate(branches)]
    deeper = [await branch.say("And then, what follows from that?") for branch in branches]

    assert {turn.session for turn in (*turns, *deeper)} == {first.session}
    assert [turn.lineage for turn in (*turns, *deeper)] == [2, 2, 2, 3, 3, 3]


async def test_a_sliding_window_is_found_by_what_it_kept(tmp_path, upstream, plain):
    """A client that sends the last two turns only, behind a system message that changes each time."""
    async with running_sidecar(tmp_path, upstream=upstream, max_windows=50, max_dag_nodes=50) as sidecar:
        chat, turns = Chat(plain(sidecar.http, cookies=False)), []
        for number in range(8):
            kept = [{"role": "system", "content": f"Summary number {number}."}, *chat.messages[-4:]]
            chat.messages.append({"role": "user", "content": f"Question number {number}?"})
            turns.append(await asked(chat.client, [*kept, chat.messages[-1]]))
            chat.messages.append({"role": "assistant", "content": turns[-1].text})

    assert len({turn.session for turn in turns}) == 1
    assert [turn.lineage for turn in turns] == list(range(1, 9))


async def test_two_agents_behind_one_key_have_two_sessions(sidecar, plain):
    """Their calls are interleaved, and neither sees the other's windows."""
    one, other = (Chat(plain(sidecar.http, cookies=False)) for _ in range(2))
    turns = []
    for start in ("What is", "How long is", "Who has described"):
        turns.append((await one.say(f"{start} the Elbe?"), await other.say(f"{start} the Oder?")))

    assert len({first.session for first, _ in turns}) == len({second.session for _, second in turns}) == 1
    assert turns[0][0].session != turns[0][1].session
    assert [first.lineage for first, _ in turns] == [second.lineage for _, second in turns] == [1, 2, 3]


async def test_a_hundred_users_behind_one_key(sidecar, plain):
    """Nothing but what they say tells them apart: a hundred conversations, a hundred sessions."""
    made = [plain(sidecar.http, cookies=False) for _ in range(5)]
    chats = [Chat(made[number % 5]) for number in range(USERS)]
    first = [await chat.say(f"I am user number {number}. Who are you?") for number, chat in enumerate(chats)]
    second = [await chat.say("What did I just ask you?") for chat in chats]

    assert [turn.session for turn in first] == [turn.session for turn in second]
    assert len({turn.session for turn in first}) == USERS
    assert {turn.binding for turn in second} == {"conversation"}


async def test_users_of_one_shared_client(tmp_path, upstream, plain):
    """With cookies all of them are one program: one session and one budget, in which each conversation goes on where it was."""
    async with running_sidecar(tmp_path, upstream=upstream, max_windows=50) as sidecar:
        shared = plain(sidecar.http)
        chats = [Chat(shared) for _ in range(8)]
        first = [await chat.say(f"I am user number {number}. Who are you?") for number, chat in enumerate(chats)]
        second = [await chat.say("What did I just ask you?") for chat in chats]
        compared = [[one.window_id for one in asked.prior] for asked in sidecar.dpe.asked]

    assert {turn.session for turn in (*first, *second)} == {first[0].session}
    assert [turn.lineage for turn in second] == [number + 2 for number in range(8)]
    assert [len(windows) for windows in compared] == [0] * 8 + [1] * 8


async def test_four_sidecars_over_one_store(tmp_path, upstream, redis_url, plain):
    """Each turn goes to another replica; with and without cookies it is the same session."""
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url) as sidecar, AsyncExitStack() as ends:
        fronts = [sidecar.http, *[await ends.enter_async_context(another_sidecar(sidecar)) for _ in range(3)]]
        for cookies in (False, True):
            chat, jar, turns = Chat(plain(fronts[0])), {}, []
            for number, http in enumerate(fronts):
                chat.client = plain(http, f"sk-{cookies}", cookies=False)
                sent = {"cookie": "; ".join(f"{name}={value}" for name, value in jar.items())} if jar else {}
                turns.append(await chat.say(f"Question number {number}?", extra_headers=sent))
                if cookies and (given := turns[-1].headers.get("set-cookie")):
                    jar = dict([given.partition(";")[0].split("=", 1)])
            assert [turn.binding for turn in turns] == ["caller", *["cookie" if cookies else "conversation"] * 3]
            assert len({turn.session for turn in turns}) == 1
            assert [turn.lineage for turn in turns] == [1, 2, 3, 4]


async def test_two_turns_at_once_end_as_today(sidecar, provider, plain):
    """Two calls continue one conversation at the same time: one is answered, the other is told that a window is in flight."""
    chat = Chat(plain(sidecar.http, cookies=False))
    await chat.say("What is the Elbe?")
    body = {"model": "m", "messages": [*chat.messages, {"role": "user", "content": "And?"}]}
    key = {"authorization": "Bearer sk-one"}
    answers = await asyncio.gather(
        *(sidecar.client.post("/v1/chat/completions", json=body, headers=key) for _ in range(2))
    )

    assert sorted(answer.status_code for answer in answers) in ([200, 200], [200, 409])
    assert {answer.json()["reason"] for answer in answers if answer.status_code == 409} <= {"WINDOW_IN_FLIGHT"}


@pytest.mark.skipif(
    not shutil.which("node") or not (NODE_PACKAGE / "openai").is_dir(), reason="no node, or no openai package"
)
async def test_the_node_client_is_known_by_its_conversation(sidecar):
    """Node's openai keeps no cookies."""
    program = await asyncio.create_subprocess_exec(
        "node", "--input-type=module", "--eval", NODE, cwd=NODE_PACKAGE.parent, stdout=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "OPENAI_BASE_URL": f"{sidecar.http}/v1", "OPENAI_API_KEY": "sk-node"},
    )  # fmt: skip
    out, _ = await program.communicate()
    turns = [json.loads(line) for line in out.splitlines()]

    assert [binding for binding, _ in turns] == ["caller", "conversation", "conversation"]
    assert len({session for _, session in turns}) == 1


@pytest.mark.req("API-6")
async def test_what_stock_clients_send_and_nothing_follows_from_is_no_refusal(sidecar, provider):
    """The packages' newest parameters, typed, over three APIs: each call is answered, and the provider gets what it has a use for."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    some = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool]}}
    async with (
        openai.AsyncOpenAI(base_url=f"{sidecar.http}/v1", api_key="k", max_retries=0) as client,
        anthropic.AsyncAnthropic(base_url=sidecar.http, api_key="k", max_retries=0) as claude,
    ):
        said = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "What is the Elbe?", "name": "José"}], tools=[tool], tool_choice=some,
            prediction={"type": "content", "content": "x"}, prompt_cache_retention="24h", user="Jürgen", reasoning_effort="max",
        )  # fmt: skip
        told = await client.responses.create(
            model="m", input="What is the Oder?", prompt_cache_retention="24h", reasoning={"effort": "low", "summary": "detailed"},
            include=["web_search_call.action.sources"], tools=[],
        )  # fmt: skip
        read = await claude.messages.create(
            model="m", max_tokens=9, tools=[], system=[], messages=[{"role": "user", "content": "What is the Rhine?"}],
            metadata={"user_id": "Jürgen"}, output_config={"effort": "max"},
        )  # fmt: skip
    bodies = [one.body for one in provider.received]
    named = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
    }

    assert all(
        "answer number" in text for text in (said.choices[0].message.content, told.output_text, read.content[0].text)
    )
    assert (bodies[0]["user"], bodies[0]["tool_choice"], bodies[0]["prediction"]["content"]) == ("Jürgen", named, "x")
    assert [one.get("reasoning_effort") for one in bodies] == ["max", "low", "max"]
    assert not [one for one in bodies if "prompt_cache_retention" in one or one.get("tools") == []]
