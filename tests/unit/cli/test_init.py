"""``interlock init`` and ``interlock version``: a settings file that loads as it is, and what runs."""

from __future__ import annotations

import json
import re
import stat
from importlib.metadata import version
from typing import get_args

import pytest
import yaml
from typer.testing import CliRunner

from interlock.cli.config.sample import sample
from interlock.cli.main import app
from interlock.runtime.settings.groups import settings_groups
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.profile_files import ProfileName
from tests.support.servers.processes import environment, run_here

PROFILES = get_args(ProfileName)
SETTING = re.compile(r"^# (\w+):(.*)$", re.MULTILINE)


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_every_setting_is_in_the_file_once_with_its_sentence():
    """Each is a comment below its sentence, in the group of its subject, and nothing but the profile is set."""
    text = sample("observe", "interlock.yaml")
    named = [name for name, _ in SETTING.findall(text)]

    assert sorted(named) == sorted(set(Settings.model_fields) - {"profile"})
    assert [title in text for title in settings_groups()] == [True] * len(settings_groups())
    assert yaml.safe_load(text) == {"profile": "observe"}
    assert max(map(len, text.splitlines())) < 160


@pytest.mark.parametrize("profile", PROFILES)
def test_a_line_that_is_taken_out_of_its_comment_changes_nothing_yet(profile, tmp_path, monkeypatch):
    """Every value in the file is one that the settings accept, and the one in force under its profile."""
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path))
    asked = {"reviewers_file": tmp_path / "r.yaml", "audit_anchor": tmp_path} if profile == "regulated" else {}
    values = {name: yaml.safe_load(value) for name, value in SETTING.findall(sample(profile, "x")) if value.strip()}
    left_out = {*asked, "state_dir"}
    read = Settings(profile=profile, **asked, **{n: v for n, v in values.items() if n not in left_out and v != ""})
    bare = Settings(profile=profile, **asked)

    assert {name: getattr(read, name) for name in values} == {name: getattr(bare, name) for name in values}


def test_the_file_is_written_loads_and_is_not_written_over(tmp_path, monkeypatch):
    """Only its owner may read it; again it is left alone, and one that was changed is kept unless --force says so."""
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "interlock.yaml"
    first, again = run("init", "--file", str(file), "--profile", "enforce"), run("init", "--file", str(file), "--profile", "enforce", "-o", "json")  # fmt: skip
    profile = load(file).profile
    file.write_text("profile: observe\n")
    changed, forced = run("init", "--file", str(file)), run("init", "--file", str(file), "--force")

    assert (first.exit_code, profile, stat.S_IMODE(file.stat().st_mode)) == (0, "enforce", 0o600)
    assert json.loads(again.stdout)["written"] is False
    assert (changed.exit_code, "FILE_EXISTS" in changed.stderr, "--force" in changed.stderr) == (2, True, True)
    assert (forced.exit_code, "profile: observe" in file.read_text()) == (0, True)


@pytest.mark.req("OBS-4")
def test_the_doctor_reads_the_file(tmp_path):
    """The two commands that init names work with the file."""
    env = environment(tmp_path / "state", {})
    run_here("init", env=env, cwd=tmp_path)
    done = run_here("--config", "interlock.yaml", "config", "show", "-o", "json", env=env, cwd=tmp_path)

    assert done.returncode == 0
    assert {one["name"]: one["origin"] for one in json.loads(done.stdout)["settings"]}["profile"] == "environment"


def test_version_names_what_runs():
    """People get a line for each part, programs a document; a misspelt command is told the nearest one."""
    text, told = run("version"), json.loads(run("version", "-o", "json").stdout)

    assert text.stdout.splitlines()[0] == f"interlock   {version('interlock')}"
    assert {"python", "system", "grpcio", "executable"} <= told.keys()
    assert "Did you mean 'version'?" in run("verison").output
