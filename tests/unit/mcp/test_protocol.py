"""What the proxy reads in a message is what every other reader of it reads (KRN-10)."""

from __future__ import annotations

import json

import pytest

from interlock.domain.errors import Refused
from interlock.mcp import protocol
from interlock.mcp.mapping import read
from interlock.mcp.pins import Pins
from interlock.mcp.planning import planned
from interlock.mcp.screen import Screen

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


@pytest.mark.parametrize("method", ["tools/Call", "TOOLS/CALL", " tools/call", "tools/call\n", "tools/List"])
def test_a_method_that_others_take_for_a_call_or_a_listing_is_refused(method):
    """A server that goes by it in other letters would be called without a permit, or list tools that nobody pinned."""
    assert reason({**CALL, "method": method}) == "MCP_MESSAGE_INVALID"


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


@pytest.mark.parametrize("value", ["1e999", "[" * 200 + "]" * 200, "[" * 970 + "]" * 970])
def test_what_could_not_be_written_again_is_refused(value):
    """A number above what readers hold would be written as Infinity, and a message too deep for the writer as nothing at all."""
    text = json.dumps(CALL).replace('"amount": 1', f'"amount": {value}')
    with pytest.raises(Refused) as refused:
        protocol.parsed(text, most=10_000)
    assert refused.value.reason == "MCP_MESSAGE_INVALID"


def test_a_message_may_be_as_deep_as_data_is():
    """A result of 100 levels passes, and what is flat may be as wide as it likes."""
    deep = json.dumps({**CALL, "params": [json.loads("[" * 100 + "]" * 100), [[{}]] * 2_000]})
    assert json.loads(protocol.written(protocol.parsed(deep, most=100_000))) == json.loads(deep)


def test_a_name_that_is_no_text_is_refused():
    """Half of a pair of surrogates cannot be written as UTF-8, so that it is nobody's name."""
    assert reason({**CALL, "params": {"name": "pay\ud800"}}) == "MCP_CALL_INVALID"
    with pytest.raises(Refused) as refused:
        planned(
            read("tools: [{tool: pay, effects: [{variable: to, mode: set, argument: to}]}]"), "pay", {"to": "\ud800"}
        )
    assert refused.value.reason == "MCP_ARGUMENT_REFUSED"


@pytest.mark.parametrize(
    "result", [{"tools": [], "Tools": [{"name": "pay"}]}, {"tools": [{"name": "a", "Name": "pay"}]}]
)
def test_a_listing_that_others_read_otherwise_shows_no_tool(tmp_path, result):
    """A second list or a second name in other letters, which readers in Go take for the known ones: what is pinned is what is read."""
    screen = Screen(None, read("tools: []"), Pins(tmp_path / "pins.json"))
    told = screen.listed({"jsonrpc": "2.0", "id": 1, "result": result})
    assert "pay" not in json.dumps(told)


def test_no_server_can_make_pins_that_are_not_read_again(tmp_path):
    """Names too long to be called are shown and kept nowhere; as many of the longest as are kept fit into the file."""
    screen = Screen(None, read("tools: []"), Pins(tmp_path / "pins.json"))
    long = screen.listed({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "x" * 5_000_000}, {"name": "pay"}]}})
    assert long["result"]["tools"] == [{"name": "pay"}]
    for page in range(5):
        tools = [{"name": "\U0001f600" * 195 + f"{page}{number:04}"} for number in range(1_000)]
        screen.listed({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}})
    Pins(tmp_path / "pins.json").check("pay")
