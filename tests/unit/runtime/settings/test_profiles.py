"""Profiles: what each sets, what wins over it, and what it cannot start without."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from interlock.cli.main import app
from interlock.domain.errors import Refused
from interlock.runtime.settings.loading import MASKED, explain, load
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.profile_files import DEFAULT, PROFILES, profile_values
from tests.support.paths import PACKAGE
from tests.support.texts.canary import MASTER_KEY, PASSWORD, found_in

pytestmark = pytest.mark.req("ATT-9")

FILES = PACKAGE / "runtime" / "settings" / "profiles"
MET = {"reviewers_file": "reviewers.yaml", "audit_anchor": "anchor"}
"""What regulated cannot start without."""


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No INTERLOCK_ variable of the machine that runs the tests."""
    for name in [name for name in os.environ if name.upper().startswith("INTERLOCK_")]:
        monkeypatch.delenv(name)


def written(tmp_path: Path, **settings: object) -> Path:
    file = tmp_path / "interlock.yaml"
    file.write_text(json.dumps(settings))
    return file


def origins(**asked) -> dict[str, tuple[object, str]]:
    return {each.name: (each.value, each.origin) for each in explain(**asked)}


def test_every_profile_has_a_file_and_every_file_a_profile():
    """The folder and the setting name the same three."""
    assert sorted(path.stem for path in FILES.iterdir()) == sorted(PROFILES)
    assert load().profile == DEFAULT == "observe"


@pytest.mark.parametrize("name", PROFILES)
def test_every_key_of_a_profile_is_a_setting_and_takes_effect(name):
    """A profile loads, sets nothing that does not exist, and what it sets is in force."""
    values = profile_values(name)
    settings = load(flags={"profile": name, **(MET if name == "regulated" else {})})

    assert values
    assert values.keys() <= Settings.model_fields.keys() - {"profile"}
    assert {key: getattr(settings, key) for key in values} == dict(values)


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_explains_every_value(name):
    """It is a file to be read: each line that sets something has a comment before it."""
    lines = (FILES / f"{name}.yaml").read_text().splitlines()
    setting = [number for number, line in enumerate(lines) if line and not line.startswith("#")]

    assert setting
    assert all(lines[number - 1].startswith("#") for number in setting)


def test_what_each_profile_is_about():
    """Only observe lets a caller by; only regulated asks for people, a witness and the sum."""
    observe, enforce = load(), load(flags={"profile": "enforce"})
    regulated = load(flags={"profile": "regulated", **MET})

    assert [one.unaware_callers for one in (observe, enforce, regulated)] == ["observe", "enforce", "enforce"]
    assert [one.review_required for one in (observe, enforce, regulated)] == [False, False, True]
    assert [one.stuck_by_reviewers for one in (observe, enforce, regulated)] == [False, False, True]
    assert [one.audit_anchor_required for one in (observe, enforce, regulated)] == [False, False, True]
    assert [one.budget_accumulate for one in (observe, enforce, regulated)] == ["min", "min", "sum"]


def test_a_value_of_ones_own_wins_over_the_profile_from_everywhere(tmp_path, monkeypatch):
    """Flag over environment over file over profile over default, for the profile's name and for its values."""
    file = written(tmp_path, profile="enforce", budget_accumulate="sum")
    assert (load(file).profile, load(file).unaware_callers) == ("enforce", "enforce")
    assert load(file).budget_accumulate == "sum"

    monkeypatch.setenv("INTERLOCK_PROFILE", "observe")
    assert (load(file).profile, load(file).unaware_callers) == ("observe", "observe")
    assert load(file, {"profile": "enforce"}).unaware_callers == "enforce"

    monkeypatch.setenv("INTERLOCK_UNAWARE_CALLERS", "enforce")
    assert load(file).unaware_callers == "enforce"


