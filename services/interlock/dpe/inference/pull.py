"""Download of models by URL and hash: only files with the pinned hash are moved into place (DPE-17).

The URL of a ``manifest.json`` fetches the whole slot: the caller pins the manifest's hash, the manifest pins the hashes
of the files. Any other URL fetches one file.
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
    """Limits of a download: https only, and a size limit for each file.

    *local* also allows loopback and file:// for tests.
    """

    most_bytes: int = MOST_BYTES
    local: bool = False


def pull(url: str, sha256: str, *, slot: str, folder: Path, rules: PullRules) -> list[Path]:
    """Fetch a slot, or one file of it, to *folder* and return the written paths.

    Refused with URL_REFUSED, SHA256_INVALID, MODEL_HASH_MISMATCH, MODEL_TOO_LARGE, MODEL_MANIFEST_INVALID, PULL_FAILED
    or FOLDER_UNWRITABLE. *folder* is unchanged after a refusal.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise invalid("SHA256_INVALID", "the hash must be 64 lower-case hex digits")
    name = Path(unquote(urlsplit(url).path)).name
    if not name:
        raise invalid("URL_REFUSED", "the URL names no file")
    with _staging_folder(folder) as place:
        _fetch(url, place / name, sha256, slot, rules)
        names = [name]
        if name == MANIFEST:
            model = manifest(slot, place)
            for each, digest in model.files.items():
                _fetch(urljoin(url, quote(each)), place / each, digest, slot, rules)
            names = [*model.files, MANIFEST]  # last, so that every file it lists exists by then
        try:
            return [_move(place / each, folder / each) for each in names]
        except OSError as error:
            raise _unwritable(folder, error) from None


@contextmanager
def _staging_folder(folder: Path) -> Iterator[Path]:
    """Yield a private folder on the same file system, so that complete files are moved and not copied."""
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
    _check_url(url, rules)
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
                    _check_url(url, rules)  # a redirect may lead only where the URL itself could
                    continue
                response.raise_for_status()
                yield from response.iter_bytes(CHUNK)
                return
    raise unavailable("PULL_FAILED", "too many redirects", retry_after_ms=0)


def _check_url(url: str, rules: PullRules) -> None:
    parts = urlsplit(url)
    local = parts.scheme == "file" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if parts.scheme != "https" and not (rules.local and local):
        raise invalid(
            "URL_REFUSED", f"{parts.scheme or 'no scheme'}: models are fetched over https only", hint="use an https URL"
        )


def _move(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    return target


def _unwritable(folder: Path, error: OSError) -> Exception:
    return invalid("FOLDER_UNWRITABLE", f"{folder}: {type(error).__name__}")
