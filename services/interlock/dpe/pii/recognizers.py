"""Recognisers of personal data for presidio, on RE2, with presidio's own checks of checksums and formats.

presidio runs its patterns on a backtracking engine and skips one that takes too long (reliability.md A-23); here its
patterns, where they are linear, and ours run on RE2, and its validators judge what was matched.
"""

import ipaddress
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import phonenumbers
from presidio_analyzer import LocalRecognizer, RecognizerResult
from presidio_analyzer import predefined_recognizers as predefined

from interlock.dpe.pii import patterns as shapes
from interlock.dpe.text.patterns import pattern

NEEDS_PERSON = "needs_person"
_BEFORE, _AFTER = 70, 30
_SHORTEST_IP = 7
_REGIONS = (
    "US",
    "GB",
    "DE",
    "FR",
    "AU",
    "IN",
    "BR",
    "IL",
    "CH",
    "SE",
    "IT",
    "ES",
    "PL",
    "NL",
    "BE",
    "AT",
    "DK",
    "NO",
    "FI",
    "NZ",
    "ZA",
)
_COSTS_THE_CALLED = frozenset(
    {
        phonenumbers.PhoneNumberType.TOLL_FREE,
        phonenumbers.PhoneNumberType.PREMIUM_RATE,
        phonenumbers.PhoneNumberType.SHARED_COST,
        phonenumbers.PhoneNumberType.UAN,
    }
)
_LONE_PHONE = pattern(
    r"^(?:\+|00)\d|^\(\d{2,4}\)\s?\d|^\d{3}[.\s-]\d{3}[.\s-]\d{4}(?:\s?x\d+)?$"
    r"|^0\d{1,4}[\s.-]\d{2,4}[\s.-]\d{2,4}(?:[\s.-]\d{2,4})*$"
)
_DATE = pattern(rf"^(?:(?:{shapes.DATE})(?:\s\d{{1,2}})?|\d{{4}}\s?-\s?\d{{4}})$", ignore_case=True)


class LinearRecognizer(LocalRecognizer):
    """A recogniser whose expressions run on RE2."""

    def __init__(self, kind: str, category: str) -> None:
        """Recognise one type of entity, which is in one category of §13.2."""
        super().__init__(supported_entities=[kind], supported_language="en", name=f"{type(self).__name__}:{kind}")
        self.kind, self.category = kind, category

    def load(self) -> None:
        """Nothing to load."""

    @abstractmethod
    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield the places of what was recognised, each with a score from 0 to 1."""

    def analyze(self, text: str, entities: list[str], nlp_artifacts: Any = None) -> list[RecognizerResult]:
        """Answer presidio. Nothing here needs the NLP engine."""
        del entities, nlp_artifacts
        return [self.result(start, end, score) for start, end, score in self.found(text) if score > 0]

    def result(self, start: int, end: int, score: float) -> RecognizerResult:
        """Make presidio's form of a finding."""
        metadata = {
            RecognizerResult.RECOGNIZER_NAME_KEY: self.kind,
            RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
        }
        return RecognizerResult(self.kind, start, end, score, recognition_metadata=metadata)


