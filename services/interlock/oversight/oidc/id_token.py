"""An ID token, checked as OpenID Connect Core 3.1.3.7 has it, and stricter where it leaves a choice."""

from __future__ import annotations

import hmac
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError, SecurityWarning

from interlock.domain.errors import Refused, unauthenticated
from interlock.oversight.oidc.provider import Provider, PublicKey

KEY_TYPES: Mapping[str, str] = {
    "RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "PS256": "RSA", "PS384": "RSA", "PS512": "RSA",
    "ES256": "EC", "ES384": "EC", "ES512": "EC", "EdDSA": "OKP", "Ed25519": "OKP",
}  # fmt: skip
"""The algorithms that are accepted, each with the kind of key that it needs. All are asymmetric: no secret of ours signs."""
LONGEST = 65_536
LEEWAY_S = 60
"""How far two clocks may be apart."""
_LONGEST_SUB = 255


@dataclass(frozen=True)
class Expected:
    """What an ID token has to be about."""

    issuer: str
    client_id: str
    nonce: str
    started_s: int
    """When the sign-in began, seconds since the epoch: a token is not older."""


async def verified(token: str, provider: Provider, expected: Expected, *, now_s: int) -> Mapping[str, Any]:
    """Return the claims of an ID token that the provider signed for this sign-in.

    Refused with OIDC_TOKEN_INVALID, OIDC_ALGORITHM_REFUSED, OIDC_KEY_UNKNOWN, OIDC_SIGNATURE_INVALID, OIDC_ISSUER_MISMATCH,
    OIDC_AUDIENCE_MISMATCH, OIDC_NONCE_MISMATCH, OIDC_TOKEN_EXPIRED or OIDC_CLOCK_OFF.
    """
    algorithm, kid = _header(token)
    key = await _key(provider, algorithm, kid)
    try:
        with warnings.catch_warnings():  # the older name of Ed25519 is what providers use
            warnings.simplefilter("ignore", SecurityWarning)
            claims = jwt.decode(token, key, algorithms=[algorithm]).claims
    except (JoseError, ValueError, TypeError):
        raise _bad("OIDC_SIGNATURE_INVALID", "the ID token's signature is not of the provider's key") from None
    _check_parties(claims, expected)
    _check_times(claims, expected, now_s)
    return claims


def _header(token: str) -> tuple[str, str | None]:
    """Return algorithm and key id."""
    no_token = _bad("OIDC_TOKEN_INVALID", f"the provider's ID token is no signed JWT of at most {LONGEST} characters")
    if len(token) > LONGEST:
        raise no_token
    try:
        header = jws.extract_compact(token.encode("ascii")).headers()
    except (JoseError, ValueError, TypeError, AttributeError):
        raise no_token from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
        raise _bad("OIDC_ALGORITHM_REFUSED", f"an ID token is signed with one of {', '.join(KEY_TYPES)}")
    return algorithm, kid if isinstance(kid, str) else None


async def _key(provider: Provider, algorithm: str, kid: str | None) -> PublicKey:
    """Return the key of a token. An unknown one is looked for once more in the key set as it is now: keys are rotated."""
    for anew in (False, True):
        fitting = [key for key in await provider.keys(anew=anew) if _fits(key, algorithm, kid)]
        if len(fitting) == 1 or (fitting and kid is not None):
            return fitting[0]
    raise _bad("OIDC_KEY_UNKNOWN", "the ID token's key is not in the provider's key set")


def _fits(key: PublicKey, algorithm: str, kid: str | None) -> bool:
    return (
        key.key_type == KEY_TYPES[algorithm]
        and key.get("alg", algorithm) == algorithm
        and kid in {None, key.get("kid")}
    )


def _check_parties(claims: Mapping[str, Any], expected: Expected) -> None:
    if claims.get("iss") != expected.issuer:
        raise _bad("OIDC_ISSUER_MISMATCH", "the ID token is of another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    authorized = claims.get("azp")
    alone = len(audiences) == 1 and authorized is None
    if expected.client_id not in audiences or not (alone or authorized == expected.client_id):
        raise _bad("OIDC_AUDIENCE_MISMATCH", "the ID token is for another client of the provider")
    nonce, subject = claims.get("nonce"), claims.get("sub")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.nonce.encode()):
        raise _bad("OIDC_NONCE_MISMATCH", "the ID token is of another sign-in")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUB:
        raise _bad("OIDC_TOKEN_INVALID", "the ID token names no subject")


def _check_times(claims: Mapping[str, Any], expected: Expected, now_s: int) -> None:
    ends, issued, begins = (_time(claims, name) for name in ("exp", "iat", "nbf"))
    if ends is None or issued is None:
        raise _bad("OIDC_TOKEN_INVALID", "the ID token does not say when it was issued and when it ends")
    if now_s >= ends + LEEWAY_S:
        raise _bad("OIDC_TOKEN_EXPIRED", "the ID token has expired")
    if issued > now_s + LEEWAY_S or (begins or 0) > now_s + LEEWAY_S:
        raise _bad("OIDC_CLOCK_OFF", "the ID token is of a time to come: this clock or the provider's is off")
    if issued < expected.started_s - LEEWAY_S:
        raise _bad("OIDC_CLOCK_OFF", "the ID token is older than this sign-in: replayed, or a clock is off")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _bad(reason: str, message: str) -> Refused:
    return unauthenticated(reason, message)
