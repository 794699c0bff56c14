"""The page of settings for admins: what this process runs with, where each value came from, and what it means. Secrets are masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr
from pydantic_core import PydanticUndefined
from starlette.requests import Request
from starlette.responses import Response

from interlock.domain.errors import invalid
from interlock.domain.policy.roles import require_admin
from interlock.oversight.forms import query_of
from interlock.oversight.markup import render, said
from interlock.oversight.pages import frame_of
from interlock.oversight.site import Endpoint, Site, html, view_of
from interlock.runtime.settings.groups import settings_groups
from interlock.runtime.settings.loading import EffectiveSetting
from interlock.runtime.settings.model import Settings

_SHOWN = ("all", "changed")
"""What is shown: every setting, or those whose value does not come from its default."""


async def _settings(site: Site, request: Request) -> Response:
    view = await view_of(site, request)
    require_admin(view.role)
    asked = query_of(request, "show", "name")
    shown, name = asked.get("show", "all"), asked.get("name", "").strip().lower()
    if shown not in _SHOWN:
        raise invalid("INVALID_PARAMETER", f"show is one of {', '.join(_SHOWN)}", param="show")
    by_name = {one.name: one for one in site.settings if _is_wanted(one, shown, name)}
    groups = {
        title: [_row(by_name[each]) for each in names if each in by_name] for title, names in settings_groups().items()
    }
    page = render(
        "settings.html", title="Settings", **frame_of(view), here="settings", shown=shown, choices=_SHOWN, name=name,
        groups={title: rows for title, rows in groups.items() if rows}, count=len(by_name), of=len(site.settings),
    )  # fmt: skip
    return html(page)


ROUTES: dict[str, Endpoint] = {"/settings": _settings}
"""Path → endpoint, all by GET."""


def _is_wanted(one: EffectiveSetting, shown: str, name: str) -> bool:
    return (shown == "all" or one.origin != "default") and name in one.name


def _row(one: EffectiveSetting) -> Mapping[str, Any]:
    field = Settings.model_fields[one.name]
    default = None if isinstance(field.default, SecretStr) or field.default is PydanticUndefined else field.default
    return {
        "name": one.name, "variable": f"INTERLOCK_{one.name.upper()}", "value": said(_text(one.value)), "origin": one.origin,
        "meaning": " ".join((field.description or "").split()), "default": _text(default) if one.origin != "default" else "",
    }  # fmt: skip


def _text(value: object) -> str:
    """Return a value as YAML has it; empty for one that is absent."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
