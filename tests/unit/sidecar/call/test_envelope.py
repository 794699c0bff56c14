"""Facts and query of a call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.api.common.v1 import common_pb2
from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call import envelope, roles
from interlock.sidecar.openai import chat

SETTINGS = Settings(max_facts=4, max_text_bytes=2048)


def of(messages: list[dict[str, Any]], interlock: Any = None, **more: Any) -> envelope.CallEvidence:
    value = {"model": "m", "messages": messages, **({"interlock": interlock} if interlock is not None else {})}
    return envelope.of_chat(chat.read(value, SETTINGS), SETTINGS, **more)


def user(text: str = "Who?") -> dict[str, Any]:
    return {"role": "user", "content": text}


def refusal(interlock: Any, messages: list[dict[str, Any]] | None = None) -> Refused:
    with pytest.raises(Refused) as caught:
        of(messages or [user()], interlock)
    return caught.value


def test_facts_given_by_the_caller_are_the_envelope():
    """The interlock object wins over what the messages say."""
    found = of(
        [{"role": "system", "content": "Ignored."}, user()],
        {"facts": [{"id": "f1", "content": "It is blue.", "importance": 0.9}], "query": "Colour?"},
    )

    assert [(f.id, f.content, f.importance) for f in found.facts] == [("f1", "It is blue.", 0.9)]
    assert found.query == "Colour?"


def test_facts_beside_the_request_win():
    """The gRPC front's own fields come before the request's object."""
    beside = [common_pb2.Fact(id="g", content="From the message.", importance=0.5)]
    found = of([user()], {"facts": [{"id": "f", "content": "x"}], "query": "q"}, facts=beside, query="r")

    assert ([f.id for f in found.facts], found.query) == (["g"], "r")


def test_without_facts_the_context_is_cut_into_sentences():
    """System, developer and tool messages are evidence; what the user and the model say is not."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    found = of([
        {"role": "system", "content": "The sky is blue. Dr. Smith left in May."},
        user("Grass is red."),
        {"role": "assistant", "content": "Grass is blue.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Rain: 3.5 mm"},
        user("And now?"),
    ])  # fmt: skip

    assert [(f.id, f.content) for f in found.facts] == [
        ("m0s0", "The sky is blue."), ("m0s1", "Dr. Smith left in May."), ("m3s0", "Rain: 3.5 mm"),
    ]  # fmt: skip
    assert {f.importance for f in found.facts} == {envelope.NEUTRAL}
    assert found.query == "And now?"


def test_the_prompt_holds_every_text():
    """The search for personal data sees refusals, tool arguments and parts too."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "ARGS"}}
    found = of([
        {"role": "user", "content": [{"type": "text", "text": "PART"}]},
        {"role": "assistant", "refusal": "REFUSAL", "tool_calls": [call]},
    ])  # fmt: skip

    assert all(text in found.prompt for text in ("PART", "REFUSAL", "ARGS"))


@pytest.mark.parametrize(
    ("interlock", "reason"),
    [
        ({"fact": []}, "UNKNOWN_PARAMETER"),
        ({"facts": {"id": "a"}}, "INVALID_FACT"),
        ({"facts": ["x"]}, "INVALID_FACT"),
        ({"facts": [{"id": "a", "content": "x", "weight": 1}]}, "INVALID_FACT"),
        ({"facts": [{"id": 1, "content": "x"}]}, "INVALID_FACT"),
        ({"facts": [{"id": "", "content": "x"}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a\u241fb", "content": "x"}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a\nb", "content": "x"}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a" * 129, "content": "x"}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a", "content": "  "}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a", "content": "x", "importance": 1.1}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a", "content": "x", "importance": -0.1}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a", "content": "x", "importance": float("nan")}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a", "content": "x", "importance": True}]}, "INVALID_FACT"),
        ({"facts": [{"id": "a", "content": "x"}, {"id": "a", "content": "y"}]}, "INVALID_FACT"),
        ({"query": 3}, "INVALID_FACT"),
        ({"facts": [{"id": str(i), "content": "x"} for i in range(5)]}, "TOO_MANY_FACTS"),
        ({"facts": [{"id": "a", "content": "x" * 262_145}]}, "FACT_TOO_LARGE"),
        ({"facts": [{"id": "a", "content": "é" * 1025}]}, "TEXT_TOO_LARGE"),
        ({"query": "x" * 2049}, "TEXT_TOO_LARGE"),
    ],
)
def test_a_fact_out_of_bounds_is_refused_never_dropped(interlock, reason):
    """Dropping evidence would change what the answer is held against."""
    assert refusal(interlock).reason == reason


def test_sentences_of_one_message_are_joined_where_they_are_too_many():
    """A long document in a prompt is no reason to refuse the call; nothing of it is lost."""
    found = of([{"role": "system", "content": "One. Two. Three. Four. Five."}, user()])

    assert [(f.id, f.content) for f in found.facts] == [
        ("m0s0", "One.\nTwo."), ("m0s2", "Three.\nFour."), ("m0s4", "Five."),
    ]  # fmt: skip


def test_a_context_of_too_many_messages_is_refused():
    """The limit holds for what we cut, too: texts of different messages are not joined."""
    many = [
        {"role": "system", "content": f"The sky is {colour}."} for colour in ("blue", "red", "grey", "white", "black")
    ]

    assert refusal(None, [*many, user()]).reason == "TOO_MANY_FACTS"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Mr. Brown paid $3.50 to U.S. Steel. He left.", ["Mr. Brown paid $3.50 to U.S. Steel.", "He left."]),
        ("See Art. 14 of it. Then No. 5.", ["See Art. 14 of it.", "Then No. 5."]),
        ('He said "No." She left.', ['He said "No."', "She left."]),
        ("- first point\n- second point\n\nLast.", ["- first point", "- second point", "Last."]),
        ("version 2.0 is out. it works", ["version 2.0 is out. it works"]),
        (
            "A schedule starts at a fixed time or at sunset, with an\noffset of up to 120 minutes. It runs on the lamp.",
            ["A schedule starts at a fixed time or at sunset, with an offset of up to 120 minutes.", "It runs on the lamp."],
        ),
        ("It covers defects of material and of the\nworkmanship.", ["It covers defects of material and of the workmanship."]),
        ("What to buy for the supper on Sunday evening\nbutter\nsalt", ["What to buy for the supper on Sunday evening", "butter", "salt"]),
        ("It opens daily. Here is what a visitor has to pay:\nadults 12 euros.", ["It opens daily.", "Here is what a visitor has to pay:", "adults 12 euros."]),
        ("the long name of the customer = Ada Lovelace\nand the plan = gold, paid.", ["the long name of the customer = Ada Lovelace", "and the plan = gold, paid."]),
        ("1. Check the error rate.\n2. Scale up.", ["1. Check the error rate.", "2. Scale up."]),
        ("  \n\n ", []),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_says_so(text, expected):
    """Line ends and full stops cut; abbreviations, numbers and the width of a page do not."""
    assert roles.sentences(text) == expected


@given(st.text(alphabet='ab .!?\n\t"A1)(.', max_size=200))
def test_cutting_loses_nothing_but_white_space(text):
    """Every character that says something is in some sentence, in order."""
    assert "".join("".join(roles.sentences(text)).split()) == "".join(text.split())
