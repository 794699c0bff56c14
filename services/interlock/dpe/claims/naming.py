"""Named entities before claims: the classifier runs while the parser runs, and stage 1 reads with both (DPE-18).

Only the answer is classified. Names in facts are looked up without a model (``fabrication.EnvelopeIndex``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from interlock.dpe.claims.reading import OutputReader
from interlock.dpe.inference.language import Cancelled, Language, NamedLanguage, Spent
from interlock.dpe.inference.port import Inference
from interlock.dpe.request import Output
from interlock.dpe.text.views import Viewed, viewed

LONG_CHARS = 32_768
"""The claims of a longer answer are counted before the models look for names."""


async def named(
    outputs: Sequence[Output],
    language: Language,
    inference: Inference,
    reader: OutputReader,
    *,
    stage: str,
    spent: Spent,
) -> tuple[NamedLanguage, list[Viewed]]:
    """Return the parser with the named entities of its input, and the outputs as they are read.

    *reader* splits a long answer first, so that one with too many claims is refused before the classifier runs.
    """

    def parser_texts(_: Cancelled) -> tuple[list[Viewed], list[str]]:
        views = viewed(outputs)
        return views, [text for view in views for text in language.texts(view.text)]

    run = partial(language.run, stage=stage, spent=spent)
    views, texts = await run(parser_texts)
    parses: dict[str, Any] = {}
    if sum(map(len, texts)) > LONG_CHARS:
        await run(partial(reader.read, views))
        found = await inference.names(texts)
    else:
        found, parses = await _both(inference.names(texts), run(partial(language.parses, texts)))
    return NamedLanguage(language, dict(zip(texts, found, strict=True)), parses), views


async def _both(names: Any, parses: Any) -> list[Any]:
    """Await both. When one fails, the other is cancelled."""
    tasks = [asyncio.ensure_future(names), asyncio.ensure_future(parses)]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
