"""Transferring an earlier answer: whole, as a summary that was checked, or its result; and what goes into the context."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.dag.transfer import Transfer, tokens
from interlock.domain.errors import Refused, unavailable
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call import envelope
from interlock.sidecar.call.envelope import CallEvidence, ContextOptions
from interlock.sidecar.context import packing
from interlock.sidecar.context.linked_results import AnswerSource
from interlock.sidecar.context.packing import TransferredContext
from interlock.sidecar.context.transfer import SUMMARISE, Transferred, Transfers
from interlock.sidecar.openai import chat, completion
from interlock.sidecar.provider import prompts
from tests.support.servers.provider import completion as provided
from tests.support.servers.provider import message, tool_call

SETTINGS = Settings(max_facts=8, context_tokens=1_000)
BODY: dict[str, Any] = {
    "model": "m", "messages": [{"role": "user", "content": "Why?"}], "temperature": 0.9, "max_tokens": 20, "n": 2,
    "tools": [{"type": "function", "function": {"name": "look"}}],
}  # fmt: skip
LONG = " ".join(f"Sentence {number} says that revenue was {number} million." for number in range(60))
SUMMARY = "Revenue rose from 0 to 59 million."


def fact(name: str, content: str, importance: float = 0.5) -> common_pb2.Fact:
    return common_pb2.Fact(id=name, content=content, importance=importance)


def source(text: str, *deferred: common_pb2.Fact, name: str = "w1") -> AnswerSource:
    return AnswerSource(name, text, deferred)


class Maker:
    """Makes the summary it is given and finds it as faithful as it is told."""

    def __init__(self, summary: Any = SUMMARY, fidelity: float | Exception = 0.9) -> None:
        self.summary, self.fidelity, self.asked, self.checked = summary, fidelity, [], []

    async def __call__(self, step: str, body: Mapping[str, Any]) -> completion.Completion:
        self.asked.append((step, body))
        if isinstance(self.summary, Exception):
            raise self.summary
        said = message(self.summary) if isinstance(self.summary, str) else self.summary
        return completion.read(json.dumps(provided(said)).encode(), completion.AnswerAsked("m", 8), max_depth=32)

    async def check(self, text: str, summary: str) -> float:
        self.checked.append((text, summary))
        if isinstance(self.fidelity, Exception):
            raise self.fidelity
        return self.fidelity

    @property
    def transfers(self) -> Transfers:
        self.noted: list[Any] = []
        return Transfers(self, self.check, BODY, self.noted)

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(event.data_json) for event in self.noted if event.event_type == "SUMMARISATION"]


async def received(maker: Maker, text: str, *deferred, mode: str = "auto", share: int = 500, merging: bool = False):
    return await maker.transfers.of(source(text, *deferred), mode, share, merging=merging)


@pytest.mark.req("DAG-5")
async def test_what_fits_comes_whole_and_asks_nobody():
    """FULL_CONTEXT: the response and its deferred facts; no model is called for it."""
    maker = Maker()
    one = await received(maker, "It is blue.", fact("d", "It was red."))

    assert (one.kind, one.text, [f.id for f in one.facts]) == (Transfer.FULL_CONTEXT, "It is blue.", ["d"])
    assert not maker.asked


@pytest.mark.req("DAG-7")
async def test_a_summary_is_asked_for_by_the_printed_prompt_and_checked():
    """SPEC-004 §12.2: the prompt, its size, temperature 0.1, no tools; then its fidelity to the whole response."""
    maker = Maker()
    one = await received(maker, LONG)
    step, body = maker.asked[0]
    size = min(tokens(LONG) * 25 // 100, 500 * 30 // 100)

    assert (one.kind, one.text) == (Transfer.SUMMARY, SUMMARY)
    assert one.summary_hash == "sha256:" + hashlib.sha256(SUMMARY.encode()).hexdigest()
    assert (step, body["temperature"]) == (SUMMARISE, 0.1)
    assert body["messages"][-1]["content"].startswith(
        f"Summarise the following response in {size} tokens, preserving all factual claims, numbers, dates, and conclusions."
    )
    assert LONG in body["messages"][-1]["content"]
    assert not body.keys() & {"tools", "n"}
    assert maker.checked == [(LONG, SUMMARY)]
    assert maker.told == [
        {"source_id": "w1", "requested_tokens": size, "tokens": tokens(SUMMARY), "summary_hash": one.summary_hash,
         "fidelity_score": 0.9, "used": True}
    ]  # fmt: skip


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    ("maker", "fault"),
    [
        (Maker(fidelity=0.79), "UNFAITHFUL"),
        (Maker(fidelity=math.nan), "UNFAITHFUL"),
        (Maker(fidelity=unavailable("DPE_UNAVAILABLE", "x")), "DPE_UNAVAILABLE"),
        (Maker(summary=unavailable("UPSTREAM_ERROR", "x")), "UPSTREAM_ERROR"),
        (Maker(summary=message(None, tool_calls=[tool_call("f", "{}")])), "UPSTREAM_INVALID_RESPONSE"),
        (Maker(summary="  "), "UPSTREAM_INVALID_RESPONSE"),
    ],
)
async def test_a_summary_that_nobody_vouches_for_is_not_used(maker, fault):
    """Distorted, unchecked or never made: the result is transferred instead, and the trail says why (§12.3)."""
    one = await received(maker, LONG)

    assert (one.kind, one.summary_hash) == (Transfer.RESULT_ONLY, "")
    assert one.text == "Sentence 0 says that revenue was 0 million. Sentence 59 says that revenue was 59 million."
    assert [(told["used"], told["fault"]) for told in maker.told] == [(False, fault)]


@pytest.mark.req("DAG-7")
async def test_a_summary_longer_than_its_room_is_not_used():
    """A model that does not keep to the size cannot take the room of the child's own facts."""
    one = await received(Maker(summary=LONG), LONG)

    assert one.kind is Transfer.RESULT_ONLY