class ShapeRecognizer(LinearRecognizer):
    """Recognises one shape of ``pii_patterns``."""

    def __init__(self, shape: shapes.Shape) -> None:
        """Compile the shape."""
        super().__init__(shape.type, shape.category)
        self._shape = shape
        self._pattern = pattern(shape.expression, ignore_case=True)

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield what has the shape and digits enough."""
        for match in self._pattern.finditer(text):
            start, end = match.span(self._shape.group)
            written = text[start:end]
            if sum(character.isdigit() for character in written) < self._shape.least_digits or _is_role(written):
                continue
            yield start, end, self._shape.score

    def result(self, start: int, end: int, score: float) -> RecognizerResult:
        """Mark what counts only beside another finding."""
        result = super().result(start, end, score)
        result.recognition_metadata[NEEDS_PERSON] = self._shape.needs_person
        return result


def _is_role(written: str) -> bool:
    mailbox, at, _ = written.lower().partition("@")
    return bool(at) and mailbox in shapes.ROLE_MAILBOXES


def has_near(near: Any, text: str, start: int, end: int, *, before: int = _BEFORE, after: int = _AFTER) -> bool:
    """Whether an expression matches close before a span, or right after it."""
    return (
        near.search(text[max(0, start - before) : start]) is not None
        or near.search(text[end : end + after]) is not None
    )


class CardRecognizer(LinearRecognizer):
    """Recognises payment card numbers: length, check digit, and a known first digit or the word beside it."""

    def __init__(self) -> None:
        """Borrow presidio's check."""
        super().__init__("CREDIT_CARD", shapes.FINANCIAL)
        self._pattern, self._near = pattern(shapes.CARD_CANDIDATE), pattern(shapes.CARD_NEAR, ignore_case=True)
        self._source: Any = predefined.CreditCardRecognizer()

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield numbers that a card may have."""
        for match in self._pattern.finditer(text):
            digits = "".join(character for character in match.group() if character.isdigit())
            if len(set(digits)) > 2 and self._source.validate_result(digits):
                near = has_near(self._near, text, *match.span())
                issued = len(digits) >= 14 and digits[0] in "3456"
                yield (*match.span(), 0.95 if near else 0.7 if issued else 0.0)


class IbanRecognizer(LinearRecognizer):
    """Recognises IBANs by country format and check digits; the match may run on into the next word."""

    def __init__(self) -> None:
        """Borrow presidio's check."""
        super().__init__("IBAN_CODE", shapes.FINANCIAL)
        self._pattern = pattern(shapes.IBAN_CANDIDATE, ignore_case=True)
        self._source: Any = predefined.IbanRecognizer()

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield the longest valid IBAN that begins where a candidate does."""
        for match in self._pattern.finditer(text):
            start, written = match.start(), match.group()
            ends = [index for index in range(len(written), 14, -1) if index == len(written) or written[index] in " -"]
            for end in ends:
                if self._source.validate_result(written[:end].upper()):
                    yield start, start + end, 1.0
                    break


class IpRecognizer(LinearRecognizer):
    """Recognises public IP addresses: private, loopback and documentation ranges identify nobody."""

    def __init__(self) -> None:
        """Compile the candidate."""
        super().__init__("IP_ADDRESS", shapes.DIRECT)
        self._pattern = pattern(shapes.IP_CANDIDATE, ignore_case=True)

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield what the standard library takes for a global address."""
        for match in self._pattern.finditer(text):
            try:
                address = ipaddress.ip_address(match.group())
            except ValueError:
                continue
            if address.is_global and len(match.group()) >= _SHORTEST_IP:
                yield (*match.span(), 0.85)


class PhoneRecognizer(LinearRecognizer):
    """Recognises telephone numbers: valid somewhere, and written as one or with the word beside it."""

    def __init__(self) -> None:
        """Compile the candidate and its context."""
        super().__init__("PHONE_NUMBER", shapes.DIRECT)
        self._pattern = pattern(shapes.PHONE_CANDIDATE, ignore_case=True)
        self._near = pattern(shapes.PHONE_NEAR, ignore_case=True)
        self._after = pattern(shapes.PHONE_AFTER, ignore_case=True)

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield numbers that can be called and belong to somebody."""
        for line_start, line in _lines(text):
            for match in self._pattern.finditer(line):
                start, end = line_start + match.start(), line_start + match.end()
                written = match.group()
                if _DATE.search(written) or not 7 <= sum(character.isdigit() for character in written) <= 18:
                    continue
                near = self._near.search(text[max(0, start - 40) : start]) or self._after.search(text[end : end + 15])
                if near or _LONE_PHONE.search(written):
                    yield start, end, _phone_score(written, near=bool(near))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _phone_score(written: str, *, near: bool) -> float:
    """Return how sure a number is one; 0.0 for toll-free lines, which belong to offices, and for no number at all."""
    possible = False
    for region in _REGIONS:
        try:
            number = phonenumbers.parse(written, region)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return 0.0 if phonenumbers.number_type(number) in _COSTS_THE_CALLED else 0.9 if near else 0.7
        possible = possible or phonenumbers.is_possible_number(number)
    return 0.6 if possible and near else 0.0
