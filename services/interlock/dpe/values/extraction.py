"""Value extraction: the numbers, percentages, amounts, measures, ordinals and dates of a text (SPEC-005 §5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from interlock.dpe.text.folding import Folded, fold
from interlock.dpe.text.lexing import NUMBER, SYMBOL, WORD, Lexeme, at, lex
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.values import dates, figures, labels
from interlock.dpe.values.moments import DateRead, Moment, year_at
from interlock.dpe.values.quantities import DATE, Value

MOST_DAYS = 31
_BEGINNING_WORDS = dates.BEGINNINGS | labels.BEGINNINGS | figures.BEGINNINGS
_BEGINNING_MARKS = frozenset("([+'§") | figures.BEGINNINGS


@dataclass(frozen=True, slots=True)
class ValuesRead:
    """A text after folding and lexing, with its values in order."""

    text: str
    folded: Folded
    tokens: Sequence[Lexeme]
    values: tuple[Value, ...]


def extract(text: str) -> tuple[Value, ...]:
    """Return the values of a text, in order."""
    return read(text).values


def read(text: str) -> ValuesRead:
    """Fold, lex and read a text in one pass. Short texts, which several stages read, are cached apart from long ones."""
    return _remembered(text) if len(text) < LONG else _read(text)


@lru_cache(maxsize=1024)  # a thousand readings of such texts take about 30 MB
def _remembered(text: str) -> ValuesRead:
    return _read(text)


@remembered(bytes_a_character=130, from_length=LONG)
def _read(text: str) -> ValuesRead:
    folded = fold(text)
    tokens = lex(folded)
    values: list[Value] = []
    index = 0
    while index < len(tokens):
        found, end = _read_at(tokens, index)
        values.extend(_placed(value, text, folded, tokens) for value in found)
        index = max(end, index + 1)
    return ValuesRead(text, folded, tokens, tuple(values))


def _placed(value: Value, text: str, folded: Folded, tokens: Sequence[Lexeme]) -> Value:
    start, end = folded.original(tokens[value.first].start, tokens[value.last - 1].end)
    return replace(value, text=text[start:end], start=start, end=end)


def _read_at(tokens: Sequence[Lexeme], index: int) -> tuple[list[Value], int]:
    """Return the values that begin at a token, and the index of the first token after them."""
    if not _may_begin(tokens, index):
        return [], index + 1
    if labels.is_list_marker(tokens, index):
        return [], index + 1
    after_name = labels.name_end(tokens, index) or labels.reference_end(tokens, index)
    if after_name:
        return [], after_name
    date = dates.read_date(tokens, index)
    if date:
        return _dated(tokens, index, date)
    return labels.read_label(tokens, index) or figures.read_figure(tokens, index)


def _may_begin(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a token can begin a value or a name with digits. Most words and symbols cannot."""
    token = tokens[index]
    if token.kind == NUMBER:
        return True
    if token.kind == SYMBOL:
        return token.text in _BEGINNING_MARKS
    return token.low in _BEGINNING_WORDS or token.low.endswith("fold") or at(tokens, index + 1).glued


def _dated(tokens: Sequence[Lexeme], index: int, date: DateRead) -> tuple[list[Value], int]:
    """Return a date and, for 2019-21, the year at the other end; for June 23-26, the other day."""
    plain = date.end == index + 1 and tokens[index].kind == NUMBER
    value = Value(DATE, "", 0, 0, moment=date.moment, plain=plain, first=index, last=date.end)
    mark = at(tokens, date.end)
    if day := _other_day(tokens, date):
        return [value, day], day.last
    double = mark.text == "-" and at(tokens, date.end + 1).text == "-"
    place = date.end + 1 + double
    other = at(tokens, place)
    tied = double or (mark.text in {"-", "/"} and mark.glued and other.glued)
    short = tied and other.text.isdigit() and len(other.text) == 2
    if not (plain and short and date.moment.years):
        return [value], date.end
    year = date.moment.years[0] // 100 * 100 + int(other.text)
    if year <= date.moment.years[0]:
        return [value], date.end
    later = Value(DATE, "", 0, 0, moment=Moment((year, year)), first=place, last=place + 1)
    return [value, later], place + 1


def _other_day(tokens: Sequence[Lexeme], date: DateRead) -> Value | None:
    """Return the second day of June 23-26 and June 23 to 26, with a year that follows it."""
    mark, day = at(tokens, date.end), at(tokens, date.end + 1)
    first = date.moment.day
    if first is None or date.moment.years or mark.text not in {"-", "to", "through"} or not day.text.isdigit():
        return None
    end = date.end + 2
    again = dates.read_date(tokens, date.end + 1)
    apart = (again is not None and again.end > end) or (
        at(tokens, end).kind == WORD and (mark.kind == WORD or at(tokens, end).glued)
    )  # June 5 to 7 pm, May 3 to 5 people
    if not first < int(day.text) <= MOST_DAYS or apart or not tokens[date.end - 1].text.isdigit():
        return None
    comma = at(tokens, end).text == ","
    year = year_at(tokens, end + comma)
    years = (year, year) if year else None
    moment = Moment(years, date.moment.months, int(day.text))
    return Value(DATE, "", 0, 0, moment=moment, first=date.end + 1, last=end + comma + 1 if year else end)
