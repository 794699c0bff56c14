"""The price table of a sidecar: the one in the package, or the operator's own file (KRN-9; docs/spending.md)."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.domain.errors import Kind, Refused, invalid
from interlock.domain.session.prices import PER, Price, PriceTable
from interlock.runtime.settings.strict_yaml import parse_yaml

log = structlog.get_logger()

UNKNOWN = Counter(
    "interlock_spending_unknown_model", "Model calls whose model the price table does not know, by what became of them: fallback or refused.",
    ["how"],
)  # fmt: skip

_PRICES = {"input", "output", "cached_input", "cache_write"}
_KEYS = {*_PRICES, "max_output"}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
DEAREST = 1_000_000
"""Highest price, US dollars for a million tokens."""


class Prices:
    """What models cost. *refuse*: a model that the table does not know is refused, else it costs the fallback."""

    def __init__(self, table: PriceTable, *, refuse: bool = False) -> None:
        self._table, self._refuse = table, refuse
        self._of = lru_cache(maxsize=1024)(table.of)
        log.info("prices.read", version=table.as_of, models=len(table.models))

    def of(self, model: str) -> Price:
        """Return the price of a model. Refused with MODEL_PRICE_UNKNOWN."""
        if price := self._of(model):
            return price
        UNKNOWN.labels("refused" if self._refuse else "fallback").inc()
        if self._refuse:
            message = "the price table does not know this model, and unknown_model_price refuses it"
            raise Refused(Kind.FORBIDDEN, "MODEL_PRICE_UNKNOWN", message)
        return self._table.fallback


def load_prices(path: Path | None) -> PriceTable:
    """Return the table of a file, or of the package. Refused with PRICES_INVALID, FILE_MALFORMED or FILE_UNREADABLE."""
    if path is None:
        content, path = resources.files(__package__).joinpath("prices.yaml").read_bytes(), Path("prices.yaml")
    else:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise invalid("PRICES_INVALID", f"{path}: {error.strerror}") from None
    return _table(parse_yaml(content, path, secret=False), path)


def _table(found: Any, path: Path) -> PriceTable:
    if not isinstance(found, dict) or found.keys() != {"as_of", "fallback", "models"}:
        raise _wrong(path, "it has as_of, fallback and models, and nothing else")
    if not _DATE.fullmatch(str(found["as_of"])):
        raise _wrong(path, "as_of is a date such as 2025-08-01")
    if not isinstance(found["models"], list):
        raise _wrong(path, "models is a list")
    models = []
    for number, entry in enumerate(found["models"], 1):
        where = f"model {number}"
        name = entry.get("model") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            raise _wrong(path, f"{where}: model is a name or a pattern such as gpt-4o*")
        price = _price({key: value for key, value in entry.items() if key != "model"}, path, f"{where} ({name:.64})")
        models.append((name, price))
    return PriceTable(str(found["as_of"]), _price(found["fallback"], path, "fallback"), tuple(models))


def _price(entry: Any, path: Path, where: str) -> Price:
    if not isinstance(entry, dict) or not {"input", "output"} <= entry.keys() <= _KEYS:
        raise _wrong(path, f"{where}: input and output, and cached_input, cache_write and max_output where known")
    told = {name: _micros(entry[name], path, f"{where}: {name}") for name in _PRICES if name in entry}
    most = entry.get("max_output")
    if most is not None and (type(most) is not int or not 1 <= most <= PER * 100):
        raise _wrong(path, f"{where}: max_output is a whole number of tokens, 1 or more")
    return Price(
        told["input"],
        told["output"],
        told.get("cached_input", told["input"]),
        told.get("cache_write", told["input"]),
        most,
    )


def _micros(value: Any, path: Path, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong(path, f"{where} is dollars for a million tokens")
    try:
        scaled = Decimal(str(value)) * PER
    except InvalidOperation:
        scaled = Decimal(-1)
    if not scaled.is_finite() or not 0 <= scaled <= DEAREST * PER or scaled != scaled.to_integral_value():
        raise _wrong(path, f"{where} is dollars for a million tokens, 0 to {DEAREST}, with at most six decimals")
    return int(scaled)


def _wrong(path: Path, what: str) -> Refused:
    return invalid("PRICES_INVALID", f"{path}: {what}")


def prices_from(path: Path | None, how: str) -> Prices:
    """Return the prices that the settings name; *how* is ``fallback`` or ``refuse``."""
    return Prices(load_prices(path), refuse=how == "refuse")
