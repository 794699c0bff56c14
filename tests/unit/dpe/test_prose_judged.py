"""Answers in prose as the whole engine judges them: paraphrases and calculated dates are left alone, bent ones are not."""

from __future__ import annotations

import json

import pytest

from bench.everyday import FOLDERS, is_clean
from interlock.api.common.v1 import common_pb2
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


async def _judged(sources, text):
    facts = tuple(Fact(f"f{number}", source, 0.5) for number, source in enumerate(sources, 1))
    return await pipeline().analyse(Request(outputs=(Output(0, text),), facts=facts, query=""))


async def test_faithful_prose_is_left_alone_and_its_bent_twin_is_not():
    """One field of the pairs that may be read; the others are measured by ``python -m bench.everyday --pairs prose``."""
    field = json.loads((FOLDERS["prose"] / "dev" / "gym.json").read_text(encoding="utf-8"))
    accused, passed = [], []
    for row in field["pairs"]:
        sources = field["sources"][row["source"]]
        if not is_clean(await _judged(sources, row["faithful"])):
            accused.append(row["id"])
        if (await _judged(sources, row["bent"])).risk_level == common_pb2.RISK_LEVEL_LOW:
            passed.append(row["id"])

    assert not accused
    assert not passed
