"""The model provider: what it gets, by allow-list, and what its failures mean (HDR-5; SPEC-014 TV-002; I11)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpx
import structlog

from interlock.domain.errors import Kind, Refused, unavailable
from interlock.runtime import telemetry
from interlock.runtime.egress.connections import ReusingTransport
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.live import ByteSink, Reader
from interlock.sidecar.openai import fields, strictjson
from interlock.sidecar.openai.completion import AnswerAsked, Completion
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.provider import refusals
from interlock.sidecar.provider.delays import LEAST_MS, told_ms
from interlock.sidecar.provider.figures import FirstChunk
from interlock.sidecar.provider.provider_api import APIS, ProviderApi
from interlock.sidecar.provider.refusals import ProviderError
from interlock.sidecar.provider.streams import BYTE_ORDER_MARK, ProviderStream

log = structlog.get_logger()

USER_AGENT = "interlock"
MAX_CONNECTIONS = 256

_PASSED_ON: Mapping[int, Kind] = {
    400: Kind.INVALID,
    401: Kind.UNAUTHENTICATED,
    402: Kind.FORBIDDEN,
    403: Kind.FORBIDDEN,
    404: Kind.NOT_FOUND,
    413: Kind.EXHAUSTED,
    422: Kind.INVALID,
    429: Kind.EXHAUSTED,
}
"""Statuses that are about the caller's request; it gets them as they are."""

_OK = 200
_EVENTS = "text/event-stream"
_RATE_LIMITED = 429
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}", re.ASCII)
LAST_SECOND = 253_402_300_799
"""End of the year 9999: a later time has no date."""
OWNER = "provider"
"""Whom a listed model belongs to: clients want a name there, and the provider's would be a text that nobody looked at."""


Through = Callable[[httpx.AsyncBaseTransport | None], httpx.AsyncBaseTransport]
"""Makes another way to the provider; it gets the straight one, ``None`` where the provider's address is not known."""


class ProviderRefused(Refused):
    """The provider said no to the request itself. ``error`` says why, as far as that can be said in words of ours."""

    def __init__(self, kind: Kind, reason: str, status: int, error: ProviderError, retry_after_ms: int) -> None:
        message = f"the model provider refused the request with status {status}{error.meaning}"
        known = {"upstream_code": error.code, "upstream_param": error.param}
        metadata = {"upstream_status": str(status), **{name: word for name, word in known.items() if word}}
        super().__init__(kind, reason, message, metadata=metadata, retry_after_ms=retry_after_ms)
        self.status, self.error = status, error


