"""Stage 1b, claims: a parsed sentence split into claims with type, specificity and checkability (SPEC-005 §3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any

from interlock.dpe.claims import acts, courtesies
from interlock.dpe.claims.clauses import clauses
from interlock.dpe.claims.leads import is_announcement, is_source_reference, with_lead
from interlock.dpe.claims.wording import (
    BARE_VERBS,
    META_WORDS,
    SUBJECTS,
    classify_type,
    is_about_itself,
    is_content_word,
)
from interlock.dpe.document import Claim, ClaimType, Entity
from interlock.dpe.inference.language import derived
from interlock.dpe.text.layout import BlockKind
from interlock.dpe.text.segmentation import Parsed, fitted
from interlock.dpe.text.text import Text
from interlock.dpe.values.extraction import extract
from interlock.dpe.values.quantities import DATE, MONEY, PERCENT, Value

TITLE_WORDS = 10
MOST_UNCHECKED_WORDS = 60
_TOLD = frozenset({DATE, MONEY, PERCENT})
_NAMELESS = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"})


class Checkability(Enum):
    """Whether a claim is checked, checked as a title, or has nothing to check."""

    CHECKED = "checked"
    TITLE = "title"
    UNCHECKED = "unchecked"


def split_claims(
    parsed: Parsed, *, limit: int, count: Callable[[Sequence[str]], list[int]], number: int, output_index: int = 0
) -> Iterator[tuple[Claim, Checkability]]:
    """Yield the claims of a sentence, numbered from *number*.

    No claim has more than *limit* tokens; a longer clause becomes several claims.
    """
    sentence, tokens = parsed.sentence, parsed.tokens
    places = tuple(parsed.text.starts), tuple(parsed.text.ends)
    key = ("claims", sentence, tokens.start, tokens.end, parsed.kind, parsed.lead, places, limit, number, output_index)
    split = partial(_split, parsed, limit=limit, count=count, number=number, output_index=output_index)
    yield from derived(tokens, key, lambda: list(split()))


def _split(
    parsed: Parsed, *, limit: int, count: Callable[[Sequence[str]], list[int]], number: int, output_index: int
) -> Iterator[tuple[Claim, Checkability]]:
    for clause in clauses(parsed):
        for part in fitted(clause.text, limit, count):
            if any(c.isalnum() for c in part.chars):
                claim, checkability = _claim(parsed, part, number, borrowed=clause.borrowed)
                yield replace(claim, output_index=output_index), checkability
                number += 1


def _claim(parsed: Parsed, text: Text, number: int, *, borrowed: bool) -> tuple[Claim, Checkability]:
    tokens = _tokens_in(parsed, text)
    own = text
    if parsed.lead and not any(t.dep_ in SUBJECTS for t in tokens):
        text = with_lead(parsed.lead, text, tokens)
    values = extract(text.chars)
    inside = {t.i for t in tokens}
    named = [e for e in parsed.tokens.ents if e.label_ not in _NAMELESS and any(t.i in inside for t in e)]
    entities = [_entity(parsed, e) for e in named]
    entities += [Entity(v.text, str(v.kind), *text.span(v.start, v.end)) for v in values]
    content = {t.lemma_.lower() for t in tokens if is_content_word(t)} - META_WORDS - BARE_VERBS
    checked = bool(entities or not tokens or (content and not is_about_itself(tokens)))
    checked = checked and not is_source_reference(own.chars) and _may_claim(parsed, tokens, named, values)
    specificity = min(1.0, 0.10 + 0.25 * len(named) + 0.25 * len(values) + 0.02 * min(5, len(content)))
    claim = Claim(
        claim_id=f"c{number}",
        text=text.chars,
        sentence_index=parsed.sentence.index,
        choice_index=parsed.sentence.choice_index,
        start=parsed.sentence.start,
        end=parsed.sentence.end,
        claim_type=_type(own, tokens, checked=checked, borrowed=borrowed, code=parsed.kind is BlockKind.CODE),
        specificity=round(specificity, 2),
        entities=tuple(entities),
    )
    if not checked:
        return claim, Checkability.UNCHECKED
    return claim, Checkability.TITLE if not values and _is_title(parsed, text.chars, tokens) else Checkability.CHECKED


def _may_claim(parsed: Parsed, tokens: Sequence[Any], named: Sequence[Any], values: Sequence[Value]) -> bool:
    """Whether a clause may make a claim: prose that is more than a courtesy, a comment that tells a fact, no program text."""
    if parsed.kind is BlockKind.PROGRAM:
        return False
    if parsed.kind is BlockKind.COMMENT:
        told = bool(named) or any(value.kind in _TOLD or value.unit for value in values)
        return told and any(token.dep_ in SUBJECTS for token in tokens)
    if parsed.kind is not BlockKind.PROSE or not tokens or len(tokens) > MOST_UNCHECKED_WORDS:
        return True
    if courtesies.tells_by_asking(parsed.sentence.text):
        return True
    if acts.makes_no_claim(tokens, named, valued=any(map(_is_stated, values))):
        return acts.answers_by_reference(parsed.tokens)
    return not courtesies.makes_no_claim(parsed.sentence.text)


def _is_stated(value: Value) -> bool:
    """Whether a value states an amount or a date: not "one moment", "today"."""
    exact = value.scale > 1.0 or bool(value.unit) or value.kind in {MONEY, PERCENT}
    return any(map(str.isdigit, value.text)) or (exact and not value.vague)


def _type(text: Text, tokens: Sequence[Any], *, checked: bool, borrowed: bool, code: bool) -> ClaimType:
    """Return the type. A clause with a subject of its own is no instruction, even with a bare verb."""
    found = classify_type(text.chars, tokens, checked=checked, code=code)
    has_subject = borrowed or any(t.dep_ in SUBJECTS and t.head.dep_ == "ROOT" and t.lower_ != "you" for t in tokens)
    return ClaimType.FACTUAL if found is ClaimType.PROCEDURAL and has_subject and not code else found


def _is_title(parsed: Parsed, text: str, tokens: Sequence[Any]) -> bool:
    """Whether a claim is a title without an assertion: few words, no verb, marked up or with a colon."""
    if is_announcement(text, tokens):
        return True
    marked = parsed.kind is BlockKind.TITLE or text.endswith(":")
    return marked and len(tokens) <= TITLE_WORDS and not any(t.pos_ in {"VERB", "AUX"} for t in tokens)


def _tokens_in(parsed: Parsed, text: Text) -> list[Any]:
    """Return the tokens with at least one character in *text*, in order."""
    wanted = set(text.starts)
    found = []
    for token in parsed.tokens:
        at = token.idx - parsed.base
        if not token.is_space and not wanted.isdisjoint(parsed.text.starts[max(0, at) : at + len(token)]):
            found.append(token)
    return found


def _entity(parsed: Parsed, span: Any) -> Entity:
    text = parsed.between(span.start_char, span.end_char)
    return Entity(text.chars, span.label_, *text.origin)
