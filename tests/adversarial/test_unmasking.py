"""What masks a text is taken off, and honest text in any script is left alone (reliability.md A-24)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.risk.composite import Composite, Floor, RiskSignals
from interlock.domain.risk.risk import classify
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim, ClaimType, Distortion
from interlock.dpe.grounding.attribution import NOTHING, Attribution
from interlock.dpe.judging import worst_views
from interlock.dpe.quality.coherence import CrossWindow
from interlock.dpe.report.message import Choice
from interlock.dpe.request import Output
from interlock.dpe.risk import Risk
from interlock.dpe.text.addressing import addressed
from interlock.dpe.text.text import normalised
from interlock.dpe.text.views import AS_WRITTEN, UNMASKED, unmasked, viewed
from tests.adversarial.clean_texts import CLEAN
from tests.adversarial.transforms import TRANSFORMS

SAMPLE = "The Eiffel Tower is 390 metres tall, and it was completed in 1889 by Gustave Eiffel's company."
WORDS = ("Eiffel", "Tower", "390", "metres", "completed", "1889", "company")
CLEAN_TEXTS = [text for texts in CLEAN.values() for text in texts]
LOST = {"alternating case": {"Tower"}}  # a mask that does not keep the case of a name


def read(raw: str) -> str:
    """The text that is judged beside the one as written."""
    found = unmasked(raw)
    return found[0].chars if found else normalised(raw)[0].chars


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_mask_comes_off(name):
    """Words, names and figures of the text below the mask stand in the reading, on the same line."""
    lines = read(TRANSFORMS[name](SAMPLE)).splitlines()
    wanted = set(WORDS) - LOST.get(name, set())

    assert any(all(word in line for word in wanted) for line in lines), lines


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_was_masked_points_at_what_was_sent(name):
    """Each character of the reading has a place in the text as sent, in code points."""
    raw = "Before it.\n" + TRANSFORMS[name](SAMPLE)
    found = unmasked(raw)
    text = found[0] if found else normalised(raw)[0]
    at = text.chars.find("390")

    assert all(0 <= start < end <= len(raw) for start, end in zip(text.starts, text.ends, strict=True))
    assert at < 0 or text.span(at, at + 3)[0] >= len("Before it.\n")


def test_a_decoded_word_points_at_its_own_part():
    """Not at the whole run: a reader of the report is led to where it stands."""
    raw = SAMPLE.encode().hex()
    text, _ = unmasked(raw)
    start, end = text.span(text.chars.index("390"), text.chars.index("390") + 3)

    assert bytes.fromhex(raw[start:end]).decode() == "390"


@pytest.mark.parametrize(
    "name",
    [
        "zero-width space", "zero-width joiner", "soft hyphen", "combining grapheme joiner", "hangul filler",
        "variation selector", "tag characters between", "bidi isolates", "right-to-left override", "tag message",
        "emoji smuggling", "zero-width bits", "cyrillic lookalikes", "mixed lookalikes", "zalgo", "underline",
        "strike-through", "deletion characters",
    ],
)  # fmt: skip
def test_what_hides_is_held_against_the_text(name):
    """Hidden, tag and direction characters, mixed scripts and heaps of marks are counted, decoded or not."""
    assert normalised(TRANSFORMS[name](SAMPLE))[1] > 0


def test_what_hides_inside_a_code_is_held_against_the_text():
    """Escapes and entities of hidden characters count as the characters themselves."""
    for raw in ('{"note": "The Eif\\u200bfel Tower"}', "The Eif&#8203;fel Tower is tall"):
        views = viewed([Output(0, raw)])
        assert views[-1].view == UNMASKED
        assert views[-1].hidden > 0


def test_json_stays_json():
    """Escapes of quotes and backslashes are left: an argument cannot end its string."""
    raw = json.dumps({"note": 'He said \\"no\\" \u0041 \u200b'})

    assert json.loads(read(raw.replace("A", "\\u0041"))) == {"note": 'He said \\"no\\" A '}


@pytest.mark.req("DPE-1")
def test_honest_text_hides_nothing():
    """At most one in a hundred honest texts, in over ten scripts, is held to hide or to address a judge."""
    wrong = [text for text in CLEAN_TEXTS if normalised(text)[1] or addressed(text)]

    assert len(CLEAN) >= 20
    assert len(wrong) <= len(CLEAN_TEXTS) // 100, wrong


def test_honest_text_is_rarely_read_twice():
    """A second reading costs time; it is for what looks masked."""
    twice = [text for text in CLEAN_TEXTS if unmasked(text)]

    assert len(twice) <= len(CLEAN_TEXTS) // 20, twice


@pytest.mark.parametrize(
    "raw",
    [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "AKIAIOSFODNN7EXAMPLEKEY123456789",
        "3fa85f64-5717-4562-b3fc-2c963f66afa6",
        "https://example.com/%D0%9F%D1%80%D0%B8%D0%B2%D0%B5%D1%82",
    ],
)
def test_what_cannot_be_read_stays(raw):
    """Hashes, pictures, keys and addresses are no text in code."""
    assert unmasked(raw) is None


def test_a_masked_output_is_read_twice_with_its_choice():
    """Both readings hold every output of the choice; another choice is read once."""
    views = viewed([Output(0, "Plain."), Output(1, "Other."), Output(0, SAMPLE.encode().hex())])

    assert [(v.choice_index, v.place, v.view) for v in views] == [
        (0, 0, AS_WRITTEN), (0, 0, UNMASKED), (1, 1, AS_WRITTEN), (0, 2, AS_WRITTEN), (0, 2, UNMASKED),
    ]  # fmt: skip
    assert views[-1].text.chars == SAMPLE


def reading(number: int, score: float, index: int = 0, **found: Any) -> Choice:
    """One reading of a choice: a claim with what was found in it."""
    name = f"c{number}"
    claim = Claim(name, f"Said {number}.", 0, index, *found.get("place", (0, 9)), ClaimType.FACTUAL, 0.5, ())
    floors = tuple(found.get("floors", ()))
    return Choice(
        index=index, claims=[claim], evidence={name: NOTHING}, attributions={name: Attribution.MIXED},
        fabrications={name: found.get("fabrications", ())}, distortions={name: found.get("distortions", ())},
        contradictions=found.get("contradictions", ()), omissions=(), weakest=None,
        risk=Risk(
            Composite(score, score, classify(score), (), floors), RiskSignals(0.0, 0.0, 0.0, 0.0), None, None, None
        ),
    )  # fmt: skip


@pytest.mark.parametrize("scores", [(0.3, 0.7), (0.7, 0.3)])
def test_the_worse_reading_of_a_choice_is_kept(scores):
    """Once for each choice, wherever the worse one stands."""
    readings = [reading(n, score, index) for n, (index, score) in enumerate([(0, scores[0]), (0, scores[1]), (1, 0.1)])]

    assert [(kept.index, kept.risk.composite.score) for kept in worst_views(readings)] == [(0, 0.7), (1, 0.1)]


@pytest.mark.req("DPE-5")
@pytest.mark.parametrize("order", [1, -1])
def test_a_worse_reading_hides_no_finding_of_the_other(order):
    """What only the better reading makes up, bends or contradicts stays in the report, and so do its floors."""
    changed = Distortion("NUMBER_CHANGED", "330 metres", "390 metres", "f1")
    earlier = CrossWindow("c1", "", "The tower is 330 metres tall.", 0.9, "CRITICAL", "values", "number", "w1")
    milder = reading(
        1, 0.4, fabrications=("Krause",), distortions=(changed,), contradictions=(earlier,),
        floors=(Floor.CONTRADICTION_FOUND,),
    )  # fmt: skip
    (kept,) = worst_views([reading(2, 0.8, floors=(Floor.FABRICATION_FOUND,)), milder][::order])

    assert [claim.claim_id for claim in kept.claims] == ["c2", "c1"]
    assert (kept.fabrications["c1"], kept.distortions["c1"]) == (("Krause",), (changed,))
    assert list(kept.contradictions) == [earlier]
    assert kept.risk.composite.floors == (Floor.FABRICATION_FOUND, Floor.CONTRADICTION_FOUND)


def test_a_finding_of_both_readings_counts_once():
    """A sentence that no mask touches says the same in each."""
    inside = [Contradiction(f"c{n}", f"c{n}", f"Said {n}.", 0.9, "HIGH", "nli", "plain") for n in (1, 2)]
    found = [reading(n, 0.4 * n, fabrications=("Krause",), contradictions=(each,)) for n, each in enumerate(inside, 1)]
    (kept,) = worst_views(found)

    assert [claim.claim_id for claim in kept.claims] == ["c2"]
    assert list(kept.contradictions) == inside[1:]


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_can_be_unmasked(raw):
    """Whatever comes, it ends, and every character has a place."""
    found = unmasked(raw)
    if found:
        text = found[0]
        assert len(text.chars) == len(text.starts) == len(text.ends)
        assert all(0 <= start < end <= len(raw) for start, end in zip(text.starts, text.ends, strict=True))


@given(st.text(alphabet="ab1 \u200b\u202e\ufe0fе\u0301&#x4;\\u00%=.\n-|", max_size=80))
@settings(max_examples=150, deadline=None)
def test_masks_over_masks_can_be_unmasked(raw):
    """The same for what masks are made of."""
    found = unmasked(raw)

    assert found is None or all(0 <= s < e <= len(raw) for s, e in zip(found[0].starts, found[0].ends, strict=True))
