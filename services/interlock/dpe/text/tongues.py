"""The language of a text, told by its function words, and its months, periods and small numbers in words.

The models read English. What is in another language is compared by what needs no model: figures, dates, codes and names.
Script tells a language that is not written in Latin letters; it is named by its script.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping

from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

ENGLISH = "en"
_WORD = pattern(r"\p{L}+")
_FEWEST_WORDS = 2
_LONGEST_DAY = 3
_CLEARLY = 1.5  # times as many function words as of the next language
_FOREIGN_SCRIPTS = (
    "CYRILLIC",
    "GREEK",
    "ARABIC",
    "HEBREW",
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "THAI",
    "DEVANAGARI",
)

_FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    ENGLISH: word_set(
        "the and of to is are was were in that it for on with as at by this be have has had not you your from or an will can if"
        " there which their they we our its but i he she do does been than then when what how"
    ),
    "de": word_set(
        "der die das und ist sind war im in den dem des ein eine einen einem einer nicht mit auf für von zu zum zur sich auch es ich"
        " du sie ihr wir aus bei nach wird werden wurde haben hat hast kann können dass wenn als am um oder aber noch uhr"
    ),
    "fr": word_set(
        "le la les un une des du de et est sont dans en que qui ne pas pour sur avec au aux ce cette ces il elle ils vous nous je se"
        " son sa ses par plus ou mais été a ont votre vos leur si comme être fait d l on"
    ),
    "es": word_set(
        "el la los las un una unos unas de del y es son en que no con para por se su sus al lo como más pero o este esta estos ha han"
        " hay está están cada si te tu usted le les fue ser cuando entre"
    ),
    "it": word_set(
        "il lo la gli le un una di del della dei delle e è sono in che non con per si su al alla da dal come più ma o questo questa ha"
        " hanno ogni se tuo suo nel nella quando viene anche"
    ),
    "pt": word_set(
        "o a os as um uma de do da dos das e é são em que não com para por se seu sua ao na no nas nos como mais mas ou este esta há"
        " cada foi ser quando entre você pelo pela também"
    ),
    "nl": word_set(
        "de het een en is zijn was in van dat niet met op voor te aan er ook als bij naar om uit door over je u wij hij zij wordt worden"
        " heeft hebben kan maar of deze dit die"
    ),
}
_ALSO_ENGLISH = word_set(
    "a as at do on in is was die son has he come per con par van over door were me so if or an am as us war will also in all more"
    " no our we be by it die noon ten to up hat list man not plus pour bout but que de of l d o"
)
"""Words that English has too, or that stand in names: they tell English alone."""

_MONTHS = (
    "january januar janvier enero gennaio janeiro januari", "february februar février febrero febbraio fevereiro februari",
    "march märz mars marzo março maart", "april avril abril aprile", "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho", "july juli juillet julio luglio julho", "august août agosto augustus",
    "september septembre septiembre settembre setembro", "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro", "december dezember décembre diciembre dicembre dezembro",
)  # fmt: skip
_NUMBERS = {
    2: "two zwei deux dos due dois twee", 3: "three drei trois tres tre três drie", 4: "four vier quatre cuatro quattro quatro vier",
    5: "five fünf cinq cinco cinque cinco vijf", 6: "six sechs six seis sei seis zes", 7: "seven sieben sept siete sette sete zeven",
    8: "eight acht huit ocho otto oito acht", 9: "nine neun neuf nueve nove nove negen", 10: "ten zehn dix diez dieci dez tien",
    11: "eleven elf onze once undici onze elf", 12: "twelve zwölf douze doce dodici doze twaalf",
    20: "twenty zwanzig vingt veinte venti vinte twintig", 30: "thirty dreißig trente treinta trenta trinta dertig",
    100: "hundred hundert cent cien cento cem honderd",
}  # fmt: skip
MONTHS = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}
"""Month → its number, in seven languages."""

_PERIODS = {
    word: unit
    for unit, words in {
        "days": "tag tage tagen jour jours día días giorno giorni dia dias dag dagen",
        "weeks": "woche wochen semaine semaines semana semanas settimana settimane week weken",
        "months": "monat monate monaten mois mes meses mese mesi mês maand maanden",
        "years": "jahr jahre jahren an ans année années año años anno anni ano anos jaar",
    }.items()
    for word in words.split()
}
_ENGLISH_MONTHS = tuple(words.split()[0].capitalize() for words in _MONTHS)
_DATED = pattern(
    r"\b(\d{1,3})(?:\.|er|º|ª|°)?\s+(?:de\s+|di\s+|d['’])?(\p{L}{2,9})\b(?:\s+(?:de\s+)?((?:19|20)\d\d)\b)?"
)

_ORDER = (ENGLISH, "de", "fr", "es", "it", "pt", "nl")
NUMBER_WORDS = {
    name: {words.split()[place]: number for number, words in _NUMBERS.items()} for place, name in enumerate(_ORDER)
}
"""Language → number word → number. One is left out: it is an article in most."""


_TOLD_BY = {name: words if name == ENGLISH else words - _ALSO_ENGLISH for name, words in _FUNCTION_WORDS.items()}


@remembered(bytes_a_character=0)
def tongue(text: str) -> str | None:
    """Return the language of a text, or ``None`` when its words do not tell."""
    words = [word.lower() for word in _WORD.findall(text)]
    scripts = Counter(script for char in text if char.isalpha() and (script := _script(char)))
    if scripts and 2 * scripts.total() > sum(map(str.isalpha, text)):
        return scripts.most_common(1)[0][0].lower()
    counts = sorted(((sum(word in known for word in words), name) for name, known in _TOLD_BY.items()), reverse=True)
    (most, name), (next_most, _) = counts[:2]
    return name if most >= _FEWEST_WORDS and most >= _CLEARLY * next_most else None


def dates_in_english(text: str) -> Iterator[str]:
    """Yield the days of a month and the periods that a text in one of the languages states, as English writes them."""
    for number, word, year in _DATED.findall(text):
        if word.lower() in MONTHS and len(number) < _LONGEST_DAY:
            yield f"{number} {_ENGLISH_MONTHS[MONTHS[word.lower()] - 1]} {year}".strip()
        elif word.lower() in _PERIODS:
            yield f"{number} {_PERIODS[word.lower()]}"


def is_day_of_month(number: str, text: str) -> bool:
    """Whether a text in another language than English has *number* as the day of a date: the 6 of *6. Mai 2026*."""
    return any(day == number and word.lower() in MONTHS for day, word, _ in _DATED.findall(text))


def _script(char: str) -> str:
    if char.isascii():
        return ""
    named = unicodedata.name(char, "")
    return next((script for script in _FOREIGN_SCRIPTS if named.startswith(script)), "")
