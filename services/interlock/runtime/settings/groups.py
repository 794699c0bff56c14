"""The settings by subject, as their declarations order them."""

from __future__ import annotations

import inspect
import re

from interlock.runtime.settings.declarations import SettingDeclarations
from interlock.runtime.settings.emergencies import EmergencyDeclarations
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.pods import PodDeclarations
from interlock.runtime.settings.signing_in import SignInDeclarations
from interlock.runtime.settings.spending import SpendingDeclarations

_GROUP_OR_SETTING = re.compile(r"^    (?:# == (.+)|(\w+): .+)$", re.MULTILINE)


def settings_groups() -> dict[str, list[str]]:
    """Return title → settings: a comment ``# == Title`` in the declarations opens a group."""
    groups: dict[str, list[str]] = {}
    files = (SettingDeclarations, SpendingDeclarations, SignInDeclarations, EmergencyDeclarations, PodDeclarations)
    source = "".join(map(inspect.getsource, files))
    for title, name in _GROUP_OR_SETTING.findall(source):
        if title:
            groups[title] = []
        elif name in Settings.model_fields:
            next(reversed(groups.values())).append(name)
    return groups
