"""Reading stored reports: encrypted like contents, plain where an older version stored them (AUD-5)."""

from __future__ import annotations

import os

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.export import export
from interlock.audit.sealing.verify import ChainBroken, require_valid_chain
from interlock.audit.store.contents import Vault, require_kept
from interlock.audit.store.log import AuditLog, StoredReport
from interlock.domain.chain.chain import Fault, content_hash
from interlock.runtime.keys.derivation import Keyring


def open_report(stored: StoredReport, keyring: Keyring) -> bytes:
    """Return a report's canonical JSON. Refused with CONTENT_UNREADABLE for bytes that no key opens."""
    return Vault(keyring, os.urandom).open_report(stored)


def is_sealed(stored: StoredReport) -> bool:
    """Return whether the stored bytes are the sealed ones."""
    return content_hash(stored.body) == (stored.window.sealed_report_hash or stored.window.report_hash)


def report_message(stored: StoredReport, log: AuditLog, keyring: Keyring) -> audit_pb2.GetReportResponse:
    """Return a report whose bytes are the sealed ones. Refused with CONTENT_ERASED if the chain records the erasure.

    Raises ``ChainBroken`` for other bytes, and for a missing report that no event explains.
    """
    window = stored.window
    if not is_sealed(stored):
        if not stored.body:
            chain = log.chain(window.session_id)
            require_valid_chain(chain, window.session_id, keyring)
            require_kept(chain.events)
        raise ChainBroken(Fault("window", window.window_number, "REPORT_HASH_MISMATCH"))
    plain = open_report(stored, keyring)
    if content_hash(plain) != window.report_hash:
        raise ChainBroken(Fault("window", window.window_number, "REPORT_HASH_MISMATCH"))
    return audit_pb2.GetReportResponse(
        session_id=export.text(window.session_id),
        window_id=export.text(window.window_id),
        report_json=plain,
        report_hash=window.report_hash,
        hmac=export.text(window.hmac),
    )
