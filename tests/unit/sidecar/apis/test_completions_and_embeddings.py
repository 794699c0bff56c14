"""Legacy completions and embeddings, held against the vendor's types (API-3, API-6)."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from openai.types import CreateEmbeddingResponse, completion_create_params, embedding_create_params

from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.completions import legacy
from interlock.sidecar.openai import embeddings

pytestmark = pytest.mark.req("API-3", "API-6")
SETTINGS = Settings(max_text_bytes=1024)


def fields(one: Any) -> set[str]:
    return set(one.__required_keys__ | one.__optional_keys__)


def refused(read: Any, value: Any) -> tuple[str, str | None]:
    try:
        read(json.dumps(value).encode(), SETTINGS)
    except Refused as found:
        return found.reason, found.metadata.get("param")
    return "", None


def test_every_parameter_of_a_completion_is_passed_or_refused_by_name():
    """A parameter that only a newer client knows is in neither list."""
    named = fields(completion_create_params.CompletionCreateParamsNonStreaming)

    assert named - {"prompt"} == (set(legacy.PASSED) - {"interlock"}) | legacy.REFUSED.keys()


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ({"prompt": "x"}, ("", None)),
        ({"prompt": ["x"], "best_of": 1, "echo": False, "suffix": None, "n": 1}, ("", None)),
        ({"prompt": ["x", "y"]}, ("UNSUPPORTED_CONTENT", "prompt")),
        ({"prompt": [1, 2]}, ("UNSUPPORTED_CONTENT", "prompt")),
        ({"prompt": [[1, 2]]}, ("UNSUPPORTED_CONTENT", "prompt")),
        ({"prompt": 7}, ("INVALID_PARAMETER", "prompt")),
        ({}, ("INVALID_PARAMETER", "prompt")),
        ({"prompt": "x", "echo": True}, ("UNSUPPORTED_CONTENT", "echo")),
        ({"prompt": "x", "suffix": "y"}, ("UNSUPPORTED_CONTENT", "suffix")),
        ({"prompt": "x", "logprobs": 0}, ("", None)),
        ({"prompt": "x", "logprobs": 2}, ("UNSUPPORTED_CONTENT", "logprobs")),
        ({"prompt": "x", "best_of": 3}, ("UNSUPPORTED_CONTENT", "best_of")),
        ({"prompt": "x", "messages": []}, ("UNKNOWN_PARAMETER", "messages")),
        ({"prompt": "x", "tools": []}, ("UNKNOWN_PARAMETER", "tools")),
    ],
)
def test_a_prompt_is_one_message(more, end):
    """What a chat request has no word for, and what would be released unjudged, is refused by name."""
    assert refused(legacy.read, {"model": "m", **more}) == end


def test_every_parameter_of_embeddings_is_read():
    """The list is the vendor's."""
    assert set(embeddings._NAMES) == fields(embedding_create_params.EmbeddingCreateParams)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"input": "x"}, ""),
        ({"input": ["x", "y"]}, ""),
        ({"input": [1, 2]}, ""),
        ({"input": [[1, 2], [3]], "dimensions": 8, "encoding_format": "base64", "user": "u"}, ""),
        ({"input": ""}, "INVALID_PARAMETER"),
        ({"input": []}, "INVALID_PARAMETER"),
        ({"input": [True]}, "INVALID_PARAMETER"),
        ({"input": [[-1]]}, "INVALID_PARAMETER"),
        ({"input": ["x", 1]}, "INVALID_PARAMETER"),
        ({"input": ["x"] * 2049}, "INVALID_PARAMETER"),
        ({"input": "x" * 1025}, "TEXT_TOO_LARGE"),
        ({"input": [1] * 300_001}, "TEXT_TOO_LARGE"),
        ({"input": "x", "dimensions": 0}, "INVALID_PARAMETER"),
        ({"input": "x", "encoding_format": "text"}, "INVALID_PARAMETER"),
        ({"input": "x", "extra": 1}, "UNKNOWN_PARAMETER"),
        ({"input": "x", "model": ""}, "INVALID_PARAMETER"),
    ],
)
def test_a_request_for_embeddings_is_checked(more, reason):
    """Texts and tokens within their limits; nothing else passes."""
    assert refused(embeddings.read, {"model": "m", **more})[0] == reason


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def given(*vectors: Any, **more: Any) -> bytes:
    rows = [{"object": "embedding", "index": number, "embedding": one} for number, one in enumerate(vectors)]
    return json.dumps(
        {
            "object": "list",
            "data": rows,
            "model": "provider's",
            "usage": {"prompt_tokens": 2, "total_tokens": 2},
            **more,
        }
    ).encode()


def answered(data: bytes, **more: Any) -> embeddings.Vectors:
    return embeddings.answer(data, {"model": "m", "input": ["a", "b"], **more}, max_depth=16)


def test_vectors_come_back_in_order_under_the_model_that_was_asked_for():
    """Valid by the vendor's own type."""
    rows = [{"index": 1, "embedding": [3, 4.5], "text": "x"}, {"index": 0, "embedding": [1, 2]}]
    found = answered(given(data=rows, service_tier="gold"))
    read = CreateEmbeddingResponse.model_validate_json(found.body)

    assert [(one.index, one.embedding) for one in read.data] == [(0, [1.0, 2.0]), (1, [3.0, 4.5])]
    assert (read.model, found.tokens, found.dimensions) == ("m", 2, 2)
    assert found.dropped == ("other", "service_tier")


def test_base64_is_numbers_and_nothing_else():
    """Where it was asked for; the provider may answer in numbers all the same."""
    as_text = answered(given(packed(1, 2), packed(3, 4)), encoding_format="base64")
    as_numbers = answered(given([1, 2], [3, 4]), encoding_format="base64")

    assert json.loads(as_text.body)["data"][1]["embedding"] == packed(3, 4)
    assert json.loads(as_numbers.body)["data"][1]["embedding"] == [3, 4]


BROKEN = {
    "too few": given([1]),
    "too many": given([1], [1], [1]),
    "of two sizes": given([1], [1, 2]),
    "empty": given([], []),
    "a text": given(["x"], ["y"]),
    "a truth value": given([True], [True]),
    "base64 that nobody asked for": given(packed(1), packed(1)),
    "an index twice": given(data=[{"index": 0, "embedding": [1]}] * 2),
    "no list": given(data={"a": 1}),
    "no JSON": b"{",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_vector_is_no_answer(name):
    """As many vectors as inputs, of one size, of numbers."""
    with pytest.raises(Refused, match="model provider answered") as caught:
        answered(BROKEN[name])

    assert caught.value.reason == "UPSTREAM_INVALID_RESPONSE"


@pytest.mark.parametrize(
    "text",
    [
        "not base64",
        base64.b64encode(b"abc").decode(),
        packed(float("nan")),
        packed(float("inf")),
        packed(1) + "\n",
        "AACAPx==",
        "",
    ],
)
def test_base64_that_is_no_finite_number_is_no_answer(text):
    """Another spelling of the same bytes could carry something, too."""
    with pytest.raises(Refused):
        answered(given(text, text), encoding_format="base64")
