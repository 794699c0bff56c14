"""The OpenID provider: its discovery document and its keys, each kept for a while, and the exchange of a code for tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from interlock.domain.errors import Refused, unauthenticated, unavailable
from interlock.oversight.oidc.calls import Calls, ProviderAnswer, checked_url, unreachable, unusable
from interlock.runtime.clock import Clock

KEPT_US = 600_000_000
"""How long a discovery document and a key set are used: a key that the provider took back is refused after that."""
MOST_KEYS = 100
LEAST_RSA_BITS = 2048
_OK, _REFUSES = 200, range(400, 500)
_WORD = re.compile(r"[a-z_]{1,64}", re.ASCII)

PublicKey = RSAKey | ECKey | OKPKey
_KINDS: Mapping[str, type[PublicKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}


@dataclass(frozen=True)
class Client:
    """This console, as the provider knows it."""

    issuer: str
    client_id: str
    secret: Callable[[], str | None]
    """Reads the secret; ``None`` for a public client."""
    scopes: Sequence[str]
    groups_claim: str
    name_claim: str
    ca_file: Path | None
    timeout_s: float


@dataclass(frozen=True)
class Metadata:
    """What the discovery document says."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    posts_secret: bool
    """Whether the token endpoint takes the secret in the form alone."""
    names_itself: bool
    """Whether each answer of the authorization endpoint says whose it is (RFC 9207)."""
    date_s: float | None
    """The provider's clock when it answered, seconds since the epoch."""


@dataclass(frozen=True)
class ProviderTokens:
    """What a code was exchanged for."""

    id_token: str
    access_token: str


