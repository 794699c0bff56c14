"""What a provider's refusal means, in words of ours (I17).

Its message, type, code and parameter are texts that nobody judged. Of each only a word of a fixed list is passed on, and the
sentence about it is a constant. The provider's own text is neither passed on nor logged: it may quote a key or a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused
from interlock.sidecar.openai import chat, strictjson

CONTEXT_LENGTH = "context_length_exceeded"
MEANINGS: Mapping[str, str] = {
    CONTEXT_LENGTH: "the request exceeds the maximum context length of the model",
    "array_above_max_length": "a list of the request is too long",
    "billing_hard_limit_reached": "the account has reached its spending limit",
    "content_filter": "the provider's content filter refused the request",
    "content_policy_violation": "the provider's content policy refused the request",
    "decimal_above_max_value": "a number of the request is too large",
    "insufficient_quota": "the account has no quota left",
    "integer_above_max_value": "a number of the request is too large",
    "integer_below_min_value": "a number of the request is too small",
    "invalid_api_key": "the API key is not accepted",
    "invalid_prompt": "the prompt is not accepted",
    "invalid_type": "a parameter has another type than the provider expects",
    "invalid_value": "a parameter has a value that the provider does not accept",
    "missing_required_parameter": "a parameter is missing that the provider requires",
    "model_not_found": "the model does not exist at the provider, or the key may not use it",
    "rate_limit_exceeded": "the rate limit of the account is reached",
    "string_above_max_length": "a text of the request is too long",
    "tokens_exceeded_error": "the request has too many tokens for the model",
    "unknown_parameter": "the provider does not know a parameter of the request",
    "unsupported_parameter": "the model does not support a parameter of the request",
    "unsupported_value": "the model does not support the value of a parameter",
}
"""Codes of providers that clients act on, and what each says."""

TYPES = frozenset({
    "api_error", "authentication_error", "insufficient_quota", "invalid_request_error", "not_found_error", "permission_error",
    "rate_limit_error", "requests", "server_error", "tokens",
})  # fmt: skip
"""Types of errors that clients act on."""

_MOST_READ = 4096
_TOO_LONG = re.compile(
    r"context[ _-](?:length|window|size)|maximum context|prompt is too long|too many tokens", re.IGNORECASE
)
_NAMED = re.compile(r"['\"`]([a-z_]{4,32})['\"`]")
_FIRST = re.compile(r"[a-z_]+")


@dataclass(frozen=True)
class ProviderError:
    """The provider's error in words of fixed lists; ``None``: it names none that is known."""

    code: str | None = None
    type: str | None = None
    param: str | None = None

    @property
    def meaning(self) -> str:
        """What the error says, as a sentence's end; empty where that is not known."""
        said = f": {MEANINGS[self.code]}" if self.code else ""
        return f"{said} ({self.param})" if self.param else said


def read(data: bytes, status: int) -> ProviderError:
    """Return what is known of the error in a provider's response body."""
    given = _error(data)
    message = str(given.get("message") or "")[:_MOST_READ]
    code = _word(given.get("code"), MEANINGS)
    if code is None and status in {400, 413, 422} and _TOO_LONG.search(message):
        code = CONTEXT_LENGTH
    return ProviderError(code, _word(given.get("type"), TYPES), _param(given.get("param"), message))


def _error(data: bytes) -> Mapping[str, Any]:
    """Return the error object of a body, the body itself where it is one: some providers answer with no more than its fields."""
    try:
        value = strictjson.loads(data, max_depth=16)
    except (Refused, ValueError):
        return {}
    given = value.get("error", value) if isinstance(value, dict) else {}
    return given if isinstance(given, dict) else {"message": given}


def _word(given: Any, known: Mapping[str, str] | frozenset[str]) -> str | None:
    return next((word for word in known if word == given), None)


def _param(given: Any, message: str) -> str | None:
    """Return the parameter that the error is about, by its name in our list: as stated, or as quoted in the message."""
    stated = _FIRST.match(given) if isinstance(given, str) else None
    words = [stated[0]] if stated else _NAMED.findall(message)
    return next((name for word in words for name in chat.NAMES if name == word), None)
