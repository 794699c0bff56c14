"""Challenges, views and the reviewer's pace, in memory and bounded (reliability.md A-30, A-31)."""

from __future__ import annotations

import itertools

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Refused
from interlock.domain.held import Held
from interlock.domain.policy.roles import EVERYTHING, Role
from interlock.oversight.console import HeldView
from interlock.oversight.pages import held_page
from interlock.oversight.views import MOST_CHALLENGES, MOST_VIEWS, Person, Views
from interlock.policy.reviewers import key_text
from tests.support.policy import agents

PERSON = Person(key_text(agents.private_key().public_key().public_bytes_raw()), Role.REVIEWER, EVERYTHING)


class Clock:
    now_us = 0

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def views(clock) -> Views:
    numbers = itertools.count()
    return Views(clock, lambda size: next(numbers).to_bytes(size, "big"), life_s=900)


def opened(views: Views):
    text, _ = views.challenge(agents.REVIEWER)
    return views.sign_in(agents.REVIEWER, text, agents.private_key().sign(text.encode()), PERSON)


def test_a_challenge_that_was_pushed_out_signs_nobody_in(views):
    """However many are drawn, memory stays bounded, and the oldest gives way."""
    text, _ = views.challenge(agents.REVIEWER)
    for _ in range(MOST_CHALLENGES):
        views.challenge("somebody@company.com")

    with pytest.raises(Refused, match="SIGN_IN_INVALID"):
        views.sign_in(agents.REVIEWER, text, agents.private_key().sign(text.encode()), PERSON)


def test_views_are_bounded_too(views):
    """The oldest view ends when there are too many."""
    first = opened(views)
    for _ in range(MOST_VIEWS):
        opened(views)

    with pytest.raises(Refused, match="SIGN_IN_REQUIRED"):
        views.of(first.bearer)


@pytest.mark.parametrize("name", ["", "x y", "a\nb", "ä", "x" * 129])
def test_a_name_that_no_reviewer_has_draws_no_challenge(views, name):
    """What is signed is built from it, so nothing else may pass."""
    with pytest.raises(Refused, match="REVIEWER_INVALID"):
        views.challenge(name)


def test_a_signature_of_the_approval_key_over_something_else_signs_nobody_in(views):
    """An approval cannot stand for a sign-in, nor the other way round: what is signed begins differently."""
    text, _ = views.challenge(agents.REVIEWER)
    other = agents.private_key().sign(b"interlock-approval-v1\x00" + text.encode())

    with pytest.raises(Refused, match="SIGN_IN_INVALID"):
        views.sign_in(agents.REVIEWER, text, other, PERSON)


def test_who_decides_faster_than_one_reads_is_told(views, clock):
    """Five in a minute; an hour later nothing is said any more."""
    for _ in range(5):
        views.decided(agents.REVIEWER)
    fast = views.pace(agents.REVIEWER)
    clock.now_us += 120_000_000
    later = views.pace(agents.REVIEWER)
    item = audit_pb2.HeldItem(window_id="crp_win_" + "0" * 32, status=audit_pb2.HELD_STATUS_PENDING)
    shown = HeldView(item, Held("text", False, {}, b"x", b"", "", {}), dpe_pb2.Report(), ())
    view = opened(views).view

    assert (fast, later) == ((5, 5), (0, 5))
    assert "nobody reads that fast" in held_page(view, shown, fast)
    assert "nobody reads that fast" not in held_page(view, shown, later)
