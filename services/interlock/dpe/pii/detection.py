"""Stage 11, personal data in prompts and answers (SPEC-005 §13).

A name, a place or a date alone is in nearly every answer about the world. As personal data it would raise the risk of
all of them (§17), and ``block-pii`` would stop them. So a finding is one of these:

- an identifier that stands alone: e-mail (not an office's), telephone, public IP address, national, tax, health,
  passport and licence numbers, full postal address, payment card, IBAN, bank account, employee and record numbers;
- a date of birth, a salary or a fact about health, belief or origin that the text ties to a private person: by I and
  my, by the patient or the employee, by a form's label, or by another finding close by;
- the same facts, with politics, union membership and sex life, said of a named person (``pii.sensitive``);
- a person's name that is introduced as a user's, a patient's or a relative's, or is close to another finding.

A public figure's known politics and religion are not flagged, nor are the long dead. This limit is documented in docs/quality.md.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from presidio_analyzer import AnalyzerEngine, RecognizerRegistry, RecognizerResult
from presidio_analyzer.context_aware_enhancers import ContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

from interlock.dpe.document import PiiFinding
from interlock.dpe.pii import patterns as shapes
from interlock.dpe.pii.addresses import AddressRecognizer
from interlock.dpe.pii.national import NATIONAL, NationalRecognizer
from interlock.dpe.pii.recognizers import (
    NEEDS_PERSON,
    CardRecognizer,
    IbanRecognizer,
    IpRecognizer,
    LinearRecognizer,
    PhoneRecognizer,
    ShapeRecognizer,
)
from interlock.dpe.pii.sensitive import SCORE, SensitiveParser, sensitive
from interlock.dpe.text.folding import Folded, fold
from interlock.dpe.text.names import COMMON_WORDS, plain
from interlock.dpe.text.patterns import pattern

LANGUAGE = "en"
_LEAST_SCORE = 0.6
_CLOSE = 200  # code points between two pieces of one person's data
_LONGEST_WINDOW = 2_000
_PERSON, _PERSON_SCORE = "PERSON", 0.85
_MOST_READ = 6_000  # code points that the model reads for names once the text is known to hold personal data
_NAMED, _INTRODUCED = (pattern(shapes.NAMED), pattern(shapes.APPOINTED)), pattern(shapes.INTRODUCED)


@dataclass(frozen=True)
class _Name:
    """A person's name found by the NER model."""

    start: int
    end: int


class LoadedPipeline(NlpEngine):
    """Adapts a loaded spaCy pipeline to presidio's NLP engine. It runs no component by itself.

    The methods of the engine are abstract in presidio: all are here, those too that nothing calls.
    """

    def __init__(self, nlp: Any) -> None:
        """Keep the pipeline."""
        self._nlp = nlp

    def load(self) -> None:
        """Do nothing: the pipeline is loaded."""

    def is_loaded(self) -> bool:
        """Return True: the pipeline is loaded."""
        return True

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        """Return empty artifacts: no recogniser here reads tokens, and names are searched only where they count."""
        del text
        return NlpArtifacts([], self._nlp.make_doc(""), [], [], None, language)

    def process_batch(
        self, texts: Iterable[str], language: str, batch_size: int = 1, n_process: int = 1, **kwargs: Any
    ) -> Iterator[tuple[str, NlpArtifacts]]:
        """Yield the artifacts of each text as ``process_text`` returns them."""
        del batch_size, n_process, kwargs
        for text in texts:
            yield text, self.process_text(text, language)

    def is_stopword(self, word: str, language: str) -> bool:
        """Return the vocabulary's answer."""
        del language
        return bool(self._nlp.vocab[word].is_stop)

    def is_punct(self, word: str, language: str) -> bool:
        """Return the vocabulary's answer."""
        del language
        return bool(self._nlp.vocab[word].is_punct)

    def get_supported_entities(self) -> list[str]:
        """Return no entities: this engine finds none by itself."""
        return []

    def get_supported_languages(self) -> list[str]:
        """Return the only language."""
        return [LANGUAGE]

    def people(self, text: str) -> list[_Name]:
        """Return the persons that the pipeline's NER model finds in a text."""
        doc = self._nlp.get_pipe("ner")(self._nlp.make_doc(text))
        return [_Name(entity.start_char, entity.end_char) for entity in doc.ents if entity.label_ == "PERSON"]


class _NoEnhancer(ContextAwareEnhancer):
    """Leaves scores unchanged: each recogniser here checks its own context, in linear time."""

    def __init__(self) -> None:
        super().__init__(0.0, 0.0, 0, 0)

    def enhance_using_context(
        self,
        text: str,
        raw_results: list[RecognizerResult],
        nlp_artifacts: NlpArtifacts,
        recognizers: Any,
        context: Any = None,
    ) -> list[RecognizerResult]:
        del text, nlp_artifacts, recognizers, context
        return raw_results


