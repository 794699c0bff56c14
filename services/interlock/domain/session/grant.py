"""Delegation grants: what a parent session hands to a child that does not exist yet (SPEC-012 §4.3, §10.2).

A signed text like a token, with a key of its own kind that is derived for the parent session. It is short-lived and bound to
the child's agent type; that it is used once is the store's to see. What it does not carry is read from the parent's state.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import dataclass
from typing import Any

from interlock.domain.budget import FULL, Micros
from interlock.domain.errors import Refused, conflict, unauthenticated
from interlock.domain.ids import SessionId
from interlock.domain.session.token import KeyOf
from interlock.domain.signed import MalformedError, compute_mac, decoded, encoded, parse_json, split

TEXT_LIMIT = 2048
VERSION = 1
AGENT_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
APPROVAL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)

_TAG = encoded(b'{"alg":"HS256","typ":"CRP-GRANT"}')
_LARGEST = 2**53 - 1
_TEXTS = {
    "gid": re.compile(r"[0-9a-f]{32}"),
    "par": re.compile(r"crp_sess_[0-9a-f]{32}"),
    "root": re.compile(r"crp_sess_[0-9a-f]{32}"),
    "typ": re.compile(rf"(?:{AGENT_TYPE.pattern})?", re.ASCII),
    "apr": re.compile(rf"(?:{APPROVAL_ID.pattern})?", re.ASCII),
}
_NUMBERS = {"v": (VERSION, VERSION), "dep": (1, 1000), "sb": (0, FULL), "exp": (0, _LARGEST), "kv": (1, _LARGEST)}


@dataclass(frozen=True)
class Grant:
    """What a grant says. An empty ``agent_type`` is an agent that is not registered; ``approval_id`` may be empty."""

    grant_id: str
    parent_session_id: SessionId
    root_session_id: SessionId
    agent_type: str
    loop_depth: int
    budget: Micros
    approval_id: str
    expires_at: int
    key_version: int


def mint(grant: Grant, key: bytes) -> str:
    """Return the signed grant."""
    values = {
        "v": VERSION,
        "gid": grant.grant_id,
        "par": grant.parent_session_id,
        "root": grant.root_session_id,
        "typ": grant.agent_type,
        "dep": grant.loop_depth,
        "sb": grant.budget,
        "apr": grant.approval_id,
        "exp": grant.expires_at,
        "kv": grant.key_version,
    }
    payload = encoded(json.dumps(values, separators=(",", ":")).encode())
    text = (payload + b"." + encoded(compute_mac(_TAG, payload, key))).decode("ascii")
    if len(text) > TEXT_LIMIT:
        raise ValueError(f"a grant of {len(text)} bytes is over the limit of {TEXT_LIMIT}")
    return text


def verify(text: str, key_of: KeyOf, *, now_us: int, agent_type: str) -> Grant:
    """Return what a grant says when all of it holds for a presenter of *agent_type*.

    Refused with GRANT_MALFORMED, GRANT_KEY_UNKNOWN, GRANT_SIGNATURE_INVALID, GRANT_EXPIRED or GRANT_AGENT_MISMATCH.
    """
    try:
        payload, mac = split(text, TEXT_LIMIT)
        grant = _read(parse_json(decoded(payload)))
    except MalformedError as flaw:
        raise unauthenticated("GRANT_MALFORMED", f"not a delegation grant: {flaw}") from None
    # The id is checked before it becomes the salt of a key.
    key = key_of(grant.key_version, grant.parent_session_id)
    if key is None:
        raise unauthenticated("GRANT_KEY_UNKNOWN", "the key that signed this grant is not known here")
    if not hmac.compare_digest(compute_mac(_TAG, payload, key), mac):
        raise unauthenticated("GRANT_SIGNATURE_INVALID", "the signature of the delegation grant does not hold")
    if now_us > grant.expires_at * 1_000_000:
        raise unauthenticated("GRANT_EXPIRED", "the delegation grant has expired; ask the parent for another")
    if not hmac.compare_digest(grant.agent_type.encode(), agent_type.encode()):
        raise unauthenticated("GRANT_AGENT_MISMATCH", "the delegation grant is for another agent type")
    return grant


def check_named(grant: Grant, *, parent: str, loop_depth: int | None) -> None:
    """Hold what the presenter says of itself against the grant; what it does not say is not asked for."""
    if parent and parent != grant.parent_session_id:
        raise conflict("GRANT_PARENT_MISMATCH", "the delegation grant is of another parent session")
    if loop_depth is not None and loop_depth != grant.loop_depth:
        raise _depth(loop_depth, grant.loop_depth)


def _depth(named: int, actual: int) -> Refused:
    return conflict(
        "LOOP_DEPTH_MISMATCH",
        f"the delegation grant is for level {actual} below the root, not for {named}",
        value=str(actual),
        attempted=str(named),
    )


def _read(values: Any) -> Grant:
    if not isinstance(values, dict) or set(values) != set(_TEXTS) | set(_NUMBERS):
        raise MalformedError("its fields are not the fields of a grant")
    for name, shape in _TEXTS.items():
        if type(values[name]) is not str or not shape.fullmatch(values[name]):
            raise MalformedError(f"{name} is not as it must be")
    for name, (least, most) in _NUMBERS.items():
        # type() and not isinstance(): a bool would be an int.
        if type(values[name]) is not int or not least <= values[name] <= most:
            raise MalformedError(f"{name} is not as it must be")
    return Grant(
        grant_id=values["gid"],
        parent_session_id=SessionId(values["par"]),
        root_session_id=SessionId(values["root"]),
        agent_type=values["typ"],
        loop_depth=values["dep"],
        budget=Micros(values["sb"]),
        approval_id=values["apr"],
        expires_at=values["exp"],
        key_version=values["kv"],
    )
