"""Parses of an answer's sentences are remembered: an answer that grows is not parsed anew (DPE-1; streams.md)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Entity
from interlock.dpe.inference.language import MOST_DERIVED, NamedLanguage, derived
from interlock.dpe.pii.sensitive import SensitiveParser
from interlock.dpe.text.memory.remembered import STORE
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-1")]

FIRST, SECOND = "Ada Lund keeps the keys of the mill.", "The mill was sold in 1931."


@pytest.fixture
def forgotten():
    """Nothing is remembered before the test, and as much as ever behind it."""
    most = STORE.most_bytes
    STORE.resize(0)
    STORE.resize(most)
    yield
    STORE.resize(most)


def parsed(*texts: str) -> dict:
    return pipeline().language.parses(texts, lambda: False)


def test_a_text_that_comes_again_has_its_parse(forgotten):
    """The second time only what is new is parsed."""
    before = parsed(FIRST)[FIRST]

    assert parsed(FIRST, SECOND)[FIRST] is before


def test_without_room_every_text_is_parsed_anew(forgotten):
    """What is remembered has a bound in bytes; 0 remembers nothing."""
    STORE.resize(0)

    assert parsed(FIRST)[FIRST] is not parsed(FIRST)[FIRST]


def test_what_was_derived_goes_with_the_names(forgotten):
    """Derived claims rest on the names of the sentence: with other names they are derived anew."""
    parses = parsed(FIRST)

    def read(names: tuple[Entity, ...]):
        return next(NamedLanguage(pipeline().language, {FIRST: names}, parses).pipe([FIRST], batch_size=1))

    named = read((Entity("Ada Lund", "PERSON", 0, 8),))
    assert derived(named[:], "claims", lambda: 1) == 1
    assert [each.text for each in named.ents] == ["Ada Lund"]
    assert derived(read((Entity("Ada Lund", "PERSON", 0, 8),))[:], "claims", lambda: 2) == 1

    unnamed = read(())
    assert (list(unnamed.ents), derived(unnamed[:], "claims", lambda: 3)) == ([], 3)


def test_what_was_derived_is_bounded(forgotten):
    """A sentence that comes in many places of many answers does not gather what was derived for each."""
    parse = parsed(FIRST)[FIRST]
    for place in range(3 * MOST_DERIVED):
        assert derived(parse[:], place, lambda place=place: place) == place

    assert max(len(each) for each in parse.user_data.values() if isinstance(each, dict)) <= MOST_DERIVED


def test_a_passage_is_read_for_sensitive_data_once(forgotten):
    """Each parser has its own: another pipeline may read it otherwise."""
    nlp = pipeline().language.nlp.nlp
    steps = []

    class Counted:
        def make_doc(self, text: str):
            steps.append(text)
            return nlp.make_doc(text)

        def get_pipe(self, name: str):
            return lambda doc: doc

    one, other = SensitiveParser(Counted()), SensitiveParser(Counted())
    assert one.read(FIRST) is one.read(FIRST)
    assert other.read(FIRST) is not one.read(FIRST)
    assert steps == [FIRST, FIRST]
