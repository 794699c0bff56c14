"""Structures in an answer are read value by value, each with its key or head (SPEC-005 §3)."""

from __future__ import annotations

import pytest

from interlock.dpe.text.layout import layout

pytestmark = pytest.mark.req("DPE-1")


def told(raw: str) -> list[str]:
    return [block.text.chars for block in layout(raw, structures=True).blocks]


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (
            'boats = [\n  {"hull": "Tern", "berth": 4, "paid": True},\n  {"hull": "Skua", "berth": 9, "paid": False},\n]',
            ["Tern hull: Tern", "Tern berth: 4", "Tern paid: True", "Skua hull: Skua", "Skua berth: 9", "Skua paid: False"],
        ),
        ("const fees = {\n  'KT-4': { perDay: 12 },\n};", ["KT-4 per Day: 12"]),
        ("bonus_eur = {'Ito': 90, 'Rey': None}", ["Ito bonus eur: 90", "Rey bonus eur: None"]),
        ("RETRY_LIMIT=4\nVERBOSE=false", ["RETRY LIMIT: 4", "VERBOSE: false"]),
        ("[mail]\nhost = a.example\n\n[web]\nhost = b.example", ["mail host: a.example", "web host: b.example"]),
        (
            "trips:\n  - name: Lofoten\n    days: 5\n  - name: Faroes\n    days: 7",
            ["trips Lofoten name: Lofoten", "trips Lofoten days: 5", "trips Faroes name: Faroes", "trips Faroes days: 7"],
        ),
        (
            "Here you are:\n\ncode,pages,lent\nA1,120,2025-03-04\nB2,150,2025-03-09",
            ["Here you are:", "A1; pages: 120; lent: 2025-03-04", "B2; pages: 150; lent: 2025-03-09"],
        ),
        (
            "INSERT INTO loans (code, reader, due) VALUES\n ('A1', 'Ida Bo', NULL),\n ('B2', 'Jo O''Shea', '2025-04-01');",
            ["A1; reader: Ida Bo; due: NULL", "B2; reader: Jo O''Shea; due: 2025-04-01"],
        ),
        ('```json\n{"court": {"floor": 2}}\n```\nThat is all.', ["court floor: 2", "That is all."]),
        ('{"match": "A-B", "score": [0, 2]}', ["match: A-B", "score: 0, 2"]),
    ],
)  # fmt: skip
def test_each_value_stands_with_its_key(raw, values):
    """What a program, a file of settings, CSV and SQL state is read as a table or an object is."""
    assert told(raw) == values


def test_values_keep_their_place():
    """A finding marks the value in the answer as it was written."""
    raw = "Settings:\n\nPOOL_SIZE=20\nPORT=9090"
    found = layout(raw, structures=True).blocks[-1].text

    start, end = found.origin
    assert raw[start:end] == "9090"


@pytest.mark.parametrize(
    "raw",
    [
        "We meet on Monday, Tuesday and Friday.\nBring a pen, paper and time.",
        "Note: the shop is shut.\nParking: behind the house.",
        "- Anna: brings 2 cakes\n- Ben: brings 3 pies",
        "Steps:\n- Mix the flour.\n- Bake it.",
        "{not closed\nat all",
    ],
)
def test_prose_is_no_structure(raw):
    """Commas, colons and lists of sentences make no table."""
    assert layout(raw, structures=True) == layout(raw)


def test_deep_and_long_texts_are_left_as_they_are():
    """What nests without an end is read as text, and no time is spent on it."""
    assert told("x = " + "[" * 400) == told("x = " + "[" * 400)
    assert len(told("a = {" + "b: {" * 60 + "}" * 60 + "}")) > 0
