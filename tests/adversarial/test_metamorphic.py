"""Risk never falls by a transform: every bad sample, every mask, on the real models (reliability.md A-24, I10)."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from tests.adversarial.clean_texts import CLEAN
from tests.adversarial.transforms import TRANSFORMS
from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

FACTS = (
    "The Eiffel Tower is 330 metres tall.",
    "It was completed in 1889 by the company of Gustave Eiffel.",
    "About seven million people visit the Eiffel Tower each year.",
    "The Eiffel Tower is open to visitors every day.",
)
BAD = {
    "fabrication": "Dr. Marlowe of the Hartwell Institute designed the lifts of the Eiffel Tower in 1931.",
    "number": "The Eiffel Tower is 390 metres tall.",
    "date": "It was completed in 1789 by the company of Gustave Eiffel.",
    "negation": "The Eiffel Tower is not open to visitors every day.",
    "contradiction": "The Eiffel Tower is 330 metres tall. The Eiffel Tower is 450 metres tall.",
    "personal data": "The Eiffel Tower is 390 metres tall. Write to jane.doe@example.com about it.",
    "one among good": (
        "The Eiffel Tower is 330 metres tall. It was completed in 1789 by the company of Gustave Eiffel. About seven "
        "million people visit the Eiffel Tower each year."
    ),
}
# Where other words stand beside it, or too few to tell the mask by, a changed value counts as made up.
UNTRACED = {"base64 in a sentence", "diacritics"}
EVERY = [(sample, name) for sample in BAD for name in TRANSFORMS]
QUICK = [("personal data" if number % 4 == 0 else "number", name) for number, name in enumerate(TRANSFORMS)]
_plain: dict[str, dpe_pb2.Report] = {}


async def report(text: str) -> dpe_pb2.Report:
    return await pipeline().analyse(request(text, *FACTS))


async def plain(sample: str) -> dpe_pb2.Report:
    """The report on a bad sample as it is, once."""
    if sample not in _plain:
        _plain[sample] = await report(BAD[sample])
    return _plain[sample]


async def never_falls(sample: str, name: str) -> None:
    before, after = await plain(sample), await report(TRANSFORMS[name](BAD[sample]))

    assert before.risk_level > common_pb2.RISK_LEVEL_LOW
    assert after.risk_level >= before.risk_level, (after.composite_score, [claim.text for claim in after.claims])
    assert after.composite_score >= before.composite_score - 1e-6
    assert after.fabrication_count >= before.fabrication_count
    assert after.contradiction_count >= before.contradiction_count
    assert set(after.floors) >= set(before.floors) or name in UNTRACED
    assert set(after.distortion_types) >= set(before.distortion_types) or name in UNTRACED


@pytest.mark.req("DPE-5")
@pytest.mark.parametrize(("sample", "name"), QUICK)
async def test_a_mask_lowers_no_risk(sample, name):
    """A changed figure, or somebody's address, is found below every mask, with the same risk at least."""
    await never_falls(sample, name)


@pytest.mark.long
@pytest.mark.req("DPE-5")
@pytest.mark.parametrize(("sample", "name"), [pair for pair in EVERY if pair not in QUICK])
async def test_no_mask_lowers_the_risk_of_any_bad_sample(sample, name):
    """The same for each kind of flaw."""
    await never_falls(sample, name)


@pytest.mark.long
@pytest.mark.req("DPE-5")
@pytest.mark.parametrize("sample", ["number", "fabrication"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("cyrillic lookalikes", "base64"), ("leet", "html entities"), ("rot13", "zero-width space"),
        ("reversed", "fullwidth"), ("hex", "base64"), ("letters apart", "zero-width space"), ("base64", "rot13"),
        ("small capitals", "underline"), ("unicode escapes", "base64"), ("a word a line", "soft hyphen"),
    ],
)  # fmt: skip
async def test_two_masks_lower_no_risk(sample, first, second):
    """One over the other."""
    before = await plain(sample)
    after = await report(TRANSFORMS[second](TRANSFORMS[first](BAD[sample])))

    assert after.risk_level >= before.risk_level, [claim.text for claim in after.claims]


@pytest.mark.req("DPE-5")
async def test_what_was_masked_is_marked_where_it_was_sent():
    """Claims and personal data of the other reading point into the text as sent."""
    text = "Hello there. " + BAD["personal data"].encode().hex()
    found = await report(text)

    assert len(found.choices) == 1
    bad = next(claim for claim in found.claims if claim.distortions)
    (personal,) = found.pii

    assert bytes.fromhex(text[bad.start : bad.end]).decode() == "The Eiffel Tower is 390 metres tall."
    assert bytes.fromhex(text[personal.start : personal.end]).decode() == "jane.doe@example.com"


@pytest.mark.req("DPE-5")
async def test_honest_scripts_hold_no_floor_for_hiding():
    """Honest text in more than twenty scripts: no floor for hidden characters or for addressing a judge."""
    texts = [text for texts in CLEAN.values() for text in texts[:1]]
    held = [text for text in texts if {"HIDDEN_CHARACTERS", "ADDRESSES_JUDGE"} & set((await report(text)).floors)]

    assert held == []
