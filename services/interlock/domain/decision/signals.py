"""Typed signals: what is admitted, and by which name anything else is left out (SEED-5 §5)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.reading import (
    UNIT,
    canonical,
    confidence,
    digest_of,
    is_name,
    json_object,
    micros,
    number,
)
from interlock.domain.decision.schema import fits

LARGEST_PAYLOAD = 4_096
SKEW_US = 5 * UNIT
"""How far another machine's clock may be ahead."""

PAYLOAD = '"payload":'

Signal = Mapping[str, Any]
"""An admitted signal: id, type, source, at_us, confidence in millionths, payload."""


def admitted(
    raw: Any, rules: ExperimentRules, *, source: str, types: Collection[str], now_us: int
) -> tuple[Signal | None, str]:
    """Return an admitted signal, or ``None`` and the name of what is wrong with it.

    *source*: who sent it; empty for the execution layer, which names its own parts. *types*: what the sender may emit.
    """
    found, _, fault = admitted_text(raw, rules, source=source, types=types, now_us=now_us)
    return found, fault


def admitted_text(
    raw: Any, rules: ExperimentRules, *, source: str, types: Collection[str], now_us: int
) -> tuple[Signal | None, str, str]:
    """Return an admitted signal with its canonical text, or ``None`` with the name of what is wrong with it last."""
    fault = _origin_fault(raw, rules, source, types)
    if fault:
        return None, "", fault
    at_us, fault = _moment(raw.get("at"), rules, now_us)
    sure, payload = confidence(raw.get("confidence")), json_object(raw.get("payload_json"), LARGEST_PAYLOAD)
    if sure is None:
        return None, "", "SIGNAL_CONFIDENCE_INVALID"
    if payload is None or not fits(rules.signals[raw["type"]], payload):
        return None, "", "SIGNAL_PAYLOAD_INVALID"
    if fault:
        return None, "", fault
    found = {"type": raw["type"], "source": raw["source"], "at_us": at_us, "confidence": sure, "payload": payload}
    text = canonical(found)
    signal_id = "sig_" + digest_of(text)[:24]
    return {"id": signal_id, **found}, _with_id(text, signal_id), ""


def _with_id(text: str, signal_id: str) -> str:
    """Return the canonical text of a signal with its id, which stands before the payload: what is before that are numbers."""
    at = text.index(PAYLOAD)
    return f'{text[:at]}"id":"{signal_id}",{text[at:]}'


def apart(text: str) -> tuple[Signal, str]:
    """Return a signal without its payload, and the canonical text of that, from the canonical text of an admitted signal.

    What stands behind the payload are two names, so that the last of their keys is the one of the signal.
    """
    first, last = text.index(PAYLOAD), text.rindex(',"source":')
    return json.loads(text[:first] + text[last + 1 :]), text[first + len(PAYLOAD) : last]


def _origin_fault(raw: Any, rules: ExperimentRules, source: str, types: Collection[str]) -> str:
    if not isinstance(raw, Mapping):
        return "SIGNAL_MALFORMED"
    kind, told = raw.get("type"), raw.get("source")
    if not isinstance(kind, str) or kind not in rules.signals:
        return "SIGNAL_TYPE_UNKNOWN"
    if kind not in types:
        return "SIGNAL_UNDECLARED"
    return "" if is_name(told) and source in {"", told} else "SIGNAL_SOURCE_FOREIGN"


def kind_of(raw: Any) -> str:
    """Return the type that a refused signal named, where it could be one."""
    kind = raw.get("type") if isinstance(raw, Mapping) else None
    return kind if isinstance(kind, str) and is_name(kind) else ""


def _moment(told: Any, rules: ExperimentRules, now_us: int) -> tuple[int, str]:
    at = number(told)
    if at is None or at < 0:
        return 0, "SIGNAL_CLOCK_INVALID"
    at_us = micros(at)
    if at_us > now_us + SKEW_US:
        return 0, "SIGNAL_CLOCK_FUTURE"
    if at_us < now_us - rules.whole("max_signal_age_s") * UNIT:
        return 0, "SIGNAL_CLOCK_PAST"
    return at_us, ""