class PiiDetector:
    """Finds personal data. One per process; it is stateless after construction."""

    def __init__(self, nlp: Any) -> None:
        """Build the recognisers around a loaded spaCy pipeline."""
        self._pipeline, self._passages = LoadedPipeline(nlp), SensitiveParser(nlp)
        recognizers = _recognizers()
        registry = RecognizerRegistry(recognizers=recognizers, supported_languages=[LANGUAGE])
        self._engine = AnalyzerEngine(
            registry=registry,
            nlp_engine=self._pipeline,
            supported_languages=[LANGUAGE],
            context_aware_enhancer=_NoEnhancer(),
        )
        self._categories = {_PERSON: shapes.DIRECT} | {each.kind: each.category for each in recognizers}

    def find(self, text: str, where: str, output_index: int | None = None) -> tuple[PiiFinding, ...]:
        """Return the spans and kinds of personal data in a text.

        *where* is prompt or response. *output_index* is the index of a response's output in the request.
        """
        folded = fold(text)
        results = self._engine.analyze(folded.text, LANGUAGE, score_threshold=_LEAST_SCORE)
        firm = [_hit(each, folded.text) for each in results if not each.recognition_metadata.get(NEEDS_PERSON)]
        loose = [_hit(each, folded.text) for each in results if each.recognition_metadata.get(NEEDS_PERSON)]
        spans = sorted((each.start, each.end) for each in firm)
        found = firm + [each for each in loose if _is_close(each.start, each.end, spans)]
        found += [_Hit(each.kind, each.start, each.end, SCORE) for each in sensitive(folded.text, self._passages)]
        spans = sorted((each.start, each.end) for each in found)
        for name in self._people(folded.text, spans):
            start, end = _trimmed(folded.text, name.start, name.end, full_stop=True)
            found.append(_Hit(_PERSON, start, end, _PERSON_SCORE))
        reported = (self._reported(hit, folded, where) for hit in _without_overlaps(found))
        return tuple(replace(finding, output_index=output_index) for finding in reported)

    def _people(self, text: str, spans: Sequence[tuple[int, int]]) -> Iterator[_Name]:
        """Yield the names that count: introduced as someone's, or close to a finding.

        The model reads no more than necessary. Until personal data is found it reads every place where a name would
        count. After that, further names only add detail, and it reads a bounded number of code points.
        """
        named = [_Name(*match.span(1)) for each in _NAMED for match in each.finditer(text) if _is_name(match.group(1))]
        yield from named
        introduced = [match.span(1) for match in _INTRODUCED.finditer(text)]
        known, read = bool(spans or named), 0
        for start, end in _windows(text, [*introduced, *spans]):
            if known and read > _MOST_READ:
                return
            read += end - start
            for name in self._pipeline.people(text[start:end]):
                first, last = start + name.start, start + name.end
                if _is_name(text[first:last]) and (_touches(first, last, introduced) or _is_close(first, last, spans)):
                    known = True
                    yield _Name(first, last)

    def _reported(self, hit: "_Hit", folded: Folded, where: str) -> PiiFinding:
        start, end = folded.original(hit.start, hit.end)
        return PiiFinding(hit.type, self._categories[hit.type], where, start, end, round(min(1.0, hit.score), 2))


def _recognizers() -> list[LinearRecognizer]:
    """Return every recogniser. None of them needs a model."""
    return [
        *(ShapeRecognizer(shape) for shape in shapes.SHAPES),
        *(NationalRecognizer(national) for national in NATIONAL),
        CardRecognizer(),
        IbanRecognizer(),
        IpRecognizer(),
        PhoneRecognizer(),
        AddressRecognizer(),
    ]


@dataclass(frozen=True)
class _Hit:
    """A finding in the folded text."""

    type: str
    start: int
    end: int
    score: float


def _hit(result: RecognizerResult, text: str) -> _Hit:
    start, end = _trimmed(text, result.start, result.end)
    return _Hit(result.entity_type, start, end, result.score)


def _is_close(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a span is close to one of *spans*, which are in order and not nested."""
    place = bisect_left(spans, (start, end))
    return any(
        other_start - end <= _CLOSE and start - other_end <= _CLOSE and (other_start, other_end) != (start, end)
        for other_start, other_end in spans[max(0, place - 2) : place + 2]
    )


def _touches(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    place = bisect_left(spans, (start, end))
    return any(start < last and first < end for first, last in spans[max(0, place - 1) : place + 1])


def _is_name(written: str) -> bool:
    """Whether at least one word of a supposed name is not a common word."""
    return any(plain(word) not in COMMON_WORDS and len(plain(word)) > 1 for word in written.split())


def _windows(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of a text around spans, widened to white space and merged where they meet."""
    windows: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        start, end = _widened(text, first - _CLOSE, last + _CLOSE)
        if windows and start <= windows[-1][1] and end - windows[-1][0] <= _LONGEST_WINDOW:
            windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
        elif not windows or end > windows[-1][1]:
            windows.append((max(start, windows[-1][1]) if windows else start, end))
    return windows


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Move the ends of a window outwards to white space, by at most 20 code points."""
    start, end = max(0, start), min(len(text), end)
    for _ in range(20):
        if start and not text[start - 1].isspace():
            start -= 1
        if end < len(text) and not text[end].isspace():
            end += 1
    return start, end


def _rank(hit: _Hit) -> tuple[bool, float, int, int, str]:
    return hit.type == _PERSON, -hit.score, hit.start - hit.end, hit.start, hit.type


def _trimmed(text: str, start: int, end: int, *, full_stop: bool = False) -> tuple[int, int]:
    """Return a span without white space at its ends, and without the full stop after a name."""
    while end > start and (text[end - 1].isspace() or (full_stop and text[end - 1] == ".")):
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _without_overlaps(hits: Sequence[_Hit]) -> list[_Hit]:
    """Keep the surest of overlapping hits, the longest of equals. A name yields to a hit with a fixed form."""
    kept: list[_Hit] = []
    for hit in sorted(hits, key=_rank):
        place = bisect_left(kept, hit.start, key=lambda each: each.start)
        if all(hit.end <= each.start or each.end <= hit.start for each in kept[max(0, place - 1) : place + 1]):
            kept.insert(place, hit)
    return kept
