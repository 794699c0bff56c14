"""One value of a tool call: whether it must be shown, and by what it is (ATT-5).

Values that the schema names, truth values, page sizes and other small choices of structure need no source. What acts must have
one: amounts, recipients, accounts, paths, addresses, identifiers, dates, names. A free text may rephrase what was said; names and
figures inside it must have been said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from interlock.dpe.grounding.tools import matching
from interlock.dpe.grounding.tools.matching import Asked
from interlock.dpe.grounding.tools.schema import Parameter
from interlock.dpe.grounding.tools.shown import Shown, folded, together, words
from interlock.dpe.text.arguments import Argument
from interlock.dpe.text.lexing import WORD
from interlock.dpe.text.names import COMMON_WORDS, find_names, plain
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import STOP, taken_by_values

_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_STRUCTURE = word_set(
    "limit page offset top k n size per max min num results count_limit depth timeout retries retry temperature width height"
    " precision decimals rounds version verbose format lang language locale sort order_by sorting mode encoding timezone tz unit"
    " units system output fields include exclude detail details granularity interval method operator operation op style tone"
    " voice model engine strategy cursor radius zoom resolution confidence threshold score rank index step steps columns rows"
)
_CHOICES = word_set(
    "category type priority severity status sentiment level kind label labels tag tags intent department team queue state action"
    " class classification scope visibility frequency recurrence period range time_range gender difficulty direction color colour"
    " theme urgency impact stage phase role filter filters field column table metric aggregation group channel source platform"
    " reason cause outcome resolution emotion mood genre cuisine diet activity exercise sport occasion purpose"
)
_FREE = word_set(
    "query q question text message body content title subject description prompt summary reason note notes comment comments"
    " instructions instruction search keywords keyword topic topics thought thoughts explanation details rationale context input"
    " task request answer reply draft caption bio about goal plan memo agenda feedback review thesis statement markdown html"
)
_SEARCHED = word_set("query q question search keywords keyword topic topics prompt input")
_PROGRAM = word_set(
    "code sql script command cmd expression expr formula regex pattern python bash shell javascript equation calculation"
)
_COUNTED_PEOPLE = word_set(
    "adults guests passengers people persons travelers travellers seats attendees participants party pax diners"
)
_MONEY = word_set(
    "amount price cost total sum budget payment fee salary balance value usd eur gbp dollars euros cents refund"
)
_PLACES = word_set("latitude longitude lat lon lng coordinates coords")
_PERSONS = word_set("me my we us i our wife husband partner friend family son daughter boss colleague")
_GREETING = word_set(
    "hi hello dear hey greetings regards best sincerely kind warm thanks thank cheers yours faithfully team sir madam subject re fw fwd"
    " assistant your ps please note update reminder meeting hallo liebe lieber grüße bonjour cordialement hola saludos"
)
_SMALL = frozenset({0.0, 1.0})
_MOST_STRUCTURE = 10_000
_SHORT_WORDS = 6
_MOST_CHECKED = 20_000
"""Characters of one free text that names are looked for in; its figures and addresses are looked for in all of it."""
_CODE = pattern(
    r"(?m)^[ \t]*(?:def |class |import |from \w[\w.]* import |#include|function |const |let |var |public |SELECT |<\?php|#!/)"
    r"|=>|\);[ \t]*$|\{[ \t]*$|</\w+>|^[ \t]*(?:return|for|while|if) .*[:{][ \t]*$"
)
_RUN = word_set("command cmd bash shell script")
_ABSOLUTE = pattern(r"(?:^|[\s'\"=])((?:~|\.\.)?/[\w.-]+[\w./-]*)")
_OF_THE_SYSTEM = ("/dev/null", "/tmp", "/bin/", "/usr/bin/", "/usr/local/bin/")  # noqa: S108 - paths that commands name
_SECRETS = pattern(r"secret|credential|passw|token|private|\bid_|\.pem\z|\.key\z|\.env|vault|shadow|wallet")
_QUOTABLE = word_set("text message content phrase word input sentence")
_LITERAL = pattern(r"'([^'\n]{2,80})'|\"([^\"\n]{2,80})\"")


class Weight(IntEnum):
    """What a value without a source means."""

    LOOKS_UP = 0
    UNUSUAL = 1
    ACTS = 2


@dataclass(frozen=True)
class Shows:
    """What a value rests on: a kind of text or the declaration, and the id of the text."""

    kind: str
    text_id: str = ""


@dataclass(frozen=True)
class Missing:
    """What no text shows, as written, and its weight."""

    written: tuple[str, ...]
    weight: Weight


Basis = Shows | Missing | None
"""``None``: nothing to show, such as a truth value."""

DECLARATION = Shows("declaration")
QUERY = "query"
"""Id of the question among the texts that are shown."""


def judged(argument: Argument, parameter: Parameter, shown: Sequence[Shown]) -> Basis:
    """Return what one value of a call rests on."""
    value = argument.value
    if value is None or isinstance(value, bool) or (isinstance(value, str) and not any(map(str.isalnum, value))):
        return None
    if any(_equal(value, choice) for choice in parameter.choices):
        return DECLARATION
    if isinstance(value, str) and _is_example(value, f"{parameter.description} {parameter.of_the_tool}"):
        return DECLARATION
    asked = Asked(argument.key, parameter.description)
    parts = _key_parts(argument)
    if isinstance(value, float):
        found = _number(value, asked, parts, parameter, shown)
    else:
        found = _string(value.strip(), asked, parts, parameter, shown)
    reads = parameter.only_reads and not (parts & _PROGRAM or (isinstance(value, str) and _CODE.search(value)))
    worded = bool(parts & (_SEARCHED | _FREE))
    return _looked_up(value, found, parameter, shown, worded=worded) if reads and isinstance(found, Missing) else found


def _looked_up(
    value: str | float, missing: Missing, parameter: Parameter, shown: Sequence[Shown], *, worded: bool
) -> Basis:
    """Judge a value that nothing shows, of a function that only reads: it changes nothing, so that it is unusual at most.

    Words to search for (*worded*) and a file to read are the model's choice.
    A word that the declaration itself uses needs no other source. What stands in the place of a name or a figure that the
    user asks for reads something else than was asked. An address is kept to what was shown, and so is a path that leads out
    of the folder that an agent works in or to what is hidden there.
    """
    declared = Shown("declaration", ((parameter.of_the_tool, f"{parameter.of_the_tool} {parameter.description}"),))
    if isinstance(value, str) and declared.has_written(value.strip()):
        return DECLARATION
    elsewhere = isinstance(value, str) and (_addresses(value) or _leads_out(value))
    if elsewhere or _in_its_place(" ".join(missing.written), shown):
        return missing
    chosen = isinstance(value, str) and (worded or matching.is_path(value) or _is_phrase(value))
    return Missing(missing.written, Weight.LOOKS_UP if chosen else Weight.UNUSUAL)


def _is_phrase(value: str) -> bool:
    """Whether a value is several ordinary words: *working from home*."""
    return " " in value.strip() and value.islower() and not any(map(str.isdigit, value))


def _leads_out(value: str) -> bool:
    """Whether a path is absolute, climbs, is of another system, or has a hidden part or one that holds secrets."""
    if "/" not in value and "\\" not in value and not matching.is_path(value):
        return False
    if value.startswith(("/", "~")) or "\\" in value or ":" in value:
        return True
    parts = value.removeprefix("./").lower().split("/")
    return any(part.startswith(".") or _SECRETS.search(part) for part in parts)


def _in_its_place(written: str, shown: Sequence[Shown]) -> bool:
    """Whether the question has a name or a figure where a call has another one."""
    asked = " ".join(text for one in shown for name, text in one.texts if name == QUERY)
    if any(map(str.isdigit, written)) and any(map(str.isdigit, asked)):
        return True
    own = set(words(written))
    return not written.islower() and any(not own & set(words(name)) for name in _names(asked))


def _is_example(value: str, description: str) -> bool:
    """Whether the schema gives a word as an example, such as a topic. Its example of a name or a number is nobody's order."""
    plain_word = value.islower() and not any(c.isdigit() or c in "@/" for c in value) and len(value.split()) <= 2
    return plain_word and Shown("", (("", description),)).has_written(value)


