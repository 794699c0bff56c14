"""The measures of bench/quality: held against brute force and known values, and a document from what was measured."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.quality import plan
from bench.quality.baselines import overlap, window
from bench.quality.distortions import BENDS
from bench.quality.document import document
from bench.quality.engine import Judged
from bench.quality.figures import figures, plain
from bench.quality.jobs import Scores
from bench.quality.metrics import auroc, auroc_figure, balanced, best_threshold, bootstrap, share, wilson
from bench.quality.plan import Job
from bench.quality.rewrites import retold
from bench.quality.rows import ENTAILED, NOT_ENTAILED, Row, share_of
from bench.quality.sets import SETS

SCORED = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), st.booleans()), min_size=2, max_size=40)


def by_hand(scored: list[tuple[float, bool]]) -> float:
    """Every positive against every negative."""
    ones, zeros = [s for s, y in scored if y], [s for s, y in scored if not y]
    wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in ones for b in zeros)
    return wins / (len(ones) * len(zeros)) if ones and zeros else math.nan


@given(SCORED)
@settings(max_examples=80, deadline=None)
def test_auroc_is_the_share_of_pairs_in_order(scored):
    """The ranks give what counting every pair gives, ties half; without both classes there is nothing to tell."""
    found = auroc([s for s, _ in scored], [y for _, y in scored])

    assert found == pytest.approx(by_hand(scored), nan_ok=True)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)],
)
def test_wilson_has_the_known_bounds(hits, n, low, high):
    """Wilson's interval at figures that are printed in textbooks."""
    found = wilson(hits, n)

    assert (found.value, found.n) == (hits / n, n)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_a_share_of_nothing_is_told_by_nobody():
    """Without rows there is no share, and JSON has null for it."""
    assert math.isnan(share([]).value)
    assert share([]).json() == {"value": None, "low": None, "high": None, "n": 0}


def test_the_bootstrap_is_seeded_and_holds_its_value():
    """The same rows give the same interval, another seed another one, and the value lies in it."""
    rnd = random.Random(3)
    truth = [rnd.random() < 0.5 for _ in range(200)]
    score = [rnd.gauss(0.8 if y else 0.0, 1.0) for y in truth]

    one, again, other = (bootstrap(score, truth, auroc, seed=seed) for seed in (1, 1, 2))

    assert one == again
    assert (one.low, one.high) != (other.low, other.high)
    assert one.low < one.value < one.high
    assert one.high - one.low < 0.2


def test_one_class_alone_has_no_interval():
    """A set of one class gives no AUROC, and no error."""
    assert math.isnan(auroc_figure([0.1, 0.2], [True, True]).value)


@given(SCORED)
@settings(max_examples=60, deadline=None)
def test_no_threshold_does_better_than_the_best_one(scored):
    """The best threshold has the highest balanced accuracy that any threshold has on these rows."""
    score, truth = [s for s, _ in scored], [y for _, y in scored]
    best = best_threshold(score, truth)
    tried = [balanced(score, truth, cut) for cut in (0.0, 0.05, 0.2, 0.4, 0.6, 0.95, 1.1)]

    if all(truth) or not any(truth):
        assert math.isnan(best)
    else:
        assert balanced(score, truth, best) >= max(tried) - 1e-12


def job(name: str, count: int, results, weight: int = 10) -> Job:
    rows = [Row(f"source {n}", f"text {n}", ENTAILED if n % 2 else NOT_ENTAILED) for n in range(count)]

    async def measure(part):
        return [results(row) for row in part]

    return Job(name, rows, measure, weight)


def test_sizes_fill_the_time_by_weight_and_never_more_than_there_is():
    """Twice the weight is twice the rows at any cost, a small set is used up, and the sum fits the time."""
    jobs = [job("a", 1000, str, weight=10), job("b", 1000, str, weight=20), job("c", 30, str, weight=500)]
    costs = {"a": 0.1, "b": 0.1, "c": 0.01}

    found = plan.sizes(jobs, costs, 60)

    assert found["c"] == 30
    assert found["b"] == pytest.approx(2 * found["a"], abs=2)
    assert 0.8 * 60 * plan.RESERVE < sum(found[name] * costs[name] for name in found) <= 60 * plan.RESERVE


def test_where_time_is_short_the_first_jobs_get_enough_rows_and_the_last_none():
    """A few rows of everything would tell nothing of anything: what comes first is measured, the rest is left out."""
    jobs = [job("first", 1000, str), job("second", 1000, str), job("third", 1000, str)]

    found = plan.sizes(jobs, dict.fromkeys(("first", "second", "third"), 1.0), 2.5 * plan.ENOUGH / plan.RESERVE)

    assert found["first"] >= plan.ENOUGH
    assert found["second"] >= plan.ENOUGH
    assert found["third"] == 0


def test_a_slow_machine_measures_what_it_comes_to_within_its_time():
    """Where the first look takes all the time, what it came to stays, and the rest is left out without an error."""
    jobs = [job("first", 100, str), job("second", 100, str)]

    asyncio.run(plan.within(jobs, 0.0, lambda _: None))
    asyncio.run(plan.within(jobs[:1], 0.5, lambda _: None))

    assert len(jobs[0].results) == 100
    assert jobs[1].results == []


