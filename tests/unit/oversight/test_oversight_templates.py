"""The templates of the reviewers' pages escape everything, and no text of someone else gets in unseen (A-31)."""

from __future__ import annotations

import re

import pytest
from jinja2 import StrictUndefined, UndefinedError, nodes

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.held import TEXT, Held
from interlock.domain.policy.roles import EVERYTHING, Role
from interlock.oversight import pages
from interlock.oversight.console import HeldView
from interlock.oversight.markup import ENVIRONMENT, render
from interlock.oversight.views import View
from interlock.runtime.clock import iso8601
from tests.support.paths import ROOT

FOLDER = ROOT / "services" / "interlock" / "oversight"
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
HOSTILE = "</bdi><script>alert('1')</script>\u202e{{ 7 * 7 }}"
PLACES = 15
"""Reviewer, reason, answer, question; of the claim its text, fact id, fact, fabrication, source, value; four findings; the agent."""


def test_escaping_is_on_and_a_missing_value_is_an_error():
    """Every template is escaped, whatever its name, and a value that a page forgot is not shown as nothing."""
    assert ENVIRONMENT.autoescape is True
    assert ENVIRONMENT.undefined is StrictUndefined
    with pytest.raises(UndefinedError):
        render("sign_in.html", title="Sign in", reviewer="", csrf="")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_turns_the_escaping_off(path):
    """Neither the filter ``safe`` nor a block without escaping stands in a template, and none holds a script or a style."""
    tree = ENVIRONMENT.parse(path.read_text(encoding="utf-8"))

    assert "safe" not in {one.name for one in tree.find_all(nodes.Filter)}
    assert not list(tree.find_all(nodes.ScopedEvalContextModifier))
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?! src=)", path.read_text(encoding="utf-8"))


def test_no_module_marks_a_text_as_safe():
    """Only a macro makes markup; a module that wrapped a string in Markup could let a text of someone else through."""
    assert TEMPLATES
    for path in FOLDER.glob("*.py"):
        assert not re.search(r"\bMarkup\(|\bescape\(", path.read_text(encoding="utf-8")), path.name


def test_whatever_others_wrote_is_escaped_and_made_visible():
    """Every text of a report, an answer and a session stands on the page by its code points, never as an element."""
    claim = dpe_pb2.Claim(
        claim_id="c1", text=HOSTILE, fact_id=HOSTILE, fabrications=[HOSTILE],
        distortions=[dpe_pb2.Distortion(type="numerical", source_value=HOSTILE, claim_value=HOSTILE)],
    )  # fmt: skip
    report = dpe_pb2.Report(
        claims=[claim], contradictions=[dpe_pb2.Contradiction(claim_id="c1", other_text=HOSTILE)],
        pii=[dpe_pb2.PiiFinding(type=HOSTILE)], amplifiers_applied=[HOSTILE], floors=[HOSTILE],
    )  # fmt: skip
    item = audit_pb2.HeldItem(window_id="w", reviewer_id=HOSTILE, reason=HOSTILE)
    session = session_pb2.Session(session_id="s", agent=session_pb2.AgentTerms(agent_type=HOSTILE))
    held = Held(TEXT, False, {}, HOSTILE.encode(), b"", HOSTILE, {HOSTILE: HOSTILE})

    html = pages.held_page(
        View("r", "k", 0, "c", Role.REVIEWER, EVERYTHING), HeldView(item, held, report, [session]), (0, 0)
    )

    assert "<script>alert" not in html
    assert "</bdi><script" not in html
    assert html.count('<mark class="hidden" title="right-to-left override">U+202E</mark>{{ 7 * 7 }}') == PLACES


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        (-1, "expired"), (0, "expired"), (1, "1 s left"), (59, "59 s left"), (60, "1 min left"), (3_599, "59 min left"),
        (3_600, "1 h left"), (86_399, "23 h left"), (172_799, "47 h left"), (172_800, "2 d left"), (0.5, "0 s left"),
    ],
)  # fmt: skip
def test_the_queue_says_how_long_is_left(seconds, left):
    """In the largest unit that is whole, never more than there is; days from two on."""
    now_us = 1_790_000_000_000_000

    assert pages.time_left(iso8601(now_us + round(seconds * 1_000_000)), now_us) == left
