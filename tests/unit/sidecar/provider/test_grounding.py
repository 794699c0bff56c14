"""The grounding mode of a call, and the facts that are told in it."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.envelope import CallEvidence, ContextOptions
from interlock.sidecar.provider import grounding

PRICE = common_pb2.Fact(id="price", content="It costs $1,500.", importance=0.5)
OLD = common_pb2.Fact(id="old", content="It is old.", importance=0.9)
BODY = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}


def evidence(prompt: str = "What is it?", **more) -> CallEvidence:
    return CallEvidence(facts=(PRICE, OLD), query="What is it?", prompt=prompt, **{"given": True, **more})


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("asked", "setting", "more", "mode"),
    [
        (None, "auto", {}, "context-preferred"), (None, "auto", {"given": False}, "open"),
        (None, "auto", {"prompt": "It costs $1,500. It is old."}, "open"), ("open", "auto", {}, "open"),
        (None, "context-strict", {"given": False}, "context-strict"), ("context-preferred", "open", {}, "context-preferred"),
    ],
)  # fmt: skip
def test_the_mode_is_the_calls_own_then_the_deployments(asked, setting, more, mode):
    """auto prefers facts that the model would not see otherwise; a request without any stays as it came."""
    assert grounding.mode_of(asked, evidence(**more), Settings(grounding_mode=setting)) == mode


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("more", "mode"),
    [({}, "open"), ({"given": False}, "context-strict"), ({"wanted": ContextOptions(token_budget=900)}, "context-strict"),
     ({"prompt": "It costs $1,500. It is old."}, "context-strict")],
)  # fmt: skip
def test_nothing_is_told_that_is_not_wanted_or_told_already(more, mode):
    """Open; facts cut from the messages; facts that the mesh packs itself; facts that the messages have."""
    given = evidence(**more)

    assert grounding.told(BODY, given, mode, Settings()) == (BODY, given)


@pytest.mark.req("ATT-10")
def test_what_is_told_is_in_the_prompt_from_then_on():
    """The most important fact first, and each is told once: asked again, there is nothing left."""
    body, after = grounding.told(BODY, evidence(), "context-preferred", Settings())
    (told, *rest) = body["messages"]

    assert rest == BODY["messages"]
    assert told["content"].index(OLD.content) < told["content"].index(PRICE.content)
    assert after.untold == ()
    assert grounding.told(body, after, "context-preferred", Settings()) == (body, after)


@pytest.mark.req("ATT-10")
def test_a_prompt_that_the_facts_make_too_large_is_refused():
    """Before anything is begun, and by name."""
    with pytest.raises(Refused, match="TEXT_TOO_LARGE"):
        grounding.told(BODY, evidence("x" * 1000), "context-strict", Settings(max_text_bytes=1024))
