"""Profiles: one word that stands for the values of several settings (docs/profiles.md).

Each is a readable YAML file in the package. A value from anywhere else wins over it, and it wins over the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from interlock.runtime.settings.strict_yaml import parse_yaml

ProfileName = Literal["observe", "enforce", "regulated"]
"""The profiles, from the mildest to the strictest."""

PROFILES: tuple[str, ...] = get_args(ProfileName)
DEFAULT: ProfileName = "observe"


@lru_cache
def profile_values(name: str) -> Mapping[str, Any]:
    """Return what the profile *name* sets: setting → value. Refused with FILE_MALFORMED when its file was damaged."""
    file = resources.files(__package__).joinpath("profiles", f"{name}.yaml")
    values: Mapping[str, Any] = parse_yaml(file.read_bytes(), Path(file.name), secret=False)
    return values


class ProfileSource(PydanticBaseSettingsSource):
    """The values of the profile that the sources before this one name."""

    def __init__(self, settings_cls: type[BaseSettings], default: str) -> None:
        super().__init__(settings_cls)
        self._default = default

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the profile's value of one setting; pydantic's signature."""
        del field
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return every value of the profile. An unknown name sets nothing here: the model refuses it."""
        name = self.current_state.get("profile", self._default)
        return dict(profile_values(name)) if name in PROFILES else {}
