"""Cases for the six distortion types of SPEC-005 §5.3, and for telling the same otherwise.

The documents are ANLI's contexts (Wikipedia, news, fiction) and RTE's texts (news): the shipped model was trained on
neither. A sentence is bent by one rule, or told otherwise by rules that keep its meaning; the document
around it is the fact. These are a generator's cases: that they are found shows that the types are known, not that what
people bend is found at that rate. SummEdits and QAGS show that.
"""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from bench.quality.rewrites import MONTHS, retold
from bench.quality.rows import ENTAILED, NOT_ENTAILED, Row, clean, objects, sentences, table, text_of

AROUND_WORDS = 160
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b(?![,.]\d)")
_NUMBER = re.compile(r"(?<![\w.,£$€-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w%-]|[.,:]\d)")
_COUNTED = re.compile(r"\b(two|three|four|five|six|seven|eight|nine|ten|twelve)\b(?= [a-z])")
_COUNTS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve")
_PERCENT = re.compile(r"\b(\d+(?:\.\d+)?)(%| percent\b| per cent\b)")
_SCALES = (("million", "billion"), ("billion", "million"), ("thousand", "million"), ("hundreds", "thousands"),
           ("thousands", "hundreds"), ("doubled", "tripled"), ("kilometres", "metres"), ("miles", "yards"),
           ("weeks", "months"), ("months", "years"), ("minutes", "hours"), ("hours", "days"))  # fmt: skip
_AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|had|can|will|would|should|could|must)\b(?! not\b)(?=\s[a-z])")
_NEGATED = re.compile(r"\b(is|are|was|were|has|have|had|can|will|would|should|could|must) not\b|\b(never) (?=[a-z])")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z][a-z]{2,})(?: [A-Z][a-z]{2,}){0,2}\b")
_LIMITS = (
    (re.compile(r"\b(?:may|might|could) have (?=[a-z]+(?:ed|en)\b)"), "has "),
    (re.compile(r"\b(?:may|might) (?=[a-z])|\bcould (?=be |have |lead |face |become )"), "will "),
    (re.compile(r"\b(?:allegedly|reportedly|possibly|probably|apparently|conditionally|provisionally|partly|partially|"
                r"potentially) "), ""),
    (re.compile(r"\b(?:is|are|was|were) (?:expected|likely|due|believed|thought|said|reported) to (?=[a-z])"), "will "),
    (re.compile(r"\bsome of (?=the )"), "all of "),
    (re.compile(r"\bmost of (?=the )"), "all of "),
    (re.compile(r"\b(?:sometimes|often|usually|generally) "), "always "),
    (re.compile(r",? (?:subject to|pending|provided that|unless|as long as|if) [a-z][^,.;]{6,80}(?=\.$)"), ""),
    (re.compile(r"\b(?:alleged|suspected|proposed|planned|unconfirmed) (?=[a-z])"), ""),
)  # fmt: skip

Names = list[str]
Bend = Callable[[str, random.Random, Names], str | None]


def _swap(text: str, found: re.Match[str], said: str) -> str:
    return text[: found.start()] + said + text[found.end() :]


def number_changed(text: str, rnd: random.Random, _: Names) -> str | None:
    """Another count or figure; years, shares and magnitudes are other types."""
    figures = [m for m in _NUMBER.finditer(text) if not _YEAR.fullmatch(m.group()) and not _dated(text, m)]
    counts = list(_COUNTED.finditer(text))
    if not figures and not counts:
        return None
    found = rnd.choice(figures or counts)
    if found.group() in _COUNTS:
        return _swap(text, found, rnd.choice([word for word in _COUNTS if word != found.group()]))
    plain = found.group().replace(",", "")
    places = len(plain.partition(".")[2])
    value = float(plain)
    other = value + rnd.choice((1, 2, 3, 7, -1, -2)) if rnd.random() < 0.5 else value * rnd.choice((2, 3, 0.5))
    if other <= 0 or f"{other:.{places}f}" == f"{value:.{places}f}":
        other = value + 4
    return _swap(text, found, f"{other:,.{places}f}" if "," in found.group() else f"{other:.{places}f}")


def _dated(text: str, found: re.Match[str]) -> bool:
    """Whether a figure is the day of a date, or stands before a scale."""
    before, after = text[: found.start()].rstrip().split(" ")[-1], text[found.end() :].lstrip().split(" ")[0]
    return bool({before, after.strip(".,")} & {*MONTHS, "million", "billion", "percent", "per"})


def date_shifted(text: str, rnd: random.Random, _: Names) -> str | None:
    """Another year, month or day of the week."""
    years = list(_YEAR.finditer(text))
    named = [m for m in re.finditer(r"\b[A-Z][a-z]+\b", text) if m.group() in {*MONTHS, *DAYS} and m.group() != "May"]
    if not years and not named:
        return None
    found = rnd.choice([*years, *named])
    if found in years:
        return _swap(text, found, str(int(found.group()) + rnd.choice((-9, -4, -2, -1, 1, 2, 4, 9))))
    family = MONTHS if found.group() in MONTHS else DAYS
    return _swap(text, found, rnd.choice([one for one in family if one != found.group()]))


def magnitude_altered(text: str, rnd: random.Random, _: Names) -> str | None:
    """Another share, scale or unit."""
    options = [(m, other) for scale, other in _SCALES for m in re.finditer(rf"\b{scale}\b", text)]
    if options and rnd.random() < 0.7:
        return _swap(text, *rnd.choice(options))
    if found := _PERCENT.search(text):
        value = float(found.group(1))
        other = rnd.choice([each for each in (5, 12, 20, 35, 50, 65, 80) if abs(each - value) > 0.3 * value])
        return _swap(text, found, f"{other}{found.group(2)}")
    return _swap(text, *rnd.choice(options)) if options else None


