"""Recogniser of postal addresses: a street and number with a context that completes it (SPEC-005 §13.2)."""

from collections.abc import Iterator

from interlock.dpe.pii import patterns as shapes
from interlock.dpe.pii.recognizers import LinearRecognizer
from interlock.dpe.text.patterns import pattern

_DATE_LIKE = pattern(rf"^(?:{shapes.MONTH}|in|on|by|since|until)\b|\b(?:19|20)\d\d\.?$", ignore_case=True)


class AddressRecognizer(LinearRecognizer):
    """Recognises postal addresses: a street with its number, and a postcode, a flat or a cue word next to it."""

    def __init__(self) -> None:
        """Compile the expressions for streets and their context."""
        super().__init__("STREET_ADDRESS", shapes.QUASI)
        self._streets = [
            pattern(expression, ignore_case=index in {5, 6}) for index, expression in enumerate(shapes.STREETS)
        ]
        self._postcode, self._unit = (
            pattern(shapes.POSTCODE_AFTER, ignore_case=True),
            pattern(shapes.UNIT_AFTER, ignore_case=True),
        )
        self._near, self._cue = (
            pattern(shapes.ADDRESS_NEAR, ignore_case=True),
            pattern(shapes.ADDRESS_OF, ignore_case=True),
        )
        self._numbered, self._named = pattern(shapes.NUMBERED_STREET), pattern(shapes.NAMED_STREET)
        self._letterhead = pattern(shapes.LETTERHEAD_AFTER)
        self._with_unit = pattern(shapes.STREET_WITH_UNIT), pattern(shapes.TYPED_STREET, ignore_case=True)

    def found(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield streets whose context completes them to an address."""
        for each in self._streets:
            for match in each.finditer(text):
                start, end = match.span()
                after = text[end : end + 90]
                postcode, unit = self._postcode.search(after), self._unit.search(after)
                near = self._near.search(text[max(0, start - 60) : start]) or self._heads_letter(text, start, end)
                if postcode or unit or near or each is self._streets[-1]:
                    last = max((found.end() for found in (postcode, unit) if found), default=0)
                    complete = near or each is self._streets[-1]
                    yield start, end + last, 0.5 + 0.2 * bool(postcode) + 0.1 * bool(unit) + 0.15 * bool(complete)
        yield from self._bare(text)

    def _heads_letter(self, text: str, start: int, end: int) -> bool:
        """Whether a street has its own line, below another line, with its town after it."""
        before = text[:start].rstrip(" >|\t")
        return bool(before) and before.endswith("\n") and self._letterhead.search(text[end : end + 130]) is not None

    def _bare(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Yield streets without a street word that a flat, a postcode below or an address cue completes."""
        for each in self._with_unit:
            for match in each.finditer(text):
                yield (*match.span(), 0.65)
        for each, numbered in ((self._numbered, True), (self._named, False)):
            for match in each.finditer(text):
                start, end = match.span()
                if not numbered and _DATE_LIKE.search(match.group()):
                    continue
                postcode = numbered and "\n" in text[end : end + 3] and self._postcode.search(text[end : end + 90])
                if postcode or self._cue.search(text[max(0, start - 60) : start]):
                    yield start, end, 0.65
