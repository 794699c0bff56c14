"""Generated pairs: sentences of documents, bent in the ways of SPEC-005 §5.3, and others that keep the meaning.

Every random choice comes from one generator, so that the same documents in the same order give the same rows.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nli_texts import WINDOW_WORDS, content

Row = dict[str, Any]
Document = list[str]
Bend = Callable[[str], str | None]

ENTAILED, NEUTRAL, CONTRADICTED, NOT_ENTAILED = 0, 1, 2, 3
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
PAIRS = (
    "increased decreased|increase decrease|rose fell|higher lower|highest lowest|more fewer|largest smallest|"
    "larger smaller|before after|first last|won lost|north south|northern southern|east west|eastern western|"
    "approved rejected|accepted refused|above below|older younger|early late|opened closed|male female|"
    "success failure|successful unsuccessful|allowed forbidden|supported opposed|best worst|positive negative|"
    "always never|all none of the|bought sold|joined left|mother father|son daughter|husband wife|major minor"
)
_OPPOSITES = [(pair.split(" ")[0], pair.split(" ", 1)[1]) for pair in PAIRS.split("|")]
OPPOSITE = dict(_OPPOSITES) | {second: first for first, second in _OPPOSITES}
HEDGE = re.compile(
    r"\b(may have|might have|could have|may|might|could|allegedly|reportedly|possibly|probably|likely|conditionally|"
    r"partially|partly|nearly|almost|some|most|sometimes|often|usually|up to|at least)\b"
)
FIRM = {
    "may have": "have", "might have": "have", "could have": "have", "may": "will", "might": "will", "could": "will",
    "some": "all", "most": "all", "sometimes": "always", "often": "always", "usually": "always",
}  # fmt: skip
AUXILIARY = re.compile(r"\b(is|are|was|were|has|have|had|can|will|would|should|did|does|do)\b(?! not)(?!n't)")
SHORTENED = frozenset(
    ["is", "are", "was", "were", "has", "have", "had", "did", "does", "do", "would", "should", "could"]
)
NUMBER = re.compile(r"(?<![\w.])\$?\d[\d,]*(?:\.\d+)?(?![\w])")
YEAR = re.compile(r"(1[5-9]|20)\d\d")
NAME = re.compile(r"(?<=[a-z,;] )((?:[A-Z][a-z]+)(?: (?:of |the |de )?[A-Z][a-z]+){0,3})")
UNITS = (
    ("million", "billion"), ("billion", "million"), ("thousand", "million"), ("hundred", "thousand"),
    ("kilometres", "metres"), ("months", "years"), ("days", "weeks"), ("hours", "days"), ("years", "months"),
    ("weeks", "days"),
)  # fmt: skip
PERCENTAGES = (5, 10, 15, 25, 40, 50, 60, 75, 90)
FRAMES = ("According to the source, ", "The text states that ", "In short, ", "It is reported that ")


def _put(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


@dataclass
class Maker:
    """Bends sentences; ``names`` holds the documents' names by their number of words."""

    chance: random.Random
    names: dict[int, list[str]]

    @staticmethod
    def over(documents: Sequence[Document], seed: int) -> Maker:
        """Return a maker that takes its names from the documents."""
        names: dict[int, list[str]] = defaultdict(list)
        for sentence in (sentence for document in documents for sentence in document):
            for name in NAME.findall(sentence):
                if name not in MONTHS:
                    names[len(name.split())].append(name)
        return Maker(random.Random(seed), names)

    def bends(self) -> dict[str, tuple[Bend, int]]:
        """Return each kind of distortion with its label."""
        return {
            "NUMBER_CHANGED": (self.number, CONTRADICTED),
            "DATE_SHIFTED": (self.date, CONTRADICTED),
            "MAGNITUDE_ALTERED": (self.magnitude, CONTRADICTED),
            "NEGATION_FLIP": (self.negation, CONTRADICTED),
            "ENTITY_SUBSTITUTED": (self.name, CONTRADICTED),
            "ANTONYM": (self.antonym, CONTRADICTED),
            "CONTEXT_STRIPPED": (self.hedge, NOT_ENTAILED),
        }

    def number(self, text: str) -> str | None:
        """Change a number that is no year."""
        found = [match for match in NUMBER.finditer(text) if not YEAR.fullmatch(match.group().strip("$"))]
        if not found:
            return None
        match = self.chance.choice(found)
        digits = match.group().replace("$", "").replace(",", "")
        for _ in range(8):
            new = self._other_number(digits)
            if float(new) > 0 and float(new) != float(digits):
                grouped = f"{int(new):,}" if "," in match.group() and "." not in new else new
                return _put(text, match, ("$" if match.group().startswith("$") else "") + grouped)
        return None

    def _other_number(self, digits: str) -> str:
        """Change a digit, add a little, or multiply."""
        kind, value = self.chance.random(), float(digits)
        places = len(digits.split(".")[1]) if "." in digits else 0
        if kind < 0.45:
            place = self.chance.choice([at for at, letter in enumerate(digits) if letter.isdigit()])
            return digits[:place] + self.chance.choice("123456789") + digits[place + 1 :]
        if places:
            return f"{value * (self.chance.choice([0.5, 1.2, 2]) if kind < 0.7 else 10):.{places}f}"
        if kind < 0.7:
            return str(int(value) + self.chance.choice([-3, -2, -1, 1, 2, 3, 5, 10]))
        return str(int(value * self.chance.choice([2, 3, 10])))

    def date(self, text: str) -> str | None:
        """Shift a year, or take another month."""
        years = list(re.finditer(r"\b(1[5-9]|20)\d\d\b", text))
        months = list(re.finditer(r"\b(" + "|".join(MONTHS) + r")\b", text))
        if years and (not months or self.chance.random() < 0.7):
            match = self.chance.choice(years)
            return _put(
                text, match, str(int(match.group()) + self.chance.choice([-10, -5, -3, -2, -1, 1, 2, 3, 5, 10]))
            )
        if months:
            match = self.chance.choice(months)
            return _put(text, match, self.chance.choice([month for month in MONTHS if month != match.group()]))
        return None

    def magnitude(self, text: str) -> str | None:
        """Take another unit or power, or another percentage."""
        options = [(match, new) for old, new in UNITS for match in re.finditer(rf"\b{old}\b", text)]
        if options:
            match, new = self.chance.choice(options)
            return _put(text, match, new)
        percent = re.search(r"\b(\d+(?:\.\d+)?)(%| percent| per cent)", text)
        if percent:
            value = float(percent.group(1))
            others = (*PERCENTAGES, round(value / 2, 1), round(value * 3, 1))
            new_value = self.chance.choice([other for other in others if abs(other - value) > 0.2 * value])
            return _put(text, percent, f"{new_value:g}{percent.group(2)}")
        return None

    def negation(self, text: str) -> str | None:
        """Take a negation away, or put one in."""
        there = re.search(r"\b(not|never|no longer) ", text)
        if there and there.group(1) != "no longer":
            return _put(text, there, "")
        short = re.search(r"\b(\w+)n't\b", text)
        if short and short.group(1) in SHORTENED:
            return _put(text, short, short.group(1))
        found = AUXILIARY.search(text)
        return f"{text[: found.end()]} not{text[found.end() :]}" if found else None

    def name(self, text: str) -> str | None:
        """Put the name of another document in the place of one."""
        found = [match for match in NAME.finditer(text) if match.group(1) not in MONTHS]
        if not found:
            return None
        match = self.chance.choice(found)
        options = self.names.get(len(match.group(1).split()), [])
        for _ in range(5):
            if options and (new := self.chance.choice(options)) not in text:
                return _put(text, match, new)
        return None

    def antonym(self, text: str) -> str | None:
        """Say the opposite of one word."""
        found = [match for match in re.finditer(r"\b[a-z]+\b", text) if match.group() in OPPOSITE]
        if not found:
            return None
        match = self.chance.choice(found)
        return _put(text, match, OPPOSITE[match.group()])

    def hedge(self, text: str) -> str | None:
        """Take a condition or a reservation away."""
        match = HEDGE.search(text)
        if not match or match.start() < 3:
            return None
        return re.sub(r"\s+", " ", _put(text, match, FIRM.get(match.group(1), ""))).strip()

    def same(self, text: str) -> str:
        """Return a form with the same content: other number formats, a dropped aside, a framing phrase."""
        kind = self.chance.random()
        if kind < 0.3:
            text = re.sub(r"\$(\d+(?:\.\d+)?) million\b", r"$\1M", text)
            text = re.sub(r"\$(\d+(?:\.\d+)?) billion\b", r"$\1B", text)
            words = re.sub(r"(\d) (?:percent|per cent)\b", r"\1%", text)
            text = re.sub(r"(\d)%", r"\1 percent", text) if "%" in text else words
            return re.sub(r"\b(\d{1,3}),(\d{3})\b", r"\1\2", text)
        if kind < 0.6:
            text = re.sub(r"\s*\([^()]{1,80}\)", "", text)
            text = re.sub(r", (?:which|who|where)[^,]{4,90},", "", text)
            return re.sub(r", (?:which|who|where)[^,]{4,120}\.$", ".", text)
        return self.chance.choice(FRAMES) + text if kind < 0.7 else text


