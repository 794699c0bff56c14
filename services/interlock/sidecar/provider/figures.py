"""A provider call as OpenTelemetry names it: a CLIENT span and three metrics, semantic conventions 1.44 for generative AI (OBS-2, OBS-3).

Those conventions are still in development: ``gen_ai_conventions`` leaves them out, and what is our own stays. Nothing that anybody
wrote is recorded. Requested models are bounded labels: a caller chooses them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from prometheus_client import Histogram

from interlock.domain.errors import Refused
from interlock.runtime import telemetry
from interlock.runtime.pictures.recent import RECENT
from interlock.sidecar.call.live import ByteSink

_OF_A_CALL = ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"]
TOKENS = Histogram(
    "gen_ai_client_token_usage", "Tokens of provider calls, as the provider counted them.",
    [*_OF_A_CALL, "gen_ai_token_type"], buckets=tuple(4**power for power in range(14)),
)  # fmt: skip
DURATION = Histogram(
    "gen_ai_client_operation_duration_seconds", "Time of provider calls, seconds; error_type is empty where an answer came.",
    [*_OF_A_CALL, "error_type"], buckets=tuple(round(0.01 * 2**power, 2) for power in range(14)),
)  # fmt: skip
FIRST_CHUNK = Histogram(
    "gen_ai_client_operation_time_to_first_chunk_seconds", "Time until a streaming provider sent its first bytes, seconds.",
    _OF_A_CALL, buckets=(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)  # fmt: skip

MOST_MODELS = 50
MODELS = telemetry.BoundedWords(MOST_MODELS)

_WELL_KNOWN: Mapping[str, str] = {
    "openai.com": "openai", "openai.azure.com": "azure.ai.openai", "anthropic.com": "anthropic", "mistral.ai": "mistral_ai",
    "groq.com": "groq", "deepseek.com": "deepseek", "x.ai": "x_ai", "perplexity.ai": "perplexity", "cohere.com": "cohere",
    "generativelanguage.googleapis.com": "gcp.gemini", "aiplatform.googleapis.com": "gcp.vertex_ai",
    "inference.ai.azure.com": "azure.ai.inference", "amazonaws.com": "aws.bedrock", "ml.cloud.ibm.com": "ibm.watsonx.ai",
}  # fmt: skip


def provider_name(host: str) -> str:
    """Return the conventions' name of the provider at *host*; the host itself where they have none."""
    parts = host.lower().split(".")
    tails = (".".join(parts[start:]) for start in range(len(parts)))
    return next((_WELL_KNOWN[tail] for tail in tails if tail in _WELL_KNOWN), host)


class FirstChunk:
    """A reader around another one, which measures when a stream's first bytes come."""

    def __init__(self, into: ByteSink, host: str, model: str) -> None:
        self._into, self._begun = into, time.perf_counter()
        self._measured = FIRST_CHUNK.labels("chat", provider_name(host), MODELS.label(model))
        self._came, self.done = False, into.done

    def feed(self, data: bytes) -> None:
        """Take bytes of a stream."""
        if not self._came:
            self._came = True
            took_s = time.perf_counter() - self._begun
            self._measured.observe(took_s)
            RECENT.first_token(took_s)
        self._into.feed(data)
        self.done = self._into.done

    def answered(self, data: bytes) -> None:
        """Take an answer that did not stream."""
        self._into.answered(data)

    def finished(self) -> None:
        """Note that nothing more comes."""
        self._into.finished()


class ProviderCall:
    """One call of a provider while it runs: a context manager around it."""

    def __init__(self, operation: str, provider: str, model: str, *, conventions: bool) -> None:
        """*provider*: the name of its host."""
        self._conventions, self._host = conventions, provider
        self._labels = operation, provider_name(provider), MODELS.label(model)
        self._usage: Mapping[str, Any] = {}
        self._span: Any = None

    def __enter__(self) -> Self:
        self._begun = time.perf_counter()
        if self._conventions:
            operation, provider, model = self._labels
            self._span = telemetry.span(
                f"{operation} {model}".strip(), kind=telemetry.CLIENT, operation=operation, provider=provider, model=model,
                server_address=self._host,
            )  # fmt: skip
            self._current = self._span.__enter__()
        return self

    def answered(self, usage: Mapping[str, Any], model: str = "") -> None:
        """Note what the provider counted, and which *model* it says has answered."""
        self._usage = usage
        if self._conventions:
            telemetry.annotate(
                self._current, input_tokens=usage.get("prompt_tokens"), output_tokens=usage.get("completion_tokens"),
                response_model=model or None,
            )  # fmt: skip

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._conventions:
            return
        failed = "" if error is None else error.reason if isinstance(error, Refused) else type(error).__name__
        DURATION.labels(*self._labels, failed).observe(time.perf_counter() - self._begun)
        for kind_of, name in (("input", "prompt_tokens"), ("output", "completion_tokens")):
            if isinstance(count := self._usage.get(name), int):
                TOKENS.labels(*self._labels, kind_of).observe(count)
        if failed:
            telemetry.annotate(self._current, error_type=failed)
        self._span.__exit__(kind, error, traceback)
