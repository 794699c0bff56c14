"""The echo of calls inside the mesh, and the rules of their answers (A-52)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.domain.errors import Refused
from interlock.runtime.rpc import answers, peers
from interlock.runtime.rpc.echo import ECHO_FIELD, EchoedCall, EchoedRequest
from tests.support.servers.bending import FILES, methods

REFUSAL = common_pb2.Refusal(reason="R", metadata={"a": "1", "b": "2"})
READ = common_pb2.Refusal.FromString


def test_an_answer_belongs_to_one_call():
    """The same question asked twice has two answers, and none fits the other call."""
    first, second = EchoedCall("/x.Y/Z", REFUSAL), EchoedCall("/x.Y/Z", REFUSAL)
    told = EchoedRequest("/x.Y/Z", first.sent, READ).answer(REFUSAL)

    assert first.answer(told, READ) == (REFUSAL, True)
    with pytest.raises(Refused, match="ANSWER_TO_ANOTHER_CALL"):
        second.answer(told, READ)


def test_the_messages_of_a_stream_have_their_places():
    """One that is missing, or comes twice, is seen at once."""
    ask = EchoedCall("/x.Y/Z", REFUSAL)
    asked = EchoedRequest("/x.Y/Z", ask.sent, READ)
    one, two, end = asked.answer(REFUSAL, last=False), asked.answer(REFUSAL, last=False), asked.end()

    assert ask.answer(one, READ) == (REFUSAL, False)
    for wrong in (one, end):
        with pytest.raises(Refused, match="ANSWER_TO_ANOTHER_CALL"):
            ask.answer(wrong, READ)
    assert ask.answer(two, READ) == (REFUSAL, False)
    assert ask.answer(end, READ) == (common_pb2.Refusal(), True)


def test_a_request_that_was_altered_on_its_way_is_refused():
    """The service does nothing for a request that its caller did not make."""
    sent = EchoedCall("/x.Y/Z", REFUSAL).sent

    assert EchoedRequest("/x.Y/Z", sent, READ).request == REFUSAL
    with pytest.raises(Refused, match="REQUEST_ALTERED"):
        EchoedRequest("/x.Y/Z", b"\x0a\x01X" + sent, READ)
    with pytest.raises(Refused, match="REQUEST_ALTERED"):
        EchoedRequest("/x.Y/Other", sent, READ)


def test_no_message_declares_the_field_of_the_echo():
    """Its number is the echo's in every message of the protos."""
    for module in FILES.values():
        for declared in module.DESCRIPTOR.message_types_by_name.values():
            assert max((field.number for field in declared.fields), default=0) < ECHO_FIELD


def test_every_answer_that_a_peer_reads_has_a_rule():
    """A new method of the peers needs an entry in the rules, or a word that its answer may be empty."""
    known = {*answers.NEEDED, *answers.AS_MANY, *answers.RULES, *answers.EMPTY_ANSWERS}
    source = set(re.findall(r"self\._stub\.(\w+)", Path(peers.__file__).read_text()))
    outputs = {method.name: method.output_type.name for _, method in methods()}

    assert len(source) > 30
    assert {outputs[name] for name in source} <= known
    assert not {*answers.NEEDED, *answers.AS_MANY} & answers.EMPTY_ANSWERS
