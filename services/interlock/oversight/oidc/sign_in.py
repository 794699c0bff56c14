"""Sign-ins that are under way: the authorization code flow with PKCE, each bound to the browser that began it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from interlock.domain.errors import Refused, unauthenticated
from interlock.oversight.oidc.id_token import Expected, verified
from interlock.oversight.oidc.person import ProviderPerson, identity_of, lacks
from interlock.oversight.oidc.provider import Metadata, Provider
from interlock.runtime.clock import Clock

LIFE_S = 600
"""How long a person may take at the provider."""
MOST = 4_096
HOME = "/sessions"
_BYTES = 32
_WORD = re.compile(r"[a-z_]{1,64}", re.ASCII)
_OWN_PATH = re.compile(r"/(?:[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?", re.ASCII)
_LONGEST_PATH = 512


@dataclass(frozen=True)
class BegunSignIn:
    """A sign-in that has begun: where the browser goes, and the secret that it keeps in a cookie until it is back."""

    location: str
    browser: str


@dataclass(frozen=True)
class _Pending:
    browser: bytes
    nonce: str
    verifier: str
    redirect_uri: str
    to: str
    started_us: int


class OidcSignIn:
    """The sign-ins by one provider, in this process's memory: the oldest is dropped where there are too many."""

    def __init__(self, provider: Provider, clock: Clock, entropy: Callable[[int], bytes]) -> None:
        self.provider, self._clock, self._entropy = provider, clock, entropy
        self._pending: dict[bytes, _Pending] = {}

    async def start(self, redirect_uri: str, to: str) -> BegunSignIn:
        """Begin a sign-in that leads back to *to*, a path of this page. Refused like ``Provider.metadata``."""
        known = await self.provider.metadata()
        state, nonce, verifier, browser = (_word(self._entropy(_BYTES)) for _ in range(4))
        while len(self._pending) >= MOST:
            self._pending.pop(next(iter(self._pending)))
        self._pending[_digest(state)] = _Pending(
            _digest(browser), nonce, verifier, redirect_uri, own_path(to), self._clock()
        )
        return BegunSignIn(self._location(known, redirect_uri, state, nonce, verifier), browser)

    def _location(self, known: Metadata, redirect_uri: str, state: str, nonce: str, verifier: str) -> str:
        client = self.provider.client
        asked = {
            "response_type": "code", "client_id": client.client_id, "redirect_uri": redirect_uri, "state": state, "nonce": nonce,
            "scope": " ".join(dict.fromkeys(["openid", *client.scopes])),
            "code_challenge": _word(_digest(verifier)), "code_challenge_method": "S256",
        }  # fmt: skip
        joint = "&" if "?" in known.authorization_endpoint else "?"
        return f"{known.authorization_endpoint}{joint}{urlencode(asked)}"

    async def finish(self, told: Mapping[str, str], browser: str) -> tuple[ProviderPerson, str]:
        """Return who came back with *told*, and the path that they wanted.

        Refused with OIDC_STATE_INVALID, OIDC_ISSUER_MISMATCH, OIDC_REFUSED, OIDC_SUBJECT_MISMATCH, and like ``verified``,
        ``identity_of`` and ``Provider.exchange``.
        """
        pending = self._taken(told.get("state", ""), browser)
        client, known = self.provider.client, await self.provider.metadata()
        if told.get("iss", "" if known.names_itself else client.issuer) != client.issuer:
            raise unauthenticated("OIDC_ISSUER_MISMATCH", "the answer is of another provider")
        if "error" in told or not told.get("code"):
            raise _refused(told.get("error", "no code"))
        tokens = await self.provider.exchange(told["code"], pending.verifier, pending.redirect_uri)
        now_us = self._clock()
        expected = Expected(client.issuer, client.client_id, pending.nonce, pending.started_us // 1_000_000)
        claims = await verified(tokens.id_token, self.provider, expected, now_s=now_us // 1_000_000)
        if lacks(claims, client.name_claim, client.groups_claim):
            claims = {**await self._userinfo(tokens.access_token, claims["sub"]), **claims}
        return identity_of(claims, client.name_claim, client.groups_claim), pending.to

    def _taken(self, state: str, browser: str) -> _Pending:
        """Return the sign-in of a state, once, to the browser that began it."""
        pending = self._pending.get(_digest(state))
        if pending is None or not hmac.compare_digest(pending.browser, _digest(browser)):
            raise _not_begun()
        del self._pending[_digest(state)]
        if self._clock() >= pending.started_us + LIFE_S * 1_000_000:
            raise _not_begun()
        return pending

    async def _userinfo(self, access_token: str, subject: str) -> Mapping[str, object]:
        """Return the claims of userinfo, which count only for the person of the ID token."""
        found = await self.provider.userinfo(access_token)
        if found and found.get("sub") != subject:
            raise unauthenticated("OIDC_SUBJECT_MISMATCH", "userinfo is about another person than the ID token")
        return found


def own_path(to: str) -> str:
    """Return *to* if it is a plain path of this page, else the first page: nobody is sent elsewhere from here."""
    return to if len(to) <= _LONGEST_PATH and _OWN_PATH.fullmatch(to) else HOME


def _not_begun() -> Refused:
    message = "this sign-in was not begun in this browser, was used already, or took too long: begin again"
    return unauthenticated("OIDC_STATE_INVALID", message)


def _refused(error: str) -> Refused:
    word = error if _WORD.fullmatch(error) else "an error"
    return unauthenticated("OIDC_REFUSED", f"the provider signed nobody in: {word}")


def _word(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