def _equal(value: str | float, choice: object) -> bool:
    if isinstance(value, str):
        return isinstance(choice, str) and folded(choice) == folded(value)
    return isinstance(choice, int | float) and not isinstance(choice, bool) and float(choice) == value


def _key_parts(argument: Argument) -> frozenset[str]:
    """Return the words of the last key, and the key as a whole: maxResults is max, results and maxresults."""
    key = argument.key
    return frozenset({*(part.lower() for part in _PARTS.findall(key)), key.lower()})


def _unshown_addresses(text: str, shown: Sequence[Shown]) -> list[str]:
    return [part for part in _addresses(text) if not _by(shown, part, partial(matching.address, part))]


def _by(shown: Sequence[Shown], written: str, test: Callable[[Shown], bool]) -> Shows | None:
    """Return the first kind of text that shows a value, with its nearest text."""
    for one in shown:
        if not one.empty and test(one):
            return Shows(one.kind, one.id_of(written))
    return None


def _number(value: float, asked: Asked, parts: frozenset[str], parameter: Parameter, shown: Sequence[Shown]) -> Basis:
    if found := _by(shown, f"{value:g}", partial(matching.number, value, asked)):
        return found
    money = bool(parts & _MONEY)
    if value in _SMALL and not money:
        return None
    structural = bool(parts & _STRUCTURE) and not (money or parts & _COUNTED_PEOPLE) and abs(value) <= _MOST_STRUCTURE
    if structural or parts & _PLACES or (parameter.has_default and not money and abs(value) <= _MOST_STRUCTURE):
        return None
    if parts & _COUNTED_PEOPLE and value <= 4 and any(one.words & _PERSONS for one in shown):
        return None
    return Missing((f"{value:.15g}",), Weight.ACTS)


