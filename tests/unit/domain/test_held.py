"""What a held response is packed as: one form, read back exactly, and nothing else is read (SPEC-012 §6)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain import held
from interlock.domain.held import Held, packed, readable_texts, unpacked


def a_held(**changes) -> Held:
    values = {
        "form": held.CHAT, "include_usage": False, "headers": {"CRP-Safety-Hallucination-Risk": "HIGH"},
        "body": b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."}}]}', "decision": b"\x08\x02",
        "question": "Is it?", "evidence": {"f1": "It is."},
    }  # fmt: skip
    return Held(**{**values, **changes})


@given(
    st.sampled_from([held.CHAT, held.STREAM, held.TEXT]), st.booleans(), st.dictionaries(st.text(), st.text()),
    st.binary(), st.text(), st.dictionaries(st.text(), st.text()),
)  # fmt: skip
def test_what_is_packed_is_read_back(form, include_usage, headers, body, question, evidence):
    """Whatever the texts and bytes are."""
    made = a_held(
        form=form, include_usage=include_usage, headers=headers, body=body, question=question, evidence=evidence
    )

    assert unpacked(packed(made)) == made


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2}, {"form": "audio"}, {"form": []}, {"include_usage": 0}, {"headers": {"a": 1}}, {"body": "%%"},
        {"evidence": []}, {"question": None}, {"more": 1},
    ],
)  # fmt: skip
def test_nothing_else_is_read(change):
    """Another version, another form, another type or one field more: nothing is released that cannot be vouched for."""
    values = json.loads(packed(a_held()))

    with pytest.raises(ValueError, match="not a held response"):
        unpacked(json.dumps({**values, **change}, sort_keys=True, separators=(",", ":")).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"\xff", b'{"v":1,"v":1}'])
def test_what_is_no_object_of_ours_is_refused(data):
    """Bytes of anything else raise nothing but ValueError."""
    with pytest.raises(ValueError, match="not a held response"):
        unpacked(data)


@pytest.mark.finding("F-23")
def test_every_text_that_a_client_would_get_is_shown():
    """Choices, reasoning, refusals and what tools are called with: a reviewer judges all of it."""
    message = {
        "content": "A", "reasoning_content": "B", "refusal": "C",
        "tool_calls": [{"function": {"name": "pay", "arguments": '{"to":"x"}'}}],
    }  # fmt: skip
    older = {"content": "D", "function_call": {"name": "wire", "arguments": ""}}
    body = json.dumps({"choices": [{"index": 0, "message": message}, {"index": 1, "message": older}]})
    found = readable_texts(a_held(body=body.encode()))

    assert found == [
        ("choice 0 answer", "A"), ("choice 0 reasoning", "B"), ("choice 0 refusal", "C"),
        ("choice 0 call of pay", '{"to":"x"}'), ("choice 1 answer", "D"), ("choice 1 call of wire", "{}"),
    ]  # fmt: skip
    assert readable_texts(a_held(form=held.TEXT, body=b"plain")) == [("text", "plain")]
