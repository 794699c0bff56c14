"""Times of day that are written with a dot, *8.30 to 18.30*, where the sentence is about when something is open (SPEC-005 §5.2)."""

from collections.abc import Sequence

from interlock.dpe.text.lexing import Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.moments import DateRead, Moment
from interlock.dpe.values.periods import half_of_day

_JOINING = word_set("to until till and") | {"-", "–"}
_BEFORE = word_set("at from until till by before after between to and") | {"-", "–", ","}
_OPENING = word_set(
    """
    open opens opened opening close closes closed closing hours daily weekdays weekday weekends weekend monday mondays mon tuesday tuesdays
    tue tues wednesday wednesdays wed thursday thursdays thu thurs friday fridays fri saturday saturdays sat sunday sundays sun
    """
)
_PER = word_set("a an per % percent")
_PRICED = word_set("price prices priced cost costs share shares stock stocks index rate rates points fee fees worth")
_NEAR = 8
_STEP = 5  # minutes; hours of opening have no odd ones
_NOON = 12
_LAST_HOUR, _MINUTES = 24, 60
_DIGITS_OF_MINUTES, _DIGITS_OF_AN_HOUR = 2, 2


def read_dotted_clock(tokens: Sequence[Lexeme], index: int) -> DateRead | None:
    """Read 8.30 and 18.30 in *Monday to Friday 8.30 to 18.30* and in *open until 18.30*. So is 10.30 a.m.; without a word for opening or a day it is a figure."""
    minute = _minute(at(tokens, index).text)
    if minute is None:
        return None
    half, end = half_of_day(tokens, index + 1)
    if half is not None:
        return DateRead(Moment(minute=minute % (_NOON * _MINUTES) + half * _MINUTES), end)
    before, after = at(tokens, index - 1).low if index else "", at(tokens, index + 1).low
    ranges = (after in _JOINING and _minute(at(tokens, index + 2).text) is not None) or (
        before in _JOINING and index > 1 and _minute(at(tokens, index - 2).text) is not None
    )
    if not ranges and before not in _BEFORE:
        return None
    near = {each.low for each in tokens[max(0, index - _NEAR) : index + _NEAR]}
    behind = at(tokens, index + 3).low if after in _JOINING else after
    measured = behind in _PER or not near.isdisjoint(_PRICED) or minute % _STEP
    return None if measured or near.isdisjoint(_OPENING) else DateRead(Moment(minute=minute), index + 1)


def _minute(text: str) -> int | None:
    """Return the minute of the day that a text writes with a dot, or ``None``."""
    hour, dot, minutes = text.partition(".")
    if not (dot and hour.isdigit() and minutes.isdigit()) or len(minutes) != _DIGITS_OF_MINUTES:
        return None
    if len(hour) > _DIGITS_OF_AN_HOUR or int(hour) > _LAST_HOUR or int(minutes) >= _MINUTES:
        return None
    return (int(hour) * _MINUTES + int(minutes)) % (_LAST_HOUR * _MINUTES)
