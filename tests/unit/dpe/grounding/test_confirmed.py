"""A finding that the model bears out weighs more than one that stands alone (SPEC-005 §7; reliability.md section 7, row 25)."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-5", "DPE-14")]

RIGHT = ("The lift stops at every floor.", "Parking is free on Sundays.", "The office opens at nine.")


async def report(answer: str, *facts: str):
    return await pipeline().analyse(request(answer, *facts))


async def test_one_value_that_is_bent_and_contradicted_makes_an_answer_high():
    """Right statements around it do not average it away: a policy that stops HIGH stops it."""
    found = await report(
        " ".join((*RIGHT, "The permit was valid for 45 days.")), "The permit is valid for 30 days.", *RIGHT
    )

    assert "FINDING_CONFIRMED" in found.floors
    assert found.risk_level == common_pb2.RISK_LEVEL_HIGH


async def test_a_value_that_is_only_missing_stays_medium():
    """Nothing speaks against it: the answer says more than its sources do."""
    found = await report(" ".join((*RIGHT, "The ferry takes forty minutes.")), "The ferry leaves at noon.", *RIGHT)

    assert list(found.floors) == ["FABRICATION_FOUND"]
    assert found.risk_level == common_pb2.RISK_LEVEL_MEDIUM


async def test_words_that_the_model_alone_doubts_confirm_nothing():
    """The same statements told otherwise are LOW."""
    found = await report("On Sundays nobody pays for parking, and the lift calls at all floors.", *RIGHT)

    assert not found.floors
    assert found.risk_level == common_pb2.RISK_LEVEL_LOW
