"""Stage 8a, query decomposition: the information needs of a query (SPEC-005 §10.2, SPEC-003 §5.2).

Rules over words and tags of the sentences that ask for something; statements are ignored. A sentence is cut where a new
command or question starts. "Compare A and B" asks for A, for B and for the comparison. Coordinated items are separate
needs. "For each" refers to the items named before.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from interlock.dpe.claims.coordination import CONJUNCTIONS, Coordination, coordination, is_name, written
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

MAX_NEEDS = 64
TOKEN_CHARS = 48

_COMMANDS = word_set(
    """
    analyse analyze assess calculate clarify compare compute contrast define describe detail determine discuss elaborate
    enumerate estimate evaluate explain find give highlight identify illustrate list mention name outline present propose
    provide recommend report review show specify state suggest summarise summarize tabulate tell write
    """
)
_COMPARING = word_set("compare contrast")
_QUESTIONS = word_set("what who whom whose when where why how which")
_ASKING = _QUESTIONS | word_set(
    "is are was were do does did can could will would should has have may might shall am please"
)
_POLITE = word_set(
    "please kindly also then now first next finally and or but so briefly can could would will you i we want need like to know"
)
_FRAMES = word_set("me us about on a an the some all any for")
_LIGHT = word_set("comparison description details explanation information list overview summary")
_BEING = word_set("is are was were 's")
_BETWEEN = word_set("difference differences similarity similarities comparison distinction")
_ITS = {"it": "", "they": "", "them": "", "this": "", "that": "", "these": "", "those": "", "its": "'s", "their": "'s"}
_NUMBERS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_EMPTY = word_set("a an the of for and or in on to by at with about each between")
_WORD = pattern(r"[a-z0-9]+")


@dataclass(frozen=True)
class Need:
    """One information need: its text, a header-safe token, and for a comparison the compared items."""

    text: str
    token: str = ""
    compared: tuple[str, ...] = ()


@dataclass
class _Query:
    """State while a query is read: its needs so far, and the items last enumerated."""

    needs: list[Need] = field(default_factory=list)
    items: tuple[str, ...] = ()
    named: bool = False
    about: str = ""


def asks(sentence: str) -> bool:
    """Whether a sentence asks for something, judged by its words alone."""
    words = _WORD.findall(sentence.lower()[:400])
    first = next((word for word in words if word not in _POLITE), "")
    return sentence.rstrip().endswith("?") or "please" in words or first in _COMMANDS | _ASKING or bool(
        words and words[0] in _ASKING
    )  # fmt: skip


def needs(sentences: Sequence[Any]) -> list[Need]:
    """Return the distinct information needs of parsed sentences, in order, with unique tokens."""
    query = _Query()
    for sentence in sentences:
        for clause in _clauses([token for token in sentence if not token.is_space]):
            _read(clause, query)
    distinct: dict[str, Need] = {}
    for need in query.needs:
        if any(c.isalnum() for c in need.text):
            distinct.setdefault(need.text.casefold(), need)
    return with_tokens(list(distinct.values()))


def _clauses(tokens: Sequence[Any]) -> list[list[Any]]:
    """Cut a sentence where a conjunction or a punctuation mark is followed by a command or a question word."""
    found: list[list[Any]] = [[]]
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        breaks = before is not None and (before.lower_ in CONJUNCTIONS or before.text in {",", ";", ":"})
        if breaks and _starts(tokens, number) and len(found[-1]) > 1:
            found.append([])
        found[-1].append(token)
    return found


def _starts(tokens: Sequence[Any], at: int) -> bool:
    word = tokens[at].lower_
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if word in _QUESTIONS:
        return after is not None and after.is_alpha
    return word in _COMMANDS and after is not None and (tokens[at].pos_ == "VERB" or after.pos_ in {"DET", "PRON"})


def _read(clause: list[Any], query: _Query) -> None:
    """Add the needs of one clause."""
    comparing, question, body = _body(clause)
    if not any(token.is_alpha or token.like_num for token in body):
        return
    body, each = _without_each(body)
    if question:
        query.needs.append(Need(_resolved(body, query)))
        query.about = _last_noun_phrase(body) or query.about
        return
    if each and query.items:
        head = written(body)
        query.needs += [
            Need(f"{item} {head}" if query.named else f"{head} for {item}") for item in query.items
        ]  # fmt: skip
        return
    resolved = _resolved(body, query)
    query.about = _last_noun_phrase(body) or query.about
    found = coordination(body, comparing=comparing)
    if found is None:
        query.needs.append(Need(resolved))
        return
    if each:
        query.needs += [Need(text) for text in map(found.text, found.items[:-1])]
        query.needs.append(Need(f"{found.items[-1]} for {found.items[0]}"))
        return
    if not comparing and _is_between(found):
        query.items, query.named = found.items, found.named
        query.needs.append(Need(written(body), compared=found.items))
        return
    _coordinated(found, query, comparing=comparing or found.versus)


def _coordinated(found: Coordination, query: _Query, *, comparing: bool) -> None:
    texts = [found.text(item) for item in found.items]
    # "For each" refers to bare names ("GDPR"), otherwise to whole requests ("causes of diabetes").
    query.items, query.named = (found.items if found.named else tuple(texts)), found.named
    deeper = coordination(found.suffix, comparing=False)
    for text in texts:
        if deeper is None:
            query.needs.append(Need(text))
        else:
            lead = text.removesuffix(written(found.suffix)).strip()
            query.needs += [Need(f"{lead} {deeper.text(item)}") for item in deeper.items]
    if comparing:
        number = _NUMBERS[len(found.items)] if len(found.items) < len(_NUMBERS) else ""
        label = f"the {number} {found.head}" if found.head and number else " and ".join(found.items)
        query.needs.append(Need(f"Comparison between {label}", compared=found.items))


def _body(clause: list[Any]) -> tuple[bool, bool, list[Any]]:
    """Return whether a clause compares, whether it is a question, and the tokens of what it asks for."""
    tokens = list(clause)
    while tokens and (tokens[-1].is_punct or tokens[-1].lower_ in CONJUNCTIONS):
        tokens.pop()
    comparing = False
    while tokens:
        word = tokens[0].lower_
        if word in _COMMANDS and len(tokens) > 1 and not is_name(tokens[0], first=True):
            comparing = comparing or word in _COMPARING
            tokens = _unframed(tokens[1:])
        elif word in _POLITE or tokens[0].is_punct:
            tokens = tokens[1:]
        else:
            break
    if len(tokens) > 2 and tokens[0].lower_ == "what" and tokens[1].lower_ in _BEING:
        return comparing, False, _unframed(tokens[2:])
    return comparing, bool(tokens) and tokens[0].lower_ in _QUESTIONS, tokens


def _unframed(tokens: list[Any]) -> list[Any]:
    """Return the tokens without a leading frame: "me", "about", "the", "an overview of"."""
    while len(tokens) > 1:
        if tokens[0].lower_ in _FRAMES:
            tokens = tokens[1:]
        elif len(tokens) > 2 and tokens[0].lower_ in _LIGHT and tokens[1].lower_ in {"of", "about", "on"}:
            tokens = tokens[2:]
        else:
            break
    return tokens


def _without_each(body: list[Any]) -> tuple[list[Any], bool]:
    """Return the body without "for each (of them)", and whether it had that phrase."""
    for at in range(len(body) - 1):
        if body[at].lower_ in {"for", "of", "in"} and body[at + 1].lower_ in {"each", "both"}:
            tail = [token.lower_ for token in body[at + 2 :]]
            if not tail or tail[0] in {"of", "one"} or body[at + 2].is_punct:
                return body[:at], True
    return body, False


def _is_between(found: Coordination) -> bool:
    words = {token.lower_ for token in found.prefix}
    return "between" in words and not words.isdisjoint(_BETWEEN)


def _resolved(body: Sequence[Any], query: _Query) -> str:
    """Return the text of a need, with "it" and "them" replaced by their antecedent."""
    if not query.about or not any(token.lower_ in _ITS and token.pos_ == "PRON" for token in body):
        return written(body)
    parts = []
    for token in body:
        stands = token.lower_ in _ITS and token.pos_ == "PRON"
        parts.append(query.about + _ITS[token.lower_] if stands else token.text)
        parts.append(token.whitespace_ or (" " if stands else ""))
    return " ".join("".join(parts).split())


def _last_noun_phrase(body: Sequence[Any]) -> str:
    """Return the last noun phrase of a clause, the antecedent of a later pronoun."""
    inside = {token.i for token in body}
    chunks = [c for c in body[0].doc.noun_chunks if c.root.i in inside and c.root.pos_ != "PRON"] if body else []
    return chunks[-1].text if chunks else ""


def with_tokens(found: Sequence[Need]) -> list[Need]:
    """Return the needs with header-safe tokens: unique, and made of a-z, 0-9 and hyphens only."""
    taken: set[str] = set()
    named = []
    for number, need in enumerate(found, 1):
        words = [word for word in _WORD.findall(_ascii(need.text)) if word not in _EMPTY]
        base = _joined(words) or f"need-{number}"
        token, copy = base, 2
        while token in taken:
            token, copy = f"{base[: TOKEN_CHARS - 4].rstrip('-')}-{copy}", copy + 1
        taken.add(token)
        named.append(replace(need, token=token))
    return named


def _joined(words: Sequence[str]) -> str:
    token = ""
    for word in words:
        longer = f"{token}-{word}" if token else word[:TOKEN_CHARS]
        if len(longer) > TOKEN_CHARS:
            break
        token = longer
    return token


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