class Generator:
    """Pairs from documents, up to a number of each kind."""

    def __init__(self, documents: Sequence[Document], *, per_kind: int, seed: int) -> None:
        self.documents, self.per_kind = documents, per_kind
        self.maker = Maker.over(documents, seed)
        self.bends = self.maker.bends()
        self.counts: Counter[str] = Counter()
        self.rows: list[Row] = []

    def run(self) -> list[Row]:
        """Return the rows; ends when every distortion has its number, or the documents do."""
        chance = self.maker.chance
        order = [(number, place) for number, document in enumerate(self.documents) for place in range(len(document))]
        chance.shuffle(order)
        for number, place in order:
            document = self.documents[number]
            sentence = document[place]
            if not 6 <= len(sentence.split()) <= 38 or not sentence[0].isupper() or sentence[-1] not in ".!":
                continue
            self._from(document, place)
            if all(self.counts[kind] >= self.per_kind for kind in self.bends):
                break
        return self.rows

    def _from(self, document: Document, place: int) -> None:
        chance, sentence = self.maker.chance, document[place]
        first = place - chance.randint(0, 2)
        last = place + 1 + chance.randint(0, 2)
        around = document[max(0, first) : last]
        if sum(len(other.split()) for other in around) > WINDOW_WORDS:
            around = [sentence]
        premise = " ".join(around)
        if not self._bent(premise, sentence):
            return
        if self.counts["SAME"] < 3 * self.per_kind:
            self._add("SAME", premise, self.maker.same(sentence), ENTAILED)
        others = [
            other for at, other in enumerate(document)
            if not first <= at < last and 6 <= len(other.split()) <= 38 and len(content(other) - content(premise)) >= 4
        ]  # fmt: skip
        if others:
            self._elsewhere(premise, sentence, chance.choice(others))

    def _bent(self, premise: str, sentence: str) -> int:
        """Add up to two distortions of a sentence and return how many."""
        kinds = [kind for kind in self.bends if self.counts[kind] < self.per_kind]
        self.maker.chance.shuffle(kinds)
        made = 0
        for kind in kinds:
            bend, label = self.bends[kind]
            bent = bend(sentence)
            if bent and bent != sentence and bent.rstrip(".") not in premise:
                self._add(kind, premise, bent, label)
                made += 1
                if made == 2:
                    break
        return made

    def _elsewhere(self, premise: str, sentence: str, other: str) -> None:
        """Add another sentence of the document, which the premise does not tell, and half of each."""
        if self.counts["OTHER"] >= 2 * self.per_kind:
            return
        self._add("OTHER", premise, other, NEUTRAL)
        if self.counts["MIXED"] < self.per_kind // 2 and self.maker.chance.random() < 0.4:
            mixed = f"{sentence.rstrip('.')}, and {other[0].lower()}{other[1:]}"
            self._add("MIXED", premise, mixed, NOT_ENTAILED)

    def _add(self, kind: str, premise: str, hypothesis: str, label: int) -> None:
        self.counts[kind] += 1
        self.rows.append({"p": premise, "h": hypothesis, "y": label, "src": f"synthetic:{kind}"})
