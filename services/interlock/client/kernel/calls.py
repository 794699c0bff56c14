"""Calls to a sidecar's kernels over HTTP. A call that got no answer is repeated under its key, so that it is done once at most."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import httpx

from interlock.client.errors import InterlockError, error_of
from interlock.client.settings import settings_of
from interlock.client.transport import lowered

MICRO = 1_000_000
RETRIES = 4
LONGEST_PAUSE_S = 5.0

TYPES = {"n": "VARIABLE_TYPE_NUMBER", "s": "VARIABLE_TYPE_TEXT", "b": "VARIABLE_TYPE_FLAG", "l": "VARIABLE_TYPE_LIST",
         "u": "VARIABLE_TYPE_SET"}  # fmt: skip


class KernelCalls:
    """The methods of ``KernelService`` for one caller, as JSON. Thread-safe."""

    def __init__(
        self, base_url: str = "", *, api_key: str = "", session_token: str = "", timeout_s: float = 30.0, retries: int = RETRIES
    ) -> None:  # fmt: skip
        """Absent arguments come from OPENAI_BASE_URL and OPENAI_API_KEY, as those of ``interlock.client.Session`` do."""
        settings = settings_of(base_url, api_key, "", timeout_s)
        self._headers = {"CRP-Session-Token": session_token} if session_token else {}
        self._retries = retries
        self._http = httpx.Client(**settings.http())

    def post(self, kernel: str, ask: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, and return the answer. Raises ``InterlockError`` with the reason of a refusal."""
        return self._asked("POST", f"{_path(kernel)}/{ask}", dict(body), self._retries)

    def post_once(self, kernel: str, ask: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask without a repetition: for what can wait where there is no answer."""
        return self._asked("POST", f"{_path(kernel)}/{ask}", dict(body), 0)

    def describe(self, kernel: str) -> dict[str, Any]:
        """Return a kernel as it stands."""
        return self._asked("GET", _path(kernel), None, self._retries)

    def trace(self, kernel: str, after: int = 0) -> list[dict[str, Any]]:
        """Return the sealed records after one."""
        told = self._asked("GET", f"{_path(kernel)}/trace?after={after}", None, self._retries)
        found: list[dict[str, Any]] = told["records"]
        return found

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None, retries: int) -> dict[str, Any]:
        for left in range(retries, -1, -1):
            try:
                response = self._http.request(method, path, json=body, headers=self._headers)
            except httpx.TransportError:
                if not left:
                    raise
                pause(retries - left)
                continue
            if response.status_code < 300:
                answer: dict[str, Any] = response.json()
                return answer
            error = _error(response)
            if response.status_code < 500 or not left:
                raise error
            pause(retries - left)
        raise AssertionError("the last try answers or raises")


def _path(kernel: str) -> str:
    """Return the path of a kernel. A name that is none is the sidecar's to refuse, and never another path."""
    name = quote(kernel, safe="", errors="replace") if kernel.strip(".") else "%2E"
    return f"/crp/v3/kernel/{name}"


def _error(response: httpx.Response) -> InterlockError:
    try:
        body = response.json()
    except json.JSONDecodeError:
        body = {}
    return error_of(response.status_code, lowered(response.headers), body if isinstance(body, dict) else {})


def pause(count: int) -> None:
    """Wait a little, longer each time and never in step with others."""
    time.sleep(min(LONGEST_PAUSE_S, 0.02 * 2**count) * random.uniform(0.5, 1.0))  # noqa: S311 - no secret


def micros(value: float | Decimal) -> int:
    """Return the millionths of a number. Raises ``ValueError`` for one that is not finite, or has more than six decimals."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a number must be finite, got {value}")
    scaled = Decimal(repr(value) if isinstance(value, float) else value) * MICRO
    if scaled != scaled.to_integral_value():
        raise ValueError(f"a number has at most six decimals, got {value}")
    return int(scaled)


def number(millionths: int | str) -> int | float:
    """Return a number of millionths: whole where it is whole."""
    whole, part = divmod(int(millionths), MICRO)
    return whole if not part else int(millionths) / MICRO


def kind_of(value: Any) -> str:
    """Return the type of a variable: n, s, b, l or u. Raises ``ValueError`` for what a kernel cannot hold."""
    for kind, types in (
        ("b", bool),
        ("n", int | float | Decimal),
        ("s", str),
        ("l", list | tuple),
        ("u", set | frozenset),
    ):
        if isinstance(value, types):
            return kind
    raise ValueError(f"a kernel holds numbers, texts, flags, and lists and sets of them, not {type(value).__name__}")


def value_json(value: Any) -> dict[str, Any]:
    """Return a value in the JSON form of ``Value``."""
    kind = kind_of(value)
    if kind == "n":
        return {"number_micros": str(micros(value))}
    if kind in {"s", "b"}:
        return {"text" if kind == "s" else "flag": value}
    items = {"items": [value_json(one) for one in (value if kind == "l" else sorted(value, key=repr))]}
    return {"list" if kind == "l" else "set": items}


def value_of(told: Mapping[str, Any]) -> Any:
    """Return the value in a ``Value``; ``None`` for a variable that holds nothing."""
    if "number_micros" in told:
        return number(told["number_micros"])
    for kind in ("text", "flag"):
        if kind in told:
            return told[kind]
    for kind, made in (("list", list), ("set", set)):
        if kind in told:
            return made(value_of(one) for one in told[kind].get("items", ()))
    return None


def state_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a kernel that hold something."""
    found = {name: value_of(value) for name, value in told.items()}
    return {name: value for name, value in found.items() if value is not None}
