"""The model provider: what it gets, by allow-list, and what its failures mean (HDR-5; SPEC-014 TV-002; I11)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpx

from interlock.domain.errors import Kind, Refused, unavailable
from interlock.runtime import telemetry
from interlock.runtime.settings.model import Settings
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.completion import malformed

USER_AGENT = "interlock"
MAX_CONNECTIONS = 256

_PASSED_ON: Mapping[int, Kind] = {
    400: Kind.INVALID,
    401: Kind.UNAUTHENTICATED,
    403: Kind.FORBIDDEN,
    404: Kind.NOT_FOUND,
    413: Kind.EXHAUSTED,
    422: Kind.INVALID,
    429: Kind.EXHAUSTED,
}
"""Statuses that are about the caller's request; it gets them as they are."""

_OK = 200
_RATE_LIMITED = 429
_FIELDS = ("message", "type", "code", "param")


class ProviderRefused(Refused):
    """The provider said no to the request itself. ``error`` is its own error object, for the HTTP front alone."""

    def __init__(self, kind: Kind, reason: str, status: int, error: Mapping[str, Any], retry_after_ms: int) -> None:
        message = f"the model provider refused the request with status {status}"
        super().__init__(
            kind, reason, message, metadata={"upstream_status": str(status)}, retry_after_ms=retry_after_ms
        )
        self.status, self.error = status, error


class Upstream:
    """Calls one provider over one pool of connections, without redirects, cookies or proxies of the environment."""

    def __init__(self, settings: Settings) -> None:
        self._base_url = settings.upstream_base_url.rstrip("/")
        if self._base_url and not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", self._base_url):
            raise unavailable("UPSTREAM_URL_INVALID", "upstream_base_url must be http(s)://host/path", retry_after_ms=0)
        self._own_key = settings.upstream_api_key
        self._timeout_s, self._limit = settings.upstream_timeout_s, settings.max_body_bytes
        self._client = httpx.AsyncClient(
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": USER_AGENT},
            timeout=settings.upstream_timeout_s,
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
            follow_redirects=False,
            trust_env=False,
            # Reading the certificate authorities takes memory and time that only TLS is worth.
            verify=self._base_url.startswith("https://"),
        )
        # One jar would carry a cookie from one caller's call into another's.
        self._client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    @property
    def provider(self) -> str:
        """Host of the provider, for spans and audit events."""
        return httpx.URL(self._base_url).host

    def require(self) -> None:
        """Refuse with UPSTREAM_NOT_CONFIGURED when there is no provider to call."""
        if not self._base_url:
            raise unavailable(
                "UPSTREAM_NOT_CONFIGURED",
                "no model provider is configured",
                retry_after_ms=0,
                hint="set INTERLOCK_UPSTREAM_BASE_URL, such as https://api.example.com/v1",
            )

    async def complete(self, body: Mapping[str, Any], *, key: str | None, timeout_s: float) -> bytes:
        """Return the provider's answer to a chat request, as received."""
        content = strictjson.dumps(body)
        return await self._ask("POST", "/chat/completions", key, min(timeout_s, self._timeout_s), content)

    async def models(self, *, key: str | None) -> dict[str, Any]:
        """Return the provider's list of models, written anew from what is known of one."""
        data = await self._ask("GET", "/models", key, self._timeout_s)
        try:
            listed = strictjson.loads(data, max_depth=16)["data"]
            return {"object": "list", "data": [_model(item) for item in listed]}
        except (Refused, KeyError, TypeError, ValueError):
            raise malformed("MODELS") from None

    async def close(self) -> None:
        """Close the pool."""
        await self._client.aclose()

    async def _ask(
        self, method: str, path: str, key: str | None, timeout_s: float, content: bytes | None = None
    ) -> bytes:
        self.require()
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._client.stream(
                    method, self._base_url + path, headers=self._headers(key, content), content=content
                ) as response,
            ):
                data = await self._body(response)
        except (TimeoutError, httpx.TimeoutException):
            raise Refused(Kind.TIMEOUT, "UPSTREAM_TIMEOUT", "the model provider did not answer in time") from None
        except (httpx.ConnectError, httpx.UnsupportedProtocol):
            raise _gone("UPSTREAM_UNAVAILABLE", "the model provider cannot be reached") from None
        except httpx.TransportError:
            raise _gone("UPSTREAM_DISCONNECTED", "the model provider closed the connection mid-answer") from None
        if response.status_code != _OK:
            raise self._failure(response, data)
        return data

    def _headers(self, key: str | None, content: bytes | None) -> dict[str, str]:
        """Nothing of the caller's request headers passes but the bearer token, and that only without an own key."""
        bearer = self._own_key.get_secret_value() if self._own_key else key
        return {
            **({"content-type": "application/json"} if content is not None else {}),
            **({"authorization": f"Bearer {bearer}"} if bearer else {}),
            **{name: value for name, value in telemetry.inject() if name == "traceparent"},
        }

    async def _body(self, response: httpx.Response) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise malformed("CONTENT_ENCODING")
        data = bytearray()
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > self._limit:
                raise malformed("TOO_LARGE")
        return bytes(data)

    def _failure(self, response: httpx.Response, data: bytes) -> Refused:
        status = response.status_code
        if status in {401, 403} and self._own_key:
            return _gone("UPSTREAM_KEY_REJECTED", "the model provider does not accept this deployment's key")
        if status in _PASSED_ON:
            limited = status == _RATE_LIMITED
            return ProviderRefused(
                _PASSED_ON[status],
                "UPSTREAM_RATE_LIMITED" if limited else "UPSTREAM_REJECTED",
                status,
                _error(data),
                _retry_after_ms(response) if limited else 0,
            )
        if 200 <= status < 400:
            return malformed(f"STATUS_{status}")
        return _gone("UPSTREAM_ERROR", "the model provider failed", upstream_status=str(status))


def _gone(reason: str, message: str, **metadata: str) -> Refused:
    return Refused(Kind.BAD_GATEWAY, reason, message, metadata=metadata, retry_after_ms=1000)


def _retry_after_ms(response: httpx.Response) -> int:
    """Return the provider's delay, never 0: a rate limit is always worth another try."""
    seconds = response.headers.get("retry-after", "")
    return min(max(1, int(seconds)), 3600) * 1000 if re.fullmatch(r"[0-9]{1,9}", seconds, re.ASCII) else 1000


def _error(data: bytes) -> dict[str, Any]:
    """Return the provider's error object, cut to known fields of short text."""
    try:
        given = strictjson.loads(data, max_depth=16)["error"]
        fields = {name: given.get(name) for name in _FIELDS}
    except (Refused, KeyError, TypeError, AttributeError):
        fields = {}
    return {name: value[:2048] if isinstance(value := fields.get(name), str) else None for name in _FIELDS}


def _model(item: Mapping[str, Any]) -> dict[str, Any]:
    created = item.get("created", 0)
    return {
        "id": str(item["id"])[:256],
        "object": "model",
        "created": created if isinstance(created, int) else 0,
        "owned_by": str(item.get("owned_by", ""))[:256],
    }
