"""Write the registry of agent types: one writer at a time, all or nothing, for all processes that read the file (AGT-1)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from interlock.domain.agents import AgentType, Registry, read_registry
from interlock.domain.errors import Refused, conflict, unavailable
from interlock.policy.agents_text import rewritten
from interlock.policy.watched import parse_document, read_content

LOCK_LIMIT_S = 5.0


def load(path: Path) -> Registry:
    """Return the registry in *path* as it is now; refused like ``read_registry`` and ``parse_document``."""
    return read_registry(parse_document(read_content(path), path))


def register(path: Path, agent: AgentType) -> bool:
    """Add *agent* to the file, or replace the type of the same name; return whether there was one.

    Refused with AGENT_KEY_TAKEN when one of its keys belongs to another type.
    """

    def change(registry: Registry) -> tuple[Mapping[str, AgentType], bool]:
        for key in agent.digests:
            owner = registry.with_key(key)
            if owner is not None and owner.name != agent.name:
                raise conflict(
                    "AGENT_KEY_TAKEN",
                    f"a key or service account of {agent.name} is one of {owner.name}",
                    agent_type=owner.name,
                )
        return {**registry.by_name, agent.name: agent}, agent.name in registry.by_name

    return _changed(path, change, agent.name)


def remove(path: Path, name: str) -> bool:
    """Remove an agent type from the file; return whether there was one."""

    def change(registry: Registry) -> tuple[Mapping[str, AgentType], bool]:
        return {key: agent for key, agent in registry.by_name.items() if key != name}, name in registry.by_name

    return _changed(path, change, name)


def _changed(path: Path, change: Callable[[Registry], tuple[Mapping[str, AgentType], bool]], name: str) -> bool:
    """Change the file under its lock. An invalid file is left alone, because someone may be editing it."""
    target = path.resolve()  # a link stays a link
    with _locked(target):
        registry = _good(target)
        agents, answer = change(registry)
        if agents != registry.by_name:
            Registry(agents.values())
            _replace(target, rewritten(read_content(target).decode(), agents, name).encode())
    return answer


def _good(path: Path) -> Registry:
    try:
        return load(path)
    except Refused as refused:
        raise conflict(
            "AGENTS_FILE_FAULTY",
            f"the registry file is invalid: {refused.message}",
            cause=refused.reason,
        ) from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a separate lock file next to *path*. The file itself is replaced, so a lock on it would be on the old file."""
    try:
        descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _not_written(path, error) from None
    try:
        _take(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + LOCK_LIMIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise unavailable("AGENTS_FILE_LOCKED", f"{path} is being written by another process") from None
            time.sleep(0.02)
        else:
            return


def _replace(path: Path, content: bytes) -> None:
    """Replace the file by *content*, atomically and durably, with the same permissions."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        scratch.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise _not_written(path, error) from None


def _not_written(path: Path, error: OSError) -> Exception:
    return unavailable("AGENTS_FILE_NOT_WRITTEN", f"{path}: {type(error).__name__}", retry_after_ms=0)
