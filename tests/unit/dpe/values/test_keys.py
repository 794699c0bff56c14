"""Keys of records: their nouns and units (SPEC-003 §3)."""

import pytest

from interlock.dpe.values.keys import read_key


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("key", "value", "noun", "written"),
    [
        ("revenue_musd", "412", "revenue", "$412 million"),
        ("netCostEur", "7.5", "net cost", "€7.50"),
        ("error_rate_percent", "0.3", "error rate", "0.3%"),
        ("timeoutSeconds", "5", "timeout", "5 seconds"),
        ("weight_kg", "81", "weight", "81 kg"),
        ("mg_per_tablet", "400", "per tablet", "400 mg"),
        ("eur_per_night", "90", "per night", "€90"),
        ("Revenue ($m)", "480", "revenue", "$480 million"),
        ("budget_kchf", "12", "budget", "CHF 12 thousand"),
        ("employees", "1850", "employees", "1,850"),
        ("order_id", "4711", "order id", "4711"),
        ("fiscal_year", "2024", "fiscal year", "2024"),
        ("active", "true", "active", "yes"),
        ("owner", "Ann Lee", "owner", "Ann Lee"),
        ("plan_m", "3", "plan m", "3"),
        ("Kiln heat (°C)", "980", "kiln heat", "980 °C"),
        ("Yield 2023 (GWh)", "41", "yield 2023", "41 GWh"),
        ("battery_kWh", "64", "battery", "64 kWh"),
        ("boilerMWh", "7", "boiler", "7 MWh"),
        ("area_ha", "12", "area", "12 ha"),
        ("tube pressure (hPa)", "12", "tube pressure", "12 hPa"),
    ],
)
def test_a_key_gives_noun_and_unit(key, value, noun, written):
    """The unit leaves the noun and stands with the value."""
    found = read_key(key)
    assert (found.noun, found.written(value)) == (noun, written)


@pytest.mark.req("ATT-5")
def test_a_field_beside_gives_the_unit():
    """``{"amount": 5, "unit": "ml"}`` states 5 ml."""
    assert read_key("amount", "ml").written("5") == "5 ml"
    assert read_key("amount", "EUR").written("5.5") == "€5.50"
