"""Calls to the OpenID provider: bounded in time and size, without redirects, and answered by one JSON object."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from interlock.domain.errors import Refused, invalid, unavailable
from interlock.domain.signed import MalformedError, parse_json

LARGEST = 1_048_576
"""Bytes of one answer. The largest key sets of providers have some ten thousand."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class ProviderAnswer:
    """An answer of the provider: the status, the JSON object, and the provider's clock, seconds since the epoch."""

    status: int
    body: Mapping[str, Any]
    date_s: float | None


def checked_url(url: object, what: str) -> str:
    """Return a URL that the provider may be asked at, or that a browser is sent to. Refused with OIDC_URL_INVALID.

    Plain http is for a provider on loopback alone: whoever reads a code or changes a key signs in as anybody.
    """
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        named = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc and not parts.fragment
    except ValueError:
        safe = named = False
    if not isinstance(url, str) or not safe or not named or not url.isascii() or not url.isprintable() or " " in url:
        raise invalid("OIDC_URL_INVALID", f"{what} has to be an https URL; http is for a provider on loopback alone")
    return url


class Calls:
    """Asks the provider. *ca_file*: the authorities that its certificate is checked by, else this machine's."""

    def __init__(self, ca_file: Path | None, timeout_s: float) -> None:
        self._ca_file, self._timeout_s = ca_file, timeout_s

    async def get(self, url: str, *, bearer: str = "") -> ProviderAnswer:
        """Return what *url* has. Refused with OIDC_UNREACHABLE or OIDC_ANSWER_INVALID."""
        return await self._asked("GET", url, {"authorization": f"Bearer {bearer}"} if bearer else {}, None)

    async def post(self, url: str, form: Mapping[str, str], basic: tuple[str, str] | None) -> ProviderAnswer:
        """Return the answer to a form, sent as the client of *basic*: its id and secret. Refused as ``get``."""
        return await self._asked("POST", url, {}, form, httpx.BasicAuth(*basic) if basic else None)

    async def _asked(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None,
        auth: httpx.BasicAuth | None = None,
    ) -> ProviderAnswer:  # fmt: skip
        sent = {"accept": "application/json", "accept-encoding": "identity", **headers}
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                await self._client() as client,
                client.stream(method, url, headers=sent, data=form, auth=auth) as answer,
            ):
                return ProviderAnswer(
                    answer.status_code, _object(await _bounded(answer)), _date_s(answer.headers.get("date"))
                )
        except TimeoutError:
            raise unreachable(f"no answer within {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            raise unreachable(type(error).__name__) from None

    async def _client(self) -> httpx.AsyncClient:
        context = await asyncio.to_thread(_authorities, self._ca_file)
        return httpx.AsyncClient(verify=context, trust_env=False, follow_redirects=False, timeout=self._timeout_s)


def unreachable(why: str) -> Refused:
    """Return the refusal of a provider that does not answer."""
    return unavailable("OIDC_UNREACHABLE", f"the OpenID provider does not answer: {why}")


def unusable(why: str) -> Refused:
    """Return the refusal of an answer that is none."""
    return unavailable("OIDC_ANSWER_INVALID", f"the OpenID provider's answer cannot be used: {why}", retry_after_ms=0)


@cache
def _authorities(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def _bounded(answer: httpx.Response) -> bytes:
    """Return the body as it was sent, and not unpacked: a compressed one, which nobody asked for, could be of any size."""
    parts, size = [], 0
    async for part in answer.aiter_raw():
        size += len(part)
        if size > LARGEST:
            raise unusable(f"it has more than {LARGEST} bytes")
        parts.append(part)
    return b"".join(parts)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = parse_json(body)
    except MalformedError:
        raise unusable("it is no JSON") from None
    if not isinstance(value, dict):
        raise unusable("it is no JSON object")
    return value


def _date_s(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
