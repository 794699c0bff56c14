"""Verifying a stored chain with this deployment's keys (PRV-2)."""

from __future__ import annotations

from functools import partial

from interlock.audit.store.log import Chain
from interlock.domain.chain.chain import CHAIN_BROKEN, Fault, KeyOf, Verification, verify_chain
from interlock.domain.errors import Kind, Refused, not_found
from interlock.runtime.keys.derivation import HMAC, Keyring


class ChainBroken(Refused):
    """The chain does not verify, so no answer may rely on it (SPEC-004 §16.4)."""

    def __init__(self, fault: Fault, *, faults: int = 1) -> None:
        super().__init__(
            Kind.CONFLICT,
            "CHAIN_BROKEN",
            "the session's audit chain does not verify; it cannot be continued",
            metadata={"what": fault.what, "index": str(fault.index), "fault": fault.reason},
        )
        self.fault, self.faults = fault, faults


def key_of(keyring: Keyring, session_id: str) -> KeyOf:
    """Return a function that maps a key version to a session's HMAC key, ``None`` for an unknown version."""
    return partial(_derive, keyring, session_id)


def _derive(keyring: Keyring, session_id: str, version: int) -> bytes | None:
    return keyring.derive(version, session_id, HMAC)


def examine(chain: Chain, session_id: str, keyring: Keyring) -> Verification:
    """Return the verdict on *chain*, with every fault."""
    return verify_chain(chain.windows, chain.events, key_of(keyring, session_id), session_id)


def require_valid_chain(chain: Chain, session_id: str, keyring: Keyring) -> Verification:
    """Return the verdict on a chain without faults, or raise ``ChainBroken``.

    A session with a recorded break stays refused even if its bytes are restored: it cannot be continued.
    """
    found = examine(chain, session_id, keyring)
    if found.faults:
        raise ChainBroken(found.faults[0], faults=len(found.faults))
    for event in chain.events:
        if event.event_type == CHAIN_BROKEN:
            raise ChainBroken(Fault("event", event.sequence, "BROKEN_BEFORE"))
    return found


def no_session() -> Refused:
    """Return the refusal of a session that the log does not know."""
    return not_found("SESSION_NOT_FOUND", "the audit log has no record of that session")
