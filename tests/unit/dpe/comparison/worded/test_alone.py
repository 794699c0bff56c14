"""One alone is told from each, and both from either; what is limited in the source too is left (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Entries can be handed in by post or online.", "Entries can only be handed in online.", "Entries can be handed in online."),
        ("Entries can be handed in by post or online.", "Entries can be handed in by post only.", "Entries can be handed in by post as well as online."),
        ("Wind shortened the range of all four drones by a tenth.", "Wind shortened the range of the smallest drone alone.", "Wind shortened the range of every drone."),
        ("The film may be watched on any screen but copied on library screens only.", "The film may be watched on library screens only.", "The film may be copied on library screens only."),
        ("Nurses and midwives alike asked for longer breaks.", "Only midwives asked for longer breaks.", "Midwives asked for longer breaks, and so did nurses."),
        ("Reports are checked every time.", "Reports are checked the first time only.", "Reports are checked each time."),
        ("The form must be signed both by hand and digitally.", "The form must be signed either by hand or digitally.", "The form must be signed by hand and digitally."),
        ("Applicants must speak Finnish or Swedish.", "Applicants must speak both Finnish and Swedish.", "Applicants must speak Finnish or Swedish."),
        ("Starting the press requires both the key and a code.", "Either the key or a code is enough to start the press.", "Starting the press needs both a code and the key."),
        ("The club pays a coach for matches but not for training.", "The club pays a coach for matches as well as for training.", "The club pays a coach for matches."),
        ("The sheets are included in the price, the towels are not.", "Both the sheets and the towels are included in the price.", "The sheets are included in the price."),
        ("Labels in Greek or English are required, unless the jar has no label.", "Labels are required in both Greek and English.", "Labels in either Greek or English are required."),
    ],
)  # fmt: skip
def test_what_is_told_of_one_alone_or_of_both_is_found(source: str, bent: str, faithful: str) -> None:
    """The finding is of the quantifier."""
    assert "quantifier" in {each.slot for each in found((source,), bent)}
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("You can pay in cash or by card.", "Both cash and card are accepted."),
        ("Members and guests may swim, but guests only until noon.", "Guests may swim only until noon."),
        ("All children get a badge. The badge opens the gym for coaches alone.", "The badge opens the gym for coaches only."),
        ("Every morning the warden opens the vault.", "Only the warden opens the vault in the morning."),
        ("Eggs or milk must not be served.", "Both eggs and milk must be left out."),
        ("Dogs and cats are welcome, but cats may not enter the kitchen.", "Both dogs and cats are welcome."),
        ("Adults pay 9 EUR, children pay 4 EUR and do not need a ticket.", "Adults as well as children pay."),
        ("Either the tenant or the agent may end the lease, but only the owner may extend the lease.", "Either the tenant or the agent may end the lease, but the lease may be extended by the owner only."),
        ("Adults and teenagers may ride; teenagers alone need a helmet.", "Only teenagers need a helmet to ride."),
    ],
)  # fmt: skip
def test_what_the_source_limits_or_allows_is_left(source: str, claim: str) -> None:
    """Where either is allowed both are, and a limit of the source itself is no invention."""
    assert "quantifier" not in {each.slot for each in found((source,), claim)}


def test_only_before_a_figure_of_the_source_finds_it_few() -> None:
    """It says nothing of what is not counted; *only* before another thing does."""
    source = "Rana has played 12 times in all cups for Brent this season."

    assert not found((source,), "Rana has played only 12 games for Brent this season.")
    assert found(
        ("Rana has played in all cups for Brent this season.",),
        "Rana has played only in the league cup for Brent this season.",
    )
