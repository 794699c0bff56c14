"""Order: what a sentence says comes before what, and the steps of a numbered list (SPEC-005 §5.3).

Each side is a bag of senses, so that *once you have been admitted, call the line* is compared with *call the line before any
admission* and with steps 1 and 2 of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.clauses import loosely, sense
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.dates import MONTHS
from interlock.dpe.values.frames import STOP

_BEFORE = word_set("before")
_AFTER = word_set("after once following")
_EARLIER = frozenset({("ahead", "of"), ("prior", "to"), ("advance", "of"), ("earlier", "than"), ("sooner", "than")})
_OVER = frozenset({("precedence", "over"), ("priority", "over"), ("precedence", "of")})
_THEN = word_set("then afterwards afterward subsequently thereafter")
_FOLLOW = word_set("follow follows followed")
_WHO = frozenset({"nsubj", "nsubjpass"})
_LOOKING = word_set("look name")
_UNTIL = word_set("until till")
_LEADING = word_set("and but only just after before by once")
_NOT = word_set("not n't never no nobody none nothing cannot neither")
_OMITTING = word_set("forget fail omit neglect hesitate")
"""Who must not forget to do a thing does it."""
_JOINING = word_set("and or but because since as so while although that whether")
_PLACED = word_set("until till by since from before")
"""*Until then* and *by then* name a time, and tell of no step after another."""
_OFTEN = word_set("a an per every each daily weekly monthly more again in")
_UNITS = word_set("second minute hour day week month year time moment first last straight away begin start")
_POINTING = word_set("that this which")
MEASURES = word_set("second minute hour day week month year later long shortly soon time")
_ENDS = frozenset({".", ";", "!", "?", ":"})
_STEP = re.compile(r"^[^\S\n]{0,8}(\d{1,2})[.)][^\S\n]{1,8}(\S[^\n]*)$", re.MULTILINE)
_LEAST_STEPS = 3
_MOST_STEPS = 40
LONGEST = 60
_DATES = frozenset(MONTHS) | word_set("monday tuesday wednesday thursday friday saturday sunday")


@dataclass(frozen=True)
class Order:
    """What comes first and what comes second, with the word that says so; ``told`` is how the first is written."""

    first: frozenset[str]
    second: frozenset[str]
    word: str
    told: str = ""


def orders(sentence: Any) -> tuple[Order, ...]:
    """Return what a parsed sentence, a spaCy span, says of an order."""
    tokens = [t for t in sentence if not t.is_space]
    if len(tokens) > LONGEST:
        return ()
    return tuple(each for each in _orders(tokens) if each.first or each.second)


def steps(text: str) -> tuple[str, ...]:
    """Return the steps of the one numbered list of a text, in order; none where the numbers do not run from 1."""
    found = [(int(match[1]), match[2].strip()) for match in _STEP.finditer(text)]
    runs = [number for number, _ in found] == list(range(1, len(found) + 1))
    return tuple(step for _, step in found) if runs and _LEAST_STEPS <= len(found) <= _MOST_STEPS else ()


def _orders(tokens: Sequence[Any]) -> Iterator[Order]:
    for n, token in enumerate(tokens):
        low = token.lower_
        following = tokens[n + 1].lower_ if n + 1 < len(tokens) else ""
        if (low, following) in _EARLIER | _OVER and n + 2 < len(tokens):
            main, sub = halves(tokens, n, 2)
            yield Order(bag(main), bag(sub), f"{token.text} {following}")
        elif _divides(token, following):
            yield _around(tokens, n)
        before = tokens[n - 1].lemma_.lower() if n else ""
        if before in MEASURES and low != "later":
            continue  # two days after: a time, which is compared with times
        if low == "after" and before in _LOOKING:
            continue
        if (low in _THEN and before not in _PLACED) or _goes_on(tokens, n):
            yield sequence(tokens, n)
        else:
            yield from _of_word(tokens, n, following)


def _of_word(tokens: Sequence[Any], n: int, following: str) -> Iterator[Order]:
    low = tokens[n].lower_
    if _points_back(tokens, n, _AFTER):
        yield sequence(tokens, n + 1)
    elif _points_back(tokens, n, _BEFORE) or (low, following) == ("by", "then"):
        yield _back(sequence(tokens, n + 1))
    elif low in _UNTIL:
        yield from _not_until(tokens, n)
    elif tokens[n].pos_ == "VERB" and low in _FOLLOW:
        yield from _followed(tokens, n)
    elif low == "when" or (low, following) == ("by", "the"):
        yield from _already(tokens, n)
    elif low in _BEFORE | _AFTER and not (low == "once" and following in _OFTEN):
        yield from _around_clause(tokens, n)


def _followed(tokens: Sequence[Any], n: int) -> Iterator[Order]:
    """Yield what follows what: *the cut followed the strike*, *the strike was followed by a cut*. A pronoun stands for what is before."""
    verb = tokens[n]
    subject = next((c for c in verb.children if c.dep_ in _WHO), None)
    passive = any(c.dep_ == "auxpass" for c in verb.children)
    others = [c for c in verb.children if c.dep_ in ({"agent"} if passive else {"dobj"})]
    if subject is None or not others:
        return
    one, other = bag(subject.subtree), bag(t for c in others for t in c.subtree)
    yield Order(one, other, verb.text) if passive else Order(other, one, verb.text)


def _around_clause(tokens: Sequence[Any], n: int) -> Iterator[Order]:
    """Yield what *before*, *after* or *once* puts in order."""
    low = tokens[n].lower_
    main, sub = halves(tokens, n)
    own = _last_clause(main)
    denied = any(t.lower_ in _NOT for t in own) and not any(t.lemma_.lower() in _OMITTING for t in own)
    if denied and (low in _AFTER or tokens[0] in sub or n == 0):
        return  # not after the meal: any time but then
    if _are_dates(sub):
        return  # before 1 March: a day, which is compared with days
    earlier, later = (main, sub) if (low in _BEFORE) is not denied else (sub, main)
    yield Order(bag(earlier), bag(later), tokens[n].text)


def _are_dates(tokens: Sequence[Any]) -> bool:
    """Whether words only name a day or a month."""
    told = [t.lower_ for t in tokens if _tells(t)]
    return bool(told) and all(low in _DATES for low in told)


def _points_back(tokens: Sequence[Any], n: int, words: frozenset[str]) -> bool:
    """Whether one of some words and a pronoun point to what was told before: *after that it is sold*, but not *after that sale*."""
    if tokens[n].lower_ not in words or n + 1 >= len(tokens) or tokens[n + 1].lower_ not in _POINTING:
        return False
    behind = tokens[n + 2] if n + 2 < len(tokens) else None
    return tokens[n + 1].pos_ == "PRON" or behind is None or behind.is_punct or behind.pos_ in {"PRON", "DET", "PROPN"}


def _back(told: Order) -> Order:
    """Return an order of which what was told last comes first: *before that, they had signed*."""
    return Order(told.second, told.first, told.word)


def _not_until(tokens: Sequence[Any], n: int) -> Iterator[Order]:
    """Yield what comes after what *not until* opens: *it will not open until the plan is approved*."""
    fronted = n > 0 and tokens[n - 1].lower_ in _NOT and start_of(tokens, n) == n - 1
    main, sub = halves(tokens[n:], 0) if fronted else halves(tokens, n)
    if fronted or any(t.lower_ in _NOT for t in _last_clause(main)):
        yield Order(bag(sub), bag(main), "not until")


def _already(tokens: Sequence[Any], n: int) -> Iterator[Order]:
    """Yield what was over when something else came: *the crew had already left when the pump failed*, *by the time it failed*."""
    size = 3 if tokens[n].lower_ == "by" else 1
    if size > 1 and [t.lower_ for t in tokens[n : n + size]] != ["by", "the", "time"]:
        return
    main, sub = halves(tokens, n, size)
    lows = {t.lower_ for t in main}
    if lows & {"had", "'d"} and (size > 1 or "already" in lows) and not lows & _NOT:
        yield Order(bag(main), bag(sub), "already")


def _goes_on(tokens: Sequence[Any], n: int) -> bool:
    """Whether *later* opens what comes next: *and later reached*, *some time later the barn*; but not *no later than*."""
    if tokens[n].lower_ != "later" or tokens[n].pos_ != "ADV" or tokens[n + 1 : n + 2] == []:
        return False
    if tokens[n + 1].lower_ == "than":
        return False
    start = start_of(tokens, n)
    lead = [
        t for t in tokens[max(start, n - 4) : n] if t.pos_ not in {"DET", "NUM", "PRON", "AUX"} and not _measures(t)
    ]
    return not lead or lead[-1].lower_ in {"and", "but", ",", ";"}


def _measures(token: Any) -> bool:
    return token.lemma_.lower() in MEASURES or token.lower_ in {"some", "much", "only", "a", "few"}


def _last_clause(tokens: Sequence[Any]) -> Sequence[Any]:
    """Return what stands behind the last word that joins clauses: *he had no debts and had paid before the trial*."""
    cut = next((m for m in range(len(tokens) - 1, -1, -1) if tokens[m].lower_ in _JOINING or tokens[m].text == ","), -1)
    return tokens[cut + 1 :]


def _divides(word: Any, following: str) -> bool:
    """Whether a word stands between what is first and what is second: *precedes*, and *first* at the end of a clause."""
    if word.lower_ == "first":
        return bool(following in {";", ","} and word.dep_ == "advmod" and word.head.pos_ in {"VERB", "AUX"})
    return bool(word.lemma_.lower() == "precede" and word.pos_ == "VERB")


def _around(tokens: Sequence[Any], n: int) -> Order:
    """Return what stands before a word as the first, and what stands behind it as the second; a passive turns them."""
    end = next((m for m in range(n + 2, len(tokens)) if tokens[m].text in _ENDS), len(tokens))
    one, other = bag(tokens[start_of(tokens, n) : n]), bag(tokens[n + 1 : end])
    passive = any(c.dep_ == "auxpass" for c in tokens[n].children)
    return Order(other, one, tokens[n].text) if passive else Order(one, other, tokens[n].text)


def halves(tokens: Sequence[Any], n: int, size: int = 1) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what stands outside and inside the phrase or clause that *before* or *after*, or *size* words, open."""
    last = n + size - 1
    end = next((m for m in range(last + 1, len(tokens)) if tokens[m].text in _ENDS), len(tokens))
    opens = n == 0 or tokens[n - 1].text in {",", ";", "—"} or tokens[n - 1].lower_ in {"and", "only", "but"}
    comma = next((m for m in range(last + 1, end) if tokens[m].text == ","), None)
    if opens and start_of(tokens, n) >= n - 1:
        if comma is not None:
            return tokens[comma + 1 : end], tokens[last + 1 : comma]
        inside = {t.i for t in (tokens[n].head if tokens[n].dep_ == "mark" else tokens[n]).subtree}
        rest = tokens[last + 1 : end]
        return [t for t in rest if t.i not in inside], [t for t in rest if t.i in inside]
    return tokens[start_of(tokens, n) : n], tokens[last + 1 : comma or end]


