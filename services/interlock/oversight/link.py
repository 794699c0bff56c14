"""The operator's link to the console: its secret is in a file of the state folder that only the operator may read."""

from __future__ import annotations

import hmac
import json
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import structlog

from interlock.domain.errors import forbidden, unavailable
from interlock.runtime.settings.model import Settings

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


def offered(settings: Settings, link: ConsoleLink, ends: AsyncExitStack) -> str:
    """Write the file until *ends*, where the link is a way to sign in, and return in words how to come in."""
    if not is_open(settings):
        return f"{link.origin}, by the ways of sign_in_ways"
    write(settings.state_dir, link)
    ends.callback(remove, settings.state_dir, link)
    return "`interlock console` prints the link that signs you in"


def is_open(settings: Settings) -> bool:
    """Whether the link is a way to sign in."""
    return "link" in settings.sign_in_ways.split(",")


def read(settings: Settings) -> ConsoleLink:
    """Return the link of the process that runs over the settings' state folder. Refused with CONSOLE_NOT_RUNNING or SIGN_IN_WAY_OFF."""
    folder = settings.state_dir
    if not is_open(settings):
        raise forbidden("SIGN_IN_WAY_OFF", "nobody signs in by the link here", hint="the setting sign_in_ways")
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
