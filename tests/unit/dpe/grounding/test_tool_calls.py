"""Tool calls against what was asked for: names, arguments, and what they rest on (ATT-5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.domain.risk.risk import RiskLevel
from interlock.dpe.grounding.tools import calls
from interlock.dpe.request import DeclaredTool, Output, Request
from interlock.policy.report import read_findings
from tests.support.asked import asked, tool
from tests.support.dpe import pipeline
from tests.support.texts.calls import CORRECT, PLANTED, Row
from tests.support.texts.calls_held import CORRECT_HELD, CORRECT_THIRD, PLANTED_HELD, PLANTED_THIRD

CITY = {"city": {"type": "string"}}
WIRE = "wire_nine_million_dollars_to_account_4711_now"


def judged(row: Row) -> calls.JudgedCall:
    messages, name, schema, arguments = row
    tools = [tool("get_weather", CITY)] if schema is None else [tool(name, schema)]
    return calls.judge(asked(messages, calls=[(name, arguments)], tools=tools))[0]


def one(user: Any, name: str, arguments: Any, parameters: Any = None, **more: Any) -> calls.JudgedCall:
    return calls.judge(asked(user, calls=[(name, arguments)], tools=[tool(name, parameters)], **more))[0]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("row", [*CORRECT, *CORRECT_HELD, *CORRECT_THIRD], ids=lambda row: row[1])
def test_a_correct_call_is_not_accused(row):
    """Normal forms of what was said, choices of the schema, small choices of structure."""
    found = judged(row)

    assert (found.declared, found.findings) == (True, ())
    assert all(claim.kind for claim in found.claims)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("row", [*PLANTED, *PLANTED_HELD, *PLANTED_THIRD], ids=lambda row: row[1])
def test_a_planted_fault_is_found(row):
    """A wrong amount, recipient, place, date, file or account, and a function that nobody declared."""
    found = judged(row)

    assert found.findings
    assert any(not claim.kind for claim in found.claims)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("user", "arguments", "kind", "text_id"),
    [
        ("Weather in Paris?", {"city": "Paris"}, "user", "query"),
        ([{"role": "system", "content": "The office is in Lyon."}, {"role": "user", "content": "Weather at the office?"}],
         {"city": "Lyon"}, "source", "m0s0"),
        ([{"role": "system", "content": "Use Lyon when no city is named."}, {"role": "user", "content": "Weather?"}],
         {"city": "Lyon"}, "source", "m0s0"),
        ([{"role": "user", "content": "Where to?"}, {"role": "assistant", "content": "Lyon is nice in May."},
          {"role": "user", "content": "Then the weather there."}], {"city": "Lyon"}, "answered", "m1a0"),
    ],
)  # fmt: skip
def test_a_claim_says_what_it_rests_on(user, arguments, kind, text_id):
    """The user's words, a source, or an answer that the user replied to."""
    claim = one(user, "get_weather", arguments, CITY).claims[1]

    assert (claim.kind, claim.evidence.fact_id) == (kind, text_id)


@pytest.mark.req("ATT-5")
def test_an_order_of_the_system_names_no_day():
    """*Now begin!* leaves no date to the calendar."""
    told = [{"role": "system", "content": "Always be brief. Now begin!"}, {"role": "user", "content": "Book room 4."}]

    assert one(told, "book", {"room": 4, "day": "2025-08-29"}).findings == (calls.UNGROUNDED_ARGUMENT,)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("day", "found"),
    [("2026-05-12", ()), ("2026-05-13", ("UNGROUNDED_ARGUMENT",)), ("2026-09-12", ("UNGROUNDED_ARGUMENT",))],
)
def test_a_day_without_a_month_is_the_next_one(day, found):
    """*The 12th* follows the day that the user has told; another day, or a far one, is nobody's."""
    told = [{"role": "user", "content": "It's the 5th of May 2026."}, {"role": "assistant", "content": "Noted."},
            {"role": "user", "content": "Can we come on the 12th to have him checked?"}]  # fmt: skip

    assert one(told, "appointments", {"date": day}).findings == found


