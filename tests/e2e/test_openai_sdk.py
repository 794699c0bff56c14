"""The real ``openai`` client in front of the real mesh: one environment variable and nothing else (SVC-2)."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.support.servers.provider import Provider, RunningProvider, message, tool_call
from tests.support.servers.provider import completion as provided
from tests.support.sidecar.mesh import Front, start_front
from tests.support.sidecar.sidecar import token_of

pytestmark = [pytest.mark.models, pytest.mark.timeout(240), pytest.mark.req("SVC-2")]

QUESTION = [{"role": "system", "content": "The sky is blue."}, {"role": "user", "content": "What colour is the sky?"}]
ANSWER = "The sky is blue."


@pytest.fixture(scope="module")
def running_provider():
    with RunningProvider(Provider()) as running:
        yield running


@pytest.fixture
def provider(running_provider) -> Provider:
    running_provider.provider.reset()
    running_provider.provider.answers(ANSWER)
    return running_provider.provider


@pytest.fixture(scope="module")
def front(tmp_path_factory, running_provider) -> Iterator[Front]:
    settings = {"upstream_base_url": running_provider.base_url, "remediation": "none"}  # the calls are counted
    started = start_front("local", tmp_path_factory.mktemp("openai"), settings)
    with started.processes:
        yield started


@pytest.fixture
def client(front, provider, monkeypatch) -> Iterator[openai.OpenAI]:
    """A client that knows the mesh by OPENAI_BASE_URL alone."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{front.http}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-client")
    with openai.OpenAI() as made:
        yield made


def test_a_call_and_its_headers(client, provider):
    """The answer is the provider's, the key passes through, and the headers are there for who reads them."""
    raw = client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)

    assert raw.parse().choices[0].message.content == ANSWER
    assert raw.headers["crp-safety-hallucination-risk"] == "LOW"
    assert provider.received[0].header("authorization") == "Bearer sk-client"


def test_a_session_by_extra_headers(client):
    """The token of one response continues the session in the next call."""
    first = client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)
    token = token_of(first)
    second = client.chat.completions.with_raw_response.create(
        model="m", messages=QUESTION, extra_headers={"CRP-Session-Token": token}
    )

    assert second.headers["crp-context-window"] == "2/200"
    assert second.headers["crp-context-session-id"] == first.headers["crp-context-session-id"]


def test_facts_by_extra_body(client, provider):
    """Facts and query travel in extra_body and stay with us."""
    facts = [{"id": "f", "content": "The sky over Mars is butterscotch.", "importance": 0.9}]
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=QUESTION, extra_body={"interlock": {"facts": facts, "query": "Mars?"}}
    )

    assert raw.headers["crp-context-facts-used"] == "1/1"
    assert "interlock" not in provider.received[0].body


def test_a_stream(client):
    """Chunks, finish reason and usage are what the client makes them of any provider."""
    stream = client.chat.completions.create(
        model="m", messages=QUESTION, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)

    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == ANSWER
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 15


def test_the_streaming_helper(client, provider):
    """The client's own accumulator puts the stream together again, tool calls too."""
    provider.completes(provided(message("Let me see.", tool_calls=[tool_call("look", '{"at": "sky"}')])))
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
    with client.chat.completions.stream(model="m", messages=QUESTION, tools=tools) as stream:
        final = stream.get_final_completion()

    assert final.choices[0].message.content == "Let me see."
    assert final.choices[0].message.tool_calls[0].function.arguments == '{"at": "sky"}'


async def test_the_asynchronous_client(front, provider):
    """The other half of the library, streaming and not."""
    async with openai.AsyncOpenAI(base_url=f"{front.http}/v1", api_key="sk-client") as client:
        whole = await client.chat.completions.create(model="m", messages=QUESTION)
        stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]

    assert whole.choices[0].message.content == "".join(pieces) == ANSWER