@pytest.mark.parametrize("name", ["Observe", "strict", ""])
def test_an_unknown_profile_is_refused_by_name(monkeypatch, name):
    """A misspelt profile starts nothing: it must not end in the mildest one."""
    monkeypatch.setenv("INTERLOCK_PROFILE", name)

    with pytest.raises(Refused, match=r"profile .*observe.*enforce.*regulated") as raised:
        load()
    assert raised.value.reason == "SETTINGS_INVALID"


def test_regulated_names_everything_that_it_lacks():
    """One refusal names both, and whose demand they are."""
    with pytest.raises(Refused) as raised:
        load(flags={"profile": "regulated"})

    message = raised.value.message
    assert "review_required (of the profile regulated) needs reviewers_file" in message
    assert "audit_anchor_required (of the profile regulated) needs audit_anchor" in message


def test_a_demand_of_ones_own_is_not_laid_to_the_profile(monkeypatch):
    """Who asks for review without reviewers is told so under any profile."""
    monkeypatch.setenv("INTERLOCK_REVIEW_REQUIRED", "true")

    with pytest.raises(Refused, match=r"^SETTINGS_INVALID: review_required needs reviewers_file$"):
        load()


def test_every_value_has_its_origin(tmp_path, monkeypatch):
    """default, profile, file, environment and flag, each where it is the last word."""
    monkeypatch.setenv("INTERLOCK_DPE_PORT", "1003")
    found = origins(
        config_file=written(tmp_path, policy_port=1002, dpe_port=9), flags={"profile": "enforce", "session_port": 1001}
    )

    assert found.keys() == Settings.model_fields.keys()
    assert {name: found[name] for name in ("profile", "session_port", "policy_port", "dpe_port", "audit_port")} == {
        "profile": ("enforce", "flag"), "session_port": (1001, "flag"), "policy_port": (1002, "file"),
        "dpe_port": (1003, "environment"), "audit_port": (7084, "default"),
    }  # fmt: skip
    assert found["unaware_callers"] == ("enforce", "profile enforce")


def show(*arguments: str, **environment: str):
    return CliRunner(env={f"INTERLOCK_{name}": value for name, value in environment.items()}).invoke(
        app, ["config", "show", *arguments]
    )


def test_config_show_prints_every_setting():
    """One line each: name, origin, value as it would stand in a file."""
    lines = [line.split() for line in show(AUDIT_ANCHOR_REQUIRED="false").stdout.splitlines()]

    assert [line[0] for line in lines] == list(Settings.model_fields)
    assert ["unaware_callers", "profile", "observe", "observe"] in lines
    assert ["audit_anchor_required", "environment", "false"] in lines
    assert ["master_key", "default", "(absent)"] in lines


def test_config_show_changed_leaves_defaults_out():
    """Only what a profile, a file, a variable or a flag has set."""
    told = json.loads(show("--changed", "--json", "--profile", "enforce", SESSION_PORT="1001").stdout)

    assert {each["name"]: each["origin"] for each in told["settings"]} == {
        "profile": "flag", "session_port": "environment",
        **dict.fromkeys(profile_values("enforce"), "profile enforce"),
    }  # fmt: skip


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("form", [[], ["--json"], ["-o", "json"]])
def test_config_show_masks_what_is_secret(form):
    """No key and no password, in either form."""
    shown = show(*form, MASTER_KEY=MASTER_KEY, REDIS_URL=f"redis://user:{PASSWORD}@host:1/0")

    assert shown.exit_code == 0
    assert not found_in(shown.output)
    assert MASKED in shown.stdout
    assert "redis://***@host:1/0" in shown.stdout


def test_config_show_refuses_what_does_not_hold_together():
    """The same refusal as `serve`, and the same exit code."""
    refused = show("--profile", "regulated", "--json")

    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["error"]["reason"] == "SETTINGS_INVALID"


def test_config_show_names_variables_that_no_setting_has():
    """A misspelt variable changes nothing; it is told."""
    assert json.loads(show("--json", PROFIEL="enforce").stdout)["unknown_variables"] == ["INTERLOCK_PROFIEL"]
    assert "INTERLOCK_PROFIEL" in show(PROFIEL="enforce").stderr
