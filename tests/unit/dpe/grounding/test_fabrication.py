"""Stage 3a: names, figures and citations without a basis in the envelope (SPEC-005 §5.2)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Claim, ClaimType, Entity, Fact
from interlock.dpe.grounding.fabrication import EnvelopeIndex, find

ACT = EnvelopeIndex.of(
    [
        "The EU AI Act was adopted in 2024 by the European Parliament.",
        "The Act classifies AI systems into four risk levels.",
    ],
    "What does the AI Act say, and what did Jane Roe say about it?",
)
FIRM = EnvelopeIndex.of(
    [
        "Apple Inc. reported revenue of $4.2 million in Q3 2025; CEO Tim Cook welcomed it.",
        (
            "NIST published the framework (Okafor et al., 2021), see https://nist.example/rmf and doi "
            "10.6028/NIST.AI.100-1."
        ),
        "José Müller and Maria Schmidt spoke in France about large language models.",
    ],
    "",
)


def claim(text: str, *entities: tuple[str, str], claim_id: str = "c1") -> Claim:
    found = tuple(Entity(name, label, text.index(name), text.index(name) + len(name)) for name, label in entities)
    return Claim(claim_id, text, 0, 0, 0, len(text), ClaimType.FACTUAL, 0.5, found)


def fabricated(envelope: EnvelopeIndex, text: str, *entities: tuple[str, str]) -> tuple[str, ...]:
    return find([claim(text, *entities)], envelope).get("c1", ())


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize("entities", [(), (("Hans Müller", "PERSON"),), (("Commissioner Hans Müller", "PERSON"),)])
def test_the_invented_commissioner_of_tv_010_is_found(entities):
    """TV-010: Hans Müller is named without his title, whether or not the NER model saw him."""
    text = "According to Commissioner Hans Müller, the Act classifies AI systems into four risk levels."

    assert fabricated(ACT, text, *entities) == ("Hans Müller",)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("envelope", "text"),
    [
        (ACT, "The EU AI Act was adopted in 2024."),
        (ACT, "The Act's four risk levels are described."),
        (ACT, "However, the European Parliament adopted the Artificial Intelligence Act."),
        (ACT, "Jane Roe asked about it."),
        (ACT, "It matters to Germany, French firms, the United Nations and NATO."),
        (ACT, "Large providers must comply. Moreover, they report."),
        (FIRM, "Cook said that Apple's revenue was $4.2M."),
        (FIRM, "The National Institute of Standards and Technology published the framework."),
        (FIRM, "Jose Muller and Schmidt spoke in French."),
        (FIRM, "Okafor et al. (2021) describe the NIST framework at https://nist.example/rmf."),
        (FIRM, "See https://doi.org/10.6028/NIST.AI.100-1 and fact [1] or [3]."),
        (FIRM, "Large language models (LLMs) were discussed."),
        (FIRM, "There are three reasons for it, and two of them matter."),
        (FIRM, "## Key Findings And Results\n- Revenue: $4.2 million"),
        (FIRM, "Headcount and footfall were reported."),
        (FIRM, "Overtime was good."),
        (FIRM, "Emptied bins were taken in."),
        (FIRM, "Unsettled bills and deductions were reported."),
    ],
)
def test_what_has_a_basis_is_not_accused(envelope, text):
    """Other forms of a name, common knowledge, the query's own names and ordinary words are no fabrications."""
    assert fabricated(envelope, text) == ()


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("envelope", "text", "expected"),
    [
        (ACT, "The AI Act was adopted in 2023 by the Bundestag.", ("2023", "Bundestag")),
        (ACT, "Acme Corp. raised $5 million from Sequoia Capital.", ("Acme Corp", "$5 million", "Sequoia Capital")),
        (ACT, "About 35% of firms comply.", ("35%",)),
        (ACT, "Kowalski disagrees.", ("Kowalski",)),
        (ACT, "Marlow emptied the bins.", ("Marlow",)),
        (FIRM, "Tim Cook praised Satya Nadella.", ("Satya Nadella",)),
        (FIRM, "Steve Cook runs Apple.", ("Steve Cook",)),
        (FIRM, "José Schmidt spoke.", ("José Schmidt",)),
        (FIRM, "See (Smith et al., 2020) for details.", ("Smith et al., 2020",)),
        (FIRM, "Smith and Jones (2019) disagree.", ("Smith and Jones (2019)",)),
        (FIRM, "In Roe v. Wade the court agreed.", ("Roe v. Wade",)),
        (FIRM, "It is cited as [12].", ("[12]",)),
        (
            FIRM,
            "Read https://fake.example/page, or write to a.b@fake.example.",
            ("https://fake.example/page", "a.b@fake.example"),
        ),
        (FIRM, "It is doi 10.9999/made.up and arXiv:2401.12345.", ("10.9999/made.up", "arXiv:2401.12345")),
        (FIRM, "Article 22 forbids it.", ("Article 22",)),
        (FIRM, "Revenue was five million dollars.", ("five million dollars",)),
    ],
)
def test_what_has_no_basis_is_named_as_written(envelope, text, expected):
    """Invented names, figures, citations, cases and addresses are named as the claim writes them."""
    assert fabricated(envelope, text) == expected


