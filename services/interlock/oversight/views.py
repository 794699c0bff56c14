"""Reviewers' sign-in: challenges that a reviewer's key signs, and the short-lived views that a signature opens (A-30).

A view lets its reviewer read. It decides nothing: each decision is signed by itself, with the same key. Challenges and
views stay in this process: behind a balancer a reviewer needs sticky sessions, and a restart signs every reviewer out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from interlock.domain.approval import REVIEWER
from interlock.domain.errors import Refused, invalid, unauthenticated
from interlock.domain.policy.roles import EVERYTHING, Role, Sight
from interlock.runtime.clock import Clock

TAG = "interlock-sign-in-v1"
"""Prefix of a signed challenge. No approval begins with it, so that neither can be used as the other."""

CHALLENGE_S = 120
MOST_CHALLENGES, MOST_VIEWS = 4096, 1024
MOST_NOTED, MINUTE_US = 1_000, 60_000_000
_KEY_PREFIX = "ed25519:"
_ENTROPY_BYTES = 32


@dataclass(frozen=True)
class Person:
    """A registered person as the policy service lists them: the key, the role, and the sessions that it covers."""

    public_key: str
    role: Role
    sight: Sight


@dataclass(frozen=True)
class View:
    """A person who is signed in: when it ends (microseconds since the epoch), and the CSRF token of the page's forms."""

    reviewer: str
    """The signed-in person: a registered one, or one whom the operator's link or the OpenID provider let in."""
    public_key: str
    """The person's key; empty for one who came without, and decides nothing."""
    expires_us: int
    csrf: str
    role: Role
    sight: Sight
    groups: frozenset[str] | None = None
    """The person's groups at the OpenID provider; ``None`` for one who came another way."""

    @property
    def reads_only(self) -> bool:
        """Whether this person decides no held answer: without a key, or as a viewer."""
        return not self.public_key or not self.role.sees_content


@dataclass(frozen=True)
class OpenedView:
    """A view with the bearer token that opens it; only the token's hash is kept."""

    view: View
    bearer: str


class Views:
    """Challenges and views in memory, each bounded: the oldest is dropped."""

    def __init__(self, clock: Clock, entropy: Callable[[int], bytes], *, life_s: int) -> None:
        self._clock, self._entropy, self._life_us = clock, entropy, life_s * 1_000_000
        self._challenges: dict[str, tuple[str, int]] = {}
        self._views: dict[str, View] = {}
        self._decided: dict[str, deque[int]] = {}

    def now_us(self) -> int:
        """Return the time, microseconds since the Unix epoch."""
        return self._clock()

    def challenge(self, reviewer: str) -> tuple[str, int]:
        """Return a text to sign and when it expires (microseconds). An unknown reviewer gets one too."""
        if not REVIEWER.fullmatch(reviewer):
            raise invalid(
                "REVIEWER_INVALID", "a reviewer's name has 1 to 128 letters, digits and ._@+-", field="reviewer_id"
            )
        expires_us = self._clock() + CHALLENGE_S * 1_000_000
        text = f"{TAG}\n{reviewer}\n{_word(self._entropy(_ENTROPY_BYTES))}"
        _make_room(self._challenges, MOST_CHALLENGES)
        self._challenges[text] = (reviewer, expires_us)
        return text, expires_us

    def sign_in(self, reviewer: str, challenge: str, signature: bytes, person: Person | None) -> OpenedView:
        """Open a view for a challenge that was signed in time, once. Refused with SIGN_IN_INVALID for every fault."""
        drawn_for, expires_us = self._challenges.pop(challenge, ("", 0))
        known = drawn_for == reviewer and self._clock() < expires_us
        if not known or person is None or not _signed(person.public_key, challenge, signature):
            raise _not_signed_in("SIGN_IN_INVALID", "the challenge is not one that this reviewer signed in time")
        return self._opened(reviewer, person)

    def open_for(
        self, viewer: str, role: Role, sight: Sight = EVERYTHING, groups: frozenset[str] | None = None
    ) -> OpenedView:
        """Open a view that decides no held answer, for a person whom the operator or the OpenID provider lets in."""
        if not REVIEWER.fullmatch(viewer):
            raise invalid("REVIEWERS_INVALID", "a viewer's name has 1 to 128 letters, digits and ._@+-", field="viewer")
        return self._opened(viewer, Person("", role, sight), groups)

    def _opened(self, name: str, person: Person, groups: frozenset[str] | None = None) -> OpenedView:
        bearer, csrf = _word(self._entropy(_ENTROPY_BYTES)), _word(self._entropy(_ENTROPY_BYTES))
        view = View(name, person.public_key, self._clock() + self._life_us, csrf, person.role, person.sight, groups)
        _make_room(self._views, MOST_VIEWS)
        self._views[_hashed(bearer)] = view
        return OpenedView(view, bearer)

    def of(self, bearer: str) -> View:
        """Return the view of a bearer. Refused with SIGN_IN_REQUIRED."""
        view = self._views.get(_hashed(bearer))
        if view is None or self._clock() >= view.expires_us:
            self._views.pop(_hashed(bearer), None)
            raise _not_signed_in("SIGN_IN_REQUIRED", "sign in with a registered reviewer's key")
        return view

    def decided(self, reviewer: str) -> None:
        """Count a decision, for the pace."""
        times = self._decided.setdefault(reviewer, deque(maxlen=MOST_NOTED))
        times.append(self._clock())

    def pace(self, reviewer: str) -> tuple[int, int]:
        """Return how many decisions a reviewer made here in the last minute and in the last hour (A-31: fatigue)."""
        now, times = self._clock(), self._decided.get(reviewer, ())
        return sum(now - at < MINUTE_US for at in times), sum(now - at < 60 * MINUTE_US for at in times)

    def sign_out(self, bearer: str) -> None:
        """End a view."""
        self._views.pop(_hashed(bearer), None)


def _signed(public_key: str, challenge: str, signature: bytes) -> bool:
    try:
        raw = base64.b64decode(public_key.removeprefix(_KEY_PREFIX) + "=", altchars=b"-_", validate=True)
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, challenge.encode())
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def _make_room(held: dict[str, tuple[str, int]] | dict[str, View], most: int) -> None:
    while len(held) >= most:
        held.pop(next(iter(held)))


def _hashed(bearer: str) -> str:
    return hashlib.sha256(bearer.encode()).hexdigest()


def _word(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _not_signed_in(reason: str, message: str) -> Refused:
    return unauthenticated(reason, message)