def test_a_job_that_fails_leaves_its_rows_and_the_others_run(capfd):
    """One measurement that breaks is named and stops; what it measured before stays."""

    def fails_late(row: Row) -> int:
        if row.text == "text 20":
            raise ZeroDivisionError
        return 1

    broken, sound = job("broken", 50, fails_late), job("sound", 50, lambda _: 1)
    for one in (broken, sound):
        asyncio.run(one.run(50))

    assert (broken.failed, len(broken.results)) == ("ZeroDivisionError", plan.STEP)
    assert (sound.failed, len(sound.results)) == ("", 50)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_job_stops_at_its_time():
    """Past its time a job measures nothing more."""
    late = job("late", 50, lambda _: 1)
    asyncio.run(late.run(50, until=0.0))

    assert late.results == []


RUN = {
    "models": [{"slot": "nli", "name": "m 1", "hash": "sha256:" + "a" * 64, "runtime": "embedded"}],
    "previous": "not to be had: left out", "method": "nli+values", "date": "2026-01-01", "minutes": 1.0,
    "size": "at most 40 rows of each", "machine": "x", "versions": "Python", "partial": "it was stopped", "refused": "",
}  # fmt: skip


def low(row: Row) -> Judged:
    """Everything is LOW, so every unfaithful answer passes."""
    del row
    return Judged(0.05, low=True, grounded=1.0, types=(), fabrications=0, contradictions=0, floors=())


def test_a_run_that_was_stopped_writes_what_it_has():
    """The page says that it was cut short, shows what was measured, and names what was not."""
    jobs = [
        job("pairs:snli", 40, lambda r: Scores(1.0 if r.label == ENTAILED else 0.0, 0.5, (0.5, 0.3, 0.2))),
        job("responses:qags_xsum", 40, lambda r: {"report": low(r), "previous": None, "lexical": 0.5, "cosine": 0.1}),
        job("distortions:NUMBER_CHANGED", 40, low),
    ]
    asyncio.run(jobs[0].run(40))
    asyncio.run(jobs[1].run(40))
    asyncio.run(jobs[2].run(5))

    page = document(RUN, figures(jobs))

    assert "**This run was cut short**: it was stopped" in page
    assert "| SNLI test | 40 | **1.000 (1.00–1.00)** |" in page, "a baseline that beats us is in bold"
    assert "**Unfaithful answers pass as LOW**: QAGS XSum 100%" in page
    assert "Over all sets, 40 answers: 100.0% (84–100) of the faithful ones are LOW" in page
    assert "Too few rows to tell anything, and left out: distortions:NUMBER_CHANGED" in page
    assert "By claim, counting shared words beats it on SNLI test." in page
    assert "| NUMBER_CHANGED |" not in page


def test_what_was_measured_is_json():
    """Figures become plain JSON, with the rows of each measurement."""
    jobs = [
        job("responses:qags_xsum", 30, lambda r: {"report": low(r), "previous": None, "lexical": 0.5, "cosine": 0.1})
    ]
    asyncio.run(jobs[0].run(30))

    found = plain(figures(jobs))

    assert found["rows"] == {"responses:qags_xsum": [30, 30]}
    assert found["responses"]["qags_xsum"]["unfaithful_low"]["value"] == 1.0


def test_nothing_measured_is_a_page_too():
    """A run that ended before its first row writes a page that says so."""
    assert "not measured in this run" in document(RUN, figures([]))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("NUMBER_CHANGED", "The plant employs 420 people in the valley."),
        ("NEGATION_FLIP", "The plant is not open to visitors."),
        ("DATE_SHIFTED", "The plant was opened in June 1998."),
        ("ENTITY_SUBSTITUTED", "The plant belongs to Harold Winter of Leeds."),
        ("MAGNITUDE_ALTERED", "The plant made 14 million pounds that year."),
        ("CONTEXT_STRIPPED", "The plant may close next year."),
    ],
)
def test_each_type_of_distortion_bends_what_it_is_about(kind, text):
    """A sentence that has what a type bends comes back changed, and one that has nothing of it is left alone."""
    bent = BENDS[kind](text, random.Random(1), ["Peter Stone", "Ruth Field", "York", "Bonn"])

    assert bent is not None
    assert bent != text
    assert BENDS[kind]("nothing here at all", random.Random(1), []) is None


def test_what_is_told_otherwise_keeps_its_figures():
    """The rules that keep the meaning write a figure in another form and never another figure."""
    said = retold(
        "It earned $4 million (about 12%) on 14 June 2023, and they don't know.", random.Random(4), asides=False
    )

    assert "4 million" in said
    assert "12 percent" in said
    assert "June 14, 2023" in said or "14 June 2023" in said


def test_a_window_is_the_part_that_shares_words():
    """Out of a long source the sentences that share words with the claim are taken, and a short one stays whole."""
    filler = "Nothing of interest happened in that place at all. " * 30
    source = filler + "The bridge over the Tay fell in a storm. " + filler

    assert "The bridge over the Tay fell" in window(source, "A storm brought down the Tay bridge")
    assert len(window(source, "A storm brought down the Tay bridge").split()) <= 110
    assert window("Short.", "Anything") == "Short."
    assert overlap("The bridge fell.", "The bridge rose.") == 0.5


def test_the_registry_tells_licences_and_training():
    """Sets without a licence and non-commercial ones are never marked as trained on; names are unique."""
    assert len({one.name for one in SETS}) == len(SETS)
    assert not [one.name for one in SETS if one.tier in {"B", "C"} and one.trained]
    assert all(one.licence for one in SETS)


def test_the_split_of_partly_trained_sets_is_fixed():
    """The rule that keeps rows from training gives the same share for the same premise everywhere."""
    assert share_of("A man is asleep.") == pytest.approx(0.7013672602)
