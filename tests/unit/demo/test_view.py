"""How a window is shown."""

from __future__ import annotations

import pytest

from interlock.api.dpe.v1 import dpe_pb2
from interlock.demo.view import Highlight, bar, marked, marks, stages


def claim(start: int, end: int, attribution: int, **rest: object) -> dpe_pb2.Claim:
    return dpe_pb2.Claim(text="The price is 5.", start=start, end=end, attribution=attribution, **rest)


def test_a_grounded_claim_is_not_marked():
    """What the sources support stays as it is."""
    report = dpe_pb2.Report(claims=[claim(0, 9, dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED)])

    assert marks(report) == []


@pytest.mark.parametrize(
    ("attribution", "why"),
    [
        (dpe_pb2.ATTRIBUTION_PARAMETRIC, "no source supports it"),
        (dpe_pb2.ATTRIBUTION_UNVERIFIABLE, "no source supports it"),
        (dpe_pb2.ATTRIBUTION_MIXED, "the source supports it only in part"),
    ],
)
def test_an_unsupported_claim_is_marked_with_the_reason(attribution, why):
    """Each attribution that is not grounded has its words."""
    assert marks(dpe_pb2.Report(claims=[claim(3, 9, attribution)])) == [Highlight(3, 9, why)]


def test_a_claim_that_is_part_of_its_sentence_is_quoted():
    """Of a sentence with several claims the reason says which one it is about."""
    (mark,) = marks(dpe_pb2.Report(claims=[claim(0, 90, dpe_pb2.ATTRIBUTION_PARAMETRIC)]))

    assert mark.why == "no source supports it: 'The price is 5.'"


def test_a_distortion_shows_both_values():
    """A grounded claim whose value was changed is marked with what the source says."""
    changed = dpe_pb2.Distortion(type="NUMERIC", source_value="$630", claim_value="$900")
    report = dpe_pb2.Report(claims=[claim(0, 5, dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED, distortions=[changed])])

    assert marks(report) == [Highlight(0, 5, "NUMERIC: the source says '$630', the answer '$900'")]


def test_claims_of_one_sentence_are_one_mark():
    """A sentence with two unsupported claims is bracketed once and lists both reasons."""
    twice = [claim(0, 5, dpe_pb2.ATTRIBUTION_MIXED), claim(0, 5, dpe_pb2.ATTRIBUTION_PARAMETRIC, fabrications=["Ann"])]
    (one,) = marks(dpe_pb2.Report(claims=twice))

    assert one.why.count(";") == 2
    assert "not in the source: 'Ann'" in one.why


def test_marks_read_without_colour():
    """Brackets and numbers stand in the text itself, and nothing of the answer is lost."""
    assert (
        marked("One. Two. Three.", [Highlight(0, 4, "a"), Highlight(10, 16, "b")]).plain == "[[One.]]1 Two. [[Three.]]2"
    )


@pytest.mark.parametrize(
    ("micros", "shown"),
    [(0, "[----] 0.00"), (499_999, "[#---] 0.50"), (500_000, "[##--] 0.50"), (1_000_000, "[####] 1.00")],
)
def test_the_bar_never_shows_more_than_is_left(micros, shown):
    """Marks are rounded down."""
    assert bar(micros, width=4) == shown


def test_stages_that_did_not_run_are_named_with_the_reason():
    """What was not looked at is not left out."""
    listed = [
        dpe_pb2.Stage(number="1", status=dpe_pb2.STAGE_STATUS_RAN),
        dpe_pb2.Stage(number="8", status=dpe_pb2.STAGE_STATUS_NOT_RUN, detail="no query"),
    ]

    assert stages(dpe_pb2.Report(stages=listed)) == "1; not run: 8 (no query)"