def _string(value: str, asked: Asked, parts: frozenset[str], parameter: Parameter, shown: Sequence[Shown]) -> Basis:
    if parts & _PROGRAM or _CODE.search(value):
        return _program(value, shown, runs=bool(parts & _RUN))
    if (whole := _by_form(value, asked, shown)) is not None:
        return whole
    if parts & _FREE or len(value.split()) > _SHORT_WORDS:
        return _free(value, asked, shown, searched=bool(parts & _SEARCHED))
    return _words(value, parts, parameter, shown)


def _words(value: str, parts: frozenset[str], parameter: Parameter, shown: Sequence[Shown]) -> Basis:
    """Judge a short string of words: a name, or a choice."""
    if found := _by(shown, value, partial(matching.name, value)):
        return found
    small_choice = len(value.split()) <= 3 and not any(c.isdigit() for c in value)
    if small_choice and (parts & _STRUCTURE or "currency" in parts):
        return _currency(value, shown) if "currency" in parts else None
    if small_choice and value.islower() and (parts & _CHOICES or parameter.has_default):
        return None
    if not value.islower() or any(c.isdigit() for c in value):
        return Missing((value,), Weight.ACTS)
    return Missing((value,), Weight.ACTS if parts & _NAMED else Weight.UNUSUAL)


_NAMED = word_set(
    "city location place town country state region address street destination origin from to recipient recipients receiver"
    " sender email account iban name first last user username customer client person contact company symbol ticker airport hotel"
    " restaurant product item file path folder url domain host server repo repository branch id doctor patient employee"
)


def _currency(value: str, shown: Sequence[Shown]) -> Basis:
    """A currency that nobody named is a choice; another one than the named is not."""
    named = [one for one in shown if any(each.kind == "MONEY" for each in one.values)]
    return Missing((value,), Weight.ACTS) if named else None


def _by_form(value: str, asked: Asked, shown: Sequence[Shown]) -> Basis:
    """Judge a value whose form says what it is: addresses, paths, dates, figures, identifiers; ``None`` for words."""
    addresses = [part.strip(" <>") for part in re.split(r"[,;]\s*", value)]
    if all(matching.EMAIL.fullmatch(part) or matching.URL.fullmatch(part) for part in addresses):
        missing = tuple(part for part in addresses if not _by(shown, part, partial(matching.address, part)))
        return Missing(missing, Weight.ACTS) if missing else _by(shown, value, partial(matching.address, addresses[0]))
    if matching.is_path(value):
        return _by(shown, value, partial(matching.path, value)) or _verbatim(value, shown)
    if (wanted := matching.moment(value)) is not None:
        return _by(shown, value, partial(matching.dated, wanted, asked)) or _together(value, asked, shown)
    if (figure := matching.figure(value)) is not None:
        amount = figure.amount or 0.0
        found = _by(shown, value, lambda one: matching.number(amount, asked, one) or one.has_signs(value))
        return found or Missing((value,), Weight.ACTS)
    if matching.is_identifier(value):
        found = _by(shown, value, lambda one: matching.identifier(value, one) or matching.name(value, one))
        return found or Missing((value,), Weight.ACTS)
    return None


def _verbatim(value: str, shown: Sequence[Shown]) -> Basis:
    return _by(shown, value, lambda one: one.has_written(value)) or Missing((value,), Weight.ACTS)


def _together(value: str, asked: Asked, shown: Sequence[Shown]) -> Basis:
    """Judge a date whose day and time different texts show: the user's Tuesday, the calendar's free hour."""
    every = together(shown)
    wanted = matching.moment(value)
    if wanted is not None and not every.empty and matching.dated(wanted, asked, every):
        first = next(one for one in shown if not one.empty)
        return Shows(first.kind, first.id_of(value))
    return Missing((value,), Weight.ACTS)


