"""Units and currencies: their spellings, measures and conversion factors (SPEC-005 §5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.dpe.text.lexing import NUMBER, SYMBOL, WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set

PERCENT = "%"
POINTS = "percentage points"
TIMES = "times"
_MULTIPLIES = frozenset({"×", "x", "*"})
POUND = "pound"  # of weight or of money: the text rarely says which
TIME = "time"
TEMPERATURE = "temperature"
ANGLE = "angle"  # degrees without a letter

# measure, base units, spellings (a dot stands for a space)
_MEASURES = """
length 1e-9 nm nanometre nanometres nanometer nanometers
length 1e-6 micrometre micrometres micrometer micrometers micron microns
length 0.001 mm millimetre millimetres millimeter millimeters
length 0.01 cm centimetre centimetres centimeter centimeters
length 1 m metre metres meter meters
length 1000 km kms kilometre kilometres kilometer kilometers
length 0.0254 inch inches
length 0.3048 ft foot feet
length 0.9144 yd yard yards
length 1609.344 mi mile miles
length 1852 nmi nautical.mile nautical.miles
length 9.4607e15 light.year light.years
mass 1e-9 microgram micrograms mcg
mass 1e-6 mg milligram milligrams
mass 0.001 g gram grams gramme grammes
mass 1 kg kgs kilo kilos kilogram kilograms kilogramme kilogrammes
mass 1000 t tonne tonnes ton tons metric.ton metric.tons
mass 0.45359237 lb lbs
mass 0.0283495 oz ounce ounces
mass 6.35029 stone
time 0.001 ms millisecond milliseconds
time 1 s sec secs second seconds
time 60 min mins minute minutes
time 3600 h hr hrs hour hours
time 86400 day days
time 604800 week weeks
time 1209600 fortnight fortnights
time 2629800 month months
time 31557600 year years yr yrs
time 315576000 decade decades
time 3155760000 century centuries
data 0.125 bit bits
data 125 kbit kbits kilobit kilobits
data 1.25e5 mbit mbits megabit megabits
data 1.25e8 gbit gbits gigabit gigabits
data 1 byte bytes
data 1e3 kb kib kilobyte kilobytes
data 1e6 mb mib megabyte megabytes
data 1e9 gb gib gigabyte gigabytes
data 1e12 tb tib terabyte terabytes
data 1e15 pb pib petabyte petabytes
area 1e4 ha hectare hectares
area 4046.8564 acre acres
volume 0.001 ml millilitre millilitres milliliter milliliters
volume 1 l litre litres liter liters
volume 0.01 cl centilitre centilitres centiliter centiliters
volume 0.1 dl decilitre decilitres deciliter deciliters
volume 0.00492892 tsp tsps teaspoon teaspoons
volume 0.0147868 tbsp tbsps tablespoon tablespoons
volume 0.0295735 fl.oz fluid.ounce fluid.ounces
volume 0.236588 cup cups
volume 0.473176 pint pints
volume 0.946353 quart quarts
volume 3.785 gallon gallons
volume 158.987 barrel barrels bbl
speed 0.2777778 kph kmh
speed 0.44704 mph
speed 0.514444 knot knots
power 1 w wp watt watts
power 1e3 kw kwp kilowatt kilowatts
power 1e6 mw mwp megawatt megawatts
power 1e9 gw gigawatt gigawatts
power 745.7 hp horsepower
energy 3.6e3 wh watt.hour watt.hours
energy 3.6e6 kwh kilowatt.hour kilowatt.hours
energy 3.6e9 mwh megawatt.hour megawatt.hours
energy 3.6e12 gwh gigawatt.hour gigawatt.hours
energy 4184 kcal
pressure 1e3 kpa kilopascal kilopascals
pressure 100 hpa hectopascal hectopascals
data-rate 125 kbps
data-rate 1.25e5 mbps
data-rate 1.25e8 gbps
frequency 1 hz hertz
frequency 1e3 khz kilohertz
frequency 1e6 mhz megahertz
frequency 1e9 ghz gigahertz
pound 1 pound pounds
"""
_CURRENCIES = """
USD 1 $ us$ usd dollar dollars us.dollar us.dollars american.dollars buck bucks
USD 0.01 cent cents
AUD 1 a$ au$ aud australian.dollars
CAD 1 c$ ca$ cad canadian.dollars
NZD 1 nz$ nzd
HKD 1 hk$ hkd
SGD 1 s$ sgd
EUR 1 € eur euro euros
GBP 1 £ gbp pounds.sterling sterling british.pounds
GBP 0.01 pence
JPY 1 ¥ jpy yen
CNY 1 cny rmb yuan renminbi
INR 1 ₹ rs inr rupee rupees
CHF 1 chf swiss.franc swiss.francs
KRW 1 ₩ krw
RUB 1 ₽ rub ruble rubles rouble roubles
TRY 1 ₺ try lira
ILS 1 ₪ ils nis shekel shekels
THB 1 ฿ thb baht
VND 1 ₫ vnd dong
UAH 1 ₴ uah hryvnia
NGN 1 ₦ ngn naira
BRL 1 r$ brl reais
MXN 1 mx$ mxn
SEK 1 sek kronor
NOK 1 nok
DKK 1 dkk
PLN 1 pln zloty zlotys
CZK 1 czk
ZAR 1 zar rand
SAR 1 sar riyal riyals
AED 1 aed dirham dirhams
BTC 1 btc bitcoin bitcoins
"""
# Codes that are also lower-case words. They mean money only in capitals.
_CAPITALS_ONLY = frozenset({"try", "rs", "nis", "sar"})
_WORDS_AFTER_ONLY = frozenset({"cent", "cents", "pence", "rand", "dong", "sterling"})


@dataclass(frozen=True, slots=True)
class Unit:
    """The measure of a unit and its size in base units. ``offset`` is added first, for temperatures."""

    measure: str
    factor: float = 1.0
    offset: float = 0.0


def _read_table(table: str) -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in table.strip().splitlines():
        measure, factor, *spellings = line.split()
        units.update((spelling.replace(".", " "), Unit(measure, float(factor))) for spelling in spellings)
    return units


MEASURES = _read_table(_MEASURES)
CURRENCIES = _read_table(_CURRENCIES)
_DEGREES = {
    "c": Unit(TEMPERATURE), "celsius": Unit(TEMPERATURE), "centigrade": Unit(TEMPERATURE),
    "f": Unit(TEMPERATURE, 5 / 9, -32.0), "fahrenheit": Unit(TEMPERATURE, 5 / 9, -32.0),
    "k": Unit(TEMPERATURE, 1.0, -273.15),
}  # fmt: skip
_RELATIVE = {
    **dict.fromkeys(("pp", "ppt", "ppts"), Unit(POINTS)),
    **dict.fromkeys(("bps", "bp"), Unit(POINTS, 0.01)),
    **dict.fromkeys(("times", "fold", "x", "×"), Unit(TIMES)),
}
_RATES = {"length": "speed", "data": "data-rate"}
"""What is measured by a measure over a time."""
_POWERS = {"square": 2, "sq": 2, "cubic": 3}
_LETTERS = frozenset("mgshltw")  # single letters are units only in lower case

_QUALIFIERS = word_set(
    "working business calendar paid unpaid full consecutive straight vacation holiday leave school trading banking successive"
    " whole more additional extra further other unused remaining separate sick annual clear rest free contract unbroken"
)
_MOST_QUALIFIERS = 2
_DEGREE_LETTERS = frozenset({"C", "F"})
_NO_NOUNS = frozenset({"is", "was", "equals", "as", "makes", "corresponds", "means"})
_SPACED = frozenset({"year", "month", "week", "day", "hour", "minute", "mile", "metre", "meter", "foot"})


def read_unit(tokens: Sequence[Lexeme], index: int) -> tuple[Unit, int] | None:
    """Return the unit at a token with the index after it, or ``None``."""
    mark, follows = at(tokens, index), at(tokens, index + 1)
    if mark.text in _MULTIPLIES and (follows.kind == NUMBER or follows.text in CURRENCIES):
        return None  # 300 × £22: the sign of a product
    if mark.text == "-" and (
        (mark.glued and follows.glued) or (follows.low in _SPACED and at(tokens, index + 2).text == "-")
    ):
        index += 1  # 75-year, and 75 - year - old in texts with spaces around punctuation
    return (
        _read_relative(tokens, index)
        or _read_degrees(tokens, index)
        or _read_power(tokens, index)
        or _read_measure(tokens, index)
        or _read_qualified_time(tokens, index)
    )


def _read_qualified_time(tokens: Sequence[Lexeme], index: int) -> tuple[Unit, int] | None:
    """Read the unit of 28 paid vacation days and 30 calendar days: a time of which the words between tell the kind."""
    end = index
    while end < index + _MOST_QUALIFIERS and at(tokens, end).low in _QUALIFIERS:
        end += 1
    unit = MEASURES.get(at(tokens, end).low) if end > index else None
    return (unit, end + 1) if unit is not None and unit.measure == TIME and len(at(tokens, end).low) > 2 else None


def read_currency_before(tokens: Sequence[Lexeme], index: int) -> tuple[str, int] | None:
    """Return the currency before an amount ($, US$, EUR) with the index after it, or ``None``."""
    token = at(tokens, index)
    joined = token.low + at(tokens, index + 1).text
    if at(tokens, index + 1).text == "$" and at(tokens, index + 1).glued and joined in CURRENCIES:
        return CURRENCIES[joined].measure, index + 2
    if token.low not in CURRENCIES or token.low in _WORDS_AFTER_ONLY:
        return None
    is_code = token.text.isupper() or token.low == "rs"
    if token.kind == SYMBOL or (is_code and CURRENCIES[token.low].factor == 1):
        dot = at(tokens, index + 1).text == "." and token.low == "rs"
        return CURRENCIES[token.low].measure, index + 1 + dot
    return None


def read_currency_after(tokens: Sequence[Lexeme], index: int) -> tuple[Unit, int] | None:
    """Return the currency after an amount with the index after it, or ``None``."""
    if at(tokens, index).text == "-" and at(tokens, index).glued:
        index += 1
    token = at(tokens, index)
    if (
        token.text in {"U", "u"} and at(tokens, index + 1).text == "." and at(tokens, index + 2).low == "s"
    ):  # U.S. dollars
        index += 4 if at(tokens, index + 3).text == "." else 3
        token = at(tokens, index)
    pair = f"{token.low} {at(tokens, index + 1).low}"
    if pair in CURRENCIES:
        return CURRENCIES[pair], index + 2
    if token.low in CURRENCIES and (token.low not in _CAPITALS_ONLY or token.text.isupper()):
        return CURRENCIES[token.low], index + 1
    return None


def _read_relative(tokens: Sequence[Lexeme], index: int) -> tuple[Unit, int] | None:
    """Read percent, percentage points, basis points and times."""
    low, follows = at(tokens, index).low, at(tokens, index + 1).low
    if low in {"percentage", "basis"}:
        factor = 1.0 if low == "percentage" else 0.01
        return (Unit(POINTS, factor), index + 2) if follows in {"point", "points"} else None
    if low == "per":
        return _read_percent(tokens, index + 2) if follows in {"cent", "cents"} else None
    if low in {"%", "percent", "pct"}:
        return _read_percent(tokens, index + 1)
    return (_RELATIVE[low], index + 1) if low in _RELATIVE else None


def _read_percent(tokens: Sequence[Lexeme], end: int) -> tuple[Unit, int]:
    """Return percent, or percentage points if the word point follows."""
    points = at(tokens, end).low in {"point", "points", "pts"}
    return (Unit(POINTS), end + 1) if points else (Unit(PERCENT), end)


def _read_degrees(tokens: Sequence[Lexeme], index: int) -> tuple[Unit, int] | None:
    low, follows = at(tokens, index).low, at(tokens, index + 1)
    if low not in {"°", "degree", "degrees", "º"}:
        named = low in {"celsius", "fahrenheit"} or _is_degree_letter(tokens, index)
        return (_DEGREES[low], index + 1) if named else None
    if follows.low in _DEGREES and (len(follows.low) > 1 or follows.text.isupper()):
        return _DEGREES[follows.low], index + 2
    return Unit(ANGLE), index + 1


def _is_degree_letter(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a C or an F after a number is a degree: *20 C is 68 F*, not *3 C batteries* nor *Gate 5 F2*."""
    follows = at(tokens, index + 1)
    noun = follows.kind == WORD and (follows.capital or follows.low.endswith("s")) and follows.low not in _NO_NOUNS
    return at(tokens, index).text in _DEGREE_LETTERS and follows.kind != NUMBER and follows.text != "-" and not noun


