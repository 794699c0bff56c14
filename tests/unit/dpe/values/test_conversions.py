"""Conversions: amounts that a text equates are one, or it converts wrongly (SPEC-005 §5.2)."""

import pytest

from interlock.domain.risk.risk import RiskLevel
from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.conversions import wrong_conversions
from tests.support.dpe import pipeline, request


def _wrong(text: str) -> list[str]:
    return [other.text for _, other in wrong_conversions(read(text))]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("210 miles is about {}.", "338 km", "131 km"),
        ("350°F is about {}.", "175 °C", "210 °C"),
        ("20 C equals {}.", "68 F", "86 F"),
        ("33 lbs is about {}.", "15 kg", "22 kg"),
        ("A 9-inch tin, which is roughly {}, will do.", "23 cm", "32 cm"),
        ("Use {} (4 oz) of butter.", "113 g", "340 g"),
        ("1 pint is about {}.", "473 ml", "743 ml"),
    ],
)
def test_a_wrong_conversion_is_seen(text, right, wrong):
    """The right one is not."""
    assert not _wrong(text.format(right))
    assert _wrong(text.format(wrong))


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    "text",
    [
        "2% of 15 kg is 300 g.", "0.2 mg × 15 kg = 3 mg", "Run 5 km (20 ft climb).", "12 hours (30 minutes break)",
        "She is 5 feet 10 inches tall.", "The 9-inch tin is 2 cm wider.", "Bake 20 minutes. A 9-inch tin holds 2 litres.",
    ],
)  # fmt: skip
def test_amounts_that_nothing_equates_are_not_compared(text):
    """A result of another operation, a break, a climb."""
    assert not _wrong(text)


@pytest.mark.models
@pytest.mark.req("DPE-4")
@pytest.mark.parametrize(
    ("told", "level", "slots"), [("338 km", RiskLevel.LOW, []), ("131 km", RiskLevel.HIGH, ["conversion"])]
)
async def test_a_wrong_conversion_is_a_finding_of_the_whole_report(told, level, slots):
    """The figure that the source shows is right; what the answer makes of it in other units is not."""
    report = await pipeline().analyse(
        request(
            f"The route is 210 miles long, which is about {told}.", "The route from Leeds to London is 210 miles long."
        )
    )

    assert report.risk_level == level
    assert [one.slot for claim in report.claims for one in claim.distortions] == slots
