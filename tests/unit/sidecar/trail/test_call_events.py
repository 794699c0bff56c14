"""Calls on record: each has an event, in whichever form a request declares it and an answer makes it (F-23)."""

from __future__ import annotations

import json

import pytest

from interlock.sidecar.openai import completion
from interlock.sidecar.trail import trace_events
from tests.support.servers.provider import completion as provided
from tests.support.servers.provider import message, tool_call

FUNCTION = {"name": "look_up", "parameters": {"type": "object"}}
FORMS = {
    "tools": {"tools": [{"type": "function", "function": FUNCTION}]},
    "functions": {"functions": [FUNCTION]},
}


def told(answered: dict, body: dict) -> list[dict]:
    answer = completion.read(json.dumps(provided(answered)).encode(), completion.AnswerAsked("m"), max_depth=32)
    return [json.loads(event.data_json) for event in trace_events.tool_calls(answer, {"messages": [], **body})]


@pytest.mark.finding("F-23")
@pytest.mark.parametrize("form", FORMS)
def test_a_call_of_an_older_model_is_on_record(form):
    """By its name where the request declares it, in either way, and else by the hash of the name alone."""
    declared = told(message(None, function_call={"name": "look_up", "arguments": ""}), FORMS[form])
    unknown = told(message(None, function_call={"name": "wire_it", "arguments": ""}), FORMS[form])

    assert [(one["tool_name"], "call_hash" in one) for one in declared] == [("look_up", False)]
    assert [one["tool_name"] for one in unknown] == ["undeclared"]
    assert "wire_it" not in json.dumps(unknown)


@pytest.mark.finding("F-23")
def test_every_call_side_by_side_is_on_record():
    """Calls of one answer have an event each, those without arguments too."""
    calls = [tool_call("look_up", "", "c1"), tool_call("look_up", "{}", "c2"), tool_call("other", "{}", "c3")]
    found = told(message(None, tool_calls=calls), FORMS["functions"])

    assert [one["tool_name"] for one in found] == ["look_up", "look_up", "undeclared"]
    assert len({one["call_hash"] for one in found}) == 3
