"""What speaks for sessions as domain values, and how a call was bound as a message. Refused as in ``requests.py``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from interlock.api.session.v1 import session_pb2
from interlock.domain.binding.rank import NAMES, Rank
from interlock.domain.binding.rule import BoundCall
from interlock.session.binding.evidence import BindingEvidence, GivenName, GivenTurn
from interlock.session.ledger import OpenCommand
from interlock.session.messages.requests import first_of, scope_of, wrong

MOST_NAMES = 32
MOST_TURNS = 64

_NAMING = frozenset(int(rank) for rank in NAMES)

_DIGEST = re.compile(r"[0-9a-f]{32}")


def evidence_of(request: session_pb2.BindingEvidence) -> BindingEvidence:
    """Return what speaks for a session."""
    if len(request.turns) > MOST_TURNS:
        raise wrong("evidence.turns", f"at most {MOST_TURNS}")
    return BindingEvidence(names_of(request.names), tuple(turn_of(turn) for turn in request.turns))


def bound_open_of(request: session_pb2.OpenWindowRequest, *, max_fan_out: int) -> OpenCommand:
    """Return how the window of a call without a token is opened: what it continues is not its to say."""
    given = (request.continuation_id, request.continuation_ids, request.pattern, request.partial, request.nonce)
    if any(given):
        raise wrong("evidence", "absent where a continuation, a pattern or a nonce is given")
    return first_of(request, scope=scope_of(request.scope), max_fan_out=max_fan_out)


def names_of(names: Sequence[session_pb2.BoundName]) -> tuple[GivenName, ...]:
    """Return names of sessions, each once."""
    if len(names) > MOST_NAMES:
        raise wrong("names", f"at most {MOST_NAMES}")
    return tuple(_each_once(_name(name) for name in names))


def turn_of(turn: session_pb2.BoundTurn) -> GivenTurn:
    """Return one earlier answer."""
    return GivenTurn(_digest(turn.digest), turn.weak)


def binding_message(bound: BoundCall) -> session_pb2.Binding:
    """Return how a call was bound."""
    return session_pb2.Binding(
        rank=_rank(bound.rank),
        disagreeing=[_rank(rank) for rank in bound.disagreeing],
        begins_conversation=bound.begins_conversation,
        known_window_ids=bound.known,
    )


def _rank(rank: Rank) -> session_pb2.BindingRank.ValueType:
    return session_pb2.BindingRank.ValueType(int(rank))


def _name(name: session_pb2.BoundName) -> GivenName:
    if name.rank not in _NAMING:
        raise wrong("names.rank", "HINT, COOKIE, RESPONSE, TRACE or BODY")
    return GivenName(Rank(name.rank), _digest(name.digest), name.begins)


def _each_once(names: Iterable[GivenName]) -> Iterable[GivenName]:
    return {name.digest: name for name in names}.values()


def _digest(value: str) -> bytes:
    if not _DIGEST.fullmatch(value):
        raise wrong("digest", "32 hex digits")
    return bytes.fromhex(value)
