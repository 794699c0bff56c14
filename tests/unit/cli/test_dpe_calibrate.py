"""``interlock dpe calibrate``: an operator's own labelled answers through the real engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from interlock.cli.dpe import app
from interlock.domain.errors import Refused
from interlock.domain.risk.strictness import LEAST_OF_EACH

NAMES = ["Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Linden", "Maple", "Oak", "Pine"]


def row(number: int, *, faithful: bool) -> dict[str, Any]:
    """An answer about one hall, with its height or with another one."""
    name, height = NAMES[number % len(NAMES)], 12 + number
    told = height if faithful else height + 31
    return {
        "answer": f"The {name} hall is {told} metres high.",
        "sources": [
            f"The {name} hall is {height} metres high.",
            {"id": "other", "content": "Entry is free on Mondays."},
        ],
        "query": f"How high is the {name} hall?",
        "label": "faithful" if faithful else "unfaithful",
    }


def written(folder: Path, rows: Sequence[Any]) -> str:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in rows) + "\n")
    return str(path)


def refused(folder: Path, rows: Sequence[Any]) -> Refused:
    result = CliRunner().invoke(app, ["calibrate", written(folder, rows)])
    assert isinstance(result.exception, Refused)
    return result.exception


@pytest.mark.models
@pytest.mark.req("DPE-5")
def test_labelled_answers_are_judged_and_a_setting_is_recommended(tmp_path):
    """The real engine tells both halves apart; points, intervals and the recommendation are told."""
    rows = [row(number, faithful=label) for number in range(LEAST_OF_EACH) for label in (True, False)]
    result = CliRunner().invoke(app, ["calibrate", written(tmp_path, rows), "-o", "json"])
    told = json.loads(result.stdout)

    assert result.exit_code == 0
    assert told["answers"] == 2 * LEAST_OF_EACH
    assert [one["strictness"] for one in told["points"]] == ["lenient", "balanced", "strict"]
    assert told["points"][1]["recall"]["value"] == 1.0
    assert told["points"][1]["false_alarms"]["value"] == 0.0
    assert 0.0 < told["points"][1]["false_alarms"]["high"] < 0.2
    assert told["recommended"] in {"lenient", "balanced"}


@pytest.mark.req("DPE-5")
def test_too_few_rows_are_refused_before_a_model_is_loaded(tmp_path):
    """Each label needs enough, and the refusal tells how many there are."""
    rows = [row(number, faithful=True) for number in range(LEAST_OF_EACH)] + [row(0, faithful=False)]
    found = refused(tmp_path, rows)

    assert found.reason == "TOO_FEW_ROWS"
    assert "1 unfaithful" in found.message


@pytest.mark.req("DPE-5")
@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"label": "good"}, "label"),
        ({"label": None}, "label"),
        ({"label": True}, "label"),
        ({"sources": []}, "sources"),
        ({"sources": "text"}, "sources"),
        ({"sources": [5]}, "facts"),
        ({"answer": 5}, "answer"),
        ({"query": 5}, "query"),
    ],
)
def test_a_row_of_another_form_is_refused(tmp_path, changed, field):
    """The field that is wrong is named, and nothing is judged."""
    rows = [row(number, faithful=label) for number in range(LEAST_OF_EACH) for label in (True, False)]
    found = refused(tmp_path, [*rows, row(0, faithful=True) | changed])

    assert (found.reason, found.metadata["field"]) == ("INPUT_INVALID", field)


@pytest.mark.req("DPE-5")
def test_lines_that_are_no_json_are_refused(tmp_path):
    """As analyze does."""
    path = tmp_path / "answers.jsonl"
    path.write_text("not json\n")
    result = CliRunner().invoke(app, ["calibrate", str(path)])

    assert result.exception.reason == "INPUT_INVALID"
