"""What is logged of a session's beginning, so that it can be rebuilt: signed here, opaque to everyone else (docs/adr/0012)."""

from __future__ import annotations

import hmac
import json
from typing import Any

import orjson

from interlock.domain.budget import FULL, Micros
from interlock.domain.errors import Refused, invalid, unavailable
from interlock.domain.ids import SessionId, check
from interlock.domain.session.restore import SessionBegan
from interlock.domain.session.session_refusals import LEFT_OPEN, RECOVERABLE
from interlock.domain.session.state import PolicyText, SessionState, Terms
from interlock.runtime.keys.derivation import RECORD, Keyring
from interlock.session.amended import Amended
from interlock.session.terms import terms_from_json

VERSION = 1
LIMIT = 65_536

_FIELDS = frozenset({"v", "terms", "policy", "policy_hash", "budget", "grant", "approval", "mac"})


def record_of(state: SessionState, keyring: Keyring, *, grant_id: str = "", approval_id: str = "") -> str:
    """Return the record of a session that begins with *state*."""
    terms = state.terms
    said = {
        "v": VERSION,
        "terms": json.loads(orjson.dumps(terms)),
        "policy": state.policy.text,
        "policy_hash": state.policy.hash,
        "budget": state.budget,
        "grant": grant_id,
        "approval": approval_id,
    }
    return _text({**said, "mac": _mac(said, terms, keyring).hex()})


def created_from(session: SessionId, text: str, keyring: Keyring) -> SessionBegan:
    """Return the beginning of *session* from its record. Refused with RECORD_INVALID for a record that was not made here."""
    try:
        found: dict[str, Any] = json.loads(text) if len(text) <= LIMIT else {}
        terms = terms_from_json(orjson.dumps(found["terms"]))
        said = {name: value for name, value in found.items() if name != "mac"}
        vouched = found.keys() == _FIELDS and hmac.compare_digest(_mac(said, terms, keyring).hex(), found["mac"])
        if not vouched or terms.session_id != session or not 0 <= found["budget"] <= FULL:
            raise _unknown(session)
        return SessionBegan(
            terms, PolicyText(found["policy"], found["policy_hash"]), Micros(found["budget"]), found["grant"],
            found["approval"],
        )  # fmt: skip
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _unknown(session) from None


def _mac(said: dict[str, Any], terms: Terms, keyring: Keyring) -> bytes:
    key = keyring.derive(terms.key_version, check("crp_sess_", terms.session_id), RECORD)
    if key is None:
        raise key_unknown()
    return hmac.digest(key, _text(said).encode(), "sha256")


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _unknown(session: SessionId) -> Refused:
    return invalid("RECORD_INVALID", "the record of this session was not made by this deployment", session_id=session)


def naming(root: SessionId, session: SessionId) -> Amended:
    """Name the session in a refusal after which it is rebuilt, or a window of it closed: its reader knows the token alone."""
    return Amended(_name, root, session)


def _name(refused: Refused, root: SessionId, session: SessionId) -> None:
    if refused.reason in RECOVERABLE or refused.reason == "WINDOW_SETTLED_LATE" or LEFT_OPEN in refused.metadata:
        refused.metadata |= {"session_id": session, "root_session_id": root}


def key_unknown() -> Refused:
    """Return the refusal where the master key that a session was made under is not here."""
    return unavailable("SIGNING_KEY_UNKNOWN", "the master key of this session is not here", retry_after_ms=0)
