"""``interlock policy``: output for people and programs, exit codes, and the caret below a mistake."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from interlock.cli.policy import app

PARENT, CHILD = "halt-on CRITICAL; require-grounding 0.75", "warn-on CRITICAL; require-grounding 0.50"


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_parse_shows_directives_text_and_hash():
    """People see each directive, the canonical text and the hash."""
    result = run("parse", "require-grounding 0.8; default-src context")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == ["default-src        context", "require-grounding  0.80"]
    assert "canonical  default-src context; require-grounding 0.80" in result.stdout
    assert "hash       sha256:" in result.stdout


def test_parse_prints_json():
    """Programs get the fields of ParseResponse."""
    result = run("parse", "block-pii; halt-on high", "-o", "json")

    assert json.loads(result.stdout) == {
        "directives": [{"name": "halt-on", "values": ["HIGH"]}, {"name": "block-pii", "values": []}],
        "canonical_text": "halt-on HIGH; block-pii",
        "policy_hash": "sha256:b2efc077b36282927c921ed17024f8ccabf5211264155efaa6b3bf458687848e",
    }


@pytest.mark.req("POL-1")
def test_parse_points_at_the_mistake():
    """A malformed policy: exit 2, the reason, a caret below the place, and what was meant."""
    result = run("parse", "warn-on HIGH; halt-on CRITCAL")

    assert (result.exit_code, result.stdout) == (2, "")
    reason, text, caret, meant = result.stderr.splitlines()
    assert reason.startswith("error: POLICY_BAD_VALUE: ")
    assert text[caret.index("^") :] == "CRITCAL"
    assert meant == "did you mean CRITICAL?"


def test_the_caret_stays_in_a_long_text():
    """Of a long policy only the surroundings of the place are shown, and no control character of it."""
    result = run("parse", "report-uri https://h/" + "a" * 4000 + "; halt-on \x1b[2J" + "b" * 500)
    _, text, caret = result.stderr.splitlines()

    assert text[caret.index("^")] == "?"
    assert "\x1b" not in result.stderr
    assert len(text) < 80


def test_parse_refuses_in_json():
    """Programs get reason, message and metadata of the refusal."""
    result = run("parse", "halt-on", "-o", "json")
    error = json.loads(result.stdout)["error"]

    assert (result.exit_code, error["reason"]) == (2, "POLICY_BAD_VALUE")
    assert error["metadata"]["position"] == "7"


def test_compare_accepts_a_tightening():
    """A child that is at least as strict: exit 0."""
    result = run("compare", PARENT, "halt-on HIGH; require-grounding 0.85; block-fabrication")

    assert (result.exit_code, result.stdout) == (0, "the child is at least as strict as its parent\n")
    assert json.loads(run("compare", PARENT, PARENT, "-o", "json").stdout) == {
        "at_least_as_strict": True,
        "relaxations": [],
    }


@pytest.mark.req("POL-6")
def test_compare_names_both_values_of_a_relaxation():
    """A relaxation: exit 1, each directive with both values."""
    result = run("compare", PARENT, CHILD)

    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:] == [
        "  halt-on: parent CRITICAL, child leaves it out",
        "  require-grounding: parent 0.75, child 0.50",
    ]


@pytest.mark.req("POL-6")
def test_compare_prints_relaxations_as_json():
    """Programs get each relaxation with both values."""
    result = run("compare", PARENT, CHILD, "-o", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["relaxations"] == [
        {"directive": "halt-on", "parent": "CRITICAL", "child": ""},
        {"directive": "require-grounding", "parent": "0.75", "child": "0.50"},
    ]


@pytest.mark.parametrize(("parent", "child", "which"), [("nonsense", CHILD, "parent"), (PARENT, "nonsense", "child")])
def test_compare_tells_which_text_is_malformed(parent, child, which):
    """A malformed text is no relaxation: exit 2, and it is said whose it is."""
    result = run("compare", parent, child)
    as_json = run("compare", parent, child, "-o", "json")

    assert (result.exit_code, as_json.exit_code) == (2, 2)
    assert f"in the {which}'s policy:" in result.stderr
    assert json.loads(as_json.stdout)["error"]["metadata"]["policy"] == which
