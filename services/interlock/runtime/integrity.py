"""Verifies that the running code is the shipped code (DPE-17, SPEC-005 §21.1).

Every file of the installed distribution is compared with the hash in the wheel's RECORD. A changed, missing or unlisted file
refuses to start. Code that runs from another place than the recorded files, as an editable install does, cannot be verified, and
is not called so. This detects corruption, an incomplete upgrade and an edit in place. It does not detect an attacker who can
also write RECORD or this file; the signature of the installed package does.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import marshal
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType

import structlog
from prometheus_client import Gauge

from interlock.domain.errors import Refused, unavailable

log = structlog.get_logger()

VERIFIED = Gauge(
    "interlock_code_verified", "1 when the code of this process is what was shipped; 0: nothing to compare."
)

PACKAGE = "interlock"
CACHE = "__pycache__"
_HEADER = 16
"""Bytes before the code in a compiled file: magic number, flags, and two words that describe the source (PEP 552)."""


@dataclass(frozen=True)
class Verified:
    """The result: the number of files, and one hash over all of them. ``why`` is the reason why nothing could be compared."""

    files: int
    hash: str
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether all files were compared."""
        return not self.why


def require(*, verified: bool) -> Verified:
    """Verify this process's code and log the result. Refused with CODE_CHANGED, or CODE_UNVERIFIED where *verified* is required."""
    found = verify()
    VERIFIED.set(found.ok)
    if found.ok:
        log.info("code.verified", count=found.files, version=found.hash)
    elif verified:
        raise _refused("CODE_UNVERIFIED", found.why, "install the wheel, or set require_verified_code to false")
    else:
        log.warning("code.unverified", hint=found.why)
    return found


@lru_cache(maxsize=1)
def verify() -> Verified:
    """Compare every installed Interlock file with RECORD, once per process. Refused with CODE_CHANGED, naming the file."""
    return verify_distribution(PACKAGE, PACKAGE)


def verify_distribution(name: str, *packages: str) -> Verified:
    """Compare the *packages* (folders) of the distribution *name* with its RECORD. Refused with CODE_CHANGED.

    Not ok where Python imports one of them from elsewhere: the compared files would not be the code that runs.
    """
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return Verified(0, "", f"{name} is not installed as a package")
    recorded = {
        str(file): file.hash.value
        for file in distribution.files or ()
        if file.parts[0] in packages and file.hash is not None and file.hash.mode == "sha256"
    }
    if not recorded:
        return Verified(0, "", f"{name} runs from its source, for which no hashes are recorded")
    home = Path(str(distribution.locate_file("")))
    for package in packages:
        if elsewhere := _runs_elsewhere(home / package):
            return Verified(0, "", f"{package} runs from {elsewhere}, not from the installed files: not verifiable")
    for file, expected in sorted(recorded.items()):
        if _hash(home, file) != expected:
            raise _refused("CODE_CHANGED", f"{file} differs from the shipped file", "install it again")
    for file in _present(home, packages):
        if file not in recorded:
            raise _refused("CODE_CHANGED", f"{file} was not shipped", "install it again into an empty environment")
    _check_compiled(home, recorded)
    listing = "".join(f"{digest}  {file}\n" for file, digest in sorted(recorded.items()))
    return Verified(len(recorded), "sha256:" + hashlib.sha256(listing.encode()).hexdigest())


def _runs_elsewhere(installed: Path) -> str:
    """Return from where Python imports the package if not from *installed* alone; empty if it does."""
    spec = importlib.util.find_spec(installed.name)
    places = [Path(place).resolve() for place in (spec and spec.submodule_search_locations) or ()]
    if places == [installed.resolve()]:
        return ""
    return ", ".join(map(str, places)) or "nowhere"


def _hash(home: Path, file: str) -> str:
    try:
        digest = hashlib.sha256((home / file).read_bytes()).digest()
    except OSError as error:
        raise _refused("CODE_CHANGED", f"{file}: {type(error).__name__}", "install it again") from None
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _present(home: Path, packages: tuple[str, ...]) -> Iterator[str]:
    for package in packages:
        for path in sorted((home / package).rglob("*")):
            if path.parent.name != CACHE and not path.is_dir():
                yield path.relative_to(home).as_posix()


def _check_compiled(home: Path, recorded: Mapping[str, str]) -> None:
    """Compare the compiled files with their sources: Python runs the former, and the latter were shipped.

    RECORD does not list compiled files, and one with a matching header runs instead of its source, whatever it contains.
    """
    for file in recorded:
        if not file.endswith(".py"):
            continue
        source = home / file
        for cached in (cache_from_source(str(source)), cache_from_source(str(source), optimization="")):
            path = Path(cached)
            if path.is_file() and not _compiled_from(path.read_bytes(), source):
                raise _refused(
                    "CODE_CHANGED", f"{path.relative_to(home)} was not compiled from its source", "delete it"
                )


def _compiled_from(content: bytes, source: Path) -> bool:
    if content[:4] != MAGIC_NUMBER:
        return True  # of another Python version: this one compiles its own
    try:
        code = marshal.loads(content[_HEADER:])  # noqa: S302 - what Python itself is about to load and run
    except (ValueError, EOFError, TypeError):
        return True  # Python cannot run it either, and compiles the source
    return isinstance(code, CodeType) and code == compile(
        source.read_bytes(), str(source), "exec", dont_inherit=True, optimize=sys.flags.optimize
    )


def _refused(reason: str, message: str, hint: str) -> Refused:
    return unavailable(reason, message, retry_after_ms=0, hint=hint)