class Provider:
    """The provider of one issuer."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.client, self._clock = client, clock
        self._calls = Calls(client.ca_file, client.timeout_s)
        self._metadata: tuple[Metadata, int] | None = None
        self._keys: tuple[Sequence[PublicKey], int] | None = None
        self._looking = asyncio.Lock()

    @property
    def known(self) -> Metadata | None:
        """The discovery document as it was read last."""
        return self._metadata[0] if self._metadata else None

    async def metadata(self) -> Metadata:
        """Return the discovery document. Refused with OIDC_UNREACHABLE, OIDC_ANSWER_INVALID or OIDC_ISSUER_MISMATCH."""
        async with self._alone():
            if self._metadata is None or self._clock() >= self._metadata[1] + KEPT_US:
                self._metadata = await self._discovered(), self._clock()
            return self._metadata[0]

    async def keys(self, *, anew: bool = False) -> Sequence[PublicKey]:
        """Return the keys that sign ID tokens; *anew*: as they are now. Refused like ``metadata``."""
        uri = (await self.metadata()).jwks_uri
        async with self._alone():
            if anew or self._keys is None or self._clock() >= self._keys[1] + KEPT_US:
                self._keys = _read_keys(_answered(await self._calls.get(uri), "the key set")), self._clock()
            return self._keys[0]

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> ProviderTokens:
        """Return the tokens of a code. Refused with OIDC_CODE_REFUSED, or like ``metadata``."""
        known, secret = await self.metadata(), await asyncio.to_thread(self.client.secret)
        form = {
            "grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": redirect_uri,
        }  # fmt: skip
        in_head = secret is not None and not known.posts_secret
        if not in_head:
            form |= {"client_id": self.client.client_id, **({"client_secret": secret} if secret is not None else {})}
        basic = (quote(self.client.client_id, safe=""), quote(secret or "", safe="")) if in_head else None
        answer = await self._calls.post(known.token_endpoint, form, basic)
        if answer.status in _REFUSES:
            raise unauthenticated("OIDC_CODE_REFUSED", f"the provider refuses the code with {_said(answer)}")
        _answered(answer, "the token")
        id_token, access_token = answer.body.get("id_token"), answer.body.get("access_token", "")
        if not isinstance(id_token, str) or not isinstance(access_token, str):
            raise unusable("it has no ID token; is openid among the scopes?")
        return ProviderTokens(id_token, access_token)

    async def userinfo(self, access_token: str) -> Mapping[str, Any]:
        """Return the claims of userinfo; none where the provider has no such endpoint. Refused like ``metadata``."""
        endpoint = (await self.metadata()).userinfo_endpoint
        if endpoint is None or not access_token:
            return {}
        return _answered(await self._calls.get(endpoint, bearer=access_token), "userinfo")

    def _alone(self) -> _Turn:
        return _Turn(self._looking, self.client.timeout_s)

    async def _discovered(self) -> Metadata:
        url = f"{checked_url(self.client.issuer, 'oidc_issuer').rstrip('/')}/.well-known/openid-configuration"
        answer = await self._calls.get(url)
        found = _answered(answer, "the discovery document")
        if found.get("issuer") != self.client.issuer:
            raise unavailable(
                "OIDC_ISSUER_MISMATCH", "the discovery document is of another issuer than oidc_issuer", retry_after_ms=0,
                hint="set oidc_issuer to exactly what the document has, down to the slash at its end",
            )  # fmt: skip
        return _metadata(found, answer.date_s)


class _Turn:
    """One turn at the provider: who waits for it waits no longer than a call may take."""

    def __init__(self, lock: asyncio.Lock, timeout_s: float) -> None:
        self._lock, self._timeout_s = lock, timeout_s

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._lock.acquire()
        except TimeoutError:
            raise unreachable("others wait for it as well") from None

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


def _metadata(found: Mapping[str, Any], date_s: float | None) -> Metadata:
    """Return what a discovery document says. Refused with OIDC_ANSWER_INVALID."""

    def address(name: str) -> str:
        return checked_url(found.get(name), name)

    def optional(name: str) -> str | None:
        return address(name) if found.get(name) else None

    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if not isinstance(methods, list):
        raise unusable("token_endpoint_auth_methods_supported is no list")
    try:
        return Metadata(
            authorization_endpoint=address("authorization_endpoint"), token_endpoint=address("token_endpoint"),
            jwks_uri=address("jwks_uri"), userinfo_endpoint=optional("userinfo_endpoint"),
            end_session_endpoint=optional("end_session_endpoint"),
            posts_secret="client_secret_post" in methods and "client_secret_basic" not in methods,
            names_itself=found.get("authorization_response_iss_parameter_supported") is True, date_s=date_s,
        )  # fmt: skip
    except Refused as refused:
        raise unusable(refused.message) from None


def _answered(answer: ProviderAnswer, what: str) -> Mapping[str, Any]:
    if answer.status != _OK:
        raise unusable(f"{what} comes with {_said(answer)}")
    return answer.body


def _said(answer: ProviderAnswer) -> str:
    """Return status and error word. Only a word of the protocol's own is shown: the rest is text of another party."""
    error = answer.body.get("error")
    word = error if isinstance(error, str) and _WORD.fullmatch(error) else ""
    return f"{answer.status} {word}".strip()


def _read_keys(found: Mapping[str, Any]) -> Sequence[PublicKey]:
    """Return the public keys of a set that may sign. Others are left out, as RFC 7517 has it."""
    listed = found.get("keys")
    if not isinstance(listed, list) or not 0 < len(listed) <= MOST_KEYS:
        raise unusable(f"a key set has 1 to {MOST_KEYS} keys")
    keys = [key for key in map(_key, listed) if key is not None]
    if not keys:
        raise unusable("its key set has no key that signs ID tokens")
    return keys


def _key(listed: object) -> PublicKey | None:
    """Return a key that may sign; ``None`` for one of another use or kind, and for one that is too short."""
    if not isinstance(listed, dict) or listed.get("use", "sig") != "sig" or listed.get("kty") not in _KINDS:
        return None
    if listed["kty"] == "RSA" and len(str(listed.get("n"))) * 6 < LEAST_RSA_BITS:
        return None
    public = {name: value for name, value in listed.items() if name not in {"d", "p", "q", "dp", "dq", "qi", "oth"}}
    try:
        key = _KINDS[listed["kty"]].import_key(public)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return None if isinstance(key, RSAKey) and key.raw_value.key_size < LEAST_RSA_BITS else key
