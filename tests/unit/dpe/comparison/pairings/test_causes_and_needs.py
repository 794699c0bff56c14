"""Causes turned round and needs denied are found in other words, and the same said otherwise is not (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    "text",
    [
        "The harbour froze because the ferry had stopped.",
        "Because the ferry had stopped, the harbour froze.",
        "The ferry had stopped, so the harbour froze.",
        "The ferry stopped and therefore the harbour froze.",
        "The stopping of the ferry led to the freezing of the harbour.",
        "The freezing of the harbour was caused by the stopping of the ferry.",
    ],
)
def test_a_cause_is_read_from_any_wording(text: str) -> None:
    """The ferry is the cause, the harbour the effect."""
    stated = [each for sentence in passages(text) for each in sentence.causes]
    assert [("ferry" in " ".join(one.first), "harbour" in " ".join(one.second)) for one in stated] == [(True, True)]


@pytest.mark.parametrize(
    ("source", "bent", "faithful", "slot"),
    [
        ("Lending fell because two branches were closed.", "Because lending dropped, two branches were closed.", "Two branches were closed, so lending dropped.", "cause"),
        ("Bruno lost weight because he refused dry food.", "Bruno lost weight and therefore refused dry food.", "Bruno refused dry food and therefore lost weight.", "cause"),
        ("Copies cannot be made without the consent of the author.", "Copies do not require the author's consent.", "Copies require the author's consent.", "condition"),
        ("Visas are issued only with a photograph.", "No photograph is needed for a visa.", "A photograph is needed for a visa.", "condition"),
        ("A photograph is optional.", "A photograph is mandatory.", "A photograph is not compulsory.", "predicate"),
        ("Applicants may attach a photograph.", "A photograph is mandatory.", "A photograph is optional.", "condition"),
        ("Applicants must attach a photograph.", "A photograph is optional.", "A photograph is mandatory.", "condition"),
        ("Anglers need no licence on this lake.", "Anglers require a licence on this lake.", "Anglers may fish on this lake without a licence.", "condition"),
        ("Children are not admitted to the sauna without an adult.", "Children may enter the sauna even without an adult.", "Children may enter the sauna only with an adult.", "condition"),
        ("The seal must not be opened unless the valve is cold.", "The seal may be opened only if the valve is not cold.", "The seal may only be opened if the valve is cold.", "condition"),
        ("She may defer the exam unless a fee is unpaid.", "She may defer the exam if a fee is unpaid.", "She may defer the exam if no fee is unpaid.", "condition"),
        ("The insurance covers accidents but excludes eye care.", "Eye care is covered by the insurance.", "Eye care is excluded by the insurance.", "predicate"),
        ("A kayak may not be used overnight.", "Using a kayak overnight is allowed.", "Using a kayak overnight is forbidden.", "norm"),
    ],
)  # fmt: skip
def test_what_is_turned_is_found_and_a_paraphrase_is_not(source: str, bent: str, faithful: str, slot: str) -> None:
    """The finding names the slot that was turned."""
    assert slot in {each.slot for each in found((source,), bent)}
    assert not found((source,), faithful)


def test_a_cause_that_another_source_states_is_no_finding() -> None:
    """Two things may cause each other."""
    sources = ("Fewer riders led to fewer trains.", "Fewer trains led to fewer riders.")

    assert not found(sources, "Fewer trains led to fewer riders.")
    assert found(sources[:1], "Fewer trains led to fewer riders.")


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Badges are voluntary, but visitors without one will have to sign a list at the gate.", "Badges are compulsory for all visitors.", "Badges are voluntary."),
        ("Rental\nRate: 40 EUR a day\nDamage cover: compulsory, included", "The driver can do without the damage cover.", "The driver cannot do without the damage cover."),
        ("The printout is optional.", "A printout has to be signed each time.", "A printout can be signed."),
        ("Life vests are recommended, but a jacket will do.", "Paddlers are obliged to wear a life vest.", "Paddlers are advised to wear a life vest."),
    ],
)  # fmt: skip
def test_what_is_said_to_be_needed_is_compared_whatever_stands_around_it(source: str, bent: str, faithful: str) -> None:
    """The finding is of the condition."""
    assert "condition" in {each.slot for each in found((source,), bent)}
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Life vests are recommended. On the sea every paddler must wear a life vest.", "On the sea paddlers must wear a life vest."),
        ("Helmets are recommended.", "Helmets are not compulsory."),
        ("Helmets are recommended.", "Paddlers should wear a helmet."),
        ("Cover: optional\nTheft cover: compulsory", "You cannot rent without theft cover."),
        ("You must wear a helmet.", "Helmets are recommended."),
    ],
)  # fmt: skip
def test_advice_is_no_duty_and_no_freedom(source: str, claim: str) -> None:
    """What is recommended may still be demanded elsewhere, and *should* tells of advice."""
    assert "condition" not in {each.slot for each in found((source,), claim)}
