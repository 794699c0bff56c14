"""Keys of records: the noun that a key names and the unit in which its value is stated (SPEC-003 §3).

``revenue_musd: 412`` states a revenue of $412 million, ``error_rate_percent: 0.3`` an error rate of 0.3 %. A key is written in
snake case, camel case, or as the header of a column: ``Revenue ($m)``. Pure functions of their texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from interlock.dpe.text.wordlists import word_set

_WORDS = re.compile(
    r"[kMGT]?Wh(?![a-z])|[kMGT]Hz|[kh]Pa(?![a-z])|°[CF]|[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+|[$€£¥%°]"
)
_NUMERAL = re.compile(r"-?(?:\d{1,15}|\d{1,3}(?:,\d{3}){1,4})(?:\.\d{1,9})?")
_SYMBOLS = {"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥", "$": "$", "€": "€", "£": "£", "¥": "¥"}
_CODES = word_set("chf cad aud nzd sek nok dkk pln czk inr cny krw brl mxn zar")
_SYMBOLS |= {"dollar": "$", "dollars": "$", "euro": "€", "euros": "€"}
_SCALES = {
    **dict.fromkeys(("k", "thousand", "thousands"), "thousand"),
    **dict.fromkeys(("m", "mn", "mio", "mm", "million", "millions"), "million"),
    **dict.fromkeys(("b", "bn", "billion", "billions"), "billion"),
}
_JOINED = {
    f"{short}{code}": (code, _SCALES[short])
    for short in ("k", "m", "mn", "mio", "b", "bn")
    for code in ("usd", "eur", "gbp", "chf")
} | {
    f"{code}{short}": (code, _SCALES[short])
    for short in ("k", "m", "mn", "bn")
    for code in ("usd", "eur", "gbp", "chf")
}
_MEASURES = {
    written: unit
    for unit, spellings in {
        "%": "percent pct percentage %", "ms": "ms millis milliseconds", "seconds": "s sec secs second seconds",
        "minutes": "min mins minute minutes", "hours": "h hr hrs hour hours", "days": "d day days", "weeks": "week weeks",
        "months": "month months", "years": "yr yrs year years", "km": "km kilometers kilometres",
        "m": "meters metres", "cm": "cm", "mm": "mm", "miles": "mi miles", "kg": "kg", "g": "grams", "mg": "mg", "lb": "lb lbs",
        "ml": "ml", "litres": "liters litres", "Wh": "wh", "kWh": "kwh", "MWh": "mwh", "GWh": "gwh", "kW": "kw", "MW": "mw", "GW": "gw", "kHz": "khz", "MHz": "mhz", "GHz": "ghz",
        "kPa": "kpa", "hPa": "hpa", "kcal": "kcal", "ha": "ha hectares", "GB": "gb", "MB": "mb", "KB": "kb",
        "TB": "tb", "bytes": "bytes", "°C": "celsius °c", "°F": "fahrenheit °f", "km/h": "kmh kph", "mph": "mph", "mmHg": "mmhg",
    }.items()
    for written in spellings.split()
}  # fmt: skip
_BRACKETED = re.compile(r"\((?:in )?([A-Za-z])\)\s*\Z")
_LETTERS = {"t": "tonnes", "g": "g", "l": "litres", "L": "litres", "W": "W", "V": "V"}
"""Units of one letter, which only a header in brackets names surely: ``Cargo (t)``."""
_COUNTED_ALONE = word_set("year month day hour week second minute")
"""Words that end a key as its noun: ``fiscal_year`` is no number of years."""
_LIMITS = frozenset({"min"})
"""Beside ``max`` it is the least that is allowed, no minute."""
_HEAT = word_set("temp temperature temperatures")
_DEGREES = {"c": "°C", "f": "°F"}
_NOT_GROUPED = word_set("year date id number no code ref reference version zip postcode phone account isbn sku port")
_GROUPED_FROM = 1000
_LEAST_RATE = 2


@dataclass(frozen=True)
class Key:
    """The noun that a key names, in words, and what is written before and after a number of it."""

    noun: str
    before: str = ""
    after: str = ""

    def written(self, value: str) -> str:
        """Return a value as text would state it: 412 as ``$412 million``, true as ``yes``."""
        if (low := value.lower()) in {"true", "false"}:
            return "yes" if low == "true" else "no"
        if _NUMERAL.fullmatch(value) is None:
            return value
        if self.before or self.after:
            cents = bool(self.before) and not self.after and re.search(r"\.\d\Z", value)
            return f"{self.before}{value}{'0' if cents else ''}{self.after}"
        last = self.noun.split()[-1].lower() if self.noun else ""
        whole = value.lstrip("-").isdigit() and not value.startswith("0")
        if whole and abs(int(value)) >= _GROUPED_FROM and last not in _NOT_GROUPED:
            return f"{int(value):,}"
        return value


def read_key(written: str, unit: str = "") -> Key:
    """Return what a key names. *unit* is the unit that a field beside it states: ``{"amount": 5, "unit": "ml"}``."""
    lettered = _BRACKETED.search(written)
    if lettered and lettered[1] in _LETTERS:
        return Key(" ".join(_words(written[: lettered.start()])), "", f" {_LETTERS[lettered[1]]}")
    words = _words(written)
    if len(words) > _LEAST_RATE and words[1].lower() == "per" and (first := _unit_of(words[0])) is not None:
        return Key(" ".join(words[1:]), *first)  # mg_per_tablet
    noun, scale, money, measure = list(words), "", "", ""
    while len(noun) > 0 and not (measure or (money and scale)):
        last = noun[-1].lower()
        if last in _JOINED and not money:
            money, scale = _JOINED[last]
        elif (last in _SYMBOLS or last in _CODES) and not money:
            money = last
        elif (
            last in _SCALES
            and not scale
            and (_beside_money(noun) or (len(last) > 1 and (money or last not in _MEASURES)))
        ):
            scale = _SCALES[last]
        elif last in _MEASURES and not money and (len(noun) > 1 or last not in _COUNTED_ALONE) and _is_unit(noun):
            measure = _MEASURES[last]
        else:
            break
        noun.pop()
    measure = measure or _degrees(noun)
    if unit and not (money or measure):
        low = unit.strip().lower()
        money = low if low in _SYMBOLS or low in _CODES else ""
        measure = "" if money else _MEASURES.get(low, unit.strip())
    named = " ".join(noun) or " ".join(words)
    before = _SYMBOLS.get(money, f"{money.upper()} " if money else "")
    after = f" {scale}" if scale else ""
    if measure:
        after += "%" if measure == "%" else f" {measure}"
    return Key(named, before, after)


def _degrees(noun: list[str]) -> str:
    """Cut the letter of a scale of temperature off a key and return its unit: ``camera_temp_c``."""
    if len(noun) > 1 and noun[-1].lower() in _DEGREES and noun[-2].lower() in _HEAT:
        return _DEGREES[noun.pop().lower()]
    return ""


def _unit_of(word: str) -> tuple[str, str] | None:
    """Return what is written before and after a number of a unit, or ``None`` for a word that is none."""
    low = word.lower()
    if low in _SYMBOLS or low in _CODES:
        return _SYMBOLS.get(low, f"{low.upper()} "), ""
    return ("", "%" if _MEASURES[low] == "%" else f" {_MEASURES[low]}") if low in _MEASURES else None


def _words(written: str) -> list[str]:
    """Return the words of a key. A word that is only capitals stays as it is."""
    return [word if word.isupper() and len(word) > 1 else word.lower() for word in _WORDS.findall(written)]


def _beside_money(noun: list[str]) -> bool:
    """Whether a single letter is a scale: it stands after a currency, as in ``($m)``."""
    before = noun[-2].lower() if len(noun) > 1 else ""
    return before in _SYMBOLS or before in _CODES


def _is_unit(noun: list[str]) -> bool:
    """Whether the last word of a key is a unit: not the *year* of ``fiscal_year`` nor the *day* of ``birth_day``."""
    last = noun[-1].lower()
    return (
        last not in _COUNTED_ALONE
        and not (noun[:-1] == [] and last in _LIMITS)
        and (len(last) > 1 or last in {"s", "h"})
    )