def negation_flipped(text: str, rnd: random.Random, _: Names) -> str | None:
    """A not more or a not less."""
    if found := _NEGATED.search(text):
        return _swap(text, found, found.group(1) or "")
    found_all = list(_AUXILIARY.finditer(text))
    if not found_all or any(word in text.lower() for word in (" no ", "n't", " nor ", " neither ")):
        return None
    found = rnd.choice(found_all[:2])
    return _swap(text, found, f"{found.group()} not")


def entity_substituted(text: str, rnd: random.Random, names: Names) -> str | None:
    """Another name, of as many words, out of another document."""
    options = [m for m in _NAME.finditer(text) if not {*m.group().split()} & {*MONTHS, *DAYS, "The", "This", "But"}]
    if not options:
        return None
    found = rnd.choice(options)
    size = len(found.group().split())
    others = [name for name in names if len(name.split()) == size and not set(name.split()) & set(text.split())]
    return _swap(text, found, rnd.choice(others)) if others else None


def context_stripped(text: str, rnd: random.Random, _: Names) -> str | None:
    """A limit or a doubt less."""
    options = [(m, said) for limit, said in _LIMITS for m in limit.finditer(text) if m.start() > 2]
    return _swap(text, *rnd.choice(options)) if options else None


BENDS: dict[str, Bend] = {
    "NUMBER_CHANGED": number_changed,
    "NEGATION_FLIP": negation_flipped,
    "DATE_SHIFTED": date_shifted,
    "ENTITY_SUBSTITUTED": entity_substituted,
    "MAGNITUDE_ALTERED": magnitude_altered,
    "CONTEXT_STRIPPED": context_stripped,
}


@cache
def documents(data: Path) -> list[list[str]]:
    """Return the sentences of each document, each document once."""
    texts = [row["context"] for n in (1, 2, 3) for row in table(data / "anli" / f"r{n}_dev.csv.gz")]
    texts += [row["sentence1"] for part in ("train", "dev") for row in table(data / "rte" / f"{part}.tsv.gz")]
    return [sentences(clean(text)) for text in dict.fromkeys(texts)]


@cache
def _names(data: Path) -> Names:
    return sorted({m.group() for found in documents(data) for text in found for m in _NAME.finditer(text)})


def _places(data: Path, name: str) -> Iterator[tuple[list[str], int, random.Random]]:
    """Yield a document, the place of a sentence in it and a source of chance, in an order that the name decides."""
    rnd = random.Random(f"interlock distortions {name}")
    places = [(found, at) for found in documents(data) for at in range(len(found))]
    rnd.shuffle(places)
    for found, at in places:
        text = found[at]
        if 7 <= len(text.split()) <= 38 and text[0].isupper() and text[-1] == "." and text.count('"') % 2 == 0:
            yield found, at, rnd


def _around(found: list[str], at: int) -> str:
    """Return the sentence with what stands around it."""
    first = last = at
    size = len(found[at].split())
    while True:
        grown = [(first - 1, last), (first, last + 1)]
        options = [(a, b) for a, b in grown if a >= 0 and b < len(found)]
        options = [(a, b) for a, b in options if sum(len(s.split()) for s in found[a : b + 1]) <= AROUND_WORDS]
        if not options:
            return " ".join(found[first : last + 1])
        first, last = options[size % len(options)]
        size += 1


def bent(data: Path, kind: str, size: int) -> list[Row]:
    """Return *size* cases of one type; every second one is also told otherwise, so that it is no mere copy."""
    names = _names(data)
    cases: list[Row] = []
    for found, at, rnd in _places(data, kind):
        said = BENDS[kind](found[at], rnd, names)
        source = _around(found, at)
        if said is None or said == found[at] or said.rstrip(".") in source:
            continue
        text = retold(said, rnd, asides=False) if len(cases) % 2 else said
        cases.append(Row(source, " ".join(text.split()), NOT_ENTAILED))
        if len(cases) == size:
            break
    return cases


def unbent(data: Path, size: int) -> list[Row]:
    """Return sentences told otherwise by rules that keep the meaning, and only those that such a rule changed."""
    cases: list[Row] = []
    for found, at, rnd in _places(data, "RETOLD"):
        text = retold(found[at], rnd)
        if text != found[at]:
            cases.append(Row(_around(found, at), text, ENTAILED))
        if len(cases) == size:
            break
    return cases


def paraphrases(data: Path, size: int) -> list[Row]:
    """Return pairs of STS-B that every annotator found to mean the same (5.0 of 5): people's words, not a rule's."""
    rows = []
    for part in ("train", "dev", "test"):
        for row in table_without_head(data / "stsb" / f"{part}.csv.gz"):
            if float(row[2]) == 5.0 and row[0] != row[1] and "?" not in row[1] and "\u201a" not in "".join(row[:2]):
                rows.append(Row(row[0], row[1], ENTAILED))
    random.Random("interlock paraphrases").shuffle(rows)
    return list(dict.fromkeys(rows))[:size] if size else rows


def agreed(data: Path, size: int) -> list[Row]:
    """Return sentences of QAGS summaries that all three annotators found supported, with the article."""
    rows = [
        Row(row["article"], each["sentence"], ENTAILED)
        for part in ("cnndm", "xsum")
        for row in objects(data / "qags" / f"mturk_{part}.jsonl.gz")
        for each in row["summary_sentences"]
        if all(answer["response"] == "yes" for answer in each["responses"])
    ]
    random.Random("interlock agreed").shuffle(rows)
    return list(dict.fromkeys(rows))[:size] if size else rows


def table_without_head(path: Path) -> list[list[str]]:
    """Return the rows of a table with commas that has no head."""
    return list(csv.reader(io.StringIO(text_of(path))))
