"""Alignment: where a claim copies a source sentence, and where it departs from it.

Both sentences become sequences of words and values, in which a value equals every other notation of it. What the
sequences do not share are the edits: the places in which a copy differs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from interlock.dpe.text.lexing import SYMBOL
from interlock.dpe.text.names import plain
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import DIRECTIONS, STOP, Frame, FramedSentence, coverage, stem
from interlock.dpe.values.quantities import Value, same

# Alignment is quadratic. Longer sentences, which prose does not have, are compared by words only.
_MOST_ELEMENTS = 200
_WORTH_ALIGNING = 0.4
_NEARLY_ALL = 0.7
_CANDIDATES = 2
_SHORT = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "i'm": "i am"}
_SHORT_ENDINGS = {"n't": "not", "'ll": "will", "'ve": "have", "'re": "are"}
# "The source states that …", "According to the text, …" and the like, which the source need not contain.
_INTRODUCING = word_set(
    "according to as it is was has been the this that in by text source sources document article passage report context "
    "summary facts information provided given above reported stated noted mentioned described states says mentions notes "
    "reports describes explains"
)
_LONGEST_INTRODUCTION = 7


@dataclass(frozen=True)
class Element:
    """A word or a value of a sentence with its token span. A contraction gives two words of one token."""

    key: str
    first: int
    last: int
    word: str
    value: Value | None = None


@dataclass(frozen=True)
class Edit:
    """A place where a claim departs from its source. Either side may be empty.

    ``beyond`` marks source text before the claim's first word or after its last one: the claim was cut out of it.
    """

    claim: tuple[Element, ...]
    source: tuple[Element, ...]
    beyond: bool = False


@dataclass(frozen=True)
class Alignment:
    """A claim's sentence aligned with the source sentence that it copies best."""

    source: FramedSentence
    edits: tuple[Edit, ...]
    kept: int  # number of the claim's elements that the source has in the same order
    copied: float  # their share of the claim

    @property
    def is_copy(self) -> bool:
        """Whether the claim copies its source: nearly all of it, or all except one place no longer than the rest."""
        if self.copied >= _NEARLY_ALL or not self.edits:
            return self.copied >= _NEARLY_ALL
        longest = max(max(len(edit.claim), len(edit.source)) for edit in self.edits)
        return len(self.edits) == 1 and self.kept >= max(2, longest)


def align(sentence: FramedSentence, claim: Frame, fact: Frame) -> Alignment | None:
    """Return the best alignment of a claim's sentence with a source sentence, or ``None`` when it copies none."""
    start = _introduction(sentence, claim)
    elements = [element for element in _elements(sentence, claim, "mine") if element.first >= start]
    if not elements or len(elements) > _MOST_ELEMENTS:
        return None
    named = {index for name in sentence.names for index in range(name.first, name.last)}
    bag = {word for index, word in sentence.stems if index not in named}
    ranked = sorted(fact.sentences, key=lambda other: -coverage(bag, other, fact))[:_CANDIDATES]
    best: Alignment | None = None
    for other in ranked:
        if coverage(bag, other, fact) < _WORTH_ALIGNING:
            continue
        found = _aligned(elements, other, fact)
        if found is not None and (best is None or found.copied > best.copied):
            best = found
    return best


def _aligned(claim_elements: Sequence[Element], source: FramedSentence, fact: Frame) -> Alignment | None:
    source_elements = _elements(source, fact, "its")
    if len(source_elements) > _MOST_ELEMENTS:
        return None
    claim_elements = _renamed(claim_elements, source_elements)
    matcher = SequenceMatcher(
        None, [element.key for element in claim_elements], [element.key for element in source_elements], autojunk=False
    )
    edits: list[Edit] = []
    copied = 0
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            copied += i2 - i1
        else:
            beyond = i1 == i2 and i1 in {0, len(claim_elements)}
            edits.append(Edit(tuple(claim_elements[i1:i2]), tuple(source_elements[j1:j2]), beyond))
    return Alignment(source, tuple(edits), copied, copied / max(1, len(claim_elements)))


def _elements(sentence: FramedSentence, frame: Frame, side: str) -> list[Element]:
    """Return the words and values of a sentence, without punctuation."""
    elements: list[Element] = []
    values = {value.first: value for value in sentence.values}
    index = sentence.first
    while index < sentence.last:
        value = values.get(index)
        if value is not None:
            low = frame.tokens[value.first].low
            elements.append(Element(f"#{side}{value.first}", value.first, value.last, low, value))
            index = value.last
            continue
        token = frame.tokens[index]
        if token.kind != SYMBOL:
            elements += [Element(_key(word), index, index + 1, word) for word in _written_out(token.low)]
        index += 1
    return elements


def _written_out(low: str) -> list[str]:
    """Return the words of a contraction, so that can't equals cannot."""
    if low in _SHORT:
        return _SHORT[low].split()
    for ending, word in _SHORT_ENDINGS.items():
        if low.endswith(ending) and len(low) > len(ending):
            return [low.removesuffix(ending), word]
    return [low]


def _introduction(sentence: FramedSentence, frame: Frame) -> int:
    """Return the index of the first token after an introduction, or of the first token where there is none."""
    for index in range(sentence.first, min(sentence.last, sentence.first + _LONGEST_INTRODUCTION)):
        token = frame.tokens[index]
        if index > sentence.first + 1 and (token.text == "," or token.low == "that"):
            return index + 1
        if token.low not in _INTRODUCING:
            break
    return sentence.first


def _key(low: str) -> str:
    """Return the key by which words are equal: stem, or family and side of a direction word."""
    if low in DIRECTIONS:
        family, side = DIRECTIONS[low]
        return f"{family}{side}"
    return plain(low) if low in STOP else stem(low)


def _renamed(claim_elements: Sequence[Element], source_elements: Sequence[Element]) -> list[Element]:
    """Give each value the key of an equal source value.

    The same unit is preferred, and each source value is used once.
    """
    free = [element for element in source_elements if element.value is not None]
    renamed: list[Element] = []
    for element in claim_elements:
        equal = [other for other in free if element.value and other.value and same(element.value, other.value)]
        if equal and element.value:
            factor = element.value.factor
            other = min(equal, key=lambda each: (each.value is None or each.value.factor != factor, each.first))
            free.remove(other)
            renamed.append(replace(element, key=other.key))
        else:
            renamed.append(element)
    return renamed
