"""Days of the week that a text states as ranges, groups, plurals and short names."""

from __future__ import annotations

import pytest

from interlock.dpe.values.reckoning.weekdays import Days, days_in

pytestmark = pytest.mark.req("DPE-4")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open Monday to Friday", [({0, 1, 2, 3, 4}, ("Monday", "Friday"))]),
        ("Mon-Fri 9-5, Sat 10-2", [({0, 1, 2, 3, 4}, ("Mon", "Fri")), ({5}, ("Sat",))]),
        ("from Fri. – Mon.", [({4, 5, 6, 0}, ("Fri", "Mon"))]),
        ("between Tuesday and Thursday", [({1, 2, 3}, ("Tuesday", "Thursday"))]),
        ("on Tuesday and Thursday", [({1}, ("Tuesday",)), ({3}, ("Thursday",))]),
        ("closed on Sundays", [({6}, ("Sundays",))]),
        ("at weekends", [({5, 6}, ())]),
        ("five working days", [({0, 1, 2, 3, 4}, ())]),
        ("open every day", [({0, 1, 2, 3, 4, 5, 6}, ())]),
        ("he sat in the sun and wed her", []),
        ("the wedding, a Sunday roast", [({6}, ("Sunday",))]),
    ],
)
def test_the_days_that_a_text_states(text, found):
    """A short name begins with a capital; a range may run over the end of the week."""
    assert list(days_in(text)) == [Days(frozenset(days), words) for days, words in found]
