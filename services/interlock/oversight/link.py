"""The operator's link to the console: its secret is in a file of the state folder that only the operator may read."""

from __future__ import annotations

import hmac
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import structlog

from interlock.domain.errors import unavailable

log = structlog.get_logger()

FILE = "console.json"


@dataclass(frozen=True)
class ConsoleLink:
    """Where the console of a running process is, and what its link signs in with."""

    origin: str
    """Such as http://127.0.0.1:7075."""
    secret: str = field(repr=False)

    def url(self, viewer: str) -> str:
        """Return the link. What is behind the # is sent to no server and stands in no access log."""
        return f"{self.origin}/sign-in#{urlencode({'viewer': viewer, 'secret': self.secret})}"


def write(folder: Path, link: ConsoleLink) -> None:
    """Write the file, readable by its owner only. A folder that cannot be written to leaves reviewers their sign-in by key."""
    path, scratch = folder / FILE, folder / f"{FILE}.{os.getpid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({"origin": link.origin, "secret": link.secret}, file)
        scratch.replace(path)
    except OSError as error:
        log.warning("console.no_link", path=str(path), error=type(error).__name__)


def read(folder: Path) -> ConsoleLink:
    """Return the link of the process that runs over a state folder. Refused with CONSOLE_NOT_RUNNING."""
    try:
        found = json.loads((folder / FILE).read_text())
        return ConsoleLink(str(found["origin"]), str(found["secret"]))
    except (OSError, ValueError, KeyError, TypeError):
        message = f"{folder / FILE} cannot be read: no process with a console runs over this state folder"
        hint = "start it with `interlock serve`, as the same user and with the same INTERLOCK_STATE_DIR"
        raise unavailable("CONSOLE_NOT_RUNNING", message, retry_after_ms=0, hint=hint) from None


def remove(folder: Path, link: ConsoleLink) -> None:
    """Remove the file, unless another process has written its own since."""
    path = folder / FILE
    try:
        if hmac.compare_digest(str(json.loads(path.read_text())["secret"]).encode(), link.secret.encode()):
            path.unlink()
    except (OSError, ValueError, KeyError, TypeError):
        return
