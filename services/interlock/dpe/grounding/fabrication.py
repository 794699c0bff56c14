"""Stage 3a, fabrication: names, figures and citations of an answer without a basis in its envelope (SPEC-005 §5.2).

Names in the user's query are no fabrication, nor are entities that need no source (data/common_knowledge.txt). Figures
are traced, not derived: a sum that the answer computed itself has no basis.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.claims.openings import is_made_of_known, only_opens
from interlock.dpe.comparison.value_conflicts import EnvelopeValues, untraced, untraced_in
from interlock.dpe.document import Claim, Fact
from interlock.dpe.grounding.parts import NumberedParts
from interlock.dpe.inference.ner import KINDS
from interlock.dpe.text.folding import fold
from interlock.dpe.text.known_names import KnownNames
from interlock.dpe.text.lexing import SYMBOL, WORD, Lexeme, at, lex
from interlock.dpe.text.names import (
    COMMON_WORDS,
    KNOWN,
    TITLES,
    find_names,
    is_short_head,
    is_shouted,
    is_small,
    plain,
    shorter_names,
    significant,
)
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.references.parts import PART_KINDS, plain_number
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.forms import is_one_told, keyed_forms, other_forms, rounded_forms, tidied
from interlock.dpe.values.frames import names_known, taken_by_values
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.reckoning.day_words import days_meant, holidays

_ADDRESS = pattern(
    r"https?://[^\s<>\")\]]+|\bwww\.[^\s<>\")\]]+|\b10\.\d{4,9}/[^\s<>\")\]]+|\barXiv:\s?\d{4}\.\d{4,5}"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    ignore_case=True,
)
_NAME = r"\p{Lu}[\p{L}'’-]+"
_CITATION = pattern(
    rf"{_NAME}(?:,? et al\.?|(?:,? (?:and|&) {_NAME}))?,? \(?(?:1[89]|20)\d\d[a-z]?\)?|{_NAME} et al\.?"
)
_CITES = pattern(r"\(\d{4}[a-z]?\)|, \d{4}|et al")
_CASE = pattern(rf"{_NAME}(?: (?:of |the |& )?{_NAME}){{0,3}} vs?\.? {_NAME}(?: (?:of |the |& )?{_NAME}){{0,3}}")
_REFERENCE = pattern(r"\[\d{1,3}\]")
_PLAIN_SITE = pattern(
    r"(?:https?://)?(?:(?:[\w-]+\.)*(?:localhost|example(?:\.\w+)?|test|invalid|local)|127\.[\d.]+|0\.0\.0\.0|10\.[\d.]+"
    r"|192\.168\.[\d.]+)(?:[:/?#].*)?\z|(?:https?://)?(?:docs|developer|developers|learn|help|support|api)\.[^/]+/"
    r"|(?:https?://)?[^/]+(?:/[^/?#\d]*)?/?\z",
    ignore_case=True,
)
_SCHEMES = ("https://", "http://", "www.", "doi.org/", "dx.doi.org/", "arxiv.org/abs/")
_DIGITS = pattern(r"\d+(?:[.,]\d+)*")
_FIRM_DIGITS = 2  # significant digits of a figure that is not the same by chance
_FEWEST_SHOUTED = 3  # lines in capitals that make a list of which capitals tell nothing
_TRAILING = ".,;:!?'\""
# Short words of a headline in capitals; they are no abbreviations.
_SHOUTED = word_set(
    "to in on at of by as an is it be do go he me my no or so up us we am and are but for had has her his how its may"
    " new not now off one our out she the was who why you all can did get that this with from will have been into over more"
)
_DATED_BY_TODAY = pattern(
    r"\b(?:today|tonight|tomorrow|yesterday|weekend|mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun|tgif)\b"
)
_OF_A_CELL = frozenset({":", "|", "="})
_KINDS_OF_PLACES = word_set("prefecture province county city district region island islands river valley canton oblast")


@dataclass(frozen=True)
class EnvelopeIndex:
    """The names and values of an envelope and a query, indexed for lookup."""

    evidence: KnownNames
    values: EnvelopeValues
    text: str  # folded and lower-cased, for addresses and references
    facts: int
    dates_by_today: bool = False  # it contains tomorrow, Fri or the like
    parts: NumberedParts | None = None
    figures: frozenset[str] = frozenset()
    """Runs of digits as they are written."""

    @staticmethod
    def of(fact_texts: Sequence[str], query: str, facts: Sequence[Fact] = ()) -> "EnvelopeIndex":
        """Index the facts and the query. *facts* are the facts as they were sent, whose numbered parts a claim may name.

        No model looks for names in them. Their words, and which words are adjacent, are enough to look a name up.
        """
        texts = [*fact_texts, query]
        forms = dict.fromkeys(form for text in texts for form in (text, tidied(text)))
        readings = [read(form) for form in forms]
        evidence = KnownNames.joined(map(names_known, forms))
        # TO in a headline of capitals does not abbreviate Tobias Okonjo.
        abbreviations = frozenset(word for word in evidence.written if word not in _SHOUTED)
        text = "\n".join(reading.folded.text for reading in readings).lower()
        return EnvelopeIndex(
            evidence=replace(evidence, written=abbreviations),
            values=EnvelopeValues(
                [
                    value
                    for reading in readings
                    for value in (*reading.values, *holidays(reading.text))
                    if not value.vague
                ]
            ),
            text=text,
            facts=len(fact_texts),
            dates_by_today=_DATED_BY_TODAY.search(text) is not None,
            parts=NumberedParts.of(facts) if facts else None,
            figures=frozenset(_DIGITS.findall(text)),
        )

    def cites(self, address: str) -> bool:
        """Whether the envelope contains an address or a reference as written, with or without its scheme."""
        written = fold(address).text.lower().rstrip("/")
        for scheme in _SCHEMES:
            written = written.removeprefix(scheme)
        return written in self.text


@dataclass(frozen=True)
class _Finding:
    """Something without a basis, with its span in the claim."""

    text: str
    start: int
    end: int


Find = Callable[[Sequence[Claim], EnvelopeIndex], dict[str, tuple[str, ...]]]
"""``find`` or ``invented``."""


def find(claims: Sequence[Claim], envelope: EnvelopeIndex) -> dict[str, tuple[str, ...]]:
    """Return the fabricated entities of each claim that has any, as written in the claim."""
    capitals = {claim.claim_id for claim in claims if is_shouted(claim.text)}
    listed = capitals if len(capitals) >= _FEWEST_SHOUTED else ()
    found = {one.claim_id: _in_claim(one, envelope, one.claim_id in listed) for one in claims}
    return {claim_id: entities for claim_id, entities in found.items() if entities}


def invented(claims: Sequence[Claim], envelope: EnvelopeIndex) -> dict[str, tuple[str, ...]]:
    """Return the citations and links of each claim that nothing given to the model contains.

    This is what can be judged of names and figures without a source: a model that quotes a paper, a case or a page from
    memory often makes it up (ATT-8). The address of a site alone is no such reference.
    """
    found = {
        claim.claim_id: tuple(
            dict.fromkeys(each.text for each in _ungrounded_citations(claim.text, envelope) if is_reference(each.text))
        )
        for claim in claims
    }
    return {claim_id: texts for claim_id, texts in found.items() if texts}


def is_reference(written: str) -> bool:
    """Whether a citation refers to one work or page: no match of two teams, no home page, no address of an example."""
    if "@" in written and "/" not in written:
        return False  # an e-mail address is personal data or none (stage 11)
    if _CASE.fullmatch(written) is not None:
        return " v. " in written
    if _ADDRESS.fullmatch(written) is None or not written.lower().startswith(("http", "www")):
        return True
    return _PLAIN_SITE.match(written) is None


def _in_claim(claim: Claim, envelope: EnvelopeIndex, shouted: bool) -> tuple[str, ...]:  # noqa: FBT001 - one caller
    found: list[_Finding] = []
    reading = read(claim.text)
    told = [each for each in holidays(claim.text) if envelope.values.has(each)]  # New Year's Day, for 1 January
    for each in (
        *_ungrounded_citations(claim.text, envelope),
        *(() if shouted else _ungrounded_names(claim, reading, envelope)),
        *_ungrounded_values(reading, envelope),
    ):
        if any(day.start <= each.start < day.end for day in told):
            continue
        place = bisect_left(found, each.start, key=lambda other: other.start)
        if all(each.end <= other.start or other.end <= each.start for other in found[max(0, place - 1) : place + 1]):
            found.insert(place, each)
    return tuple(dict.fromkeys(each.text for each in found))


def _ungrounded_citations(text: str, envelope: EnvelopeIndex) -> Iterator[_Finding]:
    """Yield addresses, citations, cases and references that the envelope does not contain."""
    for match in _ADDRESS.finditer(text):
        written = match.group().rstrip(_TRAILING)
        if not envelope.cites(written):
            yield _Finding(written, match.start(), match.start() + len(written))
    for match in _REFERENCE.finditer(text):
        number = int(match.group()[1:-1])
        if number > envelope.facts and not envelope.cites(match.group()):  # [1] may refer to the first fact
            yield _Finding(match.group(), match.start(), match.end())
    for citing in (_CASE, _CITATION):
        for match in citing.finditer(text):
            written = _tidy(match.group())
            is_citation = citing is _CASE or _CITES.search(written) is not None
            if is_citation and not _has_parts(written, envelope):
                start = text.index(written, match.start())
                yield _Finding(written, start, start + len(written))


def _tidy(written: str) -> str:
    """Return a citation without leading words (In, See) and without an unmatched bracket."""
    head, _, rest = written.partition(" ")
    while rest and plain(head) in COMMON_WORDS:
        written = rest
        head, _, rest = written.partition(" ")
    written = written.rstrip(_TRAILING)
    return written if "(" in written else written.rstrip(")")


def _has_parts(written: str, envelope: EnvelopeIndex) -> bool:
    """Whether the envelope contains the names and the year of a citation."""
    tokens = lex(fold(written))
    words = [plain(token.text) for token in tokens if token.kind == WORD and token.capital and token.low not in TITLES]
    if not words or words[0] in COMMON_WORDS or (words[0],) in KNOWN:
        return True  # May 2021, France 2024
    return all(envelope.evidence.knows((word,)) for word in words) and not untraced(written, envelope.values)


def _ungrounded_names(claim: Claim, reading: ValuesRead, envelope: EnvelopeIndex) -> Iterator[_Finding]:
    """Yield names that the envelope does not contain: names found by the NER model, and runs of capitalised words."""
    tokens = reading.tokens
    taken = taken_by_values(reading)
    spans = [(name.first, name.last) for name in find_names(tokens, taken) if name.sure]
    ner_spans = _ner_spans(claim, reading)
    for first, last in ner_spans:
        made = is_made_of_known(tokens, first, last, envelope.evidence.words)
        if not made and not all(taken[first:last]) and not _has_basis(tokens[first:last], envelope):
            yield _finding(reading, first, last)
    for first, last in spans:
        inside = [span for span in ner_spans if span[0] < last and first < span[1]]
        if (
            not inside
            and not _has_basis(tokens[first:last], envelope)
            and not _is_spelled_out(tokens, first, last, envelope)
            and not is_short_head(tokens, first, last)
            and not only_opens(tokens, first, last, envelope.evidence.words)
        ):
            yield _finding(reading, first, last)


def _ner_spans(claim: Claim, reading: ValuesRead) -> list[tuple[int, int]]:
    """Return the token spans of the NER model's names, without titles and function words at their ends."""
    spans: list[tuple[int, int]] = []
    place = 0
    for entity in claim.entities:
        start = claim.text.find(entity.text, place)
        start = claim.text.find(entity.text) if start < 0 else start
        if entity.label not in KINDS or start < 0:
            continue
        place = start
        span = _trimmed(reading, start, start + len(entity.text))
        if span is not None and span not in spans:
            spans.append(span)
    return spans


