"""The command line as a whole: what it offers, and how it refuses."""

from __future__ import annotations

import ast
import json

import pytest
from typer.testing import CliRunner

from interlock.cli import main
from interlock.cli.main import COMMANDS, app
from interlock.cli.output import print_refusal, wants_json
from interlock.domain.errors import invalid
from tests.support.paths import PACKAGE

CLI = PACKAGE / "cli"


def said(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_help_lists_every_command():
    """The first screen names each command with its one line."""
    text = said("--help").output

    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert "Exit codes" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    """Each command explains itself, and does not offer to install completion a second time."""
    answer = said(name, "--help")

    assert answer.exit_code == 0
    assert "--install-completion" not in answer.output


def test_version():
    """--version says which one this is."""
    assert said("--version").output.startswith("interlock 0.")


def test_no_module_of_the_front_imports_heavy_parts():
    """What is imported to find a command imports no service, no server and no model."""
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for name in ("main.py", "output.py")
        for node in ast.parse((CLI / name).read_text()).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    }

    assert not {
        m
        for m in imported
        if m.startswith("interlock.") and m not in {"interlock.cli.output", "interlock.domain.errors"}
    }


@pytest.mark.parametrize(
    ("arguments", "json_wanted"),
    [
        (["check", "-o", "json"], True),
        (["check", "--output", "json"], True),
        (["check", "-ojson"], True),
        (["check", "--output=json"], True),
        (["check", "-o", "text"], False),
        (["policy", "parse", "json"], False),
        (["audit", "export", "x", "-o"], False),
    ],
)
def test_json_is_recognised(arguments, json_wanted):
    """A refusal before any command runs still knows how to print itself."""
    assert wants_json(arguments) is json_wanted


def test_refusal_for_people(capsys):
    """People get reason, message and hint on standard error, nothing on standard output, and code 2."""
    code = print_refusal(invalid("SETTINGS_INVALID", "x is no setting", hint="see the docs"), as_json=False)

    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err == "error: SETTINGS_INVALID: x is no setting\nhint: see the docs\n"


def test_refusal_for_programs(capsys):
    """Programs get one JSON document on standard output, and code 2."""
    code = print_refusal(invalid("SETTINGS_INVALID", "x is no setting", position="7"), as_json=True)

    captured = capsys.readouterr()
    assert (code, captured.err) == (2, "")
    assert json.loads(captured.out) == {
        "error": {"reason": "SETTINGS_INVALID", "message": "x is no setting", "metadata": {"position": "7"}}
    }


@pytest.mark.parametrize("arguments", [("decision", "show", "search"), ("decision", "replay", "search"), ("decision", "list", "search", "--after"),
                                       ("audit", "prove", "--sequence"), ("audit", "acknowledge-truncation", "--size")])  # fmt: skip
@pytest.mark.parametrize("number", ["99999999999999999999", "9223372036854775808"])
def test_a_number_that_no_message_holds_is_wrong_usage(arguments, number):
    """It is refused where it is read, with the exit code of wrong usage."""
    result = said(*arguments, number)

    assert result.exit_code == 2, result.output
    assert "9223372036854775807" in result.output


@pytest.mark.parametrize("json_wanted", [False, True])
def test_a_defect_is_a_line_and_an_exit_code_of_its_own(monkeypatch, capsys, json_wanted):
    """No traceback and no value: its type and the places of the code, for a report."""

    def broken(**_):
        raise ValueError("sk-secret")

    monkeypatch.setattr(main, "app", broken)
    monkeypatch.setattr("sys.argv", ["interlock", "check", *(["-o", "json"] if json_wanted else [])])
    with pytest.raises(SystemExit) as ended:
        main.run()
    printed = capsys.readouterr()
    told = printed.out + printed.err

    assert ended.value.code == 70
    assert ("INTERNAL" in told, "ValueError" in told, "test_cli_main.py:" in told) == (True, True, True)
    assert "sk-secret" not in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(36, "File name too long", "a" * 5_000), "FILE_UNUSABLE"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"), "ARGUMENT_INVALID"),
    ],
)
def test_what_the_system_refuses_is_no_defect(monkeypatch, capsys, error, reason):
    """A file name that no file system takes and an argument that is no text are told as such, with the exit code of a refusal."""

    def broken(**_):
        raise error

    monkeypatch.setattr(main, "app", broken)
    monkeypatch.setattr("sys.argv", ["interlock", "kernel", "describe", "\udcff"])
    with pytest.raises(SystemExit) as ended:
        main.run()
    printed = capsys.readouterr()

    assert (ended.value.code, printed.err.startswith(f"error: {reason}: "), len(printed.err) < 400) == (2, True, True)
