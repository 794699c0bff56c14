"""What the proxy reads in a message is what every other reader of it reads (KRN-10)."""

from __future__ import annotations

import json

import pytest

from interlock.domain.errors import Refused
from interlock.mcp import protocol
from interlock.mcp.mapping import read
from interlock.mcp.planning import planned

pytestmark = pytest.mark.req("KRN-10")

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pay", "arguments": {"amount": 1}}}


def reason(message: object) -> str:
    with pytest.raises(Refused) as refused:
        protocol.call_of(protocol.parsed(json.dumps(message), most=10_000))
    return refused.value.reason


@pytest.mark.parametrize(
    "more",
    [
        {"Method": "tools/call"},
        {"PARAMS": {"name": "pay"}},
        {"re\u017fult": {}},
        {"result": {}},
        {"error": {"code": 1, "message": ""}},
    ],
)
def test_a_message_that_others_read_otherwise_is_refused(more):
    """Keys in other letters, which readers in Go take for the known ones, and a request that is a response too."""
    assert reason({**CALL, "method": "ping", **more}) == "MCP_MESSAGE_INVALID"


@pytest.mark.parametrize("more", [{"Name": "transfer"}, {"Arguments": {"amount": 1000}}])
def test_a_call_that_others_read_otherwise_is_refused(more):
    """The name or the arguments a second time, in other letters."""
    assert reason({**CALL, "params": {**CALL["params"], **more}}) == "MCP_CALL_INVALID"


@pytest.mark.parametrize(
    "rule",
    ["arguments: {amount: {max: 5}}", "costs: {usd: {argument: amount}}", 'preconditions: ["{amount} < 5"]',
     "effects: [{variable: paid, mode: increment, argument: amount}]"],
)  # fmt: skip
def test_an_argument_that_decides_stands_once(rule):
    """In other letters it could be another amount to the server; an argument that nothing rests on may be written anyhow."""
    mapping = read(f"tools: [{{tool: pay, {rule}}}]")
    assert planned(mapping, "pay", {"amount": 1, "Note": "x", "note": "y"})
    with pytest.raises(Refused) as refused:
        planned(mapping, "pay", {"amount": 1, "Amount": 1000})
    assert refused.value.reason == "MCP_ARGUMENT_REFUSED"
