"""Ways to say the same otherwise: other forms of numbers and dates, moved openings, full forms, a frame."""

from __future__ import annotations

import random
import re

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
_MONTH = "|".join(MONTHS)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_FULL = (("isn't", "is not"), ("aren't", "are not"), ("wasn't", "was not"), ("weren't", "were not"),
         ("didn't", "did not"), ("doesn't", "does not"), ("don't", "do not"), ("hasn't", "has not"),
         ("haven't", "have not"), ("hadn't", "had not"), ("couldn't", "could not"), ("wouldn't", "would not"),
         ("won't", "will not"), ("can't", "cannot"))  # fmt: skip
_ALIKE = (("around", "about"), ("approximately", "about"), ("but", "although"), ("started", "began"),
          ("purchased", "bought"), ("near", "close to"), ("also", "in addition"), ("whilst", "while"),
          ("because", "since"), ("however", "but"), ("received", "got"), ("located", "situated"),
          ("died", "passed away"), ("large", "big"), ("film", "movie"))  # fmt: skip


def _figures(text: str) -> str:
    text = (
        re.sub(r"(?<=\d)%", " percent", text) if "%" in text else re.sub(r"(?<=\d) (?:percent|per cent)\b", "%", text)
    )
    text = re.sub(r"\b(\d{1,3}),(\d{3})\b(?!,)", r"\1\2", text)
    return re.sub(r"(?<=[£$€])(\d+(?:\.\d+)?) ?(?:million|m)\b", r"\1 million", text)


def _counts(text: str) -> str:
    return re.sub(
        r"(?<![\w.,£$€:/-])(?<!- )(\d{1,2})(?= [a-z]{3,}\b)(?! (?:million|billion|thousand|percent|per|years? old)\b)",
        lambda m: _WORDS[int(m.group(1))] if int(m.group(1)) <= 10 else m.group(1),
        text,
    )


def _dates(text: str) -> str:
    if re.search(rf"\b\d{{1,2}} (?:{_MONTH}) \d{{4}}\b", text):
        return re.sub(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b", r"\2 \1, \3", text)
    return re.sub(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{4}})(?=[ .])", r"\2 \1 \3", text)


def _moved(text: str) -> str:
    """In 2019, she won a prize. → She won a prize in 2019."""
    found = re.match(r"(In|On|At|During|After|Before) ([^,;:]{3,40}), ([A-Z]?[a-z]*\b[^;:\"]{10,140})\.$", text)
    if not found or "," in found.group(3):
        return text
    said = found.group(3)
    return f"{said[0].upper()}{said[1:]} {found.group(1).lower()} {found.group(2)}."


def _full(text: str) -> str:
    for short, long in _FULL:
        text = re.sub(rf"\b{short}\b", long, text)
    return text


def _alike(text: str) -> str:
    for one, other in _ALIKE[5:]:
        text = re.sub(rf"\b{one}\b", other, text, count=1)
    return re.sub(r"\b(?:around|approximately)\b(?= \d)", "about", text)


def _aside(text: str) -> str:
    return re.sub(r"\s*\([^()]{1,80}\)", "", text)


_KEEP = (_figures, _counts, _dates, _moved, _full, _alike, _aside)
_FRAMES = ("According to the text, ", "The source states that ", "It is reported that ", "The document says that ")


def retold(text: str, rnd: random.Random, *, asides: bool = True) -> str:
    """Return the sentence told otherwise: most rules that apply, and now and then a frame around it.

    Without *asides* what stands in brackets stays.
    """
    for rule in _KEEP if asides else _KEEP[:-1]:
        if rnd.random() < 0.8:
            text = rule(text)
    text = " ".join(text.split())
    return rnd.choice(_FRAMES) + text if rnd.random() < 0.15 else text
