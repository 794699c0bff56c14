"""What this process knows of kernels from what was sealed, in files of their own: for the time when they cannot be asked (T8)."""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import structlog
from prometheus_client import Counter

from interlock.domain.kernel.emergency import KernelSeen
from interlock.runtime.keys import keys_file
from interlock.runtime.keys.emergency_keys import EmergencyKeys

log = structlog.get_logger()

FOLDER = "kernels"
MOST_KERNELS, MOST_TOKENS = 10_000, 16

DOUBTED = Counter(
    "interlock_kernel_definitions_doubted", "Files of what is known of kernels that were changed by others."
)


class KernelsSeen:
    """Emergency actions and children of kernels. Methods block, but for those that read what is in memory."""

    def __init__(self, folder: Path, keys: EmergencyKeys) -> None:
        self._folder, self._keys = folder / FOLDER, keys
        self._held: dict[str, KernelSeen] = {}

    def find(self, kernel_id: str) -> KernelSeen | None:
        """Return what is known of a kernel, after a restart too; ``None`` where that is nothing, or was changed by others."""
        if kernel_id in self._held:
            return self._held[kernel_id]
        try:
            text = (self._folder / kernel_id).read_bytes().decode("ascii", "replace")
        except OSError:
            return None
        found = KernelSeen.of(kernel_id, text, self._keys.named)
        if found is None:
            DOUBTED.inc()
            log.error("kernel.definition_doubted", kernel_id=kernel_id)
            return None
        self._hold(found)
        return found

    def owner(self, scope: str, token: str) -> list[KernelSeen]:
        """Return the kernels for which a session token of this caller was verified."""
        digests = {self._digest(name, scope, token) for name in {self._keys.current, *self._names()}}
        return [one for one in self._all() if not digests.isdisjoint(one.tokens)]

    def with_token(self, seen: KernelSeen, token: str) -> KernelSeen:
        """Return what is known with a session token that was verified for the kernel; of no token, or one that is known: the same."""
        if not token:
            return seen
        digest = self._digest(self._keys.current, seen.scope, token)
        return seen if digest in seen.tokens else replace(seen, tokens=(*seen.tokens, digest)[-MOST_TOKENS:])

    def keep(self, seen: KernelSeen) -> None:
        """Keep what is known of a kernel, durably; of one without an emergency action there is nothing to keep on the disk."""
        if self._held.get(seen.kernel_id) == seen:
            return
        self._hold(seen)
        if not seen.emergencies:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room(seen.kernel_id)
            keys_file.write(self._folder / seen.kernel_id, seen.text(self._keys.current, self._keys.named).encode())
        except OSError as error:
            self._held.pop(seen.kernel_id, None)
            log.warning("kernel.definition_unkept", folder=str(self._folder), error=type(error).__name__)

    def doubted(self) -> Iterator[str]:
        """Yield the kernels whose files were changed by others."""
        for path in self._files():
            if KernelSeen.of(path.name, path.read_bytes().decode("ascii", "replace"), self._keys.named) is None:
                yield path.name

    def _hold(self, seen: KernelSeen) -> None:
        self._held.pop(seen.kernel_id, None)
        if len(self._held) >= MOST_KERNELS:
            del self._held[next(iter(self._held))]
        self._held[seen.kernel_id] = seen

    def _all(self) -> Iterator[KernelSeen]:
        for name in {*self._held, *(path.name for path in self._files())}:
            if found := self.find(name):
                yield found

    def _files(self) -> Iterable[Path]:
        return (path for path in self._folder.glob("crp_sess_*"))

    def _make_room(self, kernel_id: str) -> None:
        """Forget the kernels that were written longest ago, a tenth at a time."""
        paths = list(self._files())
        if len(paths) < MOST_KERNELS or (self._folder / kernel_id).exists():
            return
        for path in sorted(paths, key=lambda path: path.stat().st_mtime)[: MOST_KERNELS // 10]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def _names(self) -> list[str]:
        keyring = self._keys.keyring
        return [f"master-{version}" for version in keyring.versions] if keyring else []

    def _digest(self, name: str, scope: str, token: str) -> str:
        key = self._keys.named(name, "") or b""
        return hmac.digest(key, f"token\n{scope}\n{token}".encode(), "sha256").hex()[:32]


def merged(
    known: KernelSeen, *, emergencies: Iterable[str] = (), children: Mapping[str, str] | None = None
) -> KernelSeen:
    """Return what is known with what was seen besides: what is registered never changes, and no child goes away."""
    return replace(
        known, emergencies=tuple(sorted({*known.emergencies, *emergencies})),
        children={**known.children, **(children or {})},
    )  # fmt: skip
