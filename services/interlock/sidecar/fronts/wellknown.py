"""The capabilities of this gateway (SPEC-016 §2.5; RFC 8615)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.domain.headers.header_syntax import STRATEGIES
from interlock.domain.headers.headers import NOT_BUILT, NOT_SUPPORTED, PROTOCOL_VERSION
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from interlock.domain.conformance.carried import Requirement

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
COMPLETIONS = "/v1/completions"
MESSAGES = "/v1/messages"
EMBEDDINGS = "/v1/embeddings"
MODELS = "/v1/models"
DELEGATIONS = "/crp/v3/delegations"
BATCH = "/crp/v3/batch"

ENDPOINTS: tuple[dict[str, Any], ...] = (
    {"path": CHAT, "methods": ["POST"], "request": "checked", "response": "scanned", "streaming": "scanned, then sent"},
    {
        "path": RESPONSES,
        "methods": ["POST"],
        "request": "checked",
        "response": "scanned",
        "streaming": "scanned, then sent",
    },
    {"path": RESPONSES + "/{id}", "methods": ["GET", "DELETE"], "request": "checked", "response": "own answers only"},
    {"path": RESPONSES + "/{id}/input_items", "methods": ["GET"], "request": "checked", "response": "own input only"},
    {
        "path": MESSAGES,
        "methods": ["POST"],
        "request": "checked",
        "response": "scanned",
        "streaming": "scanned, then sent",
    },
    {
        "path": COMPLETIONS,
        "methods": ["POST"],
        "request": "checked",
        "response": "scanned",
        "streaming": "scanned, then sent",
    },
    {"path": EMBEDDINGS, "methods": ["POST"], "request": "checked", "response": "numbers alone, not scanned"},
    {"path": MODELS, "methods": ["GET"], "request": "none", "response": "listed anew, no model output"},
    {"path": MODELS + "/{model}", "methods": ["GET"], "request": "none", "response": "listed anew, no model output"},
    {"path": "/v1/*", "methods": ["*"], "request": "refused", "response": "refused with 501"},
    {"path": BATCH, "methods": ["POST"], "request": "checked", "response": "scanned"},
    {"path": DELEGATIONS, "methods": ["POST"], "request": "checked", "response": "no model output"},
    {"path": "/crp/v3/session/{id}", "methods": ["GET", "DELETE"], "request": "checked", "response": "no model output"},
    {"path": "/crp/v3/session/{id}/dag", "methods": ["GET"], "request": "checked", "response": "no model output"},
    {
        "path": "/crp/v3/session/{id}/held/{window_id}",
        "methods": ["GET"],
        "request": "checked",
        "response": "no model output",
    },
    {"path": "/crp/v3/reports/{window_id}", "methods": ["GET"], "request": "checked", "response": "own reports only"},
    {"path": "/crp/v3/trails/{trail_id}", "methods": ["GET"], "request": "checked", "response": "own reports only"},
)
"""Every endpoint and what is scanned of it; nothing is passed through unscanned."""


def document(settings: Settings, base_url: str) -> dict[str, Any]:
    """Return the capability document. It claims what is there, no more."""
    from interlock.domain.conformance import carried  # a table that most sidecars never serve, and that takes 0.8 MiB

    return {
        "crp_version": PROTOCOL_VERSION,
        "conformance_level": carried.claimed(),
        "conformance": {
            "requirements": [_row(one) for one in carried.REQUIREMENTS],
            "fields": {field: carried.use_of(field) for field in carried.FIELDS},
            "fields_not_applicable": dict(carried.NOT_APPLICABLE),
            "strategies": [name for name in STRATEGIES if name not in NOT_BUILT],
        },
        "endpoints": {"inference": f"{base_url}/v1", "crp_native": f"{base_url}/crp/v3"},
        "providers_supported": ["openai-compatible", "anthropic"],
        "regions": [settings.data_region] if settings.data_region else [],
        "max_loop_depth": settings.max_loop_depth,
        "max_fan_out": settings.max_fan_out,
        "max_dag_nodes": settings.max_dag_nodes,
        "max_windows": settings.max_windows,
        "hold_expires_s": settings.hold_expires_s,
        "limits": {
            "max_body_bytes": settings.max_body_bytes,
            "max_text_bytes": settings.max_text_bytes,
            "max_json_depth": settings.max_json_depth,
            "max_facts": settings.max_facts,
            "max_claims": settings.max_claims,
            "max_choices": settings.max_choices,
        },
        "scanning": list(ENDPOINTS),
        "request_headers_refused": sorted(NOT_SUPPORTED),
    }


def _row(one: Requirement) -> dict[str, Any]:
    """Return one requirement of SPEC-014 §1: what is not carried says why."""
    told = {"level": one.level, "requirement": one.what, "source": one.source, "carried": one.carried}
    return {**told, **({} if one.carried else {"why_not": one.why_not})}
