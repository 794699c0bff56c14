"""Whether a verified token is one that its session gave out (reliability.md A-46)."""

from __future__ import annotations

from interlock.domain.errors import unauthenticated
from interlock.domain.session.state import Terms
from interlock.domain.session.token import Token


def check_own(token: Token, terms: Terms) -> None:
    """Refuse a token that is signed with another version's key than its session is.

    Its signature holds, so that key may have leaked: it must not reach sessions of newer keys.
    """
    if (token.key_version, token.nonce) != (terms.key_version, terms.nonce):
        raise unauthenticated("TOKEN_KEY_MISMATCH", "the token is not signed with the key of its session")
