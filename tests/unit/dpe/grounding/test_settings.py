"""Settings, lists of keys and tables in HTML as records (SPEC-003 §3)."""

from __future__ import annotations

import pytest

from interlock.dpe.grounding.tables import settings
from interlock.dpe.grounding.tables.records import read

pytestmark = pytest.mark.req("ATT-5")
YAML = """# the pier
pier:
  length_m: 120
  open: true
  berths: [8, 20]
crew:
  - name: Ida
    shift: early
  - name: Tom
    shift: late
ferry: null
"""


def sentences(content: str) -> list[str]:
    """The records of a source as sentences."""
    return [record.sentence for record in read(content).records]


@pytest.mark.parametrize(
    ("content", "stated"),
    [
        (YAML, ["pier, length m 120, open yes, berths 8 and 20.", "name Ida, shift early.", "name Tom, shift late."]),
        ("[boat]\nname = Bore\nseats = 40\n; old\n[dock]\nopen = no", ["boat, name Bore, seats 40.", "dock, open no."]),
        ('[project]\nname = "tern"\nkinds = ["a", "b"]', ["project, name tern, kinds a and b."]),
        ("export PORT=8080\nTLS=true\nHOST=", ["PORT 8080, TLS yes."]),
        ("flask==3.0\nattrs>=23,<25", ["flask 3.0, attrs >=23,<25."]),
    ],
)
def test_a_file_of_settings_becomes_records(content: str, stated: list[str]) -> None:
    """Each section is a record, and a key without a value is kept apart."""
    assert [each for each in sentences(content) if each != "."] == stated


def test_keys_without_a_value_are_kept_apart() -> None:
    """``null`` states nothing in a sentence, and is no missing key."""
    found = read('{"ship": "Bore", "pilot": null}').records
    assert [key.noun for record in found for key in record.absent] == ["pilot"]


@pytest.mark.parametrize("content", ["Port: Oslo\nPilot: Eva Holm\n", "- **Port:** Oslo\n- **Pilot:** Eva Holm\n"])
def test_a_list_for_people_is_records_beside_its_text(content: str) -> None:
    """The text of a list stays evidence."""
    assert sentences(content) == ["port Oslo, pilot Eva Holm."]
    assert read(content).rest == content


def test_constants_of_a_program_are_a_record_beside_its_text() -> None:
    """Names in capitals with a literal are settings; other lines are not."""
    content = "MAX_SEATS = 40\nALLOW_DOGS = False\n\ndef fare(age):\n    return 3 if age < 6 else 9\n"
    assert sentences(content) == ["MAX SEATS 40, ALLOW DOGS no."]
    assert read(content).rest == content


def test_a_table_in_html_is_rows_and_the_text_around_them() -> None:
    """Cells are read by their header, and what stands around the table stays."""
    found = read(
        "<p>Berths.</p><table><tr><th>Ship</th><th>Cargo (t)</th></tr><tr><td>Bore</td><td>900</td></tr></table>"
    )
    assert [record.sentence for record in found.records] == ["ship Bore, cargo 900 tonnes."]
    assert found.rest == "Berths."


@pytest.mark.parametrize(
    "content",
    [
        "Dear all,\nthe pier is open.\nBring boots: it rains.",
        "Note: it rains. Bring boots.\nAlso: bring a coat.",
        "x = f(y)\nif x == 3:\n    stop()",
        "<table><tr><th>Ship</th></tr><tr><td>Bore</td></tr>",
        '<table><tr><th>A</th><th>B</th></tr><tr><td colspan="2">1</td></tr></table>',
        "key: value",
    ],
)
def test_other_texts_are_left_as_they_are(content: str) -> None:
    """Prose with colons, programs, and tables that are not closed or that span cells."""
    assert read(content).records == ()
    assert read(content).rest == content


def test_an_alias_does_not_multiply_a_document() -> None:
    """A document that repeats its parts by reference is read once."""
    lines = ["a: &a", "  - {k: v}", "  - {k: w}"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines += [f"{name}: &{name}", *[f"  - *{before}"] * 9]
    assert len(read("\n".join(lines)).records) < 12


def test_a_text_that_is_too_long_is_read_as_text() -> None:
    """No file of settings is as long as that."""
    content = "key: value\n" * 4000
    assert settings.of_lines(content).records == ()


@pytest.mark.parametrize(
    "content",
    ["a: " + "[" * 9000 + "\nb: 1", "a: [\n" * 4000 + "b: 1", "a: 1\n" + "- " * 9000 + "b: 1", "a:\n" + "- - " * 3000],
)
def test_a_document_without_a_bottom_is_read_as_text(content: str) -> None:
    """No parser follows brackets and dashes that nest for thousands of levels."""
    assert read(content).records == ()


def test_millimetres_kelvin_and_limits_are_no_millions_and_minutes():
    """``_mm`` is a length, ``_c`` after a temperature its unit, and ``min`` alone the least that is allowed."""
    (record,) = read("bore_mm = 40\noil_temp_c = 85\nmin = 3\nmax = 9\nloss_mm_usd = 7").records

    assert [field.value for field in record.fields] == ["40 mm", "85 °C", "3", "9", "$7 million"]


def test_a_table_of_a_database_shell_is_read():
    """Its rule has a plus where columns meet."""
    (row,) = read(" no | shop\n----+-------\n 12 | Delft\n(1 row)").records

    assert [(field.key.noun, field.value) for field in row.fields] == [("no", "12"), ("shop", "Delft")]
