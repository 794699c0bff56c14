"""Stage 6: which earlier claims an answer is held against (SPEC-005 §8)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from interlock.dpe.inference.language import Language
from interlock.dpe.inference.port import EMBEDDING_WIDTH, ModelInfo
from interlock.dpe.quality.coherence import EarlierWindow, contradictions, earlier
from interlock.dpe.quality.profile import EmbeddedProfile, Memory, TextProfile
from tests.support.dpe import WordInference, claim

EMPTY = np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32)


@pytest_asyncio.fixture
async def language() -> AsyncIterator[Language]:
    """A text thread; nothing here is parsed."""
    made = Language(None, lambda _: iter(()), ModelInfo("ner", "none", "", "embedded"))
    yield made
    made.close()


def profiled(*texts: str) -> TextProfile:
    claims = tuple(claim(text, number) for number, text in enumerate(texts, 1))
    return TextProfile(texts, claims, (), frozenset(), None, ())


async def window(name: str, *texts: str) -> EarlierWindow:
    rows = await WordInference().embed(texts)
    return EarlierWindow(name, EmbeddedProfile(profiled(*texts), rows, rows, EMPTY, EMPTY, EMPTY))


async def found(language: Language, now: str, *windows: EarlierWindow, inference: WordInference | None = None):
    claims = [claim(now)]
    models = inference or WordInference()
    before = earlier(windows, EMBEDDING_WIDTH)
    return await contradictions(claims, await models.embed([now]), before, inference=models, language=language)


@pytest.mark.req("DPE-6")
async def test_nearer_claims_do_not_crowd_out_the_one_that_is_contradicted(language):
    """Six that are more alike stand before it; rules reach farther than the model is asked."""
    now = "The bridge in Lyon opened in 1950."
    crowd = [
        f"The bridge in Lyon opened in 1950 {reason}."
        for reason in ("again", "early", "late", "indeed", "quietly", "first")
    ]
    seen = await found(
        language, now, await window("w1", "The old bridge in Lyon opened in 1940."), await window("w2", *crowd)
    )
    assert [(each.window_id, each.claim_id, each.other_claim_id) for each in seen] == [("w1", "c1", "")]


@pytest.mark.req("DPE-6")
async def test_what_is_said_again_is_not_asked_about(language):
    """The same words cannot contradict themselves, and cost no model."""
    models = WordInference()
    seen = await found(
        language, "The Bridge  opened in 1950.", await window("w1", "the bridge opened in 1950."), inference=models
    )
    assert seen == []
    assert models.pairs == []


@pytest.mark.req("DPE-6")
async def test_a_claim_of_several_windows_counts_once_for_the_oldest(language):
    """One contradiction, not one for each repetition."""
    before = "The bridge opened in 1940."
    seen = await found(language, "The bridge opened in 1950.", await window("w1", before), await window("w2", before))

    assert [each.window_id for each in seen] == ["w1"]


@pytest.mark.req("DPE-6")
async def test_the_worst_comes_first(language):
    """A changed figure before a changed date."""
    seen = await found(
        language,
        "The bridge was launched in 1950 for 12 million francs.",
        await window(
            "w1", "The bridge was launched in 1940.", "The bridge was launched in 1950 for 90 million francs."
        ),
    )
    assert [each.severity for each in seen] == sorted(
        (each.severity for each in seen), key="CRITICAL HIGH MEDIUM LOW".split().index
    )
    assert seen[0].severity == "CRITICAL"


@pytest.mark.req("DPE-6")
async def test_without_earlier_claims_nothing_is_contradicted(language):
    """A first window, and one that says nothing."""
    assert await found(language, "The bridge opened in 1950.") == []
    assert await found(language, "The bridge opened in 1950.", await window("w1")) == []


def test_memory_forgets_what_was_not_asked_for_longest():
    """Bounded by rows: each text here takes one sentence, one claim and two more."""
    memory = Memory(rows=8)
    first, second, third = profiled("a"), profiled("b"), profiled("c")
    memory.keep("1", first)
    memory.keep("2", second)
    assert memory.recall("1") is first
    memory.keep("3", third)

    assert (memory.recall("1"), memory.recall("2"), memory.recall("3")) == (first, None, third)


def test_memory_keeps_one_of_each_text_and_nothing_too_large():
    """A text kept again takes its rows once; one that alone is too much is not kept."""
    memory = Memory(rows=8)
    for _ in range(9):
        memory.keep("1", profiled("a"))
    memory.keep("2", profiled("b"))
    memory.keep("huge", profiled("a", "b", "c", "d"))

    assert memory.recall("1") is not None
    assert memory.recall("2") is not None
    assert memory.recall("huge") is None
