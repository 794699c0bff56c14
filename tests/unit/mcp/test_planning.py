"""Calls as actions: costs, effects and conditions from a mapping, and what is refused before the kernel is asked (KRN-10)."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Refused
from interlock.mcp.mapping import read
from interlock.mcp.planning import action_id, planned

MAPPING = """
kernel: team
tools:
  - {tool: pay, costs: {usd: {argument: amount}}, effects: [{variable: paid, mode: increment, argument: amount}]}
  - {tool: order, action: buy, costs: {usd: {argument: price, most: 50}, mails: 1}}
  - {tool: search, costs: {usd: {result: cost, most: 2}}, on_error: done, timeout_s: 3}
  - {tool: send, preconditions: ["not {to} in blocked", "count < {most}"], arguments: {to: {one_of: [ann, bob]}, most: {min: 1, max: 5}}}
  - {tool: "read_*"}
  - {tool: read_secret, costs: {usd: 9}}
"""


def plan(tool: str, mapping: str = MAPPING, **arguments):
    return planned(read(mapping), tool, arguments)


def refusal(tool: str, mapping: str = MAPPING, **arguments) -> tuple[str, str]:
    with pytest.raises(Refused) as refused:
        plan(tool, mapping, **arguments)
    return refused.value.reason, refused.value.message


@pytest.mark.req("KRN-10")
def test_another_amount_is_another_action():
    """What is registered never changes: an amount of the call is part of the action's id, and the same one again is the same action."""
    one, same, other = plan("pay", amount=1.5), plan("pay", amount=1.5), plan("pay", amount=2)
    assert one.action == same.action != other.action
    assert one.action.startswith("pay:")
    assert one.body["costs"] == [{"resource": "usd", "micros": "1500000"}]
    assert one.body["effects"][0]["value"] == {"number_micros": "1500000"}


@pytest.mark.req("KRN-10")
def test_what_is_reserved_is_settled_with_what_it_cost():
    """With `most` the id stays one, and windows of invariants count it; the rest comes back when the call is settled."""
    order = plan("order", price=20)
    assert order.action == "buy"
    assert {"resource": "usd", "micros": "50000000"} in order.body["costs"]
    assert order.settled(None) == [{"resource": "usd", "micros": "20000000"}]
    assert refusal("order", price=51) == ("MCP_ARGUMENT_REFUSED", "argument price is above 50")
    search = plan("search")
    assert search.settled({"cost": 0.25}) == [{"resource": "usd", "micros": "250000"}]
    for content in (None, [], {"cost": "1"}, {"cost": True}, {"cost": float("nan")}, {"cost": float("inf")}):
        assert search.settled(content) == [], content
    assert (search.timeout_s, search.is_error_done) == (3, True)


@pytest.mark.req("KRN-10")
def test_the_rule_of_a_name_goes_before_a_pattern():
    """And a tool of a pattern without costs is an action that the kernel has, or a free one."""
    assert plan("read_note").body is None
    assert plan("read_secret").body["costs"] == [{"resource": "usd", "micros": "9000000"}]
    assert refusal("write_note")[0] == "MCP_TOOL_UNMAPPED"
    recorded = plan("write note/ß", "unmapped: record")
    assert recorded.action == action_id("unmapped:write note/ß")
    assert recorded.action.isascii()


@pytest.mark.req("KRN-10", "KRN-13")
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e300, 0.1234567, "5", True, None, [], {}])
def test_an_amount_that_is_none_is_refused(value):
    """Negative, not finite, too fine, or no number."""
    assert refusal("pay", amount=value)[0] == "MCP_ARGUMENT_REFUSED"


@pytest.mark.req("KRN-10", "KRN-13")
def test_a_text_cannot_say_more_in_a_condition_than_itself():
    """A literal of the language, or refused: no argument ends its quotation."""
    given = plan("send", to="ann", most=2).body["preconditions"]
    assert given == ['not "ann" in blocked', "count < 2"]
    loose = MAPPING.replace("to: {one_of: [ann, bob]}, ", "")
    for text in ('ann" in blocked or "a" == "a', "a\\", "a\nb", "a\u2028b"):
        assert refusal("send", loose, to=text, most=1)[0] == "MCP_ARGUMENT_REFUSED", text
    assert refusal("send", to="eve", most=1) == ("MCP_ARGUMENT_REFUSED", "argument to must be one of ann, bob")
    assert refusal("send", to="ann", most=True)[0] == "MCP_ARGUMENT_REFUSED"
    assert refusal("send", to="ann", most=9)[0] == "MCP_ARGUMENT_REFUSED"


@pytest.mark.req("KRN-10", "KRN-13")
@pytest.mark.parametrize(
    "text",
    [
        "tools: {pay: 1}", "tools: [{}]", "tools: [{tool: pay, cost: {usd: 1}}]", "tools: [{tool: pay, costs: {usd: -1}}]",
        "tools: [{tool: pay, costs: {usd: .inf}}]", "tools: [{tool: pay, costs: {usd: {}}}]", "unmapped: pass", "timeout_s: 0",
        "tools: [{tool: pay, costs: {usd: {result: cost}}}]", "tools: [{tool: pay, effects: [{variable: a, mode: set}]}]",
        "tools: [{tool: pay, effects: [{variable: a, mode: set, value: .nan}]}]", "- 1", "a: [", "kernel: a b", "tools: [{tool: pay, action: 'a b'}]",
    ],
)  # fmt: skip
def test_a_mapping_that_is_wrong_is_refused(text):
    """With one reason, and the place."""
    with pytest.raises(Refused) as refused:
        read(text)
    assert refused.value.reason == "MCP_MAPPING_INVALID"


@pytest.mark.req("KRN-10")
def test_tools_of_one_action_are_the_same_action():
    """Whichever is called first: the kernel refuses an action that it knows with another content."""
    mapping = "tools: [{tool: 'a*', action: any, costs: {usd: 10}}, {tool: b, action: any, costs: {usd: 10}}]"
    told = [plan(tool, mapping) for tool in ("a1", "a2", "b")]
    assert [one.action for one in told] == ["any"] * 3
    assert told[0].body == told[1].body == told[2].body