def _read_power(tokens: Sequence[Lexeme], index: int) -> tuple[Unit, int] | None:
    """Read square and cubic measures: square kilometres, sq. km, km^2, m2."""
    token = at(tokens, index)
    power = _POWERS.get(token.low, 0)
    if power:
        dot = at(tokens, index + 1).text == "."
        unit, end = MEASURES.get(at(tokens, index + 1 + dot).low), index + 2 + dot
    else:
        caret = at(tokens, index + 1).text == "^"
        exponent = at(tokens, index + 1 + caret)
        unit, end = MEASURES.get(token.low), index + 2 + caret
        power = int(exponent.text) if exponent.text in {"2", "3"} and exponent.glued else 0
    if unit is None or unit.measure != "length" or not power:
        return None
    return (Unit("area", unit.factor**2), end) if power == 2 else (Unit("volume", unit.factor**3 * 1000), end)


def _read_measure(tokens: Sequence[Lexeme], index: int) -> tuple[Unit, int] | None:
    token = at(tokens, index)
    between = index + 1 + (at(tokens, index + 1).text == "-")
    pair = f"{token.low} {at(tokens, between).low}"
    if pair in MEASURES:
        return MEASURES[pair], between + 1
    unit = MEASURES.get(token.low)
    if unit is None or (token.low in _LETTERS and token.text not in _LETTERS | {"W"}):
        return None
    return _read_speed(tokens, index, unit) or (unit, index + 1)


def _read_speed(tokens: Sequence[Lexeme], index: int, unit: Unit) -> tuple[Unit, int] | None:
    """Read km/h, miles per hour, metres a second, and Mbit/s."""
    over, time = at(tokens, index + 1).low, at(tokens, index + 2)
    rate = _RATES.get(unit.measure)
    if rate is None or over not in {"/", "per", "an", "a"}:
        return None
    per = MEASURES.get(time.low)
    if per is None or per.measure != TIME:
        return None
    return Unit(rate, unit.factor / per.factor), index + 3
