"""A provider's stream, put together: the same answer however its bytes come, and the answer that it would have been at once."""

from __future__ import annotations

import pytest

from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider.upstream import Upstream
from tests.support.servers.scripts import SCRIPTS, responses

pytestmark = pytest.mark.req("API-4")

BODY = {"model": "m", "messages": [{"role": "user", "content": "What?"}]}


def reader_of(api: str):
    return Upstream(Settings(upstream_base_url="http://127.0.0.1:1/v1", upstream_api=api)).reader(BODY)


def read(api: str, *pieces: bytes) -> Completion:
    reader = reader_of(api)
    for piece in pieces:
        reader.feed(piece)
    reader.finished()
    return reader.completion()


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
@pytest.mark.parametrize("api", SCRIPTS)
def test_the_same_answer_however_its_bytes_come(api, size):
    """Reasoning, text in pieces, a call and the counts."""
    data = b"".join(SCRIPTS[api]("Schön.", " Ünd.", reasoning="Hm. So.", call='{"a":"ü"}').whole)
    answer = read(api, *(data[at : at + size] for at in range(0, len(data), size)))
    (choice,) = answer.choices

    assert choice["message"]["content"] == "Schön. Ünd."
    assert choice["message"]["reasoning_content"] == "Hm. So."
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":"ü"}'}
    assert choice["finish_reason"] == "tool_calls"
    assert answer.usage["total_tokens"] == 15


@pytest.mark.parametrize("api", SCRIPTS)
def test_what_is_said_so_far_begins_the_whole(api):
    """At each event, text and reasoning are a beginning of what they are at the end; with a call there is nothing to release."""
    script, reader = SCRIPTS[api]("One.", " Two.", " Three.", reasoning="Hm. So."), reader_of(api)
    found = []
    for piece in [*script.begins, *script.says]:
        reader.feed(piece)
        found.append(reader.said or AnswerPart())

    assert all("One. Two. Three.".startswith(one.text) and "Hm. So.".startswith(one.reasoning) for one in found)
    assert found[-1] == AnswerPart("Hm. So.", "One. Two. Three.")
    reader.feed(b"".join(SCRIPTS[api]("One.", " Two.", " Three.", reasoning="Hm. So.", call="{}").ends[:3]))
    assert reader.said is None


def test_a_last_event_that_repeats_nothing_is_read_by_its_items():
    """Some providers leave the output of the last event empty."""
    given = [responses("One.", " Two.", reasoning="Hm.", call="{}", repeats=repeats).whole for repeats in (True, False)]
    first, second = (read("responses", *steps) for steps in given)

    assert first.body == second.body


@pytest.mark.parametrize("api", SCRIPTS)
def test_what_was_broken_off_is_read_as_far_as_it_came(api):
    """In the middle of the arguments of a call: the text is there, the call with what it had, and the end is its length."""
    script, reader = SCRIPTS[api]("One.", call='{"a": "bcd"}'), reader_of(api)
    steps = [*script.begins, *script.says, *script.ends]
    upto = next(at for at, step in enumerate(steps) if b'{"a"' in step.replace(b"\\", b"")) + 1
    for step in steps[:upto]:
        reader.feed(step)
    (choice,) = reader.completion(broken_off=True).choices

    assert choice["message"]["content"] == "One."
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "f"
    assert choice["finish_reason"] == "length"
