"""Sensitive data in records: forms, JSON, YAML, tables and lists that name a person (SPEC-005 §13.2)."""

from collections.abc import Iterator, Sequence

from interlock.dpe.pii.lexicon import STATES, Term
from interlock.dpe.pii.persons import NO_NAMES
from interlock.dpe.text.names import COMMON_WORDS, plain
from interlock.dpe.text.patterns import pattern

_NAME = r"\p{Lu}[\p{L}'’-]+(?:\s\p{Lu}[\p{L}'’.-]*){1,2}"
_TITLED = r"(?:Mr|Mrs|Ms|Miss|Dr)\.?\s\p{Lu}[\p{L}'’-]+"
_NAMED = pattern(rf"{_TITLED}|{_NAME}")
_KEY = pattern(
    r"(?i:diagnos[ie]s|conditions?|pre.?existing|disability|disabilities|illness|disease|health|medical|medication|medicines?"
    r"|allerg(?:y|ies)|special.?needs|treatment|therapy|reason|notes?|remarks?|comments?|symptoms?|religion|faith|belief|denomination"
    r"|ethnicity|ethnic|race|origin|party|politic\w*|union|orientation|gender identity|care needs?)[\w .-]{0,20}[\"']?\s*$"
)
_OWNER_KEY = pattern(
    r"(?i:name|patient|employee|customer|client|member|student|pupil|policy.?holder|holder|insured|claimant|applicant|beneficiary"
    r"|tenant|guest|donor|volunteer|person|candidate|user|subject)[\w .-]{0,14}[\"']?\s*[:=]\s*[\"']?"
)
_NOTHING = pattern(r"^[\s\"'|]*(?:no|none|n/a|nil|unknown|not)\b", ignore_case=True)
_BLOCK = 400
_SEPARATED = pattern(
    rf"({_TITLED}|{_NAME})(?:\s?\((?:b\.|born|aged?)?\s?\d{{1,4}}\))?(?:,\s\d{{1,3}})?\s?(?:[:(\t]|,|\s[-–—]\s?|[-–—]\s)\s*$"
)


def recorded(text: str, found: Sequence[Term]) -> Iterator[Term]:
    """Yield the terms that a record, a table row or a list entry ties to a name."""
    for each in found:
        floor = max(0, each.start - _BLOCK)
        start = max(text.rfind("\n", floor, each.start) + 1, floor)
        before = text[start : each.start]
        if _in_row(text, before, start) or _in_form(text, before, each) or _in_list(text, before, each):
            yield each


def _in_row(text: str, before: str, start: int) -> bool:
    """Whether a table's row has a name in a cell before the term, under a header that names the column."""
    if "|" not in before and "\t" not in before:
        return False
    cells = before.replace("\t", "|").split("|")
    above = text[max(0, start - 4 * _BLOCK) : start]
    header = next((each for each in above.split("\n") if "|" in each or "\t" in each), "")
    columns = header.replace("\t", "|").split("|")
    place = len(cells) - 1
    titled = place < len(columns) and bool(_KEY.search(columns[place].strip()))
    return titled and len(cells[-1].split()) < 6 and any(_named(cell) for cell in cells[:-1])


def _in_form(text: str, before: str, term: Term) -> bool:
    """Whether a key that asks for such data has the term as its value, in a block that names its person."""
    colon = max(before.rfind(":"), before.rfind("="))
    if colon < 0 or len(before) - colon > 60 or _NOTHING.search(before[colon + 1 :]):
        return False
    key = before[:colon]
    asked = _KEY.search(key[-40:])
    if not asked:
        return False
    block = text[max(0, term.start - _BLOCK) : term.end + _BLOCK]
    part = _same_block(block, min(term.start, _BLOCK))
    owner = any(_named(part[match.end() : match.end() + 50].split("\n")[0]) for match in _OWNER_KEY.finditer(part))
    return owner or _named(key[-60:].rsplit(";", 1)[-1])


def _same_block(block: str, place: int) -> str:
    """Return the part of a block between blank lines or braces around a place."""
    first = max(block.rfind("\n\n", 0, place), block.rfind("{", 0, place), 0)
    ends = [each for each in (block.find("\n\n", place), block.find("}", place)) if each >= 0]
    return block[first : min(ends, default=len(block))]


def _in_list(text: str, before: str, term: Term) -> bool:
    """Whether an entry is a name, a mark and the term with little else: Ann Roe (asthma); Lee Poe: deaf."""
    entry = before[max(before.rfind(";"), before.rfind("|"), 0) :]
    for words in range(4):
        head = _without_last(entry, words)
        match = _SEPARATED.search(head)
        if match and not any(mark in entry[len(head) :] for mark in ",;:()."):
            bare = head.rstrip().endswith(",")
            return _is_name(match.group(1)) and (term.group in STATES or not bare) and _ends_soon(text, term, bare=bare)
    return False


def _ends_soon(text: str, term: Term, *, bare: bool) -> bool:
    rest = text[term.end : term.end + 60]
    ends = [
        each
        for each in (rest.find(mark) for mark in ((";", ",", "\n", ")", ".") if not bare else (";", ",", "\n")))
        if each >= 0
    ]
    tail = rest[: min(ends, default=len(rest))]
    return len(tail.split()) <= 3 and (not bare or bool(ends) or not rest.strip(" ."))


def _without_last(entry: str, words: int) -> str:
    for _ in range(words):
        entry = entry.rstrip()
        blank = max(entry.rfind(" "), entry.rfind("("))
        entry = entry[: blank + 1] if blank >= 0 else ""
    return entry


def _named(text: str) -> bool:
    """Whether a piece of a record is or ends in somebody's name."""
    return any(_is_name(match.group()) for match in _NAMED.finditer(text))


def _is_name(written: str) -> bool:
    words = [plain(each) for each in written.split()]
    return not any(word in NO_NAMES for word in words) and any(
        word not in COMMON_WORDS and len(word) > 1 for word in words
    )
