"""Within reach: figures that follow from those beside them, and what was said before, are not invented (SPEC-005 §5.2)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim, ClaimType, Distortion, Fact, Sentence
from interlock.dpe.grounding.attribution import NOTHING
from interlock.dpe.grounding.placing import within_reach
from interlock.dpe.request import Output, PriorWindow, Request


def _reading(*sentences: str) -> ChoiceReading:
    claims = [Claim(f"c{n}", text, n, 0, 0, 1, ClaimType.FACTUAL, 0.5, ()) for n, text in enumerate(sentences)]
    told = [Sentence(n, text, 0, len(text), 0) for n, text in enumerate(sentences)]
    return ChoiceReading(0, claims=claims, checked=claims, sentences=told)


def _beyond(fabricated, *sentences, source="", premise="", query="", prior=(), facts=()):
    """Return what is out of reach of the figures around each sentence, by its number."""
    windows = tuple(PriorWindow(f"w{n}", text) for n, text in enumerate(prior))
    sources = tuple(Fact(f"f{n}", text, 0.5) for n, text in enumerate(facts))
    request = Request((Output(0, " ".join(sentences)),), facts=sources, query=query, prior=windows)
    evidence = {f"c{n}": replace(NOTHING, source=source, premise=premise or source) for n in range(len(sentences))}
    named = {f"c{n}": texts for n, texts in fabricated.items()}
    found = within_reach.beyond(named, [_reading(*sentences)], evidence, request, judged=set(named))
    return {int(name[1:]): texts for name, texts in found.items()}


@pytest.mark.req("ATT-5")
def test_nothing_fabricated_leaves_nothing_beyond():
    """Without a finding there is nothing to look at."""
    assert _beyond({}, "The ferry has 12 cabins.") == {}


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("figure", "wrong", "sentences", "context"),
    [
        ("€62", "€68", ["The ferry costs €45 and the cabin €17.", "You pay {} for them."], {}),
        ("€90", "€95", ["At €45 a head you pay {}."], {"query": "We are 2."}),
        ("12 May", "19 May", ["It leaves on 5 May.", "Another week and it is {}."], {}),
        ("07:30", "07:10", ["It sails at 08:30.", "Be there an hour earlier, at {}."], {}),
        ("three times", "seven times", ["The cabin is {} €17, so €51."], {}),
        ("160 g", "190 g", ["Double quantity: {}"], {"source": '{"oats": 80, "honey": 15}'}),
        ("15 points", "25 points", ["Its share lost {}."], {"source": "The share fell from 61 to 46."}),
        (
            "€30",
            "€35",
            ["It is {} dearer."],
            {"source": "The wide berth is €90.", "premise": "The wide berth is €90. Another is €60."},
        ),
        ("25 minutes", "35 minutes", ["It took {} to land."], {"facts": ["Called at 13:40.", "Landed at 14:05."]}),
        ("83 minutes", "93 minutes", ["You rowed for {}:", "Mon: 48 minutes", "Tue: 35 minutes"], {}),
    ],
)
def test_what_follows_from_the_figures_around_is_not_invented(figure, wrong, sentences, context):
    """The same sentence with another figure still is."""
    place = next(n for n, text in enumerate(sentences) if "{}" in text)
    for written, left in ((figure, {}), (wrong, {place: (wrong.removesuffix(" points"),)})):
        texts = [text.format(written) for text in sentences]
        assert _beyond({place: (written.removesuffix(" points"),)}, *texts, **context) == left


@pytest.mark.req("ATT-5")
def test_two_invented_figures_do_not_bear_each_other_out():
    """An hour apart, and neither follows from anything else."""
    sentences = ["Board at 17:20.", "Be there an hour earlier, at 16:20."]
    assert _beyond({0: ("17:20",), 1: ("16:20",)}, *sentences) == {0: ("17:20",), 1: ("16:20",)}


@pytest.mark.req("ATT-5")
def test_a_figure_within_reach_bears_out_the_next():
    """140 minutes and 15 make 155, and those before 19:00 make 16:25."""
    sentences = [
        "It needs 4 times 35 minutes, or 140 minutes.",
        "With 15 minutes of rest that is 155 minutes.",
        "Start at 16:25.",
    ]
    named = {0: ("140 minutes",), 1: ("155 minutes",), 2: ("16:25",)}
    assert _beyond(named, *sentences, query="We eat at 19:00.") == {}
    assert _beyond({2: ("16:45",)}, *sentences[:2], "Start at 16:45.", query="We eat at 19:00.") == {2: ("16:45",)}


@pytest.mark.req("ATT-5")
def test_what_an_answer_derived_before_is_not_invented_now():
    """A figure that followed there is known; an invention does not become true by being repeated."""
    prior = ["She rows 20 km on Mondays and 28 km on Fridays, 48 km in all. Captain Odile Brandt began in 1953."]
    assert _beyond({0: ("48 km",)}, "Odile rows 48 km.", prior=prior) == {}
    assert _beyond({0: ("1953", "Odile Brandt")}, "Odile Brandt began in 1953.", prior=prior) == {
        0: ("1953", "Odile Brandt")
    }
    assert _beyond({0: ("47 km",)}, "Odile rows 47 km.", prior=prior) == {0: ("47 km",)}


@pytest.mark.req("ATT-5")
def test_claims_that_are_judged_apart_keep_what_was_found():
    """What no source is about, and what is in another language, is found by other means."""
    request = Request((Output(0, "Das sind 48 km."),), query="20 km und 28 km?")
    reading, named = _reading("Das sind 48 km."), {"c0": ("48 km",)}

    assert within_reach.beyond(named, [reading], {"c0": NOTHING}, request, judged=()) == named
    assert within_reach.beyond(named, [reading], {"c0": NOTHING}, request, judged={"c0"}) == {}


@pytest.mark.req("ATT-5")
def test_a_changed_figure_that_follows_is_no_distortion():
    """Nine of twelve cabins stay free where three are taken; ten do not."""

    def left(claim):
        number = claim.split()[0]
        bent = {"c0": (Distortion("NUMBER_CHANGED", "3", number, "f0"),)}
        return within_reach.derived(bent, [_reading(claim)], Request((Output(0, claim),)))

    assert left("9 of the 12 cabins stay free.") == {}
    assert "c0" in left("10 of the 12 cabins stay free.")
    assert "c0" in left("9 cabins stay free.")


@pytest.mark.req("ATT-5")
@settings(max_examples=15, deadline=2000)
@given(st.lists(st.integers(1000, 9999), min_size=1, max_size=300))
def test_many_figures_are_judged_in_bounded_time(figures):
    """An answer of many figures is judged at all, and a far larger one stays out of reach."""
    sentences = [f"Field {n} has {figure} kg." for n, figure in enumerate(figures)]
    named = {len(sentences): ("987654321 kg",)}
    assert _beyond(named, *sentences, "Together they have 987654321 kg.") == named


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("figure", "wrong", "sentences", "context"),
    [
        ("£8.60", "£9.60", ["Flour; Price: £1.30", "Eggs; Price: £7.30", "Total; Price: {}"], {}),
        ("338 km", "131 km", ["It sails 210 miles, so {}."], {}),
        ("300 g", "900 g", ["Sugar: {} (1 1/2 cups)"], {"facts": ["1 1/2 cups sugar"]}),
        ("112", "131", ["fat g: {}"], {"facts": ['{"slice": {"fat_g": 14, "sugar_g": 38}, "slices": 8}']}),
        ("40 days", "60 days", ["He eats 300 g a day.", "The bag of 12 kg lasts {}."], {}),
        ("10 May", "14 May", ["It begins tomorrow, on {}."], {"query": "Today is 9 May."}),
        ("5", "7", ["The ship has {} decks: Sun", "The ship has {} decks: Pool", "The ship has {} decks: Bar",
                    "The ship has {} decks: Car", "The ship has {} decks: Boat"], {}),
        ("3,080", "3,800", ["kcal: {}"], {"prior": ["Each slice has 385 kcal, so all 8 slices have 3,080 kcal."]}),
    ],
)  # fmt: skip
def test_everyday_results_are_within_reach(figure, wrong, sentences, context):
    """Totals of a column, conversions, weights of volumes, fields times a count, items of a list; another figure is not."""
    for text, reached in ((figure, True), (wrong, False)):
        told = [sentence.format(text) for sentence in sentences]
        found = {n: (text,) for n, sentence in enumerate(sentences) if "{}" in sentence}
        assert (_beyond(found, *told, **context) == {}) is reached, text


@pytest.mark.req("ATT-5")
def test_the_figure_of_another_unit_is_a_slip():
    """Four days are not within reach where the source says four weeks."""
    told = ["Once opened, finish it within four days of its twelve weeks."]
    assert _beyond({0: ("four days",)}, *told, source="Once opened, finish it within four weeks.")


@pytest.mark.req("ATT-5")
def test_what_a_source_names_itself_is_not_reckoned():
    """The water of the recipe is stated: only its own figure counts, not any that others make."""
    facts = ['{"water_ml": 350, "flour_g": 483, "rye_g": 434}']
    assert _beyond({0: ("917 ml",)}, "water ml: 917 ml", facts=facts)