def _trimmed(reading: ValuesRead, start: int, end: int) -> tuple[int, int] | None:
    """Return the token span of a span of the original text, from the first to the last possible name word."""
    places = reading.folded.places
    inside = [
        index
        for index, token in enumerate(reading.tokens)
        if places[token.start] >= start and places[token.end - 1] < end
    ]
    parts = [index for index in inside if _is_name_word(reading.tokens[index])]
    return (parts[0], parts[-1] + 1) if parts else None


def _is_name_word(token: Lexeme) -> bool:
    return (
        token.kind != SYMBOL
        and token.text[0].isupper()
        and token.low not in TITLES
        and token.low not in {"the", "a", "an"}
    )


def _has_basis(tokens: Sequence[Lexeme], envelope: EnvelopeIndex) -> bool:
    """Whether the envelope contains a name, or the name is common knowledge."""
    for index, token in enumerate(tokens[:-1], start=1):
        if token.low.endswith("'s"):  # the European Union's Commission: two names
            return _has_basis(tokens[:index], envelope) and _has_basis(tokens[index:], envelope)
    words = significant(tokens)
    if not words or words in KNOWN or all(_is_known(word) for word in words):
        return True
    single_word = len(words) == 1 and words[0] in COMMON_WORDS
    if single_word or any(envelope.evidence.knows(each) for each in (words, *shorter_names(words))):
        return True
    return _has_basis_in_parts(tokens, words, envelope)