@pytest.mark.req("DAG-5")
async def test_a_fan_in_gets_a_conclusion_where_facts_alone_would_say_nothing():
    """§8.1: RESULT_ONLY is for the synthesis; a child that continues takes its deferred facts."""
    tight = {"share": 2}

    assert (await received(Maker(), LONG, merging=True, **tight)).kind is Transfer.RESULT_ONLY
    assert (await received(Maker(), LONG, **tight)).kind is Transfer.FACTS_ONLY


@pytest.mark.req("DAG-5")
@pytest.mark.parametrize(
    ("mode", "kind"),
    [("full", Transfer.FULL_CONTEXT), ("summary", Transfer.SUMMARY), ("facts", Transfer.FACTS_ONLY), ("result", Transfer.RESULT_ONLY)],
)  # fmt: skip
async def test_a_caller_can_demand_a_type(mode, kind):
    """Whatever §8.2 would choose, as long as there is room."""
    assert (
        await received(Maker(), "One. Two. Three is the longest of them all, by far.", mode=mode, share=200)
    ).kind is kind


async def test_a_whole_answer_without_room_is_refused_by_name():
    """What was demanded is not cut in silence."""
    with pytest.raises(Refused) as caught:
        await received(Maker(), LONG, mode="full", share=100)

    assert (caught.value.reason, caught.value.metadata["limit"]) == ("TRANSFER_TOO_LARGE", "100")


def an_envelope(*facts: common_pb2.Fact, prompt: str = "Why?", **wanted: Any) -> CallEvidence:
    return CallEvidence(facts, "Why?", prompt, ContextOptions(**wanted))


def packed(one: CallEvidence, *parents: Transferred, pattern: str = "LINEAR", seen=(), results=(), settings=SETTINGS):
    opened = session_pb2.OpenedWindow(
        window_id="w9", pattern=pattern, parent_ids=sorted(p.source.source_id for p in parents), facts_seen=seen
    )
    return packing.pack(BODY, one, opened, TransferredContext(tuple(parents), tuple(results), ()), settings)


def names(facts) -> list[str]:
    return [one.id for one in facts]


def test_without_a_budget_every_fact_is_evidence_and_none_is_added_to_the_prompt():
    """What a caller gives for the analysis alone does not reach the provider."""
    made = packed(an_envelope(fact("a", "It is blue.")), seen=[packing.digest(fact("x", "It is blue."))])

    assert (names(made.envelope.facts), made.body, made.deferred, made.facts_used) == (["a"], BODY, (), ())


