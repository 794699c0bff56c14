"""What makes no factual claim is not checked; a fact inside its form is (ATT-6)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from interlock.dpe.claims.reading import ChoiceReading, OutputReader
from interlock.dpe.document import ClaimType
from interlock.dpe.request import Output
from interlock.dpe.text.views import viewed
from tests.support.dpe import named, pipeline
from tests.support.texts.courtesies import CLAIMLESS, CLAIMLESS_LATER, SMUGGLED, SMUGGLED_LATER

pytestmark = pytest.mark.models


def read(text: str) -> ChoiceReading:
    outputs = [Output(0, text)]
    reader = OutputReader(named(*outputs), 100, 100, pipeline().inference.tokens)
    return reader.read(viewed(outputs), lambda: False)[0]


def checked(text: str) -> list[str]:
    return [claim.text for claim in read(text).checked]


@pytest.mark.req("ATT-6")
@pytest.mark.parametrize("rows", [CLAIMLESS, CLAIMLESS_LATER], ids=["first", "later"])
def test_what_is_said_to_the_reader_is_no_claim(rows: Sequence[str]):
    """Greetings, thanks, offers, questions, refusals, announcements, in four languages."""
    accused = {text: found for text in rows if (found := checked(text))}

    assert accused == {}


@pytest.mark.req("ATT-6")
@pytest.mark.parametrize("rows", [SMUGGLED, SMUGGLED_LATER], ids=["first", "later"])
def test_a_fact_in_such_a_form_is_still_a_claim(rows: Sequence[str]):
    """Thanks, a question, a refusal or an announcement that tells something."""
    assert [text for text in rows if not checked(text)] == []


@pytest.mark.req("ATT-6")
def test_program_text_makes_no_claim():
    """Code, its comments and its strings say what a program does."""
    reading = read(
        "```python\nimport math  # for the root\n\ndef area(r: float) -> float:\n"
        '    """Return the area of a circle."""\n    # the formula of school\n    return math.pi * r**2\n\n'
        'print("Please type the radius of a circle")\n```\n'
        "```sql\nSELECT name FROM plans WHERE price > 40;\n```\n```bash\npip install numpy\n```"
    )

    assert reading.checked == []
    assert {claim.claim_type for claim in reading.claims} == {ClaimType.META}


@pytest.mark.req("ATT-6")
@pytest.mark.parametrize(
    "block",
    [
        "The CEO resigned in 2021.",
        "The CEO resigned in 2021;",
        "# The CEO of Acme resigned in March 2021",
        "x = 1  # the CEO of Acme resigned in March 2021",
        'print("The CEO of Acme resigned in March 2021")',
        '"""The CEO of Acme resigned in March 2021."""',
        "import taxes on steel are set to 25 percent by the ministry",
        '{"price": 40, "plan": "gold"}',
    ],
)
def test_a_fence_hides_no_statement(block):
    """Prose, data, comments and strings inside a fence are read."""
    assert checked(f"```python\n{block}\n```")


@pytest.mark.req("ATT-6")
def test_signs_alone_were_not_read():
    """A picture is a courtesy; signs without any word are not known to be one."""
    assert read("👍").wordless is False
    assert read("!?!").wordless is True
    assert read("!?! Done.").wordless is False
