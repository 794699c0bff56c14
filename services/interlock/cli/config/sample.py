"""``interlock init``: a settings file with every setting in it, by subject, each as a comment with its sentence and default."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from interlock.cli.output import Format, Output, print_json, refusals
from interlock.domain.errors import conflict, unavailable
from interlock.runtime.settings.groups import settings_groups
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.profile_files import ProfileName, profile_values

_WIDTH = 110

_HEAD = """\
# Settings of Interlock. `interlock --config {name} serve` reads this file, and so does INTERLOCK_CONFIG_FILE={name}.
# A line that begins with `# name:` is a setting with its default: take the `# ` away to set it. Variables (INTERLOCK_NAME) win over
# this file. `interlock check` says what is wrong, `interlock config show --changed` what is in force.

# What one word sets (docs/profiles.md): observe watches, enforce stops, regulated also wants a reviewer and an anchor.
profile: {profile}
"""

FILE = typer.Option(Path("interlock.yaml"), "--file", help="File to write.")
FORCE = typer.Option(False, "--force", help="Write over a file that is there.")


def sample(profile: str, name: str) -> str:
    """Return the text of the file *name*: every setting of the model, none of them set but the profile.

    Each stands there with the value that it has under the profile, so that taking it out of its comment changes nothing yet.
    """
    defaults = {**{name: field.default for name, field in Settings.model_fields.items()}, **profile_values(profile)}
    groups = (_group(title, names, defaults) for title, names in settings_groups().items())
    return _HEAD.format(profile=profile, name=name) + "".join(groups)


def _group(title: str, names: list[str], defaults: Mapping[str, Any]) -> str:
    lines = [f"\n# == {title} {'=' * max(0, 100 - len(title))}"]
    for name in names:
        if name != "profile":
            lines += ["", *_setting(name, defaults[name])]
    return "\n".join(lines) + "\n"


def _setting(name: str, default: object) -> Iterator[str]:
    sentence = Settings.model_fields[name].description or ""
    for line in textwrap.wrap(" ".join(sentence.split()), _WIDTH, break_long_words=False):
        yield f"#   {line}"
    yield f"# {name}: {_default(default)}".rstrip()


def _default(value: object) -> str:
    """Return a default as YAML; one that is absent, and every secret, as nothing at all."""
    if value is None or value is PydanticUndefined or isinstance(value, SecretStr):
        return ""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False)


def init(
    file: Path = FILE,
    profile: Annotated[ProfileName, typer.Option(help="Profile to begin with.")] = "observe",
    force: bool = FORCE,
    output: Output = Format.TEXT,
) -> None:
    """Write a settings file to begin with: every setting by subject, as a comment with its sentence and its default.

    Exit 0: written, or there already with the same text. 2: another file is there, or it cannot be written.
    """
    text = sample(profile, file.name)
    with refusals(output):
        written = _write(file, text, force=force)
    if output is Format.JSON:
        print_json({"file": str(file), "written": written, "profile": profile})
    else:
        typer.echo(f"{file} {'written' if written else 'is as it would be written'}: profile {profile}")
        typer.echo(
            f"start with `interlock --config {file} serve`, look for faults with `interlock --config {file} check`"
        )


def _write(file: Path, text: str, *, force: bool) -> bool:
    try:
        if not force and file.exists():
            if file.read_text(encoding="utf-8", errors="replace") == text:
                return False
            raise conflict("FILE_EXISTS", f"{file} is there and says something else", hint="--force writes over it")
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)  # a key may be written into it later
    except OSError as error:
        raise unavailable("FILE_NOT_WRITTEN", f"{file}: {type(error).__name__}", retry_after_ms=0) from None
    return True
