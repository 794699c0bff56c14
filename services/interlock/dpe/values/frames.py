"""Frames: the context of values, names and predicates, so that like is compared with like (SPEC-005 §5.2, §5.3).

A claim is aligned with a source sentence when most of its words are words of the source. Words of one meaning and
opposite direction (rose, fell) have the same stem here; polarity.py tells them apart.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeVar

from interlock.dpe.text.known_names import KnownNames
from interlock.dpe.text.lexing import WORD, Lexeme, at
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.names import Name, find_names, opens_sentence, plain, root
from interlock.dpe.text.wordlists import lines, word_set
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.quantities import ORDINAL, Value
from interlock.dpe.values.value_table import ValueTable

STOP = word_set(
    "a an the of to in on at and or is are was were be been being am by for with as that this these those it its "
    "he she they his her hers their theirs them him from has have had having but which who whom whose will would "
    "shall should can could may might must do does did done doing than into about around approximately roughly "
    "nearly almost over under so such there here then also not no nor none never neither cannot without if unless "
    "when while where what how why because since until till per each every any some all both very just only even "
    "still yet already we you i me my your our ours us one ones s t said says say according reported reportedly "
    "stated states noted up down out off through during between among against within upon onto like well too "
    "quite rather cent percent approx ie eg etc mr mrs ms dr get got became become becomes however moreover "
    "furthermore additionally therefore"
)
# Weight of a word found in another sentence of the source than the compared one.
_ELSEWHERE = 0.6
_NEAR = 4
_REMEMBERED = 1024
_CLOSING = frozenset("\"')]”’")
_ENDINGS = (("ing", 3), ("ed", 3), ("es", 3), ("ly", 4), ("s", 3))  # each with the letters that must remain


def _directions() -> dict[str, tuple[str, int]]:
    """Read the families of direction words: each word with its family and its side."""
    found: dict[str, tuple[str, int]] = {}
    for line in lines("directions.txt"):
        family, *sides = line.split("|")
        for side, words in enumerate(sides):
            for word in words.split():
                found.setdefault(word, (family, side))
    return found


DIRECTIONS = _directions()


@cache
def stem(word: str) -> str:
    """Return the word without its ending, enough to match its other forms."""
    if word in DIRECTIONS:
        return "±" + DIRECTIONS[word][0]
    return ending_cut(word)


def ending_cut(word: str) -> str:
    """Return the word without its ending, whether or not it names a direction."""
    word = root(plain(word))
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


@dataclass(frozen=True)
class FramedSentence:
    """A sentence of a reading: its tokens from ``first`` to ``last``, and their content."""

    first: int
    last: int
    stems: tuple[tuple[int, str], ...]  # content words with their token index
    values: tuple[Value, ...]
    names: tuple[Name, ...]
    bag: frozenset[str]  # the content words, unordered


@dataclass(frozen=True)
class Frame:
    """A text prepared for comparison."""

    reading: ValuesRead
    sentences: tuple[FramedSentence, ...]
    names: tuple[Name, ...]
    bag: frozenset[str]  # the content words of all sentences
    units: frozenset[str]  # the units of its figures
    table: ValueTable
    evidence: KnownNames

    @property
    def tokens(self) -> Sequence[Lexeme]:
        """The tokens of the text."""
        return self.reading.tokens

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of the text."""
        return self.reading.values

    def written(self, first: int, last: int) -> str:
        """Return tokens as they are written in the original text."""
        start, end = self.reading.folded.original(self.tokens[first].start, self.tokens[last - 1].end)
        return self.reading.text[start:end]