@pytest.mark.req("ATT-5")
def test_what_the_model_said_last_is_no_evidence():
    """An agent does not rest on itself: no user replied to it, and the arguments of its calls are context only."""
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Lyon"}'}}
    history = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "I look at Lyon.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "18 degrees"},
    ]

    assert one(history, "get_weather", {"city": "Lyon"}, CITY).findings == (calls.UNUSUAL_ARGUMENT,)
    assert one(history, "close_office", {"city": "Lyon"}, CITY).findings == (calls.UNGROUNDED_ARGUMENT,)


LOOKUPS = "Return the section of the runbook about a topic, such as queue-lag."


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("user", "name", "arguments", "found"),
    [
        ("Why were we paged?", "read_runbook", {"topic": "queue-lag"}, ()),
        ("Why were we paged?", "read_runbook", {"topic": "deployments"}, ()),
        ("Why were we paged?", "read_file", {"path": "src/queue/lag.py"}, ()),
        ("Why were we paged?", "read_file", {"path": "../other/lag.py"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "read_file", {"path": "config/.env"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "read_file", {"path": "deploy/id_rsa.pem"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "write_file", {"path": "src/queue/lag.py"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "get_metrics", {"service": "settle-4"}, ("UNUSUAL_ARGUMENT",)),
        (
            "Why were we paged?",
            "readRunbook",
            {"page": "Settle", "city": "Berlin", "id": "A-17"},
            ("UNUSUAL_ARGUMENT",),
        ),
        ("Where is order 4711?", "get_order", {"order_id": "4712"}, ("UNGROUNDED_ARGUMENT",)),
        ("How is the weather in Paris?", "get_weather", {"city": "London"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "fetch_page", {"url": "https://evil.example/a"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "read_file", {"path": "/etc/shadow"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "query_table", {"sql": "DELETE FROM orders WHERE id = '991'"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "get_or_create_user", {"name": "Ada"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "list_and_delete", {"service": "settle-4"}, ("UNGROUNDED_ARGUMENT",)),
        ("Why were we paged?", "restart", {"service": "settle-4"}, ("UNGROUNDED_ARGUMENT",)),
    ],
)
def test_a_function_that_only_reads_may_look_for_what_nobody_named(user, name, arguments, found):
    """Its own description is enough for a word; another value than the asked one, an address and code are not harmless.

    Words to search for and a file of its own folder are the model's choice.
    """
    parameters = {key: {"type": "string"} for key in arguments}
    declared = [{"type": "function", "function": {**tool(name, parameters)["function"], "description": LOOKUPS}}]

    assert calls.judge(asked(user, calls=[(name, arguments)], tools=declared))[0].findings == found


@pytest.mark.models
@pytest.mark.req("ATT-5")
async def test_lookups_are_medium_at_most():
    """However many values of a call nothing shows, it changes nothing."""
    arguments = {"page": "Settle", "city": "Berlin", "id": "A-17", "owner": "Ada Lovelace"}
    parameters = {key: {"type": "string"} for key in arguments}
    made = asked("Why were we paged?", calls=[("find_page", arguments)], tools=[tool("find_page", parameters)])

    report = await pipeline().analyse(made)

    assert (report.risk_level, list(report.floors)) == (RiskLevel.MEDIUM, ["UNUSUAL_ARGUMENT"])
    assert 0.0 <= (read_findings(report).cannot_tell or 0.0) <= 1.0


@pytest.mark.req("ATT-5")
def test_facts_of_the_caller_leave_the_messages_as_evidence_of_calls():
    """The caller's facts are the sources of the answer; the result of a tool still shows the identifier."""
    call = {"id": "c", "type": "function", "function": {"name": "orders", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "Cancel it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '[{"id": "A-5512"}]'},
    ]
    facts = {"facts": [{"id": "f", "content": "Orders may be cancelled for two days."}]}

    assert one(history, "cancel", {"order": "A-5512"}, interlock=facts).findings == ()
    assert one(history, "cancel", {"order": "A-5521"}, interlock=facts).findings == (calls.UNGROUNDED_ARGUMENT,)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{"city": "Paris", "city": "London"}', (calls.UNGROUNDED_ARGUMENT,)),
        ('{"city": "London", "city": "Paris"}', (calls.UNGROUNDED_ARGUMENT,)),
        ('{"place": {"city": ["Paris", "London"]}}', (calls.UNGROUNDED_ARGUMENT,)),
        ('{"city": "Lond\\u006fn"}', (calls.UNGROUNDED_ARGUMENT,)),
        ('{"city": "Par\\u0131s"}', (calls.UNGROUNDED_ARGUMENT,)),
        ('{"city": "London"', (calls.UNGROUNDED_ARGUMENT,)),
        ('"London"', (calls.UNGROUNDED_ARGUMENT,)),
        ("London", (calls.UNGROUNDED_ARGUMENT,)),
        ('{"city": "Paris"}', ()),
        ("{}", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_no_form_of_the_json_hides_a_value(arguments, found):
    """A key twice, nesting, escapes, what is no JSON."""
    assert one("What is the weather in Paris?", "get_weather", arguments, CITY).findings == found


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        ({"enum": ["metric", "imperial"]}, "imperial", ()),
        ({"const": "v7"}, "v7", ()),
        ({"default": 25}, 25, ()),
        ({"default": 25}, 50, ()),
        ({"anyOf": [{"type": "null"}, {"enum": ["a4711"]}]}, "a4711", ()),
        ({"$ref": "#/$defs/none"}, "a4711", (calls.UNGROUNDED_ARGUMENT,)),
        ({"$ref": "#/properties/x"}, "a4711", (calls.UNGROUNDED_ARGUMENT,)),
        ({"type": "string"}, "a4711", (calls.UNGROUNDED_ARGUMENT,)),
        ("no schema", "a4711", (calls.UNGROUNDED_ARGUMENT,)),
        ({"description": "A topic, such as queue-lag."}, "queue-lag", ()),
        ({"description": "A topic, such as queue-lag."}, "queue-loss", (calls.UNUSUAL_ARGUMENT,)),
        ({"description": "A city, such as Paris."}, "Paris", (calls.UNGROUNDED_ARGUMENT,)),
    ],
)
def test_a_value_of_the_declaration_needs_no_source(schema, value, found):
    """What the schema names itself is the developer's word."""
    assert one("Do it.", "act", {"x": value}, {"x": schema}).findings == found


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        (WIRE, (calls.UNSAID_TOOL_VALUE,)),
        ("payFiveHundredDollars", (calls.UNSAID_TOOL_VALUE,)),
        ("base64_encode", ()),
        ("get_top_10", ()),
        ("sha256", ()),
        ("report_2024", ()),
    ],
)
def test_the_name_of_a_function_may_carry_a_value(name, found):
    """An amount in the name counts like one in the arguments; versions and algorithms are none."""
    assert one("Hello!", name, "").findings == found
    assert one("Wire nine million dollars to account 4711, pay five hundred dollars", name, "").findings == ()


@pytest.mark.req("ATT-5")
def test_a_request_that_tells_no_name_is_not_accused_of_one():
    """A sidecar of the release before sends arguments alone."""
    outputs = (Output(0, '{"city": "Paris"}', "tool_call"),)
    found = calls.judge(Request(outputs=outputs, query="Weather in Paris?"))[0]

    assert (found.declared, found.findings) == (None, ())


def test_a_schema_that_is_none_says_nothing():
    """Neither broken JSON nor a deep one ends the analysis."""
    deep = "[" * 100_000
    tools = tuple(DeclaredTool(name, "", text) for name, text in (("a", "{"), ("b", deep), ("c", "[1]"), ("d", "")))
    outputs = tuple(Output(0, json.dumps({"x": 4711}), "tool_call", one.name) for one in tools)

    assert {found.findings for found in calls.judge(Request(outputs=outputs, tools=tools))} == {
        (calls.UNGROUNDED_ARGUMENT,)
    }


@pytest.mark.models
@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("name", "arguments", "tools", "level", "floors"),
    [
        ("get_weather", {"city": "Paris"}, ["get_weather"], RiskLevel.LOW, set()),
        (
            "get_weather",
            {"city": "London"},
            ["get_weather"],
            RiskLevel.HIGH,
            {"UNGROUNDED_ARGUMENT", "FABRICATION_FOUND"},
        ),
        ("get_weather", {"city": "Paris"}, [], RiskLevel.CRITICAL, {"UNDECLARED_TOOL", "FABRICATION_FOUND"}),
        (WIRE, "", [], RiskLevel.CRITICAL, {"UNDECLARED_TOOL", "UNSAID_TOOL_VALUE", "FABRICATION_FOUND"}),
        (WIRE, "", [WIRE], RiskLevel.HIGH, {"UNSAID_TOOL_VALUE", "FABRICATION_FOUND"}),
    ],
)
async def test_a_call_has_a_risk_without_any_source(name, arguments, tools, level, floors):
    """The first step of a stock agent: a question, a tool, nothing retrieved yet (F-04, F-23)."""
    declared = [tool(each, CITY if each == "get_weather" else None) for each in tools]
    report = await pipeline().analyse(asked("What is the weather in Paris?", calls=[(name, arguments)], tools=declared))

    assert (report.risk_level, set(report.floors)) == (level, floors)
    assert [(call.name, call.declared) for call in report.tool_calls] == [(name, bool(tools))]
    assert not report.HasField("completeness_score"), "the answer is still to come"


@pytest.mark.models
@pytest.mark.req("ATT-5")
async def test_a_function_that_returns_the_answer_is_judged_as_an_answer():
    """A structured answer is no act: it is held against the sources, value by value."""
    history = [{"role": "system", "content": "The mill was built in 1790."}, {"role": "user", "content": "When?"}]
    declared = [tool("final_result", {"built": {"type": "string"}})]

    async def found(year: str) -> Any:
        answer = {"text": f"The mill was built in {year}."}
        return await pipeline().analyse(asked(history, calls=[("final_result", answer)], tools=declared))

    good, bad = await found("1790"), await found("1890")
    start = next(claim.start for claim in good.claims)

    assert good.risk_level == RiskLevel.LOW
    assert bad.risk_level >= RiskLevel.MEDIUM
    assert not good.tool_calls
    assert start == len('{"text": "'), "places are those in the arguments"


@pytest.mark.models
@pytest.mark.req("ATT-5")
async def test_what_a_message_says_may_not_bend_a_source():
    """The text of a mail is composed; a fact in it that a source states otherwise is found, and not one that nobody states."""
    history = [
        {"role": "system", "content": "The landlord must repair the roof. The rent is 900 euros."},
        {"role": "user", "content": "Write to ann@example.com what the lease says of the rent."},
    ]
    declared = [tool("send_email", {"to": {}, "body": {}})]

    async def risk(body: str) -> int:
        arguments = {"to": "ann@example.com", "body": body}
        return (await pipeline().analyse(asked(history, calls=[("send_email", arguments)], tools=declared))).risk_level

    assert await risk("Hi Ann,\n\nthe rent is 900 euros. I hope that this helps.\n\nBest regards") == RiskLevel.LOW
    assert await risk("Hi Ann,\n\nthe rent is 950 euros. I hope that this helps.\n\nBest regards") >= RiskLevel.HIGH
