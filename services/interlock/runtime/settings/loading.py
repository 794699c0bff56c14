"""Loads the settings: the environment ``INTERLOCK_*`` over a YAML file over defaults. Reports faults without showing values."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError
from pydantic_settings import SettingsConfigDict, SettingsError

from interlock.domain.errors import invalid
from interlock.runtime import failpoints
from interlock.runtime.settings.model import Settings

CONFIG_FILE = "INTERLOCK_CONFIG_FILE"
DEPRECATED: Mapping[str, str] = {"remediation": "use remedies: redispatch,continue,stitch, or leave it empty for none"}
"""Settings that are still read and have a successor."""
_HINT = "see docs/configuration.md"


def load(config_file: Path | None = None) -> Settings:
    """Return the settings from the environment over *config_file*, else INTERLOCK_CONFIG_FILE, over defaults.

    Refused with CONFIG_FILE_UNREADABLE or SETTINGS_INVALID; the message names each field and its range, never its value.
    """
    if config_file is None and os.environ.get(CONFIG_FILE):
        config_file = Path(os.environ[CONFIG_FILE])
    try:
        return Settings() if config_file is None else _from_file(config_file)
    except ValidationError as error:
        problems = [_problem(e["loc"], e["type"], e["msg"]) for e in error.errors(include_input=False)]
    except SettingsError as error:  # a variable of a complex type that is not JSON
        problems = [str(error)]
    raise invalid("SETTINGS_INVALID", "; ".join(problems), hint=_HINT)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the INTERLOCK_* variables that no setting has: a misspelt name would otherwise be ignored without a word."""
    known = {f"INTERLOCK_{name.upper()}" for name in Settings.model_fields} | {CONFIG_FILE, failpoints.VARIABLE}
    return sorted(name for name in environment if name.upper().startswith("INTERLOCK_") and name.upper() not in known)


def deprecated(settings: Settings) -> Mapping[str, str]:
    """Return the settings in use that have a successor, each with what to do."""
    names = settings.model_fields_set & DEPRECATED.keys()
    return {name: DEPRECATED[name] for name in sorted(names)}


def _from_file(config_file: Path) -> Settings:
    try:
        found = yaml.safe_load(config_file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise invalid(
            "CONFIG_FILE_UNREADABLE", f"{config_file}: {type(error).__name__}{where}", hint="give a readable YAML file"
        ) from None
    if not isinstance(found, dict | None):
        raise invalid("CONFIG_FILE_UNREADABLE", f"{config_file} is not a mapping of setting to value", hint=_HINT)

    class FromFile(Settings):
        model_config = SettingsConfigDict(yaml_file=config_file)

    return FromFile()


def _problem(location: tuple[int | str, ...], kind: str, message: str) -> str:
    """Return what is wrong with one setting, without its value: it could be a key."""
    name = ".".join(map(str, location))
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, Settings.model_fields, n=1)
        return f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else "")
    problem = f"{name} {_range(name) or message.removeprefix('Value error, ')}"
    if os.environ.get(f"INTERLOCK_{name.upper()}", "").startswith("tcp://"):
        problem += " (Kubernetes sets it for a Service called interlock-*: set enableServiceLinks to false)"
    return problem


def _range(name: str) -> str:
    """Return the range of a numeric setting as the end of a sentence: both ends, not only the one that was crossed."""
    field = Settings.model_fields.get(name)
    bounds = {
        bound: value
        for constraint in (field.metadata if field else ())
        for bound in ("ge", "gt", "le")
        if (value := getattr(constraint, bound, None)) is not None
    }
    if not bounds:
        return ""
    number = "{:.2f}".format if name.startswith("decrement_") else "{:g}".format
    least = f"above {number(bounds['gt'])}" if "gt" in bounds else f"from {number(bounds['ge'])}"
    most = f" to {number(bounds['le'])}" if "le" in bounds else " up"
    return f"must be a number {least}{most}"
