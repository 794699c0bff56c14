"""The profile of a text for the quality stages: sentences, claims, 4-grams, register and topics, with their vectors.

The profile comes from the parse of stage 1: a ``StyleRecorder`` stands between reader and parser and records the style
of each sentence. Earlier answers return with every window of a session, so their profiles are cached by the hash of the
text, up to a number of vectors.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim, Sentence
from interlock.dpe.inference.language import Language, derived
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.quality import flow, register, repetition, topics
from interlock.dpe.quality.register import Register, Voice, sentence_voice, text_register
from interlock.dpe.quality.repetition import Gram
from interlock.dpe.quality.topics import Phrase
from interlock.dpe.text.segmentation import Parsed
from interlock.dpe.text.text import Text

REMEMBERED_ROWS = 16_384


@dataclass(frozen=True)
class SentenceStyle:
    """The voice of one sentence and its noun phrases."""

    voice: Voice
    phrases: tuple[Phrase, ...]


@dataclass(frozen=True)
class StyleRecorder:
    """A parser that records the style of each sentence it returns."""

    language: Language
    styles: dict[Sentence, SentenceStyle] = field(default_factory=dict)

    def parsed(self, text: str | Text, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return what the parser returns."""
        found, hidden = self.language.parsed(text, choice_index=choice_index, first_index=first_index)
        return self._recorded(found), hidden

    def _recorded(self, found: Iterator[Parsed]) -> Iterator[Parsed]:
        for sentence in found:
            tokens = sentence.tokens
            key = ("style", tokens.start, tokens.end)
            self.styles[sentence.sentence] = derived(tokens, key, partial(_style, tokens))
            yield sentence


def _style(tokens: Any) -> SentenceStyle:
    return SentenceStyle(sentence_voice(tokens), topics.noun_phrases(tokens))


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

    text: TextProfile
    sentences: Floats
    claims: Floats
    topics: Floats
    opening: Floats
    closing: Floats


def profile(reading: ChoiceReading, styles: Mapping[Sentence, SentenceStyle]) -> TextProfile:
    """Return the profile of a choice that was read through a ``StyleRecorder``."""
    sentences = tuple(sentence.text for sentence in reading.sentences)
    sentence_styles = [styles[sentence] for sentence in reading.sentences]
    grams = tuple(repetition.grams(sentences))
    return TextProfile(
        sentences=sentences,
        claims=tuple(reading.checked),
        grams=grams,
        gram_set=frozenset(grams),
        register=text_register([style.voice for style in sentence_styles]),
        topics=topics.main_topics([phrase for style in sentence_styles for phrase in style.phrases]),
    )


async def embed_profile(profile: TextProfile, inference: Inference, *, whole: bool = True) -> EmbeddedProfile:
    """Return the profile with its vectors, from one call.

    If not *whole*, the vectors that only flow needs are left out.
    """
    ends = [flow.opening(profile.sentences), flow.closing(profile.sentences)]
    parts = [
        list(profile.sentences),
        [claim.text for claim in profile.claims],
        [phrase for _, phrase in profile.topics] if whole else [],
        ends if whole and profile.sentences else [],
    ]
    vectors = await inference.embed([text for part in parts for text in part])
    bounds = [sum(map(len, parts[:n])) for n in range(5)]
    rows = [vectors[bounds[n] : bounds[n + 1]] for n in range(4)]
    return EmbeddedProfile(profile, rows[0], rows[1], rows[2], rows[3][:1], rows[3][1:])


def continued(prior: EmbeddedProfile, current: EmbeddedProfile) -> flow.Flow:
    """Return the flow from *prior*, which has text, to *current* (§11.3)."""
    text, prior_text = current.text, prior.text
    register_score = 0.0
    if text.register is not None and prior_text.register is not None:
        register_score = register.consistency(text.register, prior_text.register)
    opening = float(current.opening[0] @ prior.closing[0]) if text.sentences else 0.0
    return flow.flow(
        flow.FlowSignals(
            opening_coherence=opening,
            topic_continuity=topics.continuity(text.topics, prior_text.topics, current.topics, prior.topics),
            register_consistency=register_score,
            transition_presence=float(flow.has_transition(text.sentences)),
        )
    )


class Memory:
    """An LRU cache for the profiles of recent answers, bounded by the number of their vectors."""

    def __init__(self, rows: int = REMEMBERED_ROWS) -> None:
        self._most = rows
        self.own = secrets.token_hex(8)
        """What its models derive from texts is remembered under this name: other models may derive something else."""
        self._rows = 0
        self._kept: OrderedDict[bytes, TextProfile | EmbeddedProfile] = OrderedDict()

    def recall(self, text: str) -> TextProfile | EmbeddedProfile | None:
        """Return the cached profile of a text, with or without vectors, or ``None``."""
        key = _key(text)
        profile = self._kept.get(key)
        if profile is not None:
            self._kept.move_to_end(key)
        return profile

    def keep(self, text: str, profile: TextProfile | EmbeddedProfile) -> None:
        """Cache a profile. One that alone exceeds the bound is not kept."""
        key = _key(text)
        if (old := self._kept.pop(key, None)) is not None:
            self._rows -= _rows(old)
        if _rows(profile) > self._most:
            return
        self._kept[key] = profile
        self._rows += _rows(profile)
        while self._rows > self._most:
            self._rows -= _rows(self._kept.popitem(last=False)[1])


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _rows(profile: TextProfile | EmbeddedProfile) -> int:
    return (profile.text if isinstance(profile, EmbeddedProfile) else profile).rows
