"""What a model call costs, by a table of prices (KRN-9): integers in millionths of a US dollar, rounded up once for each call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from interlock.domain.session.spending import MOST, Amount

PER = 1_000_000
"""Tokens that a price is for."""

ADDED_BY_PROVIDER = 1000
"""Tokens that a provider may add to a prompt of its own accord, such as its instructions for tools: part of every upper bound."""


@dataclass(frozen=True)
class Price:
    """Millionths of a US dollar for a million tokens."""

    prompt: int
    output: int
    cached: int
    """Of a prompt's tokens that the provider read from its cache."""
    written: int
    """Of a prompt's tokens that it wrote to its cache."""
    max_output: int | None = None
    """Most tokens that the model answers with; ``None``: the table names no bound."""

    def cost(self, counted: Counted) -> int:
        """Return what a call cost, millionths of a US dollar."""
        fresh = max(0, counted.prompt - counted.cached - counted.written)
        sum_ = fresh * self.prompt + counted.cached * self.cached + counted.written * self.written
        return -(-(sum_ + counted.output * self.output) // PER)


@dataclass(frozen=True)
class Counted:
    """Tokens of one model call. *cached* and *written* are among those of the prompt."""

    prompt: int
    output: int = 0
    cached: int = 0
    written: int = 0

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.prompt + self.output


@dataclass(frozen=True)
class PriceTable:
    """Prices by a pattern of the model's name, as in a shell; the first that fits counts."""

    as_of: str
    fallback: Price
    models: tuple[tuple[str, Price], ...] = ()

    def of(self, model: str) -> Price | None:
        """Return the price of a model; ``None`` for one that the table does not know."""
        return next((price for pattern, price in self.models if fnmatchcase(model, pattern)), None)


def counted(usage: Mapping[str, Any]) -> Counted | None:
    """Return what a provider counted; ``None`` where it did not, so that what was reserved is charged.

    Tokens that are in its total alone, such as hidden thoughts, count as output.
    """
    prompt, output = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    output += max(0, usage.get("total_tokens", 0) - prompt - output)
    if output <= 0 or prompt + output > MOST:
        return None
    details = usage.get("prompt_tokens_details") or {}
    cached = min(prompt, details.get("cached_tokens", 0))
    return Counted(prompt, output, cached, min(prompt - cached, details.get("cache_write_tokens", 0)))


def most_of(body: Mapping[str, Any], size: int, price: Price, unbounded: int) -> Amount:
    """Return the most that a chat call can cost, of which *size* is the length of its body, bytes.

    No token is shorter than a byte, so that a prompt has at most as many. Without a bound of its own the answer has that of
    its model, else *unbounded* tokens. Of two bounds the higher counts: which one a provider goes by is its own matter.
    """
    bounds = body.get("max_completion_tokens") or 0, body.get("max_tokens") or 0
    asked = max(bounds) or price.max_output or unbounded
    output = min(MOST, asked * (body.get("n") or 1))
    return upper(size, output, price)


def upper(size: int, output: int, price: Price) -> Amount:
    """Return the most that a prompt of *size* bytes and so many tokens of output cost."""
    prompt = size + ADDED_BY_PROVIDER
    dearest = max(price.prompt, price.cached, price.written)
    usd = -(-(prompt * dearest + output * price.output) // PER)
    return Amount(min(MOST, prompt + output), min(MOST, usd))


def amount_of(counted_: Counted, price: Price) -> Amount:
    """Return what a counted call cost."""
    return Amount(min(MOST, counted_.tokens), min(MOST, price.cost(counted_)))
