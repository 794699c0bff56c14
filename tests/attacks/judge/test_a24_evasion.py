"""A-24: a text in disguise is judged at least as badly as without; the whole list of masks stands in tests/adversarial."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.dpe.request import Output
from tests.adversarial.clean_texts import CLEAN
from tests.adversarial.transforms import TRANSFORMS
from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

FACT = "The Eiffel Tower is 330 metres tall."
BAD = "The Eiffel Tower is 390 metres tall."
MASKS = ("zero-width space", "cyrillic lookalikes", "base64", "html entities", "soft hyphen", "fullwidth")


async def risk(*texts: str) -> int:
    """The risk of an answer in several parts: the content and the arguments of calls."""
    asked = request(texts[0], FACT)
    more = tuple(Output(0, text, "tool_call") for text in texts[1:])
    return (await pipeline().analyse(type(asked)(**{**vars(asked), "outputs": (*asked.outputs, *more)}))).risk_level


@pytest.mark.req("DPE-5")
@pytest.mark.parametrize("mask", MASKS)
async def test_a24_a_mask_lowers_no_risk(mask):
    """A wrong figure is found under each mask with the same risk at least."""
    assert mask in TRANSFORMS
    assert await risk(TRANSFORMS[mask](BAD)) >= await risk(BAD) > common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("DPE-5")
async def test_a24_a_part_elsewhere_lowers_no_risk():
    """What is said in the arguments of a call, after a good answer, is judged as if it were the answer."""
    told = await risk(FACT, f'{{"note": "{BAD}"}}')

    assert told >= await risk(f"{FACT} {BAD}")
    assert told > common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("DPE-5")
async def test_a24_honest_texts_in_other_scripts_are_no_disguise():
    """Emoji, right-to-left and other scripts hold no floor for hiding."""
    texts = [texts[0] for texts in list(CLEAN.values())[::4]]
    floors = [set((await pipeline().analyse(request(text, FACT))).floors) for text in texts]

    assert len(texts) >= 5
    assert all("HIDDEN_CHARACTERS" not in floor for floor in floors)
