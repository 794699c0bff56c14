"""The profile of a text for the quality stages: sentences, claims, 4-grams, register and topics, with their vectors.

The profile comes from the parse of stage 1: a ``StyleRecorder`` stands between reader and parser and records the style
of each sentence. Earlier answers return with every window of a session, so their profiles are cached by the hash of the
text, up to a number of vectors.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim, Sentence
from interlock.dpe.inference.language import Language
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.quality import flow, register, repetition, topics
from interlock.dpe.quality.register import Register, Voice, register_of, voice_of
from interlock.dpe.quality.repetition import Gram
from interlock.dpe.quality.topics import Phrase
from interlock.dpe.text.segmentation import Parsed
from interlock.dpe.text.text import Text

REMEMBERED_ROWS = 16_384


@dataclass(frozen=True)
class Manner:
    """The voice of one sentence and its noun phrases."""

    voice: Voice
    phrases: tuple[Phrase, ...]


@dataclass(frozen=True)
class Listener:
    """A parser that records the style of each sentence it returns."""

    language: Language
    manners: dict[Sentence, Manner] = field(default_factory=dict)

    def parsed(self, text: str | Text, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return what the parser returns."""
        found, hidden = self.language.parsed(text, choice_index=choice_index, first_index=first_index)
        return self._noted(found), hidden

    def _noted(self, found: Iterator[Parsed]) -> Iterator[Parsed]:
        for sentence in found:
            phrases = topics.phrases_of(sentence.tokens)
            self.manners[sentence.sentence] = Manner(voice_of(sentence.tokens), phrases)
            yield sentence


@dataclass(frozen=True)
class TextProfile:
    """The features of a text that need no embedding."""

    sentences: tuple[str, ...]
    claims: tuple[Claim, ...]
    grams: tuple[Gram, ...]
    gram_set: frozenset[Gram]
    register: Register | None
    topics: tuple[Phrase, ...]

    @property
    def rows(self) -> int:
        """Number of its vectors."""
        return len(self.sentences) + len(self.claims) + len(self.topics) + 2


@dataclass(frozen=True)
class EmbeddedProfile:
    """A text profile with its vectors, one row for each item."""

    profile: TextProfile
    sentences: Floats
    claims: Floats
    topics: Floats
    opening: Floats
    closing: Floats


def profile(reading: ChoiceReading, manners: Mapping[Sentence, Manner]) -> TextProfile:
    """Return the profile of a choice that was read through a ``StyleRecorder``."""
    sentences = tuple(sentence.text for sentence in reading.sentences)
    noted = [manners[sentence] for sentence in reading.sentences]
    grams = tuple(repetition.grams(sentences))
    return TextProfile(
        sentences=sentences,
        claims=tuple(reading.checked),
        grams=grams,
        gram_set=frozenset(grams),
        register=register_of([manner.voice for manner in noted]),
        topics=topics.topics_of([phrase for manner in noted for phrase in manner.phrases]),
    )


async def heard(found: TextProfile, inference: Inference, *, whole: bool = True) -> EmbeddedProfile:
    """Return the profile with its vectors, from one call.

    If not *whole*, the vectors that only flow needs are left out.
    """
    ends = [flow.opening(found.sentences), flow.closing(found.sentences)]
    parts = [
        list(found.sentences),
        [claim.text for claim in found.claims],
        [phrase for _, phrase in found.topics] if whole else [],
        ends if whole and found.sentences else [],
    ]
    vectors = await inference.embed([text for part in parts for text in part])
    cut = [sum(map(len, parts[:n])) for n in range(5)]
    rows = [vectors[cut[n] : cut[n + 1]] for n in range(4)]
    return EmbeddedProfile(found, rows[0], rows[1], rows[2], rows[3][:1], rows[3][1:])


def continued(prior: EmbeddedProfile, current: EmbeddedProfile) -> flow.Flow:
    """Return the flow from *prior*, which has text, to *current* (§11.3)."""
    said, heard = current.profile, prior.profile
    alike = 0.0
    if said.register is not None and heard.register is not None:
        alike = register.consistency(said.register, heard.register)
    opening = float(current.opening[0] @ prior.closing[0]) if said.sentences else 0.0
    return flow.flow(
        flow.FlowSignals(
            opening_coherence=opening,
            topic_continuity=topics.continuity(said.topics, heard.topics, current.topics, prior.topics),
            register_consistency=alike,
            transition_presence=float(flow.has_transition(said.sentences)),
        )
    )


class Memory:
    """An LRU cache for the profiles of recent answers, bounded by the number of their vectors."""

    def __init__(self, rows: int = REMEMBERED_ROWS) -> None:
        self._most = rows
        self._rows = 0
        self._kept: OrderedDict[bytes, TextProfile | EmbeddedProfile] = OrderedDict()

    def recall(self, text: str) -> TextProfile | EmbeddedProfile | None:
        """Return the cached profile of a text, with or without vectors, or ``None``."""
        key = _key(text)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, text: str, found: TextProfile | EmbeddedProfile) -> None:
        """Cache a profile. One that alone exceeds the bound is not kept."""
        key = _key(text)
        if (old := self._kept.pop(key, None)) is not None:
            self._rows -= _rows(old)
        if _rows(found) > self._most:
            return
        self._kept[key] = found
        self._rows += _rows(found)
        while self._rows > self._most:
            self._rows -= _rows(self._kept.popitem(last=False)[1])


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _rows(found: TextProfile | EmbeddedProfile) -> int:
    return (found.profile if isinstance(found, EmbeddedProfile) else found).rows