def _has_basis_in_parts(tokens: Sequence[Lexeme], words: Sequence[str], envelope: EnvelopeIndex) -> bool:
    """Whether a span is several names that each have a basis, or a known name followed by its kind.

    Tom Cook and Ann Lee; Oslo-Bergen; the Blues' Super Cup; United States Supreme Court; Shizuoka Prefecture; Ann teases
    Lee, which the NER model takes for one name; Crystal Palace Lee, of a player and the team that he left.
    """
    joints = [index for index, token in enumerate(tokens) if index and _joins(tokens, index)]
    if joints:
        starts, ends = [0, *(index + 1 for index in joints)], [*joints, len(tokens)]
        return all(_has_basis(tokens[start:end], envelope) for start, end in zip(starts, ends, strict=True))
    if len(words) > 1 and words[-1] in _KINDS_OF_PLACES and envelope.evidence.knows(words[:-1]):
        return True
    return any(envelope.evidence.side_by_side(words[:size], words[size:]) for size in range(1, len(words)))


def _joins(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a token separates two names. In Jean-Claude both sides would need a basis of their own."""
    token = tokens[index]
    told = token.kind == WORD and token.text.islower() and not is_small(token) and token.low not in {"in", "a", "on"}
    return index + 1 < len(tokens) and (told or token.low == "and" or token.text in {"-", "&", "/", "'", ","})


def _is_known(word: str) -> bool:
    return (word,) in KNOWN or (word.removesuffix("s"),) in KNOWN or word.isdigit()


def _is_spelled_out(tokens: Sequence[Lexeme], first: int, last: int, envelope: EnvelopeIndex) -> bool:
    """Whether a span is an abbreviation that the claim itself spells out: large language models (LLMs)."""
    if at(tokens, first - 1).text != "(" or at(tokens, last).text != ")" or last - first != 1:
        return False
    letters = tokens[first].low.removesuffix("s") if not tokens[first].text.isupper() else tokens[first].low
    words = [token for token in tokens[max(0, first - 2 * len(letters) - 2) : first - 1] if token.kind == WORD]
    long_form = [token for token in words if token.low not in {"of", "the", "and", "for", "in"}][-len(letters) :]
    spelled = "".join(token.low[0] for token in long_form) == letters
    return spelled and all(token.text.islower() or plain(token.text) in envelope.evidence.words for token in long_form)


def _finding(reading: ValuesRead, first: int, last: int) -> _Finding:
    start, end = reading.folded.original(reading.tokens[first].start, reading.tokens[last - 1].end)
    written = reading.text[start:end]
    trimmed = written.removesuffix("'s").removesuffix("’s")
    return _Finding(trimmed, start, start + len(trimmed))


def _ungrounded_values(reading: ValuesRead, envelope: EnvelopeIndex) -> Iterator[_Finding]:
    """Yield figures and dates that the envelope does not state."""
    for value in untraced_in(reading, envelope.values):
        known = (
            _names_part(value, envelope)
            or _is_bare_figure(value, envelope)
            or _has_other_form(value, reading, envelope)
        )
        if not known:
            yield _Finding(value.text, value.start, value.end)


def _is_bare_figure(value: Value, envelope: EnvelopeIndex) -> bool:
    """Whether a figure without a unit stands in the envelope with one: *8.4 tonnes*, and *Orla 8.4*.

    Whether it is the right one of several is for the comparison with the source (stage 3b).
    """
    if value.unit or value.moment is not None or value.label or value.words or len(value.digits) < _FIRM_DIGITS:
        return False
    return value.text in envelope.figures


def _names_part(value: Value, envelope: EnvelopeIndex) -> bool:
    """Whether a label names a part that the sources number, or one of a numbering that nobody knows."""
    kind = value.unit.removeprefix("label:") if value.label else ""
    if envelope.parts is None or kind not in PART_KINDS:
        return False
    return envelope.parts.passages(kind, plain_number(value.label)) is not None


def _has_other_form(value: Value, reading: ValuesRead, envelope: EnvelopeIndex) -> bool:
    """Whether the envelope states a figure in another form: seventh for seven, 22-year-old for 22."""
    if value.moment is not None and value.moment == Moment(weekday=value.moment.weekday):
        if f"{reading.tokens[value.first].low}s" in envelope.text:
            return True  # closed on Mondays, for a Monday
        return envelope.dates_by_today  # Friday may be what "tomorrow" means; stage 3b and NLI decide
    before, after = at(reading.tokens, value.first - 1).low, at(reading.tokens, value.last).low
    if value.moment is not None and before in _OF_A_CELL and value.text.isdigit():
        return f"{int(value.text):,}" in envelope.figures  # students: 1860, which looks like a year
    forms = (
        *other_forms(value, before, after), *keyed_forms(value, reading.tokens), *rounded_forms(value),
        *days_meant(value, reading),
    )  # fmt: skip
    return any(map(envelope.values.has, forms)) or is_one_told(value, envelope.text)
