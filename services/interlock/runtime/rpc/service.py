"""What every service hands to the process that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Service:
    """One opened service: its servicer, how to register it, how to ask for its health, how to end it."""

    name: str
    full_name: str
    servicer: Any
    register: Callable[[Any, Any], None]
    unready_dependencies: Callable[[], Awaitable[Mapping[str, str]]]
    """Dependency → hint for each one that cannot be reached now; empty means ready. Never raises."""
    close: Callable[[], Awaitable[None]]
