"""Window texts, reports and held responses, stored encrypted next to the chain (SPEC-011 §6, SPEC-015 §4).

AES-256-GCM under a random data key per session, which is wrapped under a key derived from the master key. The additional
data names session and window, so that no content can stand for another. The window's seal holds the hash of the encrypted
bytes: a swapped, edited or removed content is noticed, and the hash reveals nothing once the data key is destroyed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.store.log import ContentKey, Contents, StoredReport, Writing
from interlock.domain.chain.chain import EventRecord, content_hash
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED
from interlock.domain.chain.prefix import Link
from interlock.domain.errors import Refused, conflict, unavailable
from interlock.domain.held import KEPT
from interlock.runtime.keys.derivation import Keyring

WRAP = b"interlock-content-wrap-v1"
_KEY_BYTES, _NONCE_BYTES = 32, 12
_REPORT, _HELD, _KEPT = "report", "held", "kept"
_ENCRYPTED = b"\xfe"
"""First byte of an encrypted report; no JSON text starts with it."""
_WITH_FACTS = b"\xff"
"""First byte of a content with facts; no UTF-8 text starts with it. A text alone is stored as in every version."""


@dataclass(frozen=True)
class WindowContent:
    """The stored content of a window: its text, and as serialised messages its deferred facts and the facts that its claims name."""

    text: str
    facts: tuple[bytes, ...]
    evidence: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.facts)

    @property
    def facts_hash(self) -> str:
        """Hash over the hashes of the facts, so that their boundaries count."""
        return _hash_of(self.facts)

    @property
    def evidence_hash(self) -> str:
        """The same over the evidence."""
        return _hash_of(self.evidence)


def _hash_of(facts: Iterable[bytes]) -> str:
    return content_hash("|".join(map(content_hash, facts)).encode())


def window_content(
    text: str, facts: Iterable[common_pb2.Fact], evidence: Iterable[common_pb2.Fact] = ()
) -> WindowContent:
    """Return the content of a window with this *text*, these deferred *facts* (SPEC-004 §5.2), and the *evidence* of its claims."""
    return WindowContent(text, _serialised(facts), _serialised(evidence))


def _serialised(facts: Iterable[common_pb2.Fact]) -> tuple[bytes, ...]:
    return tuple(fact.SerializeToString(deterministic=True) for fact in facts)


def _packed(kept: WindowContent) -> bytes:
    if not kept.facts and not kept.evidence:
        return kept.text.encode()
    content = audit_pb2.Content(
        text=kept.text, deferred_facts=map(common_pb2.Fact.FromString, kept.facts),
        evidence=map(common_pb2.Fact.FromString, kept.evidence),
    )  # fmt: skip
    return _WITH_FACTS + content.SerializeToString(deterministic=True)


def _unpacked(plain: bytes, window_id: str) -> audit_pb2.Content:
    try:
        if not plain.startswith(_WITH_FACTS):
            return audit_pb2.Content(window_id=window_id, text=plain.decode())
        found = audit_pb2.Content.FromString(plain.removeprefix(_WITH_FACTS))
    except (UnicodeDecodeError, DecodeError):
        raise _lost(
            "CONTENT_UNREADABLE", "the content of an earlier window has a format that this version cannot read"
        ) from None
    found.window_id = window_id
    return found


@dataclass(frozen=True)
class Vault:
    """Encrypts and opens contents. ``entropy`` returns that many random bytes."""

    keyring: Keyring
    entropy: Callable[[int], bytes]

    def seal(
        self, writing: Writing, session_id: str, window_id: str, kept: WindowContent, report: bytes
    ) -> tuple[bytes, bytes]:
        """Return *kept*, empty where there is nothing, and the report, both encrypted under the session's data key.

        The first byte of the report distinguishes it from reports stored before they were encrypted.
        """
        key, place = self._key(writing, session_id), f"{session_id}|{window_id}"
        content = self._locked(key, _packed(kept), place) if kept else b""
        return content, _ENCRYPTED + self._locked(key, report, f"{_REPORT}|{place}")

    def open_report(self, stored: StoredReport) -> bytes:
        """Return a report's canonical JSON. Refused with CONTENT_UNREADABLE for bytes that no key opens."""
        if not stored.body.startswith(_ENCRYPTED):
            return stored.body
        if stored.key is None:
            raise _lost("CONTENT_UNREADABLE", "the data key of that report is gone")
        session_id = stored.window.session_id
        name = f"{_REPORT}|{session_id}|{stored.window.window_id}"
        return _unlocked(self._unwrapped(session_id, *stored.key), stored.body.removeprefix(_ENCRYPTED), name)

    def lock_held(self, writing: Writing, session_id: str, window_id: str, held: bytes) -> bytes:
        """Return the bytes that a held window would be released as, encrypted."""
        return self._locked(self._key(writing, session_id), held, f"{_HELD}|{session_id}|{window_id}")

    def open_held(self, session_id: str, window_id: str, sealed: bytes, key: ContentKey | None) -> bytes:
        """Return the bytes that a held window would be released as. Refused with CONTENT_UNREADABLE if no key opens them."""
        if key is None:
            raise _lost("CONTENT_UNREADABLE", "the data key of that session is gone")
        return _unlocked(self._unwrapped(session_id, *key), sealed, f"{_HELD}|{session_id}|{window_id}")

    def lock_kept(self, writing: Writing, session_id: str, name: str, kept: bytes) -> bytes:
        """Return a kept answer, encrypted; *name* says whose it is and where it stands."""
        return self._locked(self._key(writing, session_id), kept, f"{_KEPT}|{session_id}|{name}")

    def open_kept(self, session_id: str, name: str, sealed: bytes, key: ContentKey) -> bytes:
        """Return a kept answer. Refused with CONTENT_UNREADABLE for bytes that were not kept under that name."""
        return _unlocked(self._unwrapped(session_id, *key), sealed, f"{_KEPT}|{session_id}|{name}")

    def _key(self, writing: Writing, session_id: str) -> bytes:
        """Return the session's data key; make and store one at the first use."""
        held = writing.content_key(session_id)
        if held is not None:
            return self._unwrapped(session_id, *held)
        key, version = self.entropy(_KEY_BYTES), self.keyring.current
        writing.add_content_key(session_id, version, self._locked(self._wrapping(version, session_id), key, session_id))
        return key

    def open(
        self, session_id: str, window_ids: Iterable[str], links: Mapping[str, Link], held: Contents, *,
        dropped: Collection[str], released: Collection[str],
    ) -> Iterator[audit_pb2.Content]:  # fmt: skip
        """Yield the contents of *window_ids* from a verified chain, in that order. Windows without content are left out.

        *links* are what the chain says of the windows; *dropped* and *released* those whose content was deleted, and those that
        were handed out after a hold.

        Refused with CONTENT_ERASED, CONTENT_MISSING or CONTENT_UNREADABLE: a content that was not compared must not count as
        compared.
        """
        # One cipher for all of them: making one takes ten times as long as opening a short text.
        cipher = _cipher(self._unwrapped(session_id, *held.key)) if held.key and held.sealed else None
        for window_id in window_ids:
            window = links.get(window_id)
            if window is None or not window.content_hash or window_id in dropped:
                continue
            if window.status in KEPT and window_id not in released:
                continue  # no one was given it: an answer can neither repeat nor contradict it
            sealed = held.sealed.get(window_id)
            if sealed is None or cipher is None:
                raise _lost("CONTENT_MISSING", "the content of an earlier window is gone")
            if content_hash(sealed) != window.content_hash:
                raise _lost("CONTENT_UNREADABLE", "the content of an earlier window is not the sealed one")
            yield _unpacked(_opened(cipher, sealed, f"{session_id}|{window_id}"), window_id)

    def _wrapping(self, version: int, session_id: str) -> bytes:
        key = self.keyring.derive(version, session_id, WRAP)
        if key is None:
            raise _lost("CONTENT_UNREADABLE", "this deployment does not have the master key of that version")
        return key

    def _unwrapped(self, session_id: str, version: int, wrapped: bytes) -> bytes:
        return _unlocked(self._wrapping(version, session_id), wrapped, session_id)

    def _locked(self, key: bytes, plain: bytes, name: str) -> bytes:
        nonce = self.entropy(_NONCE_BYTES)
        return nonce + AESGCM(key).encrypt(nonce, plain, name.encode())


def require_kept(events: Iterable[EventRecord]) -> None:
    """Refuse with CONTENT_ERASED a session whose own chain records that its contents are erased."""
    if any(event.event_type in {CONTENT_ERASED, TRUNCATED} for event in events):
        raise erased()


def erased() -> Refused:
    """Return the refusal of contents that the chain itself declares erased."""
    return conflict("CONTENT_ERASED", "the contents of this session were erased, as its chain records")


def _unlocked(key: bytes, sealed: bytes, name: str) -> bytes:
    return _opened(_cipher(key), sealed, name)


def _cipher(key: bytes) -> AESGCM:
    try:
        return AESGCM(key)
    except ValueError:
        raise _undecryptable() from None


def _opened(cipher: AESGCM, sealed: bytes, name: str) -> bytes:
    try:
        return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], name.encode())
    except (InvalidTag, ValueError):
        raise _undecryptable() from None


def _undecryptable() -> Refused:
    return _lost("CONTENT_UNREADABLE", "the content of an earlier window cannot be decrypted")


def _lost(reason: str, message: str) -> Refused:
    return unavailable(reason, message, retry_after_ms=0)
