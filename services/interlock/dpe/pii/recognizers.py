"""Recognisers of personal data for presidio: expressions on RE2, and presidio's validators (SPEC-005 §13.2).

presidio runs its patterns on a backtracking engine and skips a pattern that takes too long (reliability.md A-23). Here
its patterns, where they are linear, and ours run on RE2, and its validators check each match.
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
        """Recognise one entity type of one category of §13.2."""
        super().__init__(supported_entities=[kind], supported_language="en", name=f"{type(self).__name__}:{kind}")
        self.kind, self.category = kind, category

    def load(self) -> None:
        """Do nothing: there is nothing to load."""

    @abstractmethod
    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield the spans found, each with a score from 0 to 1."""

    def analyze(self, text: str, entities: list[str], nlp_artifacts: Any = None) -> list[RecognizerResult]:
        """Return the findings for presidio. The NLP engine is not used."""
        del entities, nlp_artifacts
        return [self.result(start, end, score) for start, end, score in self.found(text) if score > 0]

    def result(self, start: int, end: int, score: float) -> RecognizerResult:
        """Return a finding in presidio's form."""
        metadata = {
            RecognizerResult.RECOGNIZER_NAME_KEY: self.kind,
            RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
        }
        return RecognizerResult(self.kind, start, end, score, recognition_metadata=metadata)


class ShapeRecognizer(LinearRecognizer):
    """Recognises one shape of ``pii.patterns``."""

    def __init__(self, shape: shapes.Shape) -> None:
        """Compile the shape."""
        super().__init__(shape.type, shape.category)
        self._shape = shape
        self._pattern = pattern(shape.expression, ignore_case=True)

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield matches with enough digits."""
        for match in self._pattern.finditer(text):
            start, end = match.span(self._shape.group)
            written = text[start:end]
            if sum(character.isdigit() for character in written) < self._shape.least_digits or _is_role(written):
                continue
            yield start, end, self._shape.score

    def result(self, start: int, end: int, score: float) -> RecognizerResult:
        """Mark findings that count only close to another one."""
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
    """Recognises payment card numbers by length, check digit, and a known first digit or a cue word."""

    def __init__(self) -> None:
        """Use presidio's check-digit validator."""
        super().__init__("CREDIT_CARD", shapes.FINANCIAL)
        self._pattern, self._near = pattern(shapes.CARD_CANDIDATE), pattern(shapes.CARD_NEAR, ignore_case=True)
        self._source: Any = predefined.CreditCardRecognizer()

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield numbers that are valid card numbers."""
        for match in self._pattern.finditer(text):
            digits = "".join(character for character in match.group() if character.isdigit())
            if len(set(digits)) > 2 and self._source.validate_result(digits):
                near = has_near(self._near, text, *match.span())
                issued = len(digits) >= 14 and digits[0] in "3456"
                yield (*match.span(), 0.95 if near else 0.7 if issued else 0.0)


class IbanRecognizer(LinearRecognizer):
    """Recognises IBANs by country format and check digits. A candidate may extend into the next word."""

    def __init__(self) -> None:
        """Use presidio's IBAN validator."""
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
    """Recognises public IP addresses. Private, loopback and documentation ranges identify no one."""

    def __init__(self) -> None:
        """Compile the candidate."""
        super().__init__("IP_ADDRESS", shapes.DIRECT)
        self._pattern = pattern(shapes.IP_CANDIDATE, ignore_case=True)

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield addresses that the standard library considers global."""
        for match in self._pattern.finditer(text):
            try:
                address = ipaddress.ip_address(match.group())
            except ValueError:
                continue
            if address.is_global and len(match.group()) >= _SHORTEST_IP:
                yield (*match.span(), 0.85)


class PhoneRecognizer(LinearRecognizer):
    """Recognises telephone numbers: valid in some region, and in a telephone format or next to a cue word."""

    def __init__(self) -> None:
        """Compile the candidate and its context."""
        super().__init__("PHONE_NUMBER", shapes.DIRECT)
        self._pattern = pattern(shapes.PHONE_CANDIDATE, ignore_case=True)
        self._near = pattern(shapes.PHONE_NEAR, ignore_case=True)
        self._after = pattern(shapes.PHONE_AFTER, ignore_case=True)

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield numbers that can be called and belong to a person."""
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
    """Return the confidence that a number is personal, 0.0 for toll-free lines (of offices) and invalid numbers."""
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
