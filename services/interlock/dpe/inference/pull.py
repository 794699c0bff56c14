"""Models fetched by URL and hash: nothing is moved into place that is not the pinned file (DPE-17).

The URL of a ``manifest.json`` brings the whole slot: its own hash is pinned by the caller, those of the files by the
manifest. Any other URL brings one file.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

import httpx

from interlock.domain.errors import exhausted, invalid, unavailable
from interlock.dpe.inference.models import manifest

MANIFEST = "manifest.json"
MOST_BYTES = 4 * 1024**3
MOST_REDIRECTS = 5
CHUNK = 1_048_576
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


@dataclass(frozen=True)
class PullRules:
    """What may be fetched: https only, and so many bytes a file; *local* adds loopback and file:// for tests."""

    most_bytes: int = MOST_BYTES
    local: bool = False


def pull(url: str, sha256: str, *, slot: str, folder: Path, rules: PullRules) -> list[Path]:
    """Fetch a slot, or one file of it, to *folder* and return what was written.

    Refused with URL_REFUSED, SHA256_INVALID, MODEL_HASH_MISMATCH, MODEL_TOO_LARGE, MODEL_MANIFEST_INVALID, PULL_FAILED or
    FOLDER_UNWRITABLE; *folder* is then as it was.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise invalid("SHA256_INVALID", "a hash has 64 hex digits in lower case")
    name = Path(unquote(urlsplit(url).path)).name
    if not name:
        raise invalid("URL_REFUSED", "the URL names no file")
    with _beside(folder) as place:
        _fetch(url, place / name, sha256, slot, rules)
        names = [name]
        if name == MANIFEST:
            found = manifest(slot, place)
            for each, digest in found.files.items():
                _fetch(urljoin(url, quote(each)), place / each, digest, slot, rules)
            names = [*found.files, MANIFEST]  # last: what it lists is there by then
        try:
            return [_moved(place / each, folder / each) for each in names]
        except OSError as error:
            raise _unwritable(folder, error) from None


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """Give a private place on the same file system, so that what is whole is moved and not copied."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=".pull-", dir=folder))
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _fetch(url: str, path: Path, sha256: str, slot: str, rules: PullRules) -> None:
    digest, size = hashlib.sha256(), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            for chunk in _chunks(url, rules):
                size += len(chunk)
                if size > rules.most_bytes:
                    raise exhausted("MODEL_TOO_LARGE", f"{path.name} is too large", limit=str(rules.most_bytes))
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise unavailable("PULL_FAILED", f"{path.name}: {type(error).__name__}", retry_after_ms=0) from None
    if digest.hexdigest() != sha256:
        raise unavailable(
            "MODEL_HASH_MISMATCH", f"{path.name} is not the pinned file", retry_after_ms=0, slot=slot,
            found=digest.hexdigest(),
        )  # fmt: skip


def _chunks(url: str, rules: PullRules) -> Iterator[bytes]:
    _allow(url, rules)
    if urlsplit(url).scheme == "file":
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
        return
    with httpx.Client(timeout=_TIMEOUT) as client:
        for _ in range(MOST_REDIRECTS + 1):
            with client.stream("GET", url) as response:
                if response.has_redirect_location:
                    url = urljoin(url, response.headers["location"])
                    _allow(url, rules)  # a redirect leads nowhere that the URL itself could not
                    continue
                response.raise_for_status()
                yield from response.iter_bytes(CHUNK)
                return
    raise unavailable("PULL_FAILED", "too many redirects", retry_after_ms=0)


def _allow(url: str, rules: PullRules) -> None:
    parts = urlsplit(url)
    local = parts.scheme == "file" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if parts.scheme != "https" and not (rules.local and local):
        raise invalid("URL_REFUSED", f"{parts.scheme or 'no scheme'}: models come by https", hint="give an https URL")


def _moved(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    return target


def _unwritable(folder: Path, error: OSError) -> Exception:
    return invalid("FOLDER_UNWRITABLE", f"{folder}: {type(error).__name__}")
