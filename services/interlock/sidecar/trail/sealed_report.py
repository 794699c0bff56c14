"""What a report says of itself and of its seal (SPEC-005 §15.2): ids, time and hashes before it, HMAC and chain after it.

The report is hashed into the window's HMAC, so it cannot hold that HMAC or its own hash when it is sealed. The full form holds both:
without ``AFTER_SEAL`` it is the sealed bytes again.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from google.protobuf import json_format

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.headers.headers import admissible
from interlock.runtime.clock import iso8601, system_clock
from interlock.sidecar.trail.response_headers import chain_word

AFTER_SEAL = ("hmac", "chain_integrity", "report_hash")
"""Fields that a full report has besides the sealed ones."""


def identified(
    report: dpe_pb2.Report, *, session_id: str, window_id: str, number: int, answer: bytes, context_hash: str
) -> dpe_pb2.Report:
    """Return *report* with what names it and what it is about; it is sealed with all of it."""
    named = _copy(report)
    named.report_id = "crp_report_" + window_id.removeprefix("crp_win_")
    named.session_id, named.window_id, named.window_number = session_id, window_id, number
    named.timestamp = iso8601(system_clock())
    named.response_content_hash = _sha256(answer)
    named.context_hash = context_hash
    return named


def sealed(report: dpe_pb2.Report, seal: audit_pb2.AppendResponse) -> dpe_pb2.Report:
    """Return *report* with its seal, as a caller over gRPC gets it."""
    return _with_seal(report, seal.hmac, seal.integrity, seal.report_hash)


def read(found: audit_pb2.GetReportResponse) -> dpe_pb2.Report:
    """Return a stored report with its seal."""
    report: dpe_pb2.Report = json_format.Parse(found.report_json, dpe_pb2.Report())
    return _with_seal(report, found.hmac, found.integrity, found.report_hash)


def full(found: audit_pb2.GetReportResponse) -> bytes:
    """Return a stored report as JSON with its seal."""
    seal = (found.hmac, chain_word(found.integrity), found.report_hash)
    stored: dict[str, Any] = json.loads(found.report_json)
    return canonical_json({**stored, **dict(zip(AFTER_SEAL, seal, strict=True))}).encode()


def headers_of(found: audit_pb2.GetReportResponse) -> dict[str, str]:
    """Return the seal of a stored report as headers, its hash as the entity tag."""
    seal = {"CRP-Provenance-HMAC": found.hmac, "CRP-Provenance-Chain-Integrity": chain_word(found.integrity)}
    return {"etag": f'"{found.report_hash}"', **admissible(seal)}


def _with_seal(
    report: dpe_pb2.Report, hmac: str, integrity: common_pb2.ChainIntegrity.ValueType, report_hash: str
) -> dpe_pb2.Report:
    told = _copy(report)
    told.hmac, told.chain_integrity, told.report_hash = hmac, chain_word(integrity) or "", report_hash
    return told


def _copy(report: dpe_pb2.Report) -> dpe_pb2.Report:
    copied = dpe_pb2.Report()
    copied.CopyFrom(report)
    return copied


def _sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