@lru_cache(maxsize=_REMEMBERED)
def frame(text: str) -> Frame:
    """Return the frame of a text.

    Recent frames are cached, because each claim meets many facts and each fact many claims.
    """
    reading = read(text)
    taken = taken_by_values(reading)
    names = tuple(find_names(reading.tokens, taken))
    bounds = _bounds(reading.tokens)
    values, named = _by_sentence(reading.values, bounds), _by_sentence(names, bounds)
    sentences = tuple(
        _sentence(reading, taken, values[number], named[number], bound) for number, bound in enumerate(bounds)
    )
    bag = frozenset(word for sentence in sentences for word in sentence.bag)
    measured = frozenset(value.unit for value in reading.values if value.amount is not None and value.kind != ORDINAL)
    return Frame(reading, sentences, names, bag, measured, ValueTable(reading.values), KnownNames.of((reading.tokens,)))


@remembered(bytes_a_character=50, from_length=100)
def names_known(text: str) -> KnownNames:
    """Return the names that a text contains."""
    return KnownNames.of((read(text).tokens,))


def taken_by_values(reading: ValuesRead) -> list[bool]:
    """Mark the tokens that belong to values."""
    taken = [False] * len(reading.tokens)
    for value in reading.values:
        if not (value.vague or value.kind == ORDINAL):
            taken[value.first : value.last] = [True] * (value.last - value.first)
    return taken


def _bounds(tokens: Sequence[Lexeme]) -> list[tuple[int, int]]:
    """Split tokens into sentences at full stops, semicolons and line ends."""
    bounds: list[tuple[int, int]] = []
    first = 0
    for index in range(1, len(tokens)):
        last = index - 1
        while last > first and tokens[last].text in _CLOSING:
            last -= 1
        before = tokens[last].text
        ends = before in {".", "!", "?"} and tokens[index].text[0].isalnum() and not tokens[index].text[0].islower()
        if (ends and opens_sentence(tokens, index)) or before == ";" or tokens[index].opens_line:
            bounds.append((first, index))
            first = index
    if first < len(tokens):
        bounds.append((first, len(tokens)))
    return bounds


_Placed = TypeVar("_Placed", Value, Name)


def _by_sentence(things: Sequence[_Placed], bounds: Sequence[tuple[int, int]]) -> list[tuple[_Placed, ...]]:
    """Assign values or names, in order, to the sentences in which they begin."""
    dealt: list[list[_Placed]] = [[] for _ in bounds]
    number = 0
    for thing in things:
        while thing.first >= bounds[number][1]:
            number += 1
        dealt[number].append(thing)
    return [tuple(part) for part in dealt]


def _sentence(
    reading: ValuesRead,
    taken: Sequence[bool],
    values: tuple[Value, ...],
    names: tuple[Name, ...],
    bound: tuple[int, int],
) -> FramedSentence:
    first, last = bound
    stems = tuple(
        (index, stem(reading.tokens[index].low))
        for index in range(first, last)
        if reading.tokens[index].kind == WORD and not taken[index] and _is_content(reading.tokens[index])
    )
    return FramedSentence(first, last, stems, values, names, frozenset(word for _, word in stems))


def _is_content(token: Lexeme) -> bool:
    low = token.low.removesuffix("'s")
    return low not in STOP and not low.endswith("n't") and (len(low) > 1 or token.text.isupper())


def coverage(words: Iterable[str], sentence: FramedSentence, source: Frame) -> float:
    """Return the share of words that a source sentence has, 1.0 without words. Its other sentences count for less."""
    wanted = set(words)
    if not wanted:
        return 1.0
    here = len(wanted & sentence.bag)
    return (here + _ELSEWHERE * (len(wanted & source.bag) - here)) / len(wanted)


def nearby(sentence: FramedSentence, first: int, last: int, reach: int = _NEAR) -> frozenset[str]:
    """Return the content words nearest to a span of tokens, on both sides."""
    before = bisect_left(sentence.stems, (first, ""))
    after = bisect_left(sentence.stems, (last, ""))
    around = (*sentence.stems[max(0, before - reach) : before], *sentence.stems[after : after + reach])
    return frozenset(word for _, word in around)


def neighbours(frame_: Frame, first: int, last: int) -> tuple[str, str]:
    """Return the words right before and right after a span, of any kind."""
    return at(frame_.tokens, first - 1).low, at(frame_.tokens, last).low
