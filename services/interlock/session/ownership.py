"""Whether a token holds, and whether it is one that its session gave out (SPEC-007 §5; reliability.md A-46)."""

from __future__ import annotations

from interlock.domain.errors import unauthenticated
from interlock.domain.ids import is_own
from interlock.domain.session import token as tokens
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.state import Terms
from interlock.domain.session.token import Token
from interlock.runtime.keys.derivation import SIGN, Keyring


def verified(text: str, keyring: Keyring, *, now_us: int, scope: str | None) -> Token:
    """Return the claims of a token whose signature, scope and lifetime hold.

    Refused with SESSION_STATE_LOST for a session of another implementation: its id is none that was ever given out here.
    """
    token = tokens.verify(
        text,
        lambda version, session_id: keyring.derive(version, session_id, SIGN),
        now_us=now_us,
        scope=scope,
        versions=keyring.versions,
    )
    if not is_own("crp_sess_", token.session_id):
        raise refusal("SESSION_STATE_LOST")
    return token


def check_own(token: Token, terms: Terms) -> None:
    """Refuse a token that is signed with another version's key than its session is.

    Its signature holds, so that key may have leaked: it must not reach sessions of newer keys.
    """
    if (token.key_version, token.nonce) != (terms.key_version, terms.nonce):
        raise unauthenticated("TOKEN_KEY_MISMATCH", "the token is not signed with the key of its session")