def test_a_conversation_with_tools(client, provider):
    """A message object of the client goes back as it came, with the tool's result."""
    call = tool_call("look", '{"at": "sky"}')
    provider.completes(provided(message(None, tool_calls=[call])))
    first = client.chat.completions.create(model="m", messages=QUESTION)
    provider.answers(ANSWER)
    (made,) = first.choices[0].message.tool_calls
    result = {"role": "tool", "tool_call_id": made.id, "content": "The sky is blue."}
    second = client.chat.completions.create(model="m", messages=[*QUESTION, first.choices[0].message, result])

    assert second.choices[0].message.content == ANSWER
    assert provider.received[-1].body["messages"][2]["tool_calls"] == [{**call, "id": made.id}]
    assert provider.received[-1].body["messages"][3] == result


def test_models(client):
    """The list of models is there for clients that ask for it first."""
    assert [model.id for model in client.models.list()] == ["test-model"]


def test_a_halt_is_a_typed_error(client, provider):
    """451 is an APIStatusError with our body; the client does not try it again."""
    provider.answers("The sky was painted green by Otto Krause in 1953.")
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(
            model="m", messages=QUESTION, extra_headers={"CRP-Safety-Policy": "block-ungrounded; block-fabrication"}
        )

    assert caught.value.status_code == 451
    assert caught.value.response.json()["crp_halt_reason"]
    assert len(provider.received) == 1


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize(
    ("headers", "arguments", "error", "code"),
    [
        ({"CRP-Safety-Policy": "halt-on NEVER"}, {}, openai.BadRequestError, None),
        ({}, {"temperature": 3}, openai.BadRequestError, "invalid_parameter"),
        ({}, {"extra_body": {"made_up": 1}}, openai.BadRequestError, "unknown_parameter"),
        ({"CRP-Session-Token": "eyJ2Ijoi.AAAA"}, {}, openai.AuthenticationError, None),
    ],
)
def test_refusals_are_the_clients_typed_errors(client, provider, headers, arguments, error, code):
    """400 and 401 become BadRequestError and AuthenticationError, with our code and without a model call."""
    with pytest.raises(error) as caught:
        client.chat.completions.create(model="m", messages=QUESTION, extra_headers=headers, **arguments)

    assert caught.value.response.json()["reason"]
    assert code is None or caught.value.code == code
    assert provider.received == []


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize(
    ("status", "error", "tries"),
    [
        (404, openai.NotFoundError, 1),
        (422, openai.UnprocessableEntityError, 1),
        (429, openai.RateLimitError, 2),
        (500, openai.InternalServerError, 2),
    ],
)
def test_provider_errors_stay_what_they_are(front, provider, status, error, tries):
    """What the provider says of a request reaches the client in its own type, with the retries that it would make."""
    provider.fails(status, headers={"retry-after": "0"})
    with (
        openai.OpenAI(base_url=f"{front.http}/v1", api_key="k", max_retries=1) as client,
        pytest.raises(error),
    ):
        client.chat.completions.create(model="m", messages=QUESTION)

    assert len(provider.received) == tries


def test_a_replayed_token_is_a_conflict_that_is_not_tried_again(client, provider):
    """409 is a ConflictError at once: x-should-retry keeps the client from asking three times."""
    first = client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)
    headers = {"CRP-Session-Token": token_of(first)}
    client.chat.completions.create(model="m", messages=QUESTION, extra_headers=headers)
    with pytest.raises(openai.ConflictError) as caught:
        client.chat.completions.create(model="m", messages=QUESTION, extra_headers=headers)

    assert caught.value.response.headers["x-should-retry"] == "false"
    assert len(provider.received) == 2


def test_an_endpoint_that_is_not_there_says_so(client, provider):
    """Speech is answered with 501 and what there is instead (kgateway#11340)."""
    with pytest.raises(openai.APIStatusError, match="Supported: POST /v1/chat/completions") as caught:
        client.audio.speech.create(model="m", voice="alloy", input="x")

    assert caught.value.status_code == 501
    assert provider.received == []
