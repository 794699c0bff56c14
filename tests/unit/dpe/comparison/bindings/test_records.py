"""The fields of a record, written one after the other, are no sentence: nothing in them acts, and their words are of whom the record names."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.turned import turned_word
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_CASE = "case 31, guest Castell, subject service charge, opened 10 May 2025, amount 575, status waiting for the landlord's reply, adviser Lim"
_ACCEPTED = "case 31, guest Castell, opened 10 May 2025, status claim accepted by the landlord, adviser Lim"


def _record(text: str) -> Evidence:
    return Evidence(tuple(each.as_record() for each in passages(text, "f0")))


def test_nothing_acts_in_a_record() -> None:
    """A parser finds events between fields; what stands in them is compared by key and cell."""
    assert all(not each.frames and not each.stances and each.record for each in _record(_CASE).passages)


def test_a_word_of_a_record_is_turned_only_of_whom_it_names() -> None:
    """What happens to claims that are rejected says nothing against the status of one."""
    general = passages("When a landlord rejects a claim, the adviser hands the case over.")[0]

    assert turned_word(general, _record(_ACCEPTED)) is None
    assert turned_word(general, Evidence(passages(_ACCEPTED, "f0"))) is not None
