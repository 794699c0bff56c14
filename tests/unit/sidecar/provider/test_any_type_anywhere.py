"""Whatever kind of value stands wherever in a provider's answer, it is read, left out or refused by name (A-26).

A program that answers with text where a list belongs, or with a number for an object, is a provider like another: every place of the
largest answers and of their streams is given every kind of JSON value.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from interlock.domain.errors import Refused
from interlock.sidecar.openai.completion import AnswerAsked
from interlock.sidecar.provider import refusals
from interlock.sidecar.provider.provider_api import APIS
from tests.support.servers.provider import completion, message, tool_call
from tests.support.servers.scripts import SCRIPTS
from tests.support.texts import maximal

pytestmark = [pytest.mark.req("API-4"), pytest.mark.finding("F-24")]

KINDS: tuple[Any, ...] = (None, True, -1, 2.5, "", "a", [], ["a"], [{}], {}, {"a": "b"})
ASKED = AnswerAsked("m", 2, logprobs=True, media=True)
SPELLED = [{"token": "Ye", "logprob": -0.1, "bytes": [89, 101], "top_logprobs": [{"token": "b", "logprob": -2}]},
           {"token": "s", "logprob": -0.1}]  # fmt: skip
_RESPONSE = maximal.response(maximal.Words())
ANSWERS = {
    "chat": [
        {**completion(message("Yes", tool_calls=[tool_call("f", "{}")], reasoning_content="Hm.", refusal="No."))},
        {"choices": [{"message": {"content": [{"type": "text", "text": "Yes"}]}, "logprobs": {"content": SPELLED}}]},
        {"choices": [{"message": {"content": ""}, "logprobs": {"content": SPELLED, "refusal": SPELLED}}]},
        {"choices": [{"message": {"content": None, "function_call": {"name": "f", "arguments": "{}"}}}]},
        maximal.answer(maximal.Words()),
    ],
    "messages": [maximal.message(maximal.Words())],
    "responses": [{**_RESPONSE, "output": []}, *({"output": [item]} for item in _RESPONSE["output"])],
}  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value, the value itself first; of a long list, the first two."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for name, one in inside:
        yield from places(one, (*at, name))


def bent(value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The value with each place given each kind of value, with the place."""
    for at in places(value):
        for kind in KINDS:
            yield at, _with(value, at, kind)


def _with(value: Any, at: tuple[Any, ...], kind: Any) -> Any:
    if not at:
        return kind
    changed = copy.copy(value)
    changed[at[0]] = _with(value[at[0]], at[1:], kind)
    return changed


def faults(work: Any, cases: Iterator[tuple[tuple[Any, ...], Any]]) -> dict[str, str]:
    """What ended other than by a refusal, by its place."""
    found: dict[str, str] = {}
    for at, value in cases:
        try:
            work(value)
        except Refused as refused:
            assert refused.reason.isupper(), refused
        except Exception as error:
            found[f"{at} = {_at(value, at)!r}"] = repr(error)
    return found


def _at(value: Any, at: tuple[Any, ...]) -> Any:
    for step in at:
        value = value[step]
    return value


@pytest.mark.parametrize("api", ["chat", "messages", pytest.param("responses", marks=pytest.mark.long)])
def test_an_answer_may_hold_any_kind_anywhere(api):
    """It is read, or refused with the reason of an answer that is none."""
    for answer in ANSWERS[api]:
        assert (
            faults(lambda value: APIS[api]().read(json.dumps(value).encode(), ASKED, max_depth=64), bent(answer)) == {}
        )


@pytest.mark.parametrize("api", SCRIPTS)
def test_an_event_may_hold_any_kind_anywhere(api):
    """Each event of a stream in its place among the others: the stream goes on to an answer, or is refused."""
    script = SCRIPTS[api]("Yes.", " No.", reasoning="Hm.", call="{}")
    events = [
        json.loads(line[5:]) for piece in script.whole for line in piece.split(b"\n") if line.startswith(b"data: {")
    ]

    def streamed(number: int, value: Any) -> None:
        stream = APIS[api]().events(ASKED)
        for at, event in enumerate(events):
            changed = value if at == number else event
            if isinstance(changed, dict):
                stream.take(copy.deepcopy(changed))
                assert stream.said is None or isinstance(stream.said.text, str)
        APIS[api]().read(stream.whole(broken_off=True), ASKED, max_depth=64)

    found = {}
    for number, event in enumerate(events):
        found |= faults(lambda value, number=number: streamed(number, value), bent(event))
    assert found == {}


def test_an_error_may_hold_any_kind_anywhere():
    """It is read: what a provider says of its error is never a fault of ours."""
    error = {
        "error": {
            "message": "too long",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
            "param": "messages[0]",
        }
    }

    assert faults(lambda value: refusals.read(json.dumps(value).encode(), 400), bent(error)) == {}
