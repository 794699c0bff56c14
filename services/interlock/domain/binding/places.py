"""What a name or a turn stands for, and how it is written in the index: 17 to 49 bytes, so that many fit."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from interlock.domain.ids import SessionId, WindowId

_SESSION, _WINDOW = "crp_sess_", "crp_win_"
_ID = 16
_ROOT, _AT = 1, 2  # bits of the first byte of a record: what stands behind the session

_PLAIN = 1 + 2 * _ID  # a window of a root session: nearly every value


class Place(NamedTuple):
    """A session, and the window of it that is meant, if any."""

    session_id: SessionId
    root_session_id: SessionId
    window_id: WindowId | None = None


def raw_of(session: SessionId) -> bytes:
    """Return a session id as its 16 bytes."""
    return bytes.fromhex(session.removeprefix(_SESSION))


def packed(place: Place) -> bytes:
    """Return the record of a place: a byte that says what follows, the session, its root where it is another, the window."""
    below = place.root_session_id != place.session_id
    parts = [raw_of(place.session_id)]
    if below:
        parts.append(raw_of(place.root_session_id))
    if place.window_id:
        parts.append(bytes.fromhex(place.window_id.removeprefix(_WINDOW)))
    return bytes([_ROOT * below | _AT * bool(place.window_id)]) + b"".join(parts)


def records_of(value: bytes) -> tuple[bytes, ...]:
    """Return the records that a value of the index is made of; none for a value that we never write."""
    if len(value) == _PLAIN and value[0] == _AT:
        return (value,)
    found, at = [], 0
    while at < len(value):
        kind = value[at]
        end = at + 1 + _ID * (1 + bool(kind & _ROOT) + bool(kind & _AT))
        if kind > (_ROOT | _AT) or end > len(value):
            return ()
        found.append(value[at:end])
        at = end
    return tuple(found)


@lru_cache(maxsize=16_384)
def unpacked(value: bytes) -> tuple[Place, ...]:
    """Return the places in a value of the index, the latest first; none for a value that we never write.

    What was read once is kept: a conversation brings the same turns with each of its calls.
    """
    return tuple([_place(record) for record in records_of(value)])


def _place(record: bytes) -> Place:
    digits = record.hex()
    session = SessionId(_SESSION + digits[2:34])
    root = SessionId(_SESSION + digits[34:66]) if record[0] & _ROOT else session
    return Place(session, root, WindowId(_WINDOW + digits[-32:]) if record[0] & _AT else None)
