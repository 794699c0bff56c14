"""docs/judge-examples.md says what the engine says of its twenty answers."""

from __future__ import annotations

import re

import pytest

from bench.quality.examples import EXAMPLES, PAGE, judged, page
from tests.support.dpe import pipeline

_FIGURE = re.compile(r"P\(entailment\) \d\.\d\d")


@pytest.mark.models
@pytest.mark.req("DPE-3")
async def test_the_page_of_examples_is_true():
    """Levels and findings are those of the page; the model's own figure may differ in its last digits on another processor."""
    told = await judged(pipeline())
    written = PAGE.read_text(encoding="utf-8")

    assert _FIGURE.sub("", page(told)) == _FIGURE.sub("", written)
    assert len(EXAMPLES) == 20
    assert [one.level != "LOW" for one in told] == [True] * 17 + [False] * 3