class Upstream:
    """Calls one provider over one pool of connections, without redirects, cookies or proxies of the environment."""

    def __init__(self, settings: Settings, *, assumed_url: str = "", through: Through | None = None) -> None:
        """Prepare the calls. *through* may take them another way than straight to ``upstream_base_url``, whose place *assumed_url* takes
        where it is not set. Refused with UPSTREAM_URL_INVALID.
        """
        own_url = settings.upstream_base_url.rstrip("/")
        self._base_url = own_url or assumed_url
        if self._base_url and not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", self._base_url):
            raise unavailable("UPSTREAM_URL_INVALID", "upstream_base_url must be http(s)://host/path", retry_after_ms=0)
        self._api: ProviderApi = APIS[settings.upstream_api]()
        self._max_depth, self._media_pass = settings.max_json_depth, settings.unjudged_media == "pass"
        self._own_key, self._conventions = settings.upstream_api_key, settings.gen_ai_conventions
        self._timeout_s, self._limit = settings.upstream_timeout_s, settings.max_body_bytes
        straight = ReusingTransport(MAX_CONNECTIONS)
        self._client = httpx.AsyncClient(
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": USER_AGENT},
            timeout=settings.upstream_timeout_s,
            follow_redirects=False,
            trust_env=False,
            transport=through(straight if own_url else None) if through else straight,
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

    def check(self, body: Mapping[str, Any]) -> None:
        """Refuse a chat request that the provider's API has no words for, before anything is begun."""
        self._api.check(body)

    async def complete(
        self, body: Mapping[str, Any], *, key: str | None, timeout_s: float, media: bool = False
    ) -> Completion:
        """Return the provider's answer to a chat request, by allow-list; with images and sound where *media* and the settings pass them."""
        content = strictjson.dumps(self._api.request(body))
        data = await self._ask("POST", self._api.path, key, min(timeout_s, self._timeout_s), content)
        asked = AnswerAsked.of(body, media=media and self._media_pass)
        answer = self._api.read(data, asked, max_depth=self._max_depth)
        fields.count(answer.dropped)
        return answer

    async def embeddings(self, body: Mapping[str, Any], *, key: str | None, timeout_s: float) -> bytes:
        """Return the provider's answer to a checked request for embeddings. Refused as ENDPOINT_NOT_SUPPORTED where its API has none."""
        if self._api.embeddings is None:
            message = "the provider's API has no embeddings (upstream_api is messages)"
            raise Refused(Kind.INVALID, "ENDPOINT_NOT_SUPPORTED", message)
        content = strictjson.dumps(body)
        return await self._ask("POST", self._api.embeddings, key, min(timeout_s, self._timeout_s), content)

    async def stream(self, body: Mapping[str, Any], into: ByteSink, *, key: str | None, timeout_s: float) -> None:
        """Have the provider stream its answer to a chat request *into* a reader. One that does not stream answers at once.

        Its first byte and each of its pauses have ``upstream_timeout_s``, the whole has *timeout_s*.
        """
        if self._conventions:
            into = FirstChunk(into, self.provider, body["model"])
        content = strictjson.dumps(self._api.streamed(body))
        await self._ask("POST", self._api.path, key, timeout_s, content, into=into)

    def reader(self, body: Mapping[str, Any]) -> Reader:
        """Return what reads the answer to a chat request while the provider streams it."""
        asked = AnswerAsked.of(body)
        read = partial(self._api.read, asked=asked, max_depth=self._max_depth)
        return ProviderStream(self._api.events(asked), read, limit=self._limit, max_depth=self._max_depth)

    async def models(self, *, key: str | None) -> dict[str, Any]:
        """Return the provider's list of models, written anew: names alone, and only those that can be a name."""
        data = await self._ask("GET", self._api.models, key, self._timeout_s)
        try:
            listed = strictjson.loads(data, max_depth=16)["data"]
            found = [_model(item) for item in listed]
        except (Refused, KeyError, TypeError, ValueError, AttributeError):
            raise malformed("MODELS") from None
        if None in found:
            fields.count(["model_name"])
        return {"object": "list", "data": [one for one in found if one]}

    async def close(self) -> None:
        """Close the pool."""
        await self._client.aclose()

    async def _ask(
        self, method: str, path: str, key: str | None, timeout_s: float, content: bytes | None = None,
        *, into: ByteSink | None = None,
    ) -> bytes:  # fmt: skip
        self.require()
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._client.stream(
                    method, self._base_url + path, headers=self._headers(key, content, into), content=content
                ) as response,
            ):
                data = await self._body(response, into if response.status_code == _OK else None)
        except (TimeoutError, httpx.TimeoutException):
            raise Refused(Kind.TIMEOUT, "UPSTREAM_TIMEOUT", "the model provider did not answer in time") from None
        except (httpx.ConnectError, httpx.UnsupportedProtocol):
            raise _gone("UPSTREAM_UNAVAILABLE", "the model provider cannot be reached") from None
        except httpx.TransportError:
            raise _gone("UPSTREAM_DISCONNECTED", "the model provider closed the connection mid-answer") from None
        if response.status_code != _OK:
            raise self._failure(response, data)
        return data

    def _headers(self, key: str | None, content: bytes | None, into: ByteSink | None) -> dict[str, str]:
        """Nothing of the caller's request headers passes but its key, and that only without an own key."""
        bearer = self._own_key.get_secret_value() if self._own_key else key
        return {
            **({"content-type": "application/json"} if content is not None else {}),
            **({"accept": f"{_EVENTS}, application/json"} if into is not None else {}),
            **self._api.headers(bearer),
            **{name: value for name, value in telemetry.inject() if name == "traceparent"},
        }

    async def _body(self, response: httpx.Response, into: ByteSink | None = None) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise malformed("CONTENT_ENCODING")
        if into is not None and response.headers.get("content-type", "").startswith(_EVENTS):
            async for chunk in response.aiter_raw():
                into.feed(chunk)
                if into.done:
                    break
            into.finished()
            return b""
        data = bytearray()
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > self._limit:
                raise malformed("TOO_LARGE")
        whole = bytes(data.removeprefix(BYTE_ORDER_MARK))
        if into is not None:
            into.answered(whole)
        return whole

    def _failure(self, response: httpx.Response, data: bytes) -> Refused:
        status, told = response.status_code, told_ms(response.headers, now_s=time.time())
        if status in {401, 403} and self._own_key:
            return _gone("UPSTREAM_KEY_REJECTED", "the model provider does not accept this deployment's key")
        if status in _PASSED_ON:
            limited, error = status == _RATE_LIMITED, refusals.read(data, status)
            log.warning("provider.refused", status_code=status, code=error.code, what=error.param, size=len(data))
            return ProviderRefused(
                _PASSED_ON[status],
                "UPSTREAM_RATE_LIMITED" if limited else "UPSTREAM_REJECTED",
                status,
                error,
                (told or LEAST_MS) if limited else 0,
            )
        if 200 <= status < 400:
            return malformed(f"STATUS_{status}")
        return _gone("UPSTREAM_ERROR", "the model provider failed", told, upstream_status=str(status))


def _gone(reason: str, message: str, told: int | None = None, **metadata: str) -> Refused:
    return Refused(Kind.BAD_GATEWAY, reason, message, metadata=metadata, retry_after_ms=told or LEAST_MS)


def _model(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a listed model; ``None`` for one whose name is none."""
    name, created = item["id"], item.get("created", 0)
    if not isinstance(name, str) or not _MODEL.fullmatch(name):
        return None
    known = type(created) is int and 0 <= created <= LAST_SECOND
    return {"id": name, "object": "model", "created": created if known else 0, "owned_by": OWNER}
