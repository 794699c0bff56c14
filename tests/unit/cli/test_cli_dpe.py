"""``interlock dpe analyze``: one answer, or one on each line of a file (DPE-13)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from typer.testing import CliRunner

from interlock.cli.dpe import _results, app, as_text, parse_request, report_dict
from interlock.domain.errors import Kind, Refused
from interlock.dpe.request import PriorWindow
from tests.support.dpe import pipeline, request

FACT = {"id": "f1", "content": "The Eiffel Tower is 330 metres tall.", "importance": 0.9}
GOOD = {"facts": [FACT], "query": "How tall?", "prior": [], "response": "The Eiffel Tower is 330 metres tall."}
BAD = GOOD | {"response": "The Eiffel Tower is 390 metres tall."}


async def batch(lines: Iterable[Any]) -> list[dict[str, Any]]:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return [result async for result in _results(raw, pipeline())]


def test_fields_are_read():
    """Facts, query, prompt, domain and response; ids and weights have defaults."""
    found = parse_request(GOOD | {"facts": [FACT, {"content": "Second."}], "prompt": "p", "domain": "medical"})

    assert [(f.id, f.importance) for f in found.facts] == [("f1", 0.9), ("f2", 0.5)]
    assert (found.query, found.prompt, found.domain) == ("How tall?", "p", "medical")
    assert [output.text for output in found.outputs] == [GOOD["response"]]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"response": None},
        {"response": 5},
        {"response": "x", "facts": {}},
        {"response": "x", "facts": ["text"]},
        {"response": "x", "facts": [{"id": "f1"}]},
        {"response": "x", "facts": [{"content": "c", "importance": "high"}]},
        {"response": "x", "facts": [{"content": "c", "importance": True}]},
        {"response": "x", "query": ["q"]},
        {"response": "\ud800"},
        {"response": "x", "prior": "text"},
        {"response": "x", "prior": [1]},
        {"response": "x", "prior": [{"window_id": "w1"}]},
        {"response": "x", "prior": [{"window_id": 1, "text": "t"}]},
    ],
)
def test_wrong_fields_are_refused(raw):
    """Each names what is wrong, before a model is loaded."""
    with pytest.raises(Refused) as refused:
        parse_request(raw)

    assert (refused.value.kind, refused.value.reason) == (Kind.INVALID, "INPUT_INVALID")


@pytest.mark.finding("F-30")
def test_earlier_answers_are_read_in_their_order():
    """Objects with an id, or texts alone."""
    found = parse_request(GOOD | {"prior": [{"window_id": "a", "text": "One."}, "Two."]})

    assert found.prior == (PriorWindow("a", "One."), PriorWindow("w2", "Two."))


@pytest.mark.models
@pytest.mark.finding("F-30")
@pytest.mark.req("DPE-7", "DPE-13")
async def test_an_answer_is_compared_with_earlier_ones():
    """A contradiction with an earlier answer, and its repetition, are found; without prior neither is."""
    said = "The Eiffel Tower is 330 metres tall."
    lines = [
        {"response": said, "prior": prior} for prior in ([], [{"text": "The Eiffel Tower is 390 metres tall."}], [said])
    ]
    alone, against, again = [result["report"] for result in await batch(lines)]

    assert (alone["contradiction_count"], against["contradiction_count"]) == (0, 1)
    assert against["contradictions"][0]["window_id"] == "w1"
    assert (alone.get("repetition_level", "NONE"), again["repetition_level"]) == ("NONE", "SEVERE")


@pytest.mark.models
@pytest.mark.req("DPE-13")
async def test_a_batch_answers_each_line_in_order():
    """One result a line with its id; a bad line is an error with a reason, and the rest goes on."""
    results = await batch(
        [
            {"id": "a"} | GOOD,
            b"{broken",
            b"",
            {"id": "c", "response": 1},
            b"\xff\xfe",
            b"[1]",
            {"id": 7} | BAD,
            {"id": "d"} | GOOD | {"facts": [FACT, FACT]},
        ]
    )

    assert [result["id"] for result in results] == ["a", 2, "c", 5, 6, 7, "d"]
    reasons = [result["error"]["reason"] for result in results if "error" in result]
    assert reasons == ["INPUT_INVALID"] * 4 + ["DUPLICATE_FACT_ID"]
    assert results[0]["report"]["risk_level"] == "RISK_LEVEL_LOW"
    assert results[5]["report"]["distortion_types"] == ["NUMBER_CHANGED"]
    json.dumps(results)


@pytest.mark.models
@pytest.mark.req("DPE-13")
async def test_a_report_in_json_leaves_out_what_did_not_run():
    """Zero and empty are given, absent is absent."""
    found = report_dict(await pipeline().analyse(parse_request(GOOD)))

    assert found["fabrication_count"] == 0
    assert found["omissions"] == []
    assert "flow_score" not in found


@pytest.mark.models
@pytest.mark.req("DPE-13")
async def test_the_text_marks_what_is_unsupported():
    """Readable without colour: brackets in the answer, reasons under it."""
    answer = "The tower is old.\n\nThe Eiffel Tower is 390 metres tall."
    text = as_text(answer, await pipeline().analyse(request(answer, FACT["content"], "The tower is old.")))

    assert "The tower is old.\n\n[1: The Eiffel Tower is 390 metres tall.]" in text
    assert "NUMBER_CHANGED" in text
    assert "\x1b" not in text
    assert text.startswith("risk ")


@pytest.mark.models
async def test_the_text_of_an_empty_answer():
    """Nothing to mark is said as well."""
    text = as_text("", await pipeline().analyse(request("")))

    assert "EMPTY_RESPONSE" in text


@pytest.mark.parametrize("arguments", [["analyze"], ["analyze", "x.json", "--batch", "y.jsonl"]])
def test_usage(arguments):
    """Either a file or a batch."""
    result = CliRunner().invoke(app, arguments)

    assert isinstance(result.exception, Refused)
    assert result.exception.reason == "USAGE"


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """Named, before a model is loaded."""
    result = CliRunner().invoke(app, ["analyze", str(tmp_path / "none.json")])

    assert isinstance(result.exception, Refused)
    assert result.exception.reason == "FILE_UNREADABLE"


@pytest.mark.models
@pytest.mark.req("DPE-13")
def test_the_command_as_a_whole(tmp_path):
    """A batch prints a line for each and exits with 1 for a bad one; nothing else is on standard output."""
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"id": 1} | GOOD) + "\nnot json\n")
    result = CliRunner().invoke(app, ["analyze", "--batch", str(path)])

    assert result.exit_code == 1
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [1, 2]
