"""The real ``anthropic`` client in front of the real mesh with its models: one environment variable and nothing else (API-2)."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import pytest

from tests.support.servers.provider import Provider, RunningProvider
from tests.support.servers.provider import anthropic as provided
from tests.support.sidecar.mesh import Front, start_front

pytestmark = [pytest.mark.models, pytest.mark.long, pytest.mark.timeout(240), pytest.mark.req("API-2")]

ASKED = {
    "model": "m",
    "max_tokens": 100,
    "system": "The sky is blue.",
    "messages": [{"role": "user", "content": "What colour is the sky?"}],
}
INVENTED = "The sky was painted green by Otto Krause in 1953."
STRICT = {"CRP-Safety-Policy": "block-ungrounded; block-fabrication"}


@pytest.fixture(scope="module")
def running_provider():
    with RunningProvider(Provider()) as running:
        yield running


@pytest.fixture(scope="module")
def front(tmp_path_factory, running_provider) -> Iterator[Front]:
    """A mesh that asks its provider by Messages."""
    settings = {"upstream_base_url": running_provider.base_url, "upstream_api": "messages", "remediation": "none"}
    started = start_front("local", tmp_path_factory.mktemp("anthropic"), settings)
    with started.processes:
        yield started


@pytest.fixture
def client(front, monkeypatch) -> Iterator[anthropic.Anthropic]:
    """A client that knows the mesh by ANTHROPIC_BASE_URL alone."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", front.http)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-client")
    with anthropic.Anthropic() as made:
        yield made


def says(running_provider, text: str) -> Provider:
    running_provider.provider.reset()
    running_provider.provider.completes(provided({"type": "text", "text": text}))
    return running_provider.provider


def test_a_grounded_answer_is_released(client, running_provider):
    """Judged by the models over the real provider's API: LOW, and the key is passed through."""
    provider = says(running_provider, "The sky is blue.")
    raw = client.messages.with_raw_response.create(**ASKED)
    with client.messages.stream(**ASKED) as stream:
        streamed = stream.get_final_text()

    assert raw.parse().content[0].text == streamed == "The sky is blue."
    assert raw.headers["crp-safety-hallucination-risk"] == "LOW"
    assert provider.received[0].header("x-api-key") == "sk-client"


@pytest.mark.parametrize("stream", [False, True])
def test_an_invented_answer_is_halted(client, running_provider, stream):
    """A typed error with the fields of a 451; no word of the answer left."""
    says(running_provider, INVENTED)
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(**ASKED, stream=stream, extra_headers=STRICT)

    assert caught.value.status_code == 451
    assert caught.value.response.json()["crp_halt_reason"]
    assert "Krause" not in caught.value.response.text


def test_thinking_that_is_invented_is_halted_too(client, running_provider):
    """An answer that is fine does not take its thinking with it."""
    says(running_provider, "The sky is blue.")
    thinking = {"type": "thinking", "thinking": INVENTED, "signature": "s"}
    running_provider.provider.completes(provided(thinking, {"type": "text", "text": "The sky is blue."}))
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(**ASKED, extra_headers=STRICT)

    assert caught.value.status_code == 451
