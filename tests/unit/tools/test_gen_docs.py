"""The generator of the reference pages finds what it is for."""

from __future__ import annotations

import sys

import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from gen_docs import configuration, settings_groups
from reason_finder import find

from interlock.runtime.settings.model import Settings

SOURCE = """
from interlock.domain.errors import Kind, Refused, conflict, invalid

LATE = "TOO_LATE"

class Gone(Refused):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(Kind.NOT_FOUND, reason, message)

class Fixed(Refused):
    def __init__(self) -> None:
        super().__init__(Kind.HALTED, "ALWAYS_THIS", "always")

def _wrapped(reason: str, why: str) -> Refused:
    return conflict(reason, why)

def _twice(reason: str) -> Refused:
    return _wrapped(reason, "twice")

TABLE = ((invalid, "FROM_TABLE", "a row"),)

def f(x):
    raise invalid("PLAIN", f"{x} of {x.limit_bytes}", hint="do this")
    raise Refused(Kind.TIMEOUT, LATE, "late")
    raise _wrapped("WRAPPED", "w")
    raise _twice("TWICE_WRAPPED")
    raise Gone("GONE_AWAY", "gone")
    raise invalid("ONE" if x else "OTHER", "one of two")
    raise invalid(x or "FALLBACK_REASON", "fallback")
    print("NOT_A_REASON")
"""


@pytest.fixture
def found(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "module.py").write_text(SOURCE)
    return find(tmp_path)


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize(
    ("reason", "kind", "text"),
    [
        ("PLAIN", "INVALID", "<x> of <limit_bytes>"),
        ("TOO_LATE", "TIMEOUT", "late"),
        ("WRAPPED", "CONFLICT", "w"),
        ("TWICE_WRAPPED", "CONFLICT", ""),
        ("GONE_AWAY", "NOT_FOUND", "gone"),
        ("ALWAYS_THIS", "HALTED", "always"),
        ("FROM_TABLE", "INVALID", "a row"),
        ("ONE", "INVALID", "one of two"),
        ("OTHER", "INVALID", "one of two"),
        ("FALLBACK_REASON", "INVALID", "fallback"),
    ],
)
def test_reason_is_found_with_kind_and_text(found, reason, kind, text):
    """However a reason reaches its refusal, it is listed with its kind and its text."""
    assert found[reason].kinds == {kind}
    assert "; ".join(found[reason].texts) == text


def test_nothing_else_is_found(found):
    """A constant that is no reason is not listed."""
    assert "NOT_A_REASON" not in found


def test_every_setting_is_on_the_page():
    """Each setting has a row with a sentence."""
    page = configuration()

    assert all(f"| `{name}` |" in page for name in Settings.model_fields)
    assert all(field.description for field in Settings.model_fields.values())


def test_every_setting_stands_in_one_group():
    """The groups hold every setting once, in the order of the model."""
    assert [name for names in settings_groups().values() for name in names] == list(Settings.model_fields)
