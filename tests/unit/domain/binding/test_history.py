"""Turns: one conversation is recognised however a library writes it down, and nothing else is taken for it."""

from __future__ import annotations

import json
import unicodedata

import pytest

from interlock.domain.binding.digests import Digests
from interlock.domain.binding.history import MOST_TURNS, pending, turn, turns

pytestmark = pytest.mark.req("ATT-1")

KEY = bytes(range(32))
MINE = Digests(KEY, "one-caller")
LONG = "The river Elbe rises in the Krkonoše mountains and flows to Hamburg."


def user(text):
    return {"role": "user", "content": text}


def said(text, **more):
    return {"role": "assistant", "content": text, **more}


def calling(arguments, *, name="get_weather", call_id="call_1", content=""):
    function = {"name": name, "arguments": arguments}
    return said(content, tool_calls=[{"id": call_id, "type": "function", "function": function}])


def only(*messages):
    (found,) = turns(messages, MINE)
    return found


BASE = only(user("Where does the Elbe rise?"), said(LONG))


@pytest.mark.parametrize(
    "messages",
    [
        [user("Where does  the Elbe rise?\n"), said(f"  {LONG} ")],
        [user("Where does the Elbe rise?"), said(unicodedata.normalize("NFD", LONG))],
        [{"role": "system", "content": "Be brief."}, user("Where does the Elbe rise?"), said(LONG)],
        [user([{"type": "text", "text": "Where does the"}, {"type": "text", "text": "Elbe rise?"}]), said(LONG)],
        [user("Where does the Elbe rise?"), said([{"type": "text", "text": LONG}], refusal="")],
        [user("Where does the Elbe rise?"), said(LONG, name="bot", reasoning_content="I think so.")],
    ],
)
def test_what_libraries_rewrite_changes_no_turn(messages):
    """White space, composed characters, parts, the system's message, names, reasoning."""
    assert only(*messages) == BASE


@pytest.mark.parametrize(
    "messages",
    [
        [user("Where does the Oder rise?"), said(LONG)],
        [user("Where does the Elbe rise?"), said(LONG.replace("Hamburg", "Berlin"))],
        [user("Where does the Elbe rise?"), said(LONG, refusal="I cannot say more.")],
        [user("Where does the Elbe rise?"), said(LONG.lower())],
        [user("Where does the Elbe"), user("rise?"), said(LONG)],
        [{"role": "tool", "content": "Where does the Elbe rise?", "tool_call_id": "c"}, said(LONG)],
        [user("Where does the Elbe rise? " + LONG), said("")],
        [said(LONG)],
    ],
)
def test_what_was_asked_and_answered_makes_the_turn(messages):
    """Another question, an altered answer, a refusal, a moved boundary, another role: another turn."""
    assert only(*messages).digest != BASE.digest


def test_another_caller_has_other_digests():
    """The same conversation of another key, or under another master key, is found nowhere here."""
    history = [user("Where does the Elbe rise?"), said(LONG)]
    theirs, other_key = Digests(KEY, "another"), Digests(bytes(32), "one-caller")

    assert len({BASE.digest, turns(history, theirs)[0].digest, turns(history, other_key)[0].digest}) == 3


def test_the_answer_that_is_given_is_the_turn_that_comes_back():
    """What is noted with the answer is what the next request's history says."""
    asked = [user("Hello, who are you?"), said(LONG), user("And  in 2024?")]
    answer = {"role": "assistant", "content": "In 2024 it carried less water than in 2023.", "refusal": None}
    noted = turn(MINE, pending(asked), answer)

    assert turns([*asked, answer, user("Thanks")], MINE)[-1] == noted


def test_a_round_of_tool_calls_is_a_turn_of_its_own():
    """The call answers the question, the final answer answers the tool's result; the ids of calls do not matter."""
    result = {"role": "tool", "tool_call_id": "call_1", "content": '{"t": 12}'}
    first = turns([user("Weather?"), calling('{"city": "Paris", "unit": "C"}'), result, said("12 °C.")], MINE)
    renamed = {**result, "tool_call_id": "other"}
    again = turns(
        [
            user("Weather?"),
            calling('{"unit":"C","city":"Paris"}', call_id="other", content=None),
            renamed,
            said("12 °C."),
        ],
        MINE,
    )
    other = turns([user("Weather?"), calling('{"city": "Rome", "unit": "C"}')], MINE)

    assert len(first) == 2
    assert first == again
    assert other[0].digest != first[0].digest


@pytest.mark.parametrize("arguments", ["not json", '{"a": ', "[" * 5000, "NaN", ""])
def test_arguments_that_are_no_json_are_read_as_text(arguments):
    """They are no error, and differ from one another."""
    assert only(user("x"), calling(arguments)).digest != only(user("x"), calling('{"a": 1}')).digest


@pytest.mark.parametrize(
    ("answer", "weak"),
    [
        (said("Yes."), True),
        (said("Sure, I can help you!"), True),
        (said("Donaudampfschifffahrtsgesellschaftskapitän"), True),
        (said("It rises in the Krkonoše mountains."), False),
        (said("易北河发源于克尔科诺谢山脉,流经汉堡。"), False),
        (said("是的。"), True),
        (said(""), True),
        (said(None, refusal="No."), True),
        (calling("{}"), True),
        (calling(""), True),
        (calling('{"city": "Paris"}'), False),
        (said(LONG), False),
    ],
)
def test_a_short_answer_is_weak(answer, weak):
    """It is so common that it proves nothing alone; a tool call with arguments does."""
    assert only(user("?"), answer).weak is weak


def test_the_latest_turns_are_read():
    """Of a long history as many as are looked up; each with what stands before it, also the first of them."""
    history = [message for n in range(100) for message in (user(f"Question {n}?"), said(f"{LONG} {n}"))]
    found = turns(history, MINE)

    assert len(found) == MOST_TURNS
    assert found[0] == only(*history[72:74])
    assert found[-1] == only(*history[-2:])


def test_the_order_of_turns_is_that_of_the_request():
    """Questions after the last answer belong to the answer to come."""
    history = [user("a"), said(LONG), user("b"), user("c")]

    assert pending(history) == pending([user("b"), user("c")])
    assert pending([]) == ""
    assert turns([user("b"), user("c")], MINE) == ()
    assert json.dumps([one.digest for one in turns(history, MINE)]).isascii()
