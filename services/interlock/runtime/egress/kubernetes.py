"""The API server of the cluster, asked in JSON as the service account of this pod.

A handful of calls needs no client library: what is asked for is named in full, and nothing of the answer is believed unread.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from interlock.domain.errors import Refused, unavailable

LIMIT_S = 3.0
LARGEST_TOKEN_BYTES = 16_384
PAGE = 500
MOST_PAGES = 200

Json = dict[str, Any]


@dataclass(frozen=True)
class ClusterAccess:
    """Where the API server is, and how a client shows who it is. Both are read anew for each connection or call."""

    url: str
    context: Callable[[], ssl.SSLContext]
    token: Callable[[], str]


def access_of_pod(url: str, folder: Path) -> ClusterAccess:
    """Return the access of a pod whose service account is mounted at *folder*: token and ca.crt, both renewed by the kubelet."""

    def context() -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(folder / "ca.crt"))

    return ClusterAccess(url.rstrip("/"), context, lambda: read_token(folder / "token"))


def read_token(path: Path) -> str:
    """Return the token in a file that a kubelet writes."""
    with path.open("rb") as file:
        content = file.read(LARGEST_TOKEN_BYTES + 1)
    if not content or len(content) > LARGEST_TOKEN_BYTES:
        raise OSError(f"{path} holds no token")
    return content.decode("ascii").strip()


class Cluster:
    """The API server. Its connection is made at the first call, and anew after one that failed."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access, self._limit_s = access, LIMIT_S
        self._client: httpx.AsyncClient | None = None
        self._left: list[httpx.AsyncClient] = []

    async def get(self, path: str, **query: str | int) -> Json:
        """Return an object or a list. Refused with API_SERVER_UNREACHABLE or API_SERVER_REFUSED."""
        return await self._asked("GET", path, params=query)

    async def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """Create an object, or ask a review. Refused as ``get`` is."""
        return await self._asked("POST", path, json=dict(body))

    async def items(self, path: str, **query: str) -> list[Json]:
        """Return every object of a kind, page by page."""
        found: list[Json] = []
        more = ""
        for _ in range(MOST_PAGES):
            page = await self.get(path, limit=PAGE, **query, **({"continue": more} if more else {}))
            found += page.get("items") or []
            more = (page.get("metadata") or {}).get("continue") or ""
            if not more:
                return found
        raise _refused(200, "the list has no end")

    async def close(self) -> None:
        """Close the connections."""
        self._leave()
        left, self._left = self._left, []
        for client in left:
            await client.aclose()

    async def _asked(self, method: str, path: str, **given: Any) -> Json:
        try:
            # Each part of a call has its limit; one that comes in drops has this.
            async with asyncio.timeout(2 * self._limit_s):
                headers = await asyncio.to_thread(self._headers)
                answer = await (await self._connected()).request(method, path, headers=headers, **given)
        except (httpx.HTTPError, OSError, ValueError, TimeoutError) as error:
            if isinstance(error, httpx.ConnectError):
                self._leave()  # its authority may be a new one; other calls may still be under way
            raise unreachable(type(error).__name__) from None
        try:
            body = answer.json()
        except ValueError:
            body = None
        if answer.is_error or not isinstance(body, dict):
            raise _refused(answer.status_code, str((body or {}).get("message", "")) if isinstance(body, dict) else "")
        return body

    def _leave(self) -> None:
        if self._client is not None:
            self._left.append(self._client)
        self._client = None

    async def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            ended, self._left = self._left[:-1], self._left[-1:]
            for client in ended:
                await client.aclose()
            context = await asyncio.to_thread(self._access.context)
            if self._client is None:  # another call may have been quicker
                self._client = httpx.AsyncClient(
                    base_url=self._access.url, verify=context, timeout=self._limit_s, trust_env=False
                )
        return self._client

    def _headers(self) -> dict[str, str]:
        token = self._access.token()
        return {"Authorization": f"Bearer {token}"} if token else {}


def unreachable(why: str) -> Refused:
    """Return the refusal for an API server that did not answer."""
    return unavailable("API_SERVER_UNREACHABLE", f"the API server of the cluster does not answer: {why}")


def _refused(code: int, message: str) -> Refused:
    said = (
        f"the API server of the cluster refused with {code}: {message}"
        if message
        else f"the API server answered {code}"
    )
    return unavailable("API_SERVER_REFUSED", said, code=str(code))
