"""What a record says is on, allowed or required, and claims that say so or the opposite (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.support.dpe import pipeline, request, ruled

pytestmark = pytest.mark.req("DPE-3")
FERRY = "ferry:\n  wifi: true\n  bar: closed\n  dogs: forbidden\n  life_vests_required: true\n  allow_bikes: no\n  lift: null\n  toilets: free\nheating:\n  enabled: off\n"
PASSES = '[{"sailor": "Ida", "radio_licence": true}, {"sailor": "Tom", "radio_licence": false}]'


@pytest.mark.parametrize(
    ("faithful", "bent"),
    [
        ("The wifi is switched on.", "The wifi is switched off."),
        ("The ferry has wifi.", "The ferry has no wifi."),
        ("The bar is closed.", "The bar is open."),
        ("Dogs are not allowed.", "Dogs are allowed."),
        ("Dogs are prohibited.", "Dogs may come on board."),
        ("Life vests are mandatory.", "Life vests are optional."),
        ("You must wear life vests.", "Life vests are not required."),
        ("Bikes are not permitted.", "Bikes are permitted."),
        ("No lift is specified.", "A lift is specified."),
        ("Heating is disabled.", "Heating is enabled."),
        ("The toilets cost nothing.", "The toilets cost 2 euros."),
        ("The bar is closed and dogs are forbidden.", "The bar is closed and dogs are permitted."),
    ],
)
def test_the_opposite_of_a_state_is_found(faithful: str, bent: str) -> None:
    """A faithful sentence is borne out by the record, and its opposite is a finding that names the key."""
    right, evidence = ruled(faithful, FERRY)
    wrong, _ = ruled(bent, FERRY)
    assert (right, evidence.agreed) == ([], True)
    assert [each.type for each in wrong] == ["NEGATION_FLIP"]


def test_the_state_is_that_of_the_named_row() -> None:
    """Of several rows the one that the claim names counts."""
    assert ruled("Ida has a radio licence.", PASSES)[0] == []
    assert [each.slot for each in ruled("Tom has a radio licence.", PASSES)[0]] == ["radio licence"]


@pytest.mark.parametrize(
    "answer",
    [
        "If the wifi is off, tell the crew.",
        "The wifi could be switched off.",
        "The wifi was previously off.",
        "Wifi is optional.",
        "The bar serves drinks.",
        "Only the crew may bring dogs.",
        "The wifi of the harbour office on the other pier is switched off.",
        "A sailor has a radio licence.",
        "Is the bar open?",
    ],
)
def test_what_is_not_surely_the_opposite_is_left_alone(answer: str) -> None:
    """Conditions, possibilities, the past, other conditions, other things."""
    assert ruled(answer, FERRY, PASSES)[0] == []


def test_what_another_source_says_of_the_key_is_no_opposite() -> None:
    """The record may be older than a sentence elsewhere."""
    assert ruled("The wifi is switched off.", FERRY, "Since Monday the wifi is switched off.")[0] == []


@pytest.mark.models
async def test_a_state_told_otherwise_is_not_low() -> None:
    """The whole way: the model entails both, and the record decides."""
    right = await pipeline().analyse(request("Dogs are not allowed, and the wifi is on.", FERRY))
    wrong = await pipeline().analyse(request("Dogs are allowed, and the wifi is on.", FERRY))
    assert (right.risk_level, right.distortion_count) == (1, 0)
    assert wrong.risk_level > 1
    assert {each.slot for one in wrong.claims for each in one.distortions} == {"dogs"}


def test_two_denials_in_a_row_are_of_two_fields() -> None:
    """*No deposit and no guarantor* denies each of them once."""
    lease = "lease:\n  deposit: 0\n  guarantor: null\n"
    assert ruled("There is no deposit and no guarantor.", lease)[0] == []
    assert [each.slot for each in ruled("There is no deposit and a guarantor is specified.", lease)[0]] == ["guarantor"]


def test_what_all_but_one_have_that_one_lacks() -> None:
    """A claim that excepts a record says *no* of its field."""
    rooms = "| Room | Seats | Screen |\n| --- | --- | --- |\n| Elm Room | 12 | yes |\n| Ash Room | 30 | yes |\n| Loft Room | 16 | no |"
    assert ruled("All but the Loft Room, with 16 seats, have a screen.", rooms)[0] == []
    assert {each.type for each in ruled("The Loft Room, with 16 seats, has a screen.", rooms)[0]} == {"NEGATION_FLIP"}