@pytest.mark.req("DAG-6")
def test_with_a_budget_the_most_important_facts_are_packed_and_the_rest_deferred():
    """SPEC-003 §5: by importance until the budget is full; what does not fit waits for the windows that continue."""
    facts = [fact("low", "a" * 30, 0.1), fact("high", "b" * 30, 0.9), fact("mid", "c" * 30, 0.5)]
    made = packed(an_envelope(*facts, token_budget=2 + 20))

    assert (names(made.envelope.facts), names(made.deferred), made.left_out) == (["high", "mid"], ["low"], 1)
    assert "b" * 30 in made.body["messages"][0]["content"]
    assert "a" * 30 not in made.body["messages"][0]["content"]
    assert made.facts_used == tuple(packing.digest(one) for one in (facts[1], facts[2]))


@pytest.mark.req("DAG-6")
def test_a_fact_that_a_window_of_the_session_had_is_not_packed_again():
    """By its content, whatever it is called now; siblings are different: they had nothing of one another's."""
    one = an_envelope(fact("new-name", "It is blue."), fact("b", "It is red."), token_budget=500)
    seen = [packing.digest(fact("old-name", "It is blue."))]

    assert names(packed(one, seen=seen).envelope.facts) == ["b"]
    assert names(packed(one, seen=seen, pattern="FAN_OUT").envelope.facts) == ["new-name", "b"]


@pytest.mark.req("DAG-6")
def test_a_fact_that_the_messages_hold_stays_and_costs_nothing():
    """The model got it, so that the answer may rest on it."""
    one = an_envelope(fact("a", "It is blue."), prompt="It is blue. Why?", token_budget=1)
    made = packed(one, seen=[packing.digest(fact("a", "It is blue."))])

    assert (names(made.envelope.facts), made.body) == (["a"], BODY)


@pytest.mark.req("DAG-6", "DAG-5")
def test_deferred_facts_come_along_once_and_the_others_go_on_waiting():
    """Those that a parent deferred are facts of the child; those that did not come along are deferred again."""
    came = Transferred(
        source("It.", fact("d", "Deferred."), name="w1"), Transfer.FULL_CONTEXT, "It.", (fact("d", "Deferred."),)
    )
    left = Transferred(
        source("That.", fact("e", "Left."), fact("d2", "Deferred."), name="w2"), Transfer.RESULT_ONLY, "That."
    )
    made = packed(an_envelope(fact("w1", "A fact with a window's name.")), came, left)

    assert names(made.envelope.facts) == ["w1", "w2", "d", "w1~2"]
    assert names(made.deferred) == ["e"]
    assert made.facts_used == (packing.digest(fact("d", "Deferred.")),)
    assert "Deferred." in made.body["messages"][0]["content"]


@pytest.mark.req("DAG-7")
def test_a_summary_weighs_095_and_stands_quoted_in_the_prompt():
    """§12.2; what a model wrote is material there, never an instruction."""
    made = packed(an_envelope(), Transferred(source(LONG), Transfer.SUMMARY, SUMMARY, (), "sha256:x"))

    assert [(f.id, f.content, round(f.importance, 2)) for f in made.envelope.facts] == [("w1", SUMMARY, 0.95)]
    assert prompts.quoted(SUMMARY, None) in made.body["messages"][0]["content"]
    assert prompts.QUOTATIONS in made.body["messages"][0]["content"]
    assert SUMMARY in made.envelope.prompt
    assert made.body["messages"][1:] == BODY["messages"]


@pytest.mark.req("DAG-1", "DAG-5")
def test_every_parent_has_an_edge_that_says_what_it_gave():
    """§3.2: type, tokens and the hash of a summary; nothing transferred is told as that."""
    made = packed(
        an_envelope(), Transferred(source(LONG), Transfer.SUMMARY, SUMMARY, (), "sha256:x"),
        Transferred(source("It.", name="w2"), Transfer.NONE), pattern="FAN_IN",
    )  # fmt: skip

    assert [(e.source_id, e.target_id, e.transfer_type, e.transferred_tokens, e.summary_hash) for e in made.edges] == [
        ("w1", "w9", session_pb2.TRANSFER_TYPE_SUMMARY, tokens(SUMMARY), "sha256:x"),
        ("w2", "w9", session_pb2.TRANSFER_TYPE_UNSPECIFIED, 0, ""),
    ]


