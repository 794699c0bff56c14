"""``interlock policy``: output for people and programs, exit codes, and the caret below a mistake."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from interlock.cli.policy.commands import app

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


def test_lint_points_at_what_is_hardly_meant():
    """A warning: exit 1, what is the matter, and a caret below the directive."""
    result = run("lint", "halt-on HIGH; warn-on CRITICAL")
    says, text, caret, count = result.stdout.splitlines()

    assert (result.exit_code, count) == (1, "1 warning")
    assert says.startswith("warning: warn-on: it changes nothing")
    assert text[caret.index("^") :] == "warn-on CRITICAL"


def test_lint_has_nothing_to_say_about_a_sound_policy():
    """No remark: exit 0; programs get an empty list, and a note alone is no failure."""
    sound, as_json = run("lint", "halt-on CRITICAL"), run("lint", "halt-on CRITICAL", "-o", "json")

    assert (sound.exit_code, sound.stdout) == (0, "nothing to remark\n")
    assert json.loads(as_json.stdout) == {"warnings": 0, "remarks": []}
    assert (run("lint", "block-pii").exit_code, run("lint", "halt-on CRITCAL").exit_code) == (0, 2)


def test_explain_has_a_sentence_and_a_row_for_each_risk():
    """People read sentences and a table; programs get the same as fields."""
    result = run("explain", "halt-on CRITICAL; warn-on HIGH")
    told = json.loads(run("explain", "halt-on CRITICAL; warn-on HIGH", "-o", "json").stdout)

    assert "halt-on CRITICAL  Halts an answer whose risk is CRITICAL." in result.stdout
    assert "releasable: a registered reviewer may let it out" in result.stdout
    assert [one["breaker_closed"] for one in told["at_risk"]] == [
        "delivered", "delivered", "delivered with a warning", "halted by halt-on (releasable)",
    ]  # fmt: skip


def test_diff_ends_with_1_where_something_is_looser():
    """Each directive has its sign and both values; a tightening is exit 0."""
    result = run("diff", "halt-on HIGH; block-pii", "halt-on MEDIUM")
    told = json.loads(run("diff", "halt-on HIGH", "halt-on MEDIUM", "-o", "json").stdout)

    assert result.exit_code == 1
    assert [line.split() for line in result.stdout.splitlines()[1:3]] == [
        ["+", "halt-on", "HIGH", "MEDIUM", "stricter"], ["-", "block-pii", "present", "-", "looser"],
    ]  # fmt: skip
    assert (told["loosens"], [one["direction"] for one in told["changes"]]) == (False, ["stricter"])
    assert run("diff", "halt-on HIGH", "halt-on HIGH").stdout == "no directive differs\n"


def test_cases_run_like_tests(tmp_path):
    """Exit 0 where all pass; 1 where one fails, with what was decided; 2 for a file that says nothing usable."""
    file, bad = tmp_path / "cases.yaml", tmp_path / "bad.yaml"
    file.write_text("policy: halt-on HIGH\ncases:\n  - {name: high, report: {risk: HIGH}, expect: halted}\n")
    bad.write_text("policy: halt-on HIHG\ncases:\n  - {expect: halted}\n")
    passing, failing = run("test", str(file)), run("test", str(file), "--policy", "halt-on CRITICAL")
    as_json = json.loads(run("test", str(file), "--policy", "halt-on CRITICAL", "-o", "json").stdout)
    broken, absent = run("test", str(bad)), run("test", str(tmp_path / "none.yaml"))

    assert (passing.exit_code, passing.stdout) == (0, "ok      high\n\n1 passed, 0 failed\n")
    assert (failing.exit_code, failing.stdout.splitlines()[1]) == (
        1,
        "        outcome: expected halted, decided delivered",
    )
    assert (as_json["failed"], as_json["cases"][0]["wrong"]) == (1, ["outcome"])
    assert (broken.exit_code, "did you mean HIGH?" in broken.stderr) == (2, True)
    assert (absent.exit_code, "FILE_UNREADABLE" in absent.stderr) == (2, True)


def test_a_policy_may_stand_in_a_file(tmp_path):
    """``@FILE`` is read in its place, the line break at its end aside; a file that is not there is refused."""
    file = tmp_path / "policy.txt"
    file.write_text("halt-on HIGH; block-pii\n")
    found, absent = run("parse", f"@{file}"), run("parse", f"@{tmp_path / 'none'}")

    assert (found.exit_code, "halt-on HIGH; block-pii" in found.stdout) == (0, True)
    assert (absent.exit_code, "FILE_UNREADABLE" in absent.stderr) == (2, True)
