"""Which figures are near to a claim: in its sentence, beside it, in its list or column, told before, in the sources (SPEC-005 §5.2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.value_conflicts import EnvelopeValues
from interlock.dpe.document import Claim, Fact
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.grounding.tables.rows import of_csv
from interlock.dpe.request import OWN_KINDS, Request
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import cells_of, label_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value, same
from interlock.dpe.values.reach import in_reach
from interlock.dpe.values.reckoning.chains import follows_in_steps
from interlock.dpe.values.units import TEMPERATURE, TIME

BESIDE = 1
"""Sentences on either side of a claim whose figures are near to it."""

MOST_TEXT = 4000
_MOST_FACTS = 200
_MOST_LISTED = 24
_MOST_TOLD = 12
_MOST_GROUPS = 40
_EARLIER = 24
_AROUND = 6
_MOST_OF_LINE = 8
_FEW_ASKED = 4
_OFF, _OFF_DEGREES = 0.025, 4.0
_LIGHTEST, _HEAVIEST = 0.35, 1.5  # kg a litre: cocoa, honey
_CONVERTED = frozenset({"length", "mass", "volume", "area", "speed", TEMPERATURE})
_TOTALS = word_set(
    "altogether total totals together sum all profit loss margin balance surplus deficit difference net left remaining"
)
_UNIT = "(minute|hour|day|week|month|year)"
_ONE_UNIT = pattern(
    rf"\banother {_UNIT}\b|\b(?:an?|one) {_UNIT} (?:later|earlier|before|after|afterwards|longer|more|ahead)\b"
    rf"|\b(?:last|lasts|lasting|lasted|runs?|running|for) an? {_UNIT}\b",
    ignore_case=True,
)
_SCALES = pattern(
    r"\b(?:multipl\w+|scal\w+|increas\w+)\b[^.\d]{0,40}\b(?:by|of)\s+(?:a factor of\s+)?(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)\s?(?:x|×|times) the\b",
    ignore_case=True,
)
_NAMED_PERIOD = pattern(
    r"\b(tomorrow|yesterday|daily|everyday|weekly|fortnightly|monthly|yearly|annual|annually)\b", ignore_case=True
)
_PERIODS = {
    "weekly": "1 week", "fortnightly": "2 weeks", "monthly": "1 month",
    **dict.fromkeys(("tomorrow", "yesterday", "daily", "everyday"), "1 day"),
    **dict.fromkeys(("yearly", "annual", "annually"), "1 year"),
}  # fmt: skip
_KEY = pattern(r"""["']?([\p{L}_][\p{L}\d_ ]{0,40})["']?\s*:""")
_OF_ITS_MESSAGE = "0123456789"


def values_of(texts: Iterable[str]) -> list[Value]:
    """Return the values of *texts*, periods without a number and lengths and times in two units among them."""
    return [value for text in dict.fromkeys(texts) for value in _values_in(text)]


@remembered(bytes_a_character=20, from_length=LONG)
def _values_in(text: str) -> tuple[Value, ...]:
    values = read(text).values
    return (*values, *_joined(values), *_ones(text))


def _joined(values: Sequence[Value]) -> Iterator[Value]:
    """Yield what is written in two units as one: 4 hours and 40 minutes, 5 feet 10 inches."""
    for one, other in pairwise(values):
        if compounds(one, other):
            whole = (one.amount or 0.0) + (other.amount or 0.0)
            yield replace(other, amount=whole, text=f"{one.text} {other.text}", start=one.start, first=one.first)


def compounds(one: Value, other: Value) -> bool:
    """Whether two values are one that is written in two units."""
    near = 0 <= other.first - one.last <= 1
    return near and one.unit == other.unit and one.unit in {TIME, "length", "mass"} and one.factor > other.factor


def _ones(text: str) -> Iterator[Value]:
    """Yield the periods that stand without a number: another week, an hour earlier, tomorrow, yearly."""
    for match in _ONE_UNIT.finditer(text):
        yield from read(f"1 {match[1] or match[2] or match[3]}").values
    for match in _NAMED_PERIOD.finditer(text):
        yield from read(_PERIODS[match[1].casefold()]).values


@dataclass(frozen=True)
class Told:
    """The figures of a request: the question's, those of the user's earlier words, those of the sources and their groups."""

    question: Sequence[Value]
    asked: Sequence[Value]
    times: Sequence[Value]
    """Times of day that the sources state."""
    facts: Sequence[tuple[frozenset[str], Sequence[Value], bool]]
    """Of each source its words, its figures, and whether it was looked up for the question."""
    groups: Sequence[Sequence[Value]]
    """Figures of one kind that one message lists."""
    keyed: Mapping[str, Sequence[Value]]
    """Of each key of the sources its figures."""
    said: Sequence[tuple[frozenset[str], Sequence[Value], bool]] = ()
    """Of each line of earlier answers its words and the figures in it that rest on something."""
    contents: Sequence[str] = ()
    """The sources as they are read."""
    words: frozenset[str] = frozenset()
    """The words of the question."""

    @staticmethod
    def of(request: Request) -> Told:
        """Read *request*."""
        facts = [replace(fact, content=_by_key(fact.content[:MOST_TEXT])) for fact in request.facts[:_MOST_FACTS]]
        asked = [one.text[-MOST_TEXT:] for one in request.said if one.kind in OWN_KINDS]
        stated = [
            (content_stems(fact.content), values_of([fact.content]), fact.id not in request.earlier_facts)
            for fact in facts
        ]  # fmt: skip
        known = EnvelopeValues(
            [value for _, values, _ in stated for value in values] + values_of([request.own_words[-MOST_TEXT:]])
        )
        listed = _listed(facts)
        clocks = [
            value for _, values, _ in stated for value in values if value.moment and value.moment.minute is not None
        ]
        return Told(
            values_of([request.query[-MOST_TEXT:]]),
            values_of(reversed(asked))[: 2 * _MOST_TOLD],
            clocks,
            stated,
            [group for group in listed.values() if len(group) > 1][-_MOST_GROUPS:],
            {plain_key(key): group for (_, _, key, _), group in listed.items() if key},
            list(_said([window.text[:MOST_TEXT] for window in request.prior[-_EARLIER:]], known)),
            [fact.content for fact in facts],
            frozenset(token.low for token in read(request.query[-MOST_TEXT:]).tokens),
        )

    def about(self, text: str) -> list[Value]:
        """Return the figures of the sources that share a word with *text*, or were looked up for the question; the nearest first."""
        return _nearest(self.facts, text)

    def said_about(self, text: str) -> list[Value]:
        """Return the figures of earlier answers on lines that share a word with *text*, the nearest first."""
        return _nearest(self.said, text)

    def named(self, label: str) -> list[Value]:
        """Return the figures of the sources that have every word of *label*."""
        return _named(self.facts, label)

    def of_label(self, label: str) -> list[Value]:
        """Return the figures that a source states under a key or on a short line with every word of *label*."""
        stems = content_stems(label)
        keyed = [
            value for key, values in self.keyed.items() if stems and stems <= content_stems(key) for value in values
        ]
        return [*keyed, *self.named(label)]

    def said_named(self, label: str) -> list[Value]:
        """Return the figures of earlier answers on lines that have every word of *label*."""
        return _named(self.said, label)


def _by_key(content: str) -> str:
    """Return CSV with the names of its columns at its cells: read as a line, ``Jan,120,80`` has the figure 120,80."""
    rows = of_csv(content)
    return "\n".join(f"{each.key.noun}: {each.value};" for row in rows for each in row.fields) or content


def _named(lines: Sequence[tuple[frozenset[str], Sequence[Value], bool]], label: str) -> list[Value]:
    """Return the figures of the lines that have every word of a label."""
    stems = content_stems(label)
    return [value for words, values, _ in lines for value in values if stems and stems <= words]


def _nearest(lines: Sequence[tuple[frozenset[str], Sequence[Value], bool]], text: str) -> list[Value]:
    stems = content_stems(text)
    shared = [(len(stems & words), new, values) for words, values, new in lines if values]
    ordered = sorted((each for each in shared if each[0] or each[1]), key=lambda each: (-each[0], not each[1]))
    return [value for _, _, values in ordered for value in values]


def _said(texts: Sequence[str], known: EnvelopeValues) -> Iterator[tuple[frozenset[str], list[Value], bool]]:
    """Yield the lines of earlier answers with the figures that are stated somewhere or follow from those around them there.

    One that nothing bore out then is no evidence now: an invention does not become true by being repeated.
    """
    for text in texts:
        whole = values_of([text])
        for line in filter(None, map(str.strip, text.splitlines())):
            values = values_of([line])
            texts_of = {value.text for value in values}
            around = [value for value in whole if value.text in texts_of]
            places = [place for place, value in enumerate(whole) if value.text in texts_of]
            if places:
                around = whole[max(0, places[0] - _AROUND) : places[-1] + 1 + _AROUND]
            kept = [value for value in values if _rests(value, whole if value.moment else around, values, known)]
            if kept:
                yield content_stems(line), kept, False


def _rests(value: Value, around: Sequence[Value], line: Sequence[Value], known: EnvelopeValues) -> bool:
    others, own = ([each for each in group if each.text != value.text] for group in (around, line))
    if known.has(value) or in_reach(value, others, ()) or any(converts(value, other) for other in others):
        return True
    if any(weighs(value, other) for other in own):
        return True
    alike = [each for each in others if each.unit == value.unit]
    before = [each for each in own if each.end <= value.start]
    return follows_in_steps(value, others, [before, own, alike])


def converts(value: Value, other: Value) -> bool:
    """Whether two values are one in different units, as people round them: 210 miles and 338 km, 350 °F and 175 °C."""
    if value.unit != other.unit or value.factor == other.factor or value.amount is None or other.amount is None:
        return False
    apart = abs(value.amount - other.amount)
    near = apart <= (_OFF_DEGREES if value.unit == TEMPERATURE else _OFF * abs(other.amount))
    return same(value, other) or (near and value.unit in _CONVERTED)


def weighs(value: Value, other: Value) -> bool:
    """Whether a weight may be that of a volume in a kitchen: 250 g, and 2 cups of flour."""
    mass, volume = (value, other) if value.unit == "mass" else (other, value)
    if (mass.unit, volume.unit) != ("mass", "volume") or not mass.amount or not volume.amount:
        return False
    return _LIGHTEST <= mass.amount / volume.amount <= _HEAVIEST


def plain_key(label: str) -> str:
    """Return a key or a label in words: ``fat_g`` and *Fat g* are one."""
    return " ".join("".join(char if char.isalnum() else " " for char in label.casefold()).split())


def _listed(facts: Sequence[Fact]) -> dict[tuple[str, str, str, bool], list[Value]]:
    """Return the figures that one message states of one kind, by message, unit, key and sign: a column, a list of prices."""
    found: dict[tuple[str, str, str, bool], list[Value]] = {}
    for fact in facts:
        text = fact.content
        keys = [(match.start(), match[1].strip().casefold()) for match in _KEY.finditer(text)]
        starts = [start for start, _ in keys]
        for value in read(text).values:
            if value.amount is None or value.label or value.vague:
                continue
            place = bisect_right(starts, value.start) - 1
            key = keys[place][1] if place >= 0 else ""
            message = fact.id.rstrip(_OF_ITS_MESSAGE) or fact.id
            found.setdefault((message, value.unit, key, value.amount < 0), []).append(value)
    return found


@dataclass(frozen=True)
class Near:
    """The figures around a claim, from its own sentence to the sources."""

    own: Sequence[Value]
    beside: Sequence[Value]
    listed: Sequence[Value] = ()
    """Figures of the items of a list that the claim announces or closes."""
    groups: Sequence[Sequence[Value]] = ()
    """Columns and lists, of the answer and of the sources, that may have a total and a mean."""
    told: Told | None = None
    words: frozenset[str] = frozenset()
    text: str = ""
    label: str = ""
    """The key of a field or the label of a line, in words."""
    items: int = 0
    """Items of the list that the claim announces."""
    results: Sequence[Value] = ()
    """Figures of the answer that were shown to follow from others: the share of each, of which the next lines make what is owed."""

    factors: Sequence[float] = ()
    """By what the answer says that it scales everything."""
    rows: Sequence[tuple[frozenset[str], Sequence[Value]]] = ()
    """The words and the figures of each row of a table of the answer."""
    claim: str = ""
    """The text of the claim alone."""

    @property
    def times(self) -> Sequence[Value]:
        """Times of day that the sources state."""
        return self.told.times if self.told else ()

    @property
    def asked(self) -> Sequence[Value]:
        """Figures of the user's earlier words."""
        return self.told.asked if self.told else ()

    def without(self, texts: frozenset[str]) -> Near:
        """Leave out the figures that are written so."""
        own, beside, listed = (
            [each for each in group if each.text not in texts] for group in (self.own, self.beside, self.listed)
        )
        groups = [[each for each in group if each.text not in texts] for group in self.groups]
        return replace(self, own=own, beside=beside, listed=listed, groups=groups)

    def resting(self, settled: Collection[str]) -> Near:
        """Take the figures of the answer that are written so for results."""
        return replace(self, results=[each for each in self.listed if each.text in settled])

    @staticmethod
    def of(claim: Claim, reading: ChoiceReading, told: Told) -> Near:
        """Read the sentences around *claim*."""
        row = cells_of(claim.text) is not None
        words = frozenset(token.low for token in read(claim.text).tokens)
        far = BESIDE + bool(words & _TOTALS)
        texts = [
            sentence.text
            for sentence in reading.sentences
            if 0 < abs(sentence.index - claim.sentence_index) <= far and not row
        ]
        own = [reading.sentences[claim.sentence_index].text] if not row else []
        whole = [sentence.text for sentence in reading.sentences if sentence.index != claim.sentence_index]
        listed = values_of(whole[:_MOST_LISTED]) if not row else []
        groups = [*_columns(claim, reading), *_by_unit([*listed, *values_of(own)]), *told.groups]
        return Near(
            values_of([claim.text, *own]), [*_asked_first(told.question), *values_of(texts), *told.question], listed, groups, told, words,
            " ".join([claim.text, *own]), _label(claim.text), _items(claim, reading),
            factors=_factors(whole), rows=_rows(reading, claim), claim=claim.text,
        )  # fmt: skip


def _factors(texts: Sequence[str]) -> list[float]:
    """Return the factors by which sentences say that they scale: *multiply everything by 1.5*, *1.5 times the amounts*."""
    found = (match for text in texts[:_MOST_LISTED] for match in _SCALES.finditer(text))
    return [float(match[1] or match[2]) for match in found]


def _rows(reading: ChoiceReading, claim: Claim) -> list[tuple[frozenset[str], Sequence[Value]]]:
    """Return the rows of the tables of an answer, other than the claim."""
    rows = [each.text for each in reading.checked if each is not claim and cells_of(each.text) is not None]
    read_rows = (
        (content_stems(text), [each for each in read(text).values if not each.label]) for text in rows[:_MOST_GROUPS]
    )
    return [(words, values) for words, values in read_rows if values]


def _asked_first(question: Sequence[Value]) -> Sequence[Value]:
    """Return the figures of a question that has few: an answer reckons with them before those of its other sentences."""
    return question if len(question) <= _FEW_ASKED else ()


def _label(text: str) -> str:
    """Return the key of a field, or the words before the first figure of a short line."""
    label = label_of(text)
    if label is None:
        values = read(text).values
        label = text[: values[0].start] if values and len(text.split()) <= _MOST_OF_LINE else ""
    return plain_key(label)


def _items(claim: Claim, reading: ChoiceReading) -> int:
    """Return how many items stand below the lead of a claim, which each item repeats: *5 lessons a week: Monday*."""
    lead, colon, _ = claim.text.partition(":")
    if not colon or cells_of(claim.text) is not None:
        return 0
    below = {other.text for other in reading.checked if other.text.startswith(f"{lead}: ")}
    return len(below)


def _by_unit(values: Sequence[Value]) -> Iterator[list[Value]]:
    """Yield the figures of each unit of a list."""
    for unit in dict.fromkeys(value.unit for value in values if value.amount and not value.label):
        alike = [value for value in values if value.unit == unit and value.amount and not value.label]
        if len(alike) > 1:
            yield alike


def _columns(claim: Claim, reading: ChoiceReading) -> Iterator[list[Value]]:
    """Yield the column above a cell of the claim, the cells beside it, or the other fields of its object."""
    row = cells_of(claim.text)
    if row is not None:
        columns: Mapping[str, list[Value]] = {head: [] for head, _ in row[1]}
        for other in reading.checked:
            for head, cell in (cells_of(other.text) or ("", ()))[1]:
                if other is not claim and head in columns:
                    columns[head].extend(read(cell).values)
        cells = [value for _, cell in row[1] for value in read(cell).values]
        yield from (column for column in columns.values() if column)
        yield from (cells[:place] for place in range(2, len(cells) + 1))
    elif label_of(claim.text) is not None:
        yield [
            value
            for other in reading.checked
            if other is not claim and label_of(other.text)
            for value in read(other.text).values
        ]
