"""Requests that wait for their answers: bounded in time and space, and each answer gets its own, once (MSH-3)."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Refused
from interlock.sidecar.fronts.litellm.waiting import WAITING_S, Passed, Waiting
from interlock.sidecar.openai.chat import Chat

pytestmark = pytest.mark.req("MSH-3")

MINE, OTHER = ("key_a", "call_1"), ("key_b", "call_1")


def passed(text: str, size: int = 100) -> Passed:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return Passed(Chat(body, stream=False, include_usage=False, interlock={}), [], size)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def reason_of(work, *args) -> str:
    with pytest.raises(Refused) as caught:
        work(*args)
    return caught.value.reason


def test_an_answer_gets_its_own_request_once(clock):
    """The same id of another caller is another call."""
    waiting = Waiting(clock)
    waiting.keep(MINE, passed("mine"))
    waiting.keep(OTHER, passed("other"))

    assert waiting.take(MINE) == passed("mine")
    assert reason_of(waiting.take, MINE) == "LITELLM_REQUEST_UNKNOWN"


def test_a_request_is_forgotten_in_time(clock):
    """A provider that failed never brings an answer; its request makes room again."""
    waiting = Waiting(clock, most_bytes=150)
    waiting.keep(MINE, passed("mine"))
    clock.now = WAITING_S + 1
    waiting.keep(OTHER, passed("other"))

    assert reason_of(waiting.take, MINE) == "LITELLM_REQUEST_UNKNOWN"


def test_no_more_is_kept_than_there_is_room_for(clock):
    """What does not fit is refused before its provider is asked; an answer that comes makes room."""
    waiting = Waiting(clock, most_bytes=150)
    waiting.keep(MINE, passed("mine"))
    full = reason_of(waiting.keep, OTHER, passed("other"))
    waiting.take(MINE)
    waiting.keep(OTHER, passed("other"))

    assert full == "OVERLOADED"


def test_a_request_that_is_asked_about_again_is_one(clock):
    """It takes its room once, and its time begins anew; another one under its id is refused."""
    waiting = Waiting(clock, most_bytes=150)
    waiting.keep(MINE, passed("mine"))
    clock.now = WAITING_S - 1
    waiting.keep(MINE, passed("mine"))
    taken = reason_of(waiting.keep, MINE, passed("other"))
    clock.now = WAITING_S + 1

    assert taken == "LITELLM_CALL_ID_TAKEN"
    assert waiting.take(MINE) == passed("mine")
