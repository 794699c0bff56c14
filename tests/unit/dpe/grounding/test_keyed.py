"""Figures of a key, of a row that is counted, and versions of what is pinned (SPEC-005 §5.2, §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Fact
from interlock.dpe.grounding.placing.pins import agree, pinned, same_name
from tests.support.dpe import claim, ruled

pytestmark = pytest.mark.req("DPE-3")
SHIP = "crew: 12\nlifeboats: 4\nfuel_m3: 90\nspeed_limit_kmh: 30\nberths:\n  cabins: 40\n  lounges: 6\n"
PARTS = '{"box": "B7", "parts": [{"name": "bolt", "quantity": 8}, {"name": "washer", "quantity": 16}]}'
PINS = "images:\n  store: mariadb:11.2\n  queue: nats:2.10\npackages:\n  - httpx==0.27.0\n"


@pytest.mark.parametrize(
    ("faithful", "bent", "own"),
    [
        ("The ship has four lifeboats.", "The ship has three lifeboats.", "4"),
        ("There are 40 cabins.", "There are 60 cabins.", "40"),
        ("The speed limit is 30 km/h.", "The speed limit is 50 km/h.", "30 km/h"),
        ("The box holds 8 bolts.", "The box holds 16 bolts.", "8"),
    ],
)
def test_another_figure_of_a_key_is_found(faithful: str, bent: str, own: str) -> None:
    """A count before the key, an amount in its unit, and the count of a row."""
    assert ruled(faithful, SHIP, PARTS)[0] == []
    assert [each.source_value for each in ruled(bent, SHIP, PARTS)[0]] == [own]


@pytest.mark.parametrize(
    "answer",
    [
        "There are 46 cabins and lounges in total.",
        "Twice the cabins would be 80 cabins.",
        "At least 3 lifeboats are needed.",
        "It could carry 6 lifeboats.",
        "Every 10 cabins share a lifeboat.",
        "The limit is about 30 km/h.",
    ],
)
def test_figures_that_are_made_or_supposed_are_left_alone(answer: str) -> None:
    """Sums, multiples, bounds and possibilities."""
    assert ruled(answer, SHIP)[0] == []


def test_versions_are_read_with_what_they_are_versions_of() -> None:
    """A tag, a pin and a sentence name one version, and another product's version is a finding."""
    facts = [Fact("f1", PINS, 0.5)]
    assert pinned(claim("The store is MariaDB 11.2."), facts).settled >= {"11.2"}
    assert pinned(claim("It needs httpx 0.27."), facts).settled >= {"0.27"}
    wrong = pinned(claim("The store is MariaDB 2.10 and the queue NATS 11.2."), facts).moved
    assert [each.source_value for each in wrong] == ["mariadb:11.2", "nats:2.10"]
    assert pinned(claim("Upgrade from MariaDB 2.10 first."), facts).moved == ()


def test_names_of_products_are_known_by_their_identifiers() -> None:
    """A longer name of the same thing is that thing, and a like one is not."""
    assert same_name("PostgreSQL", "postgres")
    assert same_name("Python", "requires-python")
    assert not same_name("Java", "javascript")
    assert agree("3.12", "3.12.4")
    assert not agree("3.1", "3.12")


def test_a_sum_for_several_is_no_other_price() -> None:
    """Two at so much each come to twice as much; an amount that is no money is not multiplied."""
    order = '[{"title": "Kettle", "quantity": 2, "unit_price_eur": 34.9}, {"title": "Scale", "quantity": 1, "unit_price_eur": 69.8}]'
    memory = (
        '[{"service": "catalog", "replicas": 4, "memory_gb": 1}, {"service": "reports", "replicas": 2, "memory_gb": 4}]'
    )
    assert ruled("The two kettles come to €69.80.", order)[0] == []
    assert [each.source_value for each in ruled("The catalog service has 4 GB of memory.", memory)[0]] == ["1 GB"]
