"""What claims speak of, and when two of them surely speak of different things (SPEC-012 §9.1)."""

from __future__ import annotations

import pytest

from interlock.dpe.claims.subjects import Subjects, differ, subjects
from interlock.dpe.document import Claim, ClaimType, Entity

FIRMS = ("Acme Corp", "Acme", "Globex", "KPMG", "Jane Smith", "Hydra Shipping", "Norvik Software")


def claims(text: str, *, names: tuple[str, ...] = FIRMS) -> list[Claim]:
    """Return the sentences of a text as claims, with the longest of the known names in each."""
    found: list[Claim] = []
    start = 0
    for sentence in text.replace("\n\n", " ").split(". "):
        said = sentence.rstrip(".") + "."
        start = text.index(sentence, start)
        spans = [(text.index(name, start), name) for name in names if name in said and not _within(name, said, names)]
        entities = tuple(Entity(name, "ORG", at, at + len(name)) for at, name in sorted(spans))
        found.append(
            Claim(
                f"c{len(found) + 1}",
                said,
                len(found),
                0,
                start,
                start + len(sentence),
                ClaimType.FACTUAL,
                0.5,
                entities,
            )
        )
    return found


def _within(name: str, said: str, names: tuple[str, ...]) -> bool:
    return any(name != other and name in other and other in said for other in names)


def read(text: str, asked: str = "") -> Subjects:
    return subjects(claims(text), {0: text}, sub_query=asked)


def apart(one: str, other: str, *, asked: tuple[str, str] = ("", "")) -> bool:
    """Whether the last sentences of two texts speak of different things."""
    last = [claims(text)[-1].text for text in (one, other)]
    return differ(read(one, asked[0]), last[0], read(other, asked[1]), last[1])


@pytest.mark.req("DPE-19")
def test_what_names_nothing_speaks_of_what_was_named_before():
    """Two agents, two companies, the same words."""
    assert apart("Acme had a good year. Revenue grew 15 %.", "Globex had a bad year. Revenue declined 3 %.")
    assert not apart("Acme had a good year. Revenue grew 15 %.", "Acme Corp had a bad year. Revenue declined 3 %.")


@pytest.mark.req("DPE-19")
def test_what_is_not_known_is_compared():
    """A text that names nothing, or only by the way, may speak of anything."""
    assert not apart("Revenue grew 15 %.", "Revenue declined 3 %.")
    assert not apart("Revenue grew 15 %.", "Globex had a bad year. Revenue declined 3 %.")
    assert not apart("It was a good year, says Jane Smith. Revenue grew 15 %.", "Globex fell. Revenue declined 3 %.")


@pytest.mark.req("DPE-19")
def test_a_name_in_common_is_a_subject_in_common():
    """Who else was named does not make it another one."""
    one = "Acme had a good year, says Jane Smith. Revenue grew 15 %."
    assert not apart(one, "The year of Acme was audited by KPMG. KPMG is content. Revenue declined 3 %.")


@pytest.mark.req("DPE-19")
def test_a_claim_that_opens_with_a_name_speaks_of_that():
    """Whatever was named before it."""
    both = "Acme rose and Globex fell. Globex's revenue declined 3 %."
    assert apart("Acme had a good year. Revenue grew 15 %.", both)
    assert not apart("Globex had a good year. Revenue grew 15 %.", both)


@pytest.mark.req("DPE-19")
def test_a_paragraph_that_opens_with_a_name_starts_anew():
    """A synthesis tells in turn what each report says of its own subject."""
    synthesis = "Acme had a good year. Revenue grew 15 %.\n\nGlobex had a bad year. Revenue declined 3 %."
    assert apart("Acme had a good year. Revenue grew 15 %.", synthesis)
    assert not apart("Acme had a good year. Revenue grew 15 %.", synthesis.replace("\n\n", " "))


@pytest.mark.req("DPE-19")
def test_the_sub_query_names_the_subject_and_the_years():
    """What an agent was asked about is what it speaks of."""
    said = ("Revenue grew 15 %.", "Revenue declined 3 %.")
    assert apart(*said, asked=("Results of Acme Corp", "Results of Globex"))
    assert not apart(*said, asked=("Results of Acme Corp", "Risks of Acme Corp"))
    assert apart(*said, asked=("Results for 2023", "Results for 2024"))
    assert not apart(*said, asked=("Results for 2023 and 2024", "Results for 2024"))
    assert not apart(said[0], "Revenue declined 3 % in 2023.", asked=("Results for 2023", "Results for 2024"))


@pytest.mark.req("DPE-19")
def test_a_sentence_that_stands_twice_has_both_subjects():
    """The same words under two companies are compared with what is said of either."""
    twice = "Acme rose. Revenue grew 15 %.\n\nGlobex fell. Revenue grew 15 %."
    assert not apart(twice, "Acme had a bad year. Revenue declined 3 %.")
    assert not apart(twice, "Globex had a bad year. Revenue declined 3 %.")
    assert apart(twice, "Hydra Shipping had a bad year. Revenue declined 3 %.")
