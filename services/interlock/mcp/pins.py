"""Definitions of tools as they were first seen, by hash in a file. One that changed is refused by name until a person accepts it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from interlock.domain.errors import Refused, forbidden, invalid, not_found

MOST_TOOLS = 4_096
LARGEST_FILE = 16 << 20
"""More than so many tools of the longest names need, so that no server can make a file that is not read again."""


class Trust(StrEnum):
    """Which definitions are taken: the first one seen, accepted ones alone, or any."""

    FIRST = "first"
    ACCEPTED = "accepted"
    ANY = "any"


def digest(definition: Mapping[str, Any]) -> str:
    """Return the hash of a definition: its name, description, schemas, annotations and all else that a model may be shown."""
    told = json.dumps(definition, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


class Pins:
    """The file of one server: for each tool the accepted hash, and another one that was seen since. Safe over processes."""

    def __init__(self, path: Path, trust: Trust = Trust.FIRST) -> None:
        self._path, self._trust = path, trust
        self._held = self._read()

    def admitted(self, tools: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the tools of a listing that may be shown, and keep what was seen of the others."""
        shown = list(tools)
        if self._trust is Trust.ANY:
            return shown
        seen = _seen(shown)
        with self._changing() as held:
            for name, found in seen.items():
                self._see(held, name, found)
            self._held = held
        return [one for one in shown if self._refusal(str(one.get("name", ""))) is None]

    def check(self, tool: str) -> None:
        """Refuse a tool with MCP_TOOL_CHANGED, or MCP_TOOL_UNACCEPTED where only accepted ones are taken."""
        if self._trust is Trust.ANY:
            return
        if (refused := self._refusal(tool)) is not None:
            # A person may have accepted it meanwhile.
            self._held = self._read()
            refused = self._refusal(tool)
        if refused is not None:
            raise refused

    def pending(self) -> list[str]:
        """Return the names of tools that wait for a person."""
        return sorted(name for name, one in self._read().items() if one.get("seen"))

    def accept(self, tool: str) -> None:
        """Take the definition that was last seen. Refused with MCP_TOOL_UNKNOWN where nothing waits under that name."""
        with self._changing() as held:
            if not (seen := held.get(tool, {}).get("seen")):
                raise not_found("MCP_TOOL_UNKNOWN", f"no changed definition of {tool} waits for a person")
            held[tool] = {"accepted": seen, "seen": ""}

    def _see(self, held: dict[str, dict[str, str]], name: str, found: str) -> None:
        one = held.get(name)
        if one is None:
            if len(held) >= MOST_TOOLS:
                return
            first = self._trust is Trust.FIRST
            held[name] = {"accepted": found if first else "", "seen": "" if first else found}
        else:
            held[name] = {**one, "seen": "" if one["accepted"] == found else found}

    def _refusal(self, tool: str) -> Refused | None:
        one = self._held.get(tool)
        if one and one["accepted"] and one["seen"]:
            return forbidden(
                "MCP_TOOL_CHANGED",
                "the server changed what this tool says of itself; it may not be used until a person has accepted that",
            )
        is_full = one is None and len(self._held) >= MOST_TOOLS
        if is_full or (self._trust is Trust.ACCEPTED and not (one and one["accepted"])):
            return forbidden("MCP_TOOL_UNACCEPTED", "no person has accepted this tool yet, so it may not be used")
        return None

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, str]]]:
        """Read, let the block change, and write where it did; one process at a time."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                held = self._read()
                before = json.dumps(held, sort_keys=True)
                yield held
                if json.dumps(held, sort_keys=True) != before:
                    part = self._path.with_suffix(f".{os.getpid()}")
                    part.write_text(json.dumps({"tools": held}, indent=1, sort_keys=True) + "\n")
                    part.replace(self._path)
        except OSError as error:
            raise invalid(
                "MCP_PINS_INVALID",
                f"{self._path.name} cannot be written ({error.strerror}): no tool is shown without it",
            ) from None

    def _read(self) -> dict[str, dict[str, str]]:
        if self._trust is Trust.ANY or not self._path.exists():
            return {}
        try:
            data = self._path.read_bytes()[: LARGEST_FILE + 1]
            held = json.loads(data)["tools"]
            return {
                str(name): {"accepted": str(one["accepted"]), "seen": str(one["seen"])} for name, one in held.items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise invalid(
                "MCP_PINS_INVALID", f"{self._path.name} cannot be read; restore it, or remove it to see all tools anew"
            ) from None


def _seen(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the hash by name. A name that is listed twice has one hash for both, so that neither hides the other."""
    by_name: dict[str, list[str]] = {}
    for one in tools:
        by_name.setdefault(str(one.get("name", "")), []).append(digest(one))
    return {name: found[0] if len(found) == 1 else digest({"twice": found}) for name, found in by_name.items()}