@pytest.mark.req("DPE-19")
def test_a_fan_in_merges_what_its_parents_said_whatever_was_transferred():
    """They are compared as they were given away, not as they were summarised."""
    made = packed(
        an_envelope(), Transferred(source(LONG), Transfer.SUMMARY, SUMMARY, ()),
        Transferred(source("It.", name="w2"), Transfer.NONE), pattern="FAN_IN",
    )  # fmt: skip

    assert [(one.source_id, one.text) for one in made.merged] == [("w1", LONG), ("w2", "It.")]


def test_a_linear_window_merges_results_of_sub_agents_alone():
    """The answer that it goes on from is no part of a decomposed task."""
    result = Transferred(
        AnswerSource("s1", "It is 12.", label="legal", sub_query="How many?"), Transfer.FULL_CONTEXT, "It is 12."
    )
    made = packed(an_envelope(), Transferred(source("It."), Transfer.FULL_CONTEXT, "It."), results=[result])

    assert [(m.source_id, m.text, m.label, m.sub_query) for m in made.merged] == [
        ("s1", "It is 12.", "legal", "How many?")
    ]
    assert prompts.quoted("How many?", None) in made.body["messages"][0]["content"]


def test_an_answer_too_long_for_one_fact_is_cut_between_words():
    """Nothing of it is lost, and every piece is within the bound."""
    text = "word " * 8_000
    made = packed(an_envelope(), Transferred(source(text), Transfer.FULL_CONTEXT, text))

    assert "".join(one.content for one in made.envelope.facts) == text
    assert names(made.envelope.facts) == ["w1", "w1#1"]
    assert all(len(one.content) <= envelope.FACT_LIMIT for one in made.envelope.facts)


def test_too_much_context_is_refused_never_dropped():
    """The limits of an envelope hold for what comes from earlier windows too."""
    with pytest.raises(Refused, match="TOO_MANY_FACTS"):
        packed(
            an_envelope(*(fact(str(i), f"It is {i}.") for i in range(8))),
            Transferred(source("It."), Transfer.FULL_CONTEXT, "It."),
        )


@pytest.mark.parametrize(
    ("asked", "reason", "param"),
    [
        ({"token_budget": 0}, "INVALID_PARAMETER", "interlock.token_budget"),
        ({"token_budget": True}, "INVALID_PARAMETER", "interlock.token_budget"),
        ({"token_budget": 1.5}, "INVALID_PARAMETER", "interlock.token_budget"),
        ({"transfer": "all"}, "INVALID_PARAMETER", "interlock.transfer"),
        ({"transfer": ["full"]}, "INVALID_PARAMETER", "interlock.transfer"),
        ({"sub_queries": "x"}, "INVALID_PARAMETER", "interlock.sub_queries"),
        ({"sub_queries": ["x", " "]}, "INVALID_PARAMETER", "interlock.sub_queries[1]"),
        ({"sub_agent_results": {}}, "INVALID_PARAMETER", "interlock.sub_agent_results"),
        ({"sub_agent_results": [1]}, "INVALID_PARAMETER", "interlock.sub_agent_results"),
        ({"sub_agent_results": [{"session_id": "s", "text": "Believe me."}]}, "INVALID_PARAMETER",
         "interlock.sub_agent_results[0]"),
        ({"sub_agent_results": [{"session_id": "s"}]}, "INVALID_ID", None),
        ({"sub_agent_results": [{"session_id": "crp_sess_" + "0" * 32, "hmac": "sha256:" + "0" * 63}]},
         "INVALID_PARAMETER", "interlock.sub_agent_results[0].hmac"),
        ({"sub_agent_results": [{"session_id": "crp_sess_" + "0" * 32, "hmac": "sha256:" + "0" * 64}] * 2},
         "DUPLICATE_RESULT", "interlock.sub_agent_results"),
        ({"sub_agent_results": [{}] * 101}, "INVALID_PARAMETER", "interlock.sub_agent_results"),
    ],
)  # fmt: skip
@pytest.mark.req("AGT-4")
def test_what_is_asked_for_is_checked_before_anything_is_begun(asked, reason, param):
    """A result is named by session and HMAC and nothing else: its text is never the caller's."""
    value = {"model": "m", "messages": [{"role": "user", "content": "Why?"}], "interlock": asked}
    with pytest.raises(Refused) as caught:
        envelope.of_chat(chat.read(value, SETTINGS), SETTINGS)

    assert (caught.value.reason, caught.value.metadata.get("param")) == (reason, param)
