"""Stage 8a on a raw query: the sentences of a prompt that ask for something, as information needs (SPEC-005 §10.2)."""

from __future__ import annotations

from interlock.dpe.inference.language import Language
from interlock.dpe.quality.queries import MAX_NEEDS, Need, asks, needs
from interlock.dpe.text.layout import BlockKind, layout

MAX_CHARS = 16_000


def decomposed(query: str, language: Language) -> tuple[tuple[Need, ...], str]:
    """Return the needs of a query, or no needs and the reason, which the report gives for stage 8.

    If some sentences of a query ask for something, only those count; the rest is material.
    """
    sentences = [
        block.text.cut(start, end).chars
        for block in layout(query).blocks
        for start, end in (
            language.split(block.text.chars) if block.kind is BlockKind.PROSE else [(0, len(block.text.chars))]
        )
    ]
    asking = [sentence for sentence in sentences if asks(sentence)] or sentences
    if not asking:
        return (), "no query"
    if len(asking) > MAX_NEEDS or sum(map(len, asking)) > MAX_CHARS:
        return (), "the query asks for too much to be taken apart"
    parsed, _ = language.parsed("\n\n".join(asking), choice_index=0, first_index=0)
    found = tuple(needs([sentence.tokens for sentence in parsed]))
    if not found:
        return (), "no query"
    return (found, "") if len(found) <= MAX_NEEDS else ((), "the query asks for too much to be taken apart")