@pytest.mark.req("DPE-3")
def test_each_claim_has_its_own_fabrications():
    """Only claims with something invented are listed, by their id."""
    claims = [claim("The Act was adopted in 2024.", claim_id="c1"), claim("Mr. Zorn wrote it.", claim_id="c2")]

    assert find(claims, ACT) == {"c2": ("Zorn",)}


@pytest.mark.req("DPE-3")
def test_the_whole_envelope_is_searched_not_the_best_fact():
    """A name and a figure may come from different facts."""
    assert fabricated(FIRM, "Maria Schmidt read the NIST framework in Q3 2025.") == ()


@pytest.mark.req("DPE-3")
def test_without_facts_every_name_is_without_basis():
    """An empty envelope knows nothing but the query."""
    assert fabricated(EnvelopeIndex.of([], "Who is Ada?"), "Ada met Grace in Turin.") == ("Grace", "Turin")


@pytest.mark.req("DPE-3")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pump", ["Anna Ax ", "A.", "1,", "[1", "(", "$", "a@", "X v. ", "Ab, ", "http://", "½", "٣", "- "]
)
def test_a_long_text_of_anything_is_read_in_time(pump):
    """Pumped input does not make the search run away (reliability.md A-23)."""
    text = pump * (20_000 // len(pump))

    assert isinstance(fabricated(EnvelopeIndex.of([text], text), text), tuple)


TEAM = EnvelopeIndex.of(
    [
        "The 27-year-old Lena Brown joined Rage Against the Machine and Audioslave; twenty - five machines ran.",
        (
            "The 2007-08 season was long. He reached his seventh consecutive final on may 30 . Call (212) 555-0199. The band played 2007 -- 11 in Hamamatsu, "
            "Shizuoka, and meets tomorrow in LA. The Supreme Court ruled; the Blues won the Cup."
        ),
        "The World Food Programme (WFP) helped two French and three Danish towns in 2020. ADMISSION TO ALL IS FREE.",
        "Prices rose by many years of growth, to 5,000 euros.",
    ],
    "",
)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    "text",
    [
        "Brown, 27, joined.",
        "Lena Brown, aged 27, joined.",
        "She is known from Rage Against the Machine and Audioslave.",
        "There were 25 machines.",
        "He won seven consecutive times on May 30th.",
        "The fight is on 30 May.",
        "The number is 212-555-0199.",
        "The band played from 2007 to 2011.",
        "It is in Shizuoka Prefecture.",
        "The United States Supreme Court ruled.",
        "The Blues' Cup win was lasting.",
        "The WFP helped, and so did the World Food Program's staff from France and Denmark.",
        "LENA BROWN and lena brown are one; so is Léna Brown.",
        "It cost €5,000.",
        "They meet on Friday.",
        "It is warm in Los Angeles.",
        "The 2007 -- 08 season and 2007--08 are one.",
        "The machines ran in Oregon.",
    ],
)
def test_another_form_of_what_is_stated_is_no_fabrication(text):
    """Ages, ranks, joined names, written-out figures, telephone numbers, kinds of places and possessives."""
    assert fabricated(TEAM, text) == ()


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Brown, 31, joined.", ("31",)),
        ("Rage Against the Machine and Soundgarden played.", ("Soundgarden",)),
        ("There were 26 machines.", ("26",)),
        ("Tobias Okonjo spoke.", ("Tobias Okonjo",)),
        ("It took 84 years.", ("84 years",)),
        ("The number is 212-555-0144.", ("212-555-0144",)),
        ("The United States Zoning Board ruled.", ("United States Zoning Board",)),
        ("It is in Nagano Prefecture.", ("Nagano Prefecture",)),
    ],
)
def test_a_form_that_is_not_stated_is_one(text, expected):
    """The same forms with something else in them are found; a shouted word and a bare "years" support nothing."""
    assert any(each in " ".join(fabricated(TEAM, text)) for each in expected)


