"""What is read of a token is read once for each parse."""

from __future__ import annotations

import pytest

from interlock.dpe.text.parse.memo import of_token
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def test_a_token_is_read_once_and_one_of_another_parse_anew():
    """The word at the same place of another text is another one."""
    asked: list[str] = []

    @of_token
    def low(token):
        asked.append(token.text)
        return token.lower_

    first, second = (pipeline().language.nlp(text) for text in ("Bees hum.", "Cats purr."))

    assert [low(first[0]), low(first[0]), low(second[0]), low(first[1])] == ["bees", "bees", "cats", "hum"]
    assert asked == ["Bees", "Cats", "hum"]
