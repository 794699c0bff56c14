"""What of a provider's answer is not passed on, named by fields of one fixed list, and counted (I17).

What a client gets of an answer was judged, was made here or is a word of a fixed list. A field that nobody looks at would be a way
around the judge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from prometheus_client import Counter

DROPPED = Counter("interlock_answer_fields_dropped", "Provider answers of which a field was not passed on.", ["field"])

OTHER = "other"
NAMES = frozenset({
    "annotations", "audio", "citations", "content_filter_results", "encrypted_content", "extra_content", "finish_reason", "images", "logprobs",
    "metadata", "model_name", "moderation", "prompt_filter_results", "prompt_logprobs", "provider_specific_fields", "reasoning",
    "reasoning_details", "redacted_thinking", "search_results", "service_tier", "signature", "stop_details", "stop_reason",
    "stop_sequence", "system_fingerprint", "thinking_blocks", "top_logprobs", "usage",
})  # fmt: skip
"""Fields that have a name of their own in the metric and in the trail; every other is ``OTHER``: a name is a text, too."""

_EMPTY: tuple[Any, ...] = (None, "", [], {})


class DroppedFields:
    """Collects what of one answer is not passed on."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def note(self, name: str) -> None:
        """Note a field that is not passed on."""
        self._found.add(name if name in NAMES else OTHER)

    def unread(self, value: Mapping[str, Any], read: Collection[str]) -> None:
        """Note every field of *value* that is not among the *read* ones and holds something."""
        for name, given in value.items():
            if name not in read and given not in _EMPTY:
                self.note(name)

    @property
    def names(self) -> tuple[str, ...]:
        """What was noted, in order."""
        return tuple(sorted(self._found))


def count(names: Collection[str]) -> None:
    """Count an answer of which these fields were not passed on."""
    for name in names:
        DROPPED.labels(name).inc()