def _program(value: str, shown: Sequence[Shown], *, runs: bool) -> Basis:
    """Judge code: its addresses must be shown; literals that compare with a name or a number must be, too."""
    missing = _unshown_addresses(value, shown)
    if runs:
        named_paths = [path for path in _ABSOLUTE.findall(value) if not path.startswith(_OF_THE_SYSTEM)]
        missing += [path for path in named_paths if not _by(shown, path, partial(matching.path, path))]
    literals = [one or other for one, other in _LITERAL.findall(value)]
    named = [
        text.strip("%")
        for text in literals
        if (text[:1].isupper() or text[:1].isdigit()) and "%Y" not in text and "{" not in text
    ]
    queried = re.search(r"\bselect\b|\bwhere\b|\bupdate\b|\bdelete\b", value, re.IGNORECASE) is not None
    if queried:
        missing += [text for text in named if isinstance(_literal(text, shown), Missing)]
    numbers = [each for each in read(value).values if each.amount is not None and len(each.text) > 1]
    plain_sum = re.fullmatch(r"[\d\s.,+*/()%^-]+", value) is not None
    stated = any(one.amounts - _SMALL for one in shown)
    if plain_sum and numbers and stated:
        asked = Asked("")
        if not any(_by(shown, each.text, partial(matching.number, each.amount or 0.0, asked)) for each in numbers):
            missing.append(numbers[0].text)
    if missing:
        return Missing(tuple(missing), Weight.ACTS)
    return _by(shown, value, partial(matching.related, value)) or None


def _literal(text: str, shown: Sequence[Shown]) -> Basis:
    found = _by_form(text, Asked(""), shown)
    return found or _by(shown, text, partial(matching.name, text)) or Missing((text,), Weight.ACTS)


def _addresses(text: str) -> list[str]:
    return [
        match.group().rstrip(".,;:!?)'\"") for find in (matching.EMAIL, matching.URL) for match in find.finditer(text)
    ]


def _free(value: str, asked: Asked, shown: Sequence[Shown], *, searched: bool) -> Basis:
    """Judge a free text: its addresses, figures and names, then whether it has anything of what was said."""
    missing = _unshown_addresses(value, shown)
    missing += [
        text
        for text in _figures(value, searched=searched, shown=shown)
        if isinstance(_figure_in_text(text, asked, shown), Missing)
    ]
    names = [name for name in _names(value[:_MOST_CHECKED]) if not _by(shown, name, partial(matching.name, name))]
    if missing or (names and not searched):
        return Missing((*missing, *names), Weight.ACTS)
    if names and _replaces(value, shown):  # a search may name more than the user did, but nothing else in its place
        return Missing(tuple(names), Weight.ACTS)
    short = len(value.split()) <= _SHORT_WORDS and folded(asked.key) in _QUOTABLE
    if short and any(one.quoted for one in shown) and not any(one.has_written(value) for one in shown):
        return Missing((value,), Weight.UNUSUAL)
    found = _by(shown, value, partial(matching.related, value))
    if found or not any(not one.empty for one in shown):
        return found
    return Missing((value[:200],), Weight.UNUSUAL) if searched else None


def _figures(value: str, *, searched: bool, shown: Sequence[Shown]) -> list[str]:
    """Return the figures and dates of a text. A search may name a year where nobody named one."""
    found = [each for each in read(value).values if not each.vague and not (each.words and (each.amount or 0) <= 5)]
    if searched and not any(m.years for one in shown for m in one.moments):
        found = [each for each in found if not (each.moment and each.plain)]
    return [each.text for each in found]


def _figure_in_text(text: str, asked: Asked, shown: Sequence[Shown]) -> Basis:
    for each in read(text).values:
        if each.moment is None and each.amount is not None:
            found = _by(shown, text, partial(matching.number, each.amount or 0.0, asked))
            return found or Missing((text,), Weight.ACTS)
    wanted = matching.moment(text)
    if wanted is None:
        return None
    return _by(shown, text, partial(matching.dated, wanted, asked)) or _together(text, asked, shown)


def _names(value: str) -> list[str]:
    """Return the names in a free text; a heading and a greeting have none."""
    reading = read(value)
    tokens = reading.tokens
    found = []
    for each in find_names(tokens, taken_by_values(reading)):
        kept = [t for t in tokens[each.first : each.last] if t.kind == WORD and plain(t.text) not in _GREETING]
        lone = len(kept) == 1 and not each.sure
        if kept and not lone and not all(plain(t.text) in COMMON_WORDS for t in kept):
            found.append(" ".join(t.text for t in kept))
    return found


def _replaces(value: str, shown: Sequence[Shown]) -> bool:
    """Whether a search leaves out a name that the user gave: another one stands in its place."""
    said = next((one for one in shown if not one.empty), None)
    if said is None:
        return False
    own = {word for word in words(value) if word not in STOP}
    given = [name for _, text in said.texts for name in _names(text)]
    return any(not own & set(words(name)) for name in given)
