"""Loads the settings: flags over the environment ``INTERLOCK_*`` over a YAML file over the profile over defaults.

Faults are reported without showing values.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import SecretStr, ValidationError
from pydantic_settings import SettingsConfigDict, SettingsError

from interlock.domain.errors import invalid
from interlock.runtime import failpoints
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.profile_files import profile_values
from interlock.runtime.settings.service_links import linked_ports, service_links
from interlock.runtime.settings.values import without_password

CONFIG_FILE = "INTERLOCK_CONFIG_FILE"
DEPRECATED: Mapping[str, str] = {"remediation": "use remedies: redispatch,continue,stitch, or leave it empty for none"}
"""Settings that are still read and have a successor."""
_HINT = "see docs/configuration.md"


NO_FLAGS: Mapping[str, Any] = MappingProxyType({})

MASKED = "***"
"""What stands for a secret that is set."""


@dataclass(frozen=True)
class EffectiveSetting:
    """One setting as it is in force."""

    name: str
    value: Any
    """A number, a truth value, a text or ``None``; a secret is ``MASKED``."""
    origin: str
    """default, ``profile NAME``, file, environment or flag; of a running process also ``process``: it set that itself."""


def load(config_file: Path | None = None, flags: Mapping[str, Any] = NO_FLAGS) -> Settings:
    """Return the settings: *flags* over the environment over *config_file*, else INTERLOCK_CONFIG_FILE, over profile and defaults.

    Refused with CONFIG_FILE_UNREADABLE or SETTINGS_INVALID; the message names each field and its range, never its value.
    """
    config_file = _named_file(config_file)
    try:
        return Settings(**flags) if config_file is None else _from_file(config_file, flags)
    except ValidationError as error:
        problems = [_problem(e["loc"], e["type"], e["msg"]) for e in error.errors(include_input=False)]
    except SettingsError as error:  # a variable of a complex type that is not JSON
        problems = [str(error)]
    raise invalid("SETTINGS_INVALID", "; ".join(problems), hint=_HINT)


def explain(config_file: Path | None = None, flags: Mapping[str, Any] = NO_FLAGS) -> list[EffectiveSetting]:
    """Return every setting in the order of the model: its value, and where that came from. Refused like ``load``."""
    settings = load(config_file, flags)
    file = _named_file(config_file)
    in_file = _mapping(file) if file else {}
    in_environment = {name.lower() for name in os.environ.keys() - linked_ports(os.environ)}
    in_profile = profile_values(settings.profile)

    def origin(name: str) -> str:
        if name in flags:
            return "flag"
        if f"interlock_{name}" in in_environment:
            return "environment"
        if name in in_file:
            return "file"
        return f"profile {settings.profile}" if name in in_profile else "default"

    return [EffectiveSetting(name, _shown(getattr(settings, name)), origin(name)) for name in Settings.model_fields]


def in_force(settings: Settings, loaded: Sequence[EffectiveSetting] = ()) -> list[EffectiveSetting]:
    """Return every setting as a running process has it, in the order of the model.

    What it was *loaded* with keeps its origin; what is otherwise now, such as the address of an embedded part, the process set itself.
    """
    fields = Settings.model_fields
    began = {name: EffectiveSetting(name, _shown(field.default), "default") for name, field in fields.items()}
    began |= {one.name: one for one in loaded}

    def now(name: str) -> EffectiveSetting:
        value = _shown(getattr(settings, name))
        return EffectiveSetting(name, value, began[name].origin if value == began[name].value else "process")

    return list(map(now, fields))


def _shown(value: Any) -> Any:
    """Return a value as people and programs may see it."""
    if isinstance(value, SecretStr):
        return MASKED
    if isinstance(value, str):
        return without_password(value)
    return str(value) if isinstance(value, Path) else value


def _named_file(config_file: Path | None) -> Path | None:
    if config_file is None and os.environ.get(CONFIG_FILE):
        return Path(os.environ[CONFIG_FILE])
    return config_file


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the INTERLOCK_* variables that no setting has: a misspelt name would otherwise be ignored without a word.

    What Kubernetes makes of Services is not among them: nobody wrote it.
    """
    known = {f"INTERLOCK_{name.upper()}" for name in Settings.model_fields} | {CONFIG_FILE, failpoints.VARIABLE}
    written = environment.keys() - service_links(environment)
    return sorted(name for name in written if name.upper().startswith("INTERLOCK_") and name.upper() not in known)


def deprecated(settings: Settings) -> Mapping[str, str]:
    """Return the settings in use that have a successor, each with what to do."""
    names = settings.model_fields_set & DEPRECATED.keys()
    return {name: DEPRECATED[name] for name in sorted(names)}


def _from_file(config_file: Path, flags: Mapping[str, Any]) -> Settings:
    _mapping(config_file)

    class FromFile(Settings):
        model_config = SettingsConfigDict(yaml_file=config_file)

    return FromFile(**flags)


def _mapping(config_file: Path) -> Mapping[str, object]:
    """Return what the file sets. Refused with CONFIG_FILE_UNREADABLE."""
    if config_file.exists() and not config_file.is_file():  # a pipe would be waited for, and it is read twice
        raise invalid(
            "CONFIG_FILE_UNREADABLE", f"{config_file} is not a regular file", hint="give a readable YAML file"
        )
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
    return found or {}


def _problem(location: tuple[int | str, ...], kind: str, message: str) -> str:
    """Return what is wrong with one setting, without its value: it could be a key."""
    name = ".".join(map(str, location))
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, Settings.model_fields, n=1)
        return f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else "")
    said = _range(name) or message.removeprefix("Value error, ")
    return f"{name} {said}".strip()  # settings together have no name


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
