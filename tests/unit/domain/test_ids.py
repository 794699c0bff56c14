"""Ids that are minted: their form, and what no client may read in them."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.domain import ids

_ASKED_AGAIN = ("408", "409", "425", "429", "500", "502", "503", "504", "529")
_RETRIED = re.compile("|".join(_ASKED_AGAIN))


@given(st.binary(min_size=16, max_size=16))
@example(bytes.fromhex("429429504295042942940840950025a5"))
@example(bytes.fromhex("5005025035045294299429e4294081f0"))
def test_an_id_has_its_form_and_no_status_code_that_clients_retry(entropy):
    """Clients that search an error's text for 429 or 503 find none in an id."""
    made = ids.mint("crp_win_", entropy)

    assert ids.is_own("crp_win_", made)
    assert not _RETRIED.search(made)


@pytest.mark.parametrize("code", _ASKED_AGAIN)
def test_only_the_first_digit_of_a_code_is_replaced(code):
    """The rest of the id is as it was drawn."""
    assert ids.mint("crp_sess_", bytes.fromhex(f"ab{code}{'7' * 27}")) == f"crp_sess_aba{code[1:]}{'7' * 27}"


def test_other_digits_stay():
    """Digits that are no such code are as they were drawn."""
    assert ids.mint("crp_sess_", bytes.fromhex("0123456789abcdef" * 2)) == "crp_sess_" + "0123456789abcdef" * 2