@pytest.mark.req("DPE-3")
def test_a_weekday_needs_a_source_where_nothing_is_dated_by_today():
    """Friday may be what tomorrow means; where the evidence has no such word it is invented."""
    assert fabricated(FIRM, "They met on Friday.") == ("Friday",)


@pytest.mark.req("DPE-3")
def test_common_knowledge_is_a_closed_list():
    """§5.2: only what is listed needs no source; a person, a firm or a figure never is."""
    nothing = EnvelopeIndex.of(["Rain fell."], "")

    assert fabricated(nothing, "France, the United Nations and a Bachelor of Arts exist.") == ()
    assert fabricated(nothing, "Elon Musk met Microsoft in Lyon for 12 hours.") == (
        "Elon Musk",
        "Microsoft",
        "Lyon",
        "12 hours",
    )


@pytest.mark.req("DPE-3")
def test_a_weekday_is_known_from_its_plural():
    """What is closed on Mondays is closed on a Monday, and not on a Sunday."""
    museum = EnvelopeIndex.of(["The museum is closed on Mondays."], "")
    assert fabricated(museum, "It is closed on Monday.") == ()
    assert fabricated(museum, "It is closed on Sunday.") == ("Sunday",)


@pytest.mark.req("ATT-7")
def test_a_part_of_a_source_is_no_invented_value():
    """A part that the source numbers has a basis, one that it lacks has none, and where nothing is numbered nobody knows."""
    lease = [Fact("f1", "1. Rent is due monthly.\n2. Dogs need consent.", 0.5)]
    plain = [Fact("f1", "Rent is due monthly.", 0.5)]
    assert fabricated(EnvelopeIndex.of([lease[0].content], "", lease), "Dogs are subject to clause 2.") == ()
    assert fabricated(EnvelopeIndex.of([lease[0].content], "", lease), "Dogs are subject to clause 7.") == ("clause 7",)
    assert fabricated(EnvelopeIndex.of([plain[0].content], "", plain), "Dogs are subject to clause 7.") == ()


@pytest.mark.req("DPE-3")
def test_capitals_of_a_list_in_capitals_are_no_names():
    """A packing list may shout; a single line in capitals among others may name something."""
    lines = ["4 T-SHIRTS", "RAINCOAT", "TOOTHBRUSH", "POCKET MONEY"]
    listed = [claim(text, (text.split()[-1], "ORG"), claim_id=f"c{n}") for n, text in enumerate(lines)]
    assert not {
        name for name, texts in find(listed, ACT).items() if any(text.isupper() for text in texts if not text.isdigit())
    }
    assert find([claim("The report is by GLOBEX.", ("GLOBEX", "ORG")), *listed[:1]], ACT)["c1"] == ("GLOBEX",)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("source", "claim_of", "right", "wrong"),
    [
        ("The hall is shut for 12 weeks.", "The hall is shut for about {}.", "three months", "four months"),
        ("The hall is shut for two months.", "The hall is shut for {}.", "nine weeks", "six weeks"),
        ("The course takes six weeks.", "The course takes {}.", "a month and a half", "two and a half months"),
        ("The rule holds over the year.", "The rule holds over {}.", "twelve months", "ten months"),
        ("Small firms follow a year later.", "Small firms have {} more.", "twelve months", "eight months"),
        ("The term was put off by a week.", "The term was put off by {}.", "seven days", "nine days"),
        ("The talks take an hour longer.", "The talks take {} longer.", "60 minutes", "50 minutes"),
    ],
)
def test_a_period_in_another_unit_is_no_fabrication(source, claim_of, right, wrong):
    """People call twelve weeks three months, and a year twelve months; another period is invented."""
    envelope = EnvelopeIndex.of([source], "")
    assert fabricated(envelope, claim_of.format(right)) == ()
    assert fabricated(envelope, claim_of.format(wrong)) != ()


@pytest.mark.req("DPE-3")
def test_a_rate_is_no_period():
    """What costs 12 euros a year lasts no twelve months."""
    assert fabricated(EnvelopeIndex.of(["The pass costs 12 euros a year."], ""), "It lasts twelve months.") != ()
