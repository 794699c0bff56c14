"""Programs of agents import the client by name: every name of commit 4423755 is still where it was."""

from __future__ import annotations

from importlib import import_module

import pytest

NAMES = {
    "interlock.client": (
        "Answer", "AsyncSession", "BadRequest", "Conflict", "Delegation", "Forbidden", "InterlockError", "NotFound",
        "SafetyHalt", "Session", "Unauthenticated", "Unavailable", "result_of",
    ),
    "interlock.client.aio": ("AsyncSession",),
    "interlock.client.answer": ("Answer", "Delegation", "result_of"),
    "interlock.client.core": (
        "Ask", "Pause", "Reply", "State", "Steps", "batch", "chat", "dag", "delegate", "fan_in", "fan_out", "reviewed",
        "terminate", "token_in",
    ),
    "interlock.client.errors": (
        "BadRequest", "Conflict", "Forbidden", "InterlockError", "NotFound", "SafetyHalt", "Unauthenticated",
        "Unavailable", "error_of",
    ),
    "interlock.client.request": ("Result", "body_of"),
    "interlock.client.session": ("Session", "all_of"),
    "interlock.client.settings": ("DEFAULT_URL", "Settings", "settings_of"),
    "interlock.client.transport": ("AsyncGovernedTransport", "GovernedTransport", "lowered"),
}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in NAMES.items() for name in names])
def test_a_name_of_the_client_is_imported_by_its_old_path(module, name):
    """An agent's program that was written for the older version starts with this one."""
    assert hasattr(import_module(module), name)


def test_the_package_exports_what_it_exported():
    """``from interlock.client import *`` brings no name less."""
    assert set(NAMES["interlock.client"]) <= set(import_module("interlock.client").__all__)