def start_of(tokens: Sequence[Any], n: int) -> int:
    """Return where the clause before a token begins."""
    for m in range(n - 1, -1, -1):
        if tokens[m].text in _ENDS:
            return m + 1
    return 0


def before_and_after(tokens: Sequence[Any], n: int, size: int = 1) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what stands on either side of *size* words; where they open a clause, the clause before is on the one side."""
    end = next((m for m in range(n + size, len(tokens)) if tokens[m].text in _ENDS), len(tokens))
    return tokens[_opened(tokens, n) : n], tokens[n + size : end]


def _opened(tokens: Sequence[Any], n: int) -> int:
    """Return where the clause before a token begins; of a token that opens a clause behind a semicolon, the clause before that."""
    start = start_of(tokens, n)
    joined = all(t.lower_ in _LEADING for t in tokens[start:n])
    return start_of(tokens, start - 1) if joined and start else start


def sequence(tokens: Sequence[Any], n: int) -> Order:
    """Return what stands before and what stands after a word that says *and then*."""
    start = _opened(tokens, n)
    end = next((m for m in range(n + 1, len(tokens)) if tokens[m].text in _ENDS), len(tokens))
    if n + 1 < end:
        return Order(bag(tokens[start:n]), bag(tokens[n + 1 : end]), tokens[n].text)
    joined = next((m for m in range(n - 1, start, -1) if tokens[m].lower_ in {"and", "but", ","}), n)
    return Order(bag(tokens[start:joined]), bag(tokens[joined:n]), tokens[n].text)


def written(tokens: Iterable[Any]) -> str:
    """Return words as they are written."""
    return "".join(t.text_with_ws for t in tokens).strip(" ,;.")


def bag(tokens: Iterable[Any]) -> frozenset[str]:
    """Return the senses of the words that tell something. A number behind a noun is a part of its name: *ward 2*."""
    found: set[str] = set()
    for token in tokens:
        if token.like_num and token.i > token.sent.start and token.nbor(-1).pos_ in {"NOUN", "PROPN"}:
            found.add(f"{key_of(token.nbor(-1))}#{token.lower_}")
        elif _tells(token):
            found.add(loosely(sense(token)))
    return frozenset(found)


def _tells(token: Any) -> bool:
    return (
        token.pos_ in {"NOUN", "PROPN", "VERB", "ADJ", "ADV"}
        and token.lower_ not in STOP
        and token.lemma_.lower() not in _UNITS
        and any(c.isalpha() for c in token.text)
    )
