"""The settings of spending on model calls, of providers' own parameters and of media, beside the others: one flat model in three files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from interlock.runtime.settings.declarations import SettingDeclarations
from interlock.runtime.settings.values import ParameterNames


class SpendingDeclarations(SettingDeclarations):
    """The settings that say what model calls cost and may cost, what else a provider may be told, and what nobody judges."""

    # == Spending on model calls

    spending_limit_usd: float = Field(default=0.0, ge=0.0, le=100_000_000.0)
    """Most that the model calls of one tree of agents may cost, US dollars by the price table, with up to six decimals. What a call can
    cost is reserved before the provider is asked; one that the limit does not hold is refused with SPENDING_LIMIT. 0: no limit but
    those of policies (max-spend-usd)."""
    spending_limit_tokens: int = Field(default=0, ge=0, le=100_000_000_000_000)
    """Most tokens of the model calls of one tree of agents. 0: no limit but those of policies (max-spend-tokens)."""
    prices_file: Path | None = None
    """YAML file of what models cost (docs/spending.md), read at the start; a bad one refuses to start. Absent: the table in the package, of the date in it."""
    unknown_model_price: Literal["fallback", "refuse"] = "fallback"
    """What becomes of a call whose model the price table does not know: fallback (it costs the table's fallback) or refuse
    (MODEL_PRICE_UNKNOWN). Both are counted."""
    unbounded_output_tokens: int = Field(default=32_768, ge=1, le=10_000_000)
    """Tokens of an answer that are reserved where neither the call sets a bound (max_completion_tokens, max_tokens) nor the price table names one for the model."""
    refused_action_charge: float = Field(default=0.05, ge=0.0, le=0.5)
    """Safety budget that an answer costs beside its risk where the kernel of tool_kernel would reject a tool call of it."""

    # == Providers that know more than OpenAI's API

    provider_parameters: ParameterNames = "min_p,repetition_penalty,top_a,top_k"
    """Parameters beyond OpenAI's API that the provider gets as they are, by commas: those of vLLM, Ollama, OpenRouter and the like.
    What they bring about is judged like every answer. They need upstream_api chat; any other is refused with UNKNOWN_PARAMETER."""

    # == Images, sound and files

    unjudged_media: Literal["refuse", "pass"] = "refuse"
    """What becomes of images, sound and files, which nobody here can judge: refuse, or pass. Passed, a user's go to the provider, and those
    of an answer to a chat completion to its client; such a call is marked in its headers, its report, its trail and a metric."""
