"""The chain at its edges: what a seal holds, what each fault names, and what counts where row and seal differ."""

from __future__ import annotations

import hashlib
import hmac
import itertools
from dataclasses import replace

import pytest

from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import (
    EventRecord,
    Fault,
    Integrity,
    Verification,
    WindowRecord,
    chained,
    content_hash,
    event_faults,
    event_hmac,
    seal_data,
    window_hmac,
)
from interlock.domain.errors import Kind, Refused
from tests.support.audit.audit import hash_of, keys, session_id, window_id
from tests.unit.domain.chain.test_chain import DIAMOND, KEY, SESSION, an_event, check, dag, fields

KEY_OF = keys(session_id())
WHOLE_BUDGET = 1_000_000
LINE = {"root": [], "a": ["root"], "b": ["a"]}


def mac(*texts: str) -> str:
    """The HMAC of fields, made without the code under test."""
    return "sha256:" + hmac.new(KEY, "\u241f".join(texts).encode(), hashlib.sha256).hexdigest()


def events_of(*said: tuple[str, str, str], after: tuple[int, str] = (0, "")) -> list[EventRecord]:
    """Events of a type, a window and data each, chained from the sequence and HMAC of *after*."""
    sequence, previous = after
    bare = (
        EventRecord(session_id(), number, window, kind, 2, "t", data, 1, "")
        for number, (kind, window, data) in enumerate(said, sequence + 1)
    )
    return list(chained(KEY_OF(1), bare, previous))


def sealing(*seals: tuple[str, object]) -> list[EventRecord]:
    """Seals of windows that say what is given."""
    return events_of(*(("WINDOW_SEALED", window, canonical_json(data)) for window, data in seals))


def sound(*windows: WindowRecord) -> list[EventRecord]:
    """The seals that belong to windows."""
    return sealing(*((window.window_id, seal_data(window)) for window in windows))


def told(found: Verification) -> list[tuple[str, int, str, str]]:
    """Return all of every fault; two faults are equal whatever window they name."""
    return [(fault.what, fault.index, fault.reason, fault.window_id) for fault in found.faults]


# --- what is hashed


def test_a_seal_repeats_the_whole_record_of_its_window():
    """Every field, long texts by their hash; the hashes of what is kept beside the chain only where there are any."""
    window = WindowRecord(
        session_id=SESSION, window_id="w", window_number=3, parent_ids=("p", "q"), response_hash="r", report_hash="o",
        risk_level=4, charge_micros=5, status="HALTED", settle_json='{"a":1}', trail_id="t", request_hash="e",
        timestamp="2026", key_version=6, hmac="m", stored_report_hash="s",
    )  # fmt: skip
    expected = {
        "window_number": 3, "parent_ids": ["p", "q"], "response_hash": "r", "report_hash": "o", "risk_level": 4,
        "charge_micros": 5, "status": "HALTED", "trail_id": "t", "request_hash": "e", "timestamp": "2026",
        "settle_hash": "sha256:" + hashlib.sha256(b'{"a":1}').hexdigest(), "key_version": 6, "hmac": "m",
    }  # fmt: skip

    assert seal_data(window) == expected
    assert seal_data(replace(window, content_hash="c")) == expected | {"content_hash": "c"}
    assert seal_data(replace(window, sealed_report_hash="d")) == expected | {"sealed_report_hash": "d"}


def test_texts_that_are_no_unicode_are_hashed_like_any_other():
    """Stored bytes can be changed to anything: half a surrogate pair is hashed, so that it can be a fault."""
    half = "\ud800"
    hashed = "sha256:" + hashlib.sha256(b"\xed\xa0\x80").hexdigest()
    window = dag({"root": []})[0]["root"]

    expected = mac(
        "crp-event-v1", SESSION, "1", "DPE_COMPLETED", "2", "2026-05-25T10:00:02Z", hashed, an_event().window_id, "p"
    )
    assert event_hmac(KEY, an_event(data_json=half), "p") == expected
    assert seal_data(replace(window, settle_json=half))["settle_hash"] == hashed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, 2.5, None], "a": {"d": True, "c": ""}}, '{"a":{"c":"","d":true},"b":[1,2.5,null]}'),
        ("Größe \u241f", '"Größe \u241f"'),
        ([], "[]"),
    ],
)
def test_a_value_has_one_text(value, text):
    """Sorted keys, no spaces, letters as they are."""
    assert canonical_json(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [{"a": float("-inf")}]])
def test_what_json_has_no_word_for_has_no_text(value):
    """Another reader would not understand it."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


@pytest.mark.req("PRV-1", "SVC-3")
@pytest.mark.parametrize("given", [{"timestamp": "2026\u241f"}, {"timestamp": "a\nb"}, {"parent_hmacs": ["a|b"]}])
def test_a_field_that_is_refused_is_refused_in_words(given):
    """A malformed request, and its message names what may not stand in a field."""
    with pytest.raises(Refused) as refused:
        window_hmac(KEY, **{**fields(), "parent_hmacs": [], **given})

    message = "a field of the chain holds U+241F, a control character or a stray separator"
    assert (refused.value.kind, refused.value.reason, refused.value.message) == (
        Kind.INVALID,
        "AMBIGUOUS_FIELD",
        message,
    )


def test_chaining_changes_nothing_of_an_event_but_its_hmac():
    """What comes back is what was given, each with the HMAC that follows from the one before."""
    given = [
        EventRecord("s", 7, "w", "T", 3, "2026", "{}", 9, "old"),
        EventRecord("s2", 8, "w2", "T2", 4, "2027", "[]", 10, ""),
    ]

    first, second = chained(KEY, given, "before")

    assert first == replace(given[0], hmac=event_hmac(KEY, given[0], "before"))
    assert second == replace(given[1], hmac=event_hmac(KEY, given[1], first.hmac))


# --- events


def notes(count: int) -> list[EventRecord]:
    return events_of(*(("NOTE", "", f'{{"n":{n}}}') for n in range(count)))


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(
    ("kept", "faults"),
    [
        ([1, 2, 3, 4, 5], []),
        ([], []),
        ([2, 3], [(1, "SEQUENCE_GAP")]),
        ([1, 4, 5], [(2, "SEQUENCE_GAP")]),
        ([1, 3, 5], [(2, "SEQUENCE_GAP"), (4, "SEQUENCE_GAP")]),
        ([1, 1, 2, 2, 3], [(1, "DUPLICATE_SEQUENCE"), (2, "DUPLICATE_SEQUENCE")]),
    ],
)
def test_gaps_and_doubles_are_named_by_their_sequence_and_by_nothing_else(kept, faults):
    """A chain starts with sequence 1 after nothing, and what stands behind a fault is checked again."""
    events = notes(5)

    assert list(event_faults([events[n - 1] for n in kept], KEY_OF)) == [Fault("event", n, why) for n, why in faults]


@pytest.mark.req("PRV-2")
def test_an_event_two_behind_a_gap_is_checked_again():
    """Only the first event behind a gap cannot be checked."""
    events = notes(5)
    last = replace(events[4], severity=5)

    assert list(event_faults([events[0], *events[2:4], last], KEY_OF)) == [
        Fault("event", 2, "SEQUENCE_GAP"),
        Fault("event", 5, "HMAC_MISMATCH"),
    ]


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"key_version": 2}, "KEY_UNKNOWN"),
        ({"timestamp": "t\u241f"}, "MALFORMED"),
        ({"event_type": "NOTE\x00"}, "MALFORMED"),
        ({"severity": 3}, "HMAC_MISMATCH"),
        ({"hmac": "\ud800"}, "HMAC_MISMATCH"),
    ],
)
def test_an_event_that_does_not_verify_is_one_fault_and_says_which(change, reason):
    """The last event, so that nothing hangs from what was changed."""
    events = notes(3)

    found = list(event_faults([*events[:2], replace(events[2], **change)], KEY_OF))

    assert found == [Fault("event", 3, reason)]


@pytest.mark.req("PRV-2")
def test_the_check_goes_on_from_where_the_checked_part_ended():
    """Given the last sequence and HMAC, the rest of a chain is checked as the whole would be."""
    events = notes(4)

    assert list(event_faults(events[2:], KEY_OF, sequence=2, previous=events[1].hmac)) == []
    assert list(event_faults(events[2:], KEY_OF, sequence=2, previous=events[0].hmac)) == [
        Fault("event", 3, "HMAC_MISMATCH")
    ]
    assert list(event_faults(events[1:], KEY_OF, sequence=2, previous=events[1].hmac)) == [
        Fault("event", 2, "DUPLICATE_SEQUENCE")
    ]


# --- windows


@pytest.mark.req("PRV-2")
def test_windows_without_any_seal_are_named_one_by_one_in_the_order_of_the_session():
    """By number, those of one number by id, whatever order the rows are in."""
    windows, _ = dag(DIAMOND)

    found = check(list(windows.values())[::-1], [])

    numbers = {"root": 1, "a": 2, "b": 2, "c": 3, "join": 4}
    assert told(found) == [("window", n, "MISSING_SEAL", windows[name].window_id) for name, n in numbers.items()]
    assert (found.events, found.windows, found.charged_micros) == (0, 5, 50)


@pytest.mark.req("PRV-2")
def test_two_roots_are_one_fault_of_the_session_and_a_double_one_of_its_window():
    """Which of the roots is the wrong one cannot be told; which row is there twice can."""
    windows, events = dag({"root": [], "other": []})
    single, seal = dag({"root": []})

    assert told(check(list(windows.values()), events)) == [("window", 1, "SEVERAL_ROOTS", "")]
    assert told(check([single["root"]] * 2, seal)) == [
        ("window", 1, "DUPLICATE_WINDOW", window_id(1)),
        ("window", 1, "SEVERAL_ROOTS", ""),
    ]


@pytest.mark.req("PRV-2")
def test_a_doubled_child_is_a_double_and_not_a_second_root():
    """Two rows of a window that has a parent."""
    windows, events = dag({"root": [], "a": ["root"]})

    assert told(check([*windows.values(), windows["a"]], events)) == [("window", 2, "DUPLICATE_WINDOW", window_id(2))]


@pytest.mark.req("PRV-1", "PRV-2")
@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"window_number": 2}, ["NUMBER_MISMATCH", "HMAC_MISMATCH", "SEAL_MISMATCH"]),
        ({"window_number": 0}, ["NUMBER_MISMATCH", "HMAC_MISMATCH", "SEAL_MISMATCH"]),
        ({"key_version": 2}, ["KEY_UNKNOWN", "SEAL_MISMATCH"]),
        ({"timestamp": "\u241f"}, ["MALFORMED", "SEAL_MISMATCH"]),
        ({"session_id": session_id(2)}, ["FOREIGN_SESSION"]),
        ({"hmac": "\udfff"}, ["HMAC_MISMATCH", "SEAL_MISMATCH"]),
        ({"parent_ids": (window_id(9),)}, ["MISSING_PARENT", "SEAL_MISMATCH"]),
        # It is its own parent: never number one more than itself, and its HMAC holds no parent.
        ({"parent_ids": (window_id(1),)}, ["NUMBER_MISMATCH", "HMAC_MISMATCH", "SEAL_MISMATCH"]),
        ({"risk_level": 5}, ["SEAL_MISMATCH"]),
        ({"content_hash": hash_of(3)}, ["SEAL_MISMATCH"]),
        ({"stored_report_hash": ""}, ["MISSING_REPORT"]),
        ({"stored_report_hash": hash_of(3)}, ["REPORT_HASH_MISMATCH"]),
    ],
)
def test_a_changed_root_has_exactly_the_faults_that_follow(change, reasons):
    """Each check of a window, in its order; nothing else is found."""
    windows, events = dag({"root": []})
    changed = replace(windows["root"], **change)

    found = check([changed], events)

    assert told(found) == [("window", changed.window_number, reason, window_id(1)) for reason in reasons]


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize("change", [{"hmac": hash_of(1)}, {"window_number": 7}])
def test_a_child_is_checked_against_its_parents_seal_and_not_its_row(change):
    """An edited row is a fault of that row alone."""
    windows, events = dag({"root": [], "a": ["root"]})
    root = replace(windows["root"], **change)

    found = check([root, windows["a"]], events)

    assert {fault.window_id for fault in found.faults} == {window_id(1)}


@pytest.mark.req("PRV-2")
def test_where_a_parents_seal_is_gone_its_row_stands_for_it():
    """The child still verifies; the parent is the one without a seal, even as the only one."""
    windows, _ = dag({"root": [], "a": ["root"]})

    found = check(list(windows.values()), sound(windows["a"]))

    assert told(found) == [("window", 1, "MISSING_SEAL", window_id(1))]


@pytest.mark.req("PRV-2")
def test_a_window_whose_own_seal_is_gone_was_not_sealed_before_its_parents():
    """There is one fault, which is not about order."""
    windows, _ = dag(LINE)

    found = check(list(windows.values()), sound(windows["root"], windows["a"]))

    assert told(found) == [("window", 3, "MISSING_SEAL", window_id(3))]


@pytest.mark.req("PRV-2")
def test_one_missing_parent_of_two_is_enough():
    """A fan-in is checked against all its parents or not at all."""
    windows, _ = dag(DIAMOND)
    kept = [windows[name] for name in ("root", "a", "b", "join")]

    found = check(kept, sound(*kept))

    assert told(found) == [("window", 4, "MISSING_PARENT", window_id(5))]


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(
    ("said", "reasons"),
    [
        ({}, ["MISSING_PARENT"]),
        ([], ["MISSING_PARENT"]),
        ({"window_number": 1, "hmac": ""}, ["MISSING_PARENT"]),
        ({"window_number": 1, "hmac": 5}, ["HMAC_MISMATCH"]),
        ({"hmac": "the parent's"}, ["NUMBER_MISMATCH"]),
        ({"window_number": "1", "hmac": "the parent's"}, ["NUMBER_MISMATCH"]),
        ({"window_number": 2**63, "hmac": "the parent's"}, ["NUMBER_MISMATCH"]),
        ({"window_number": 1, "hmac": "the parent's"}, []),
    ],
)
def test_a_seal_that_says_too_little_is_a_mismatch_and_no_parent(said, reasons):
    """It is believed before the row, so what it leaves out the child misses."""
    windows, _ = dag({"root": [], "a": ["root"]})
    root, child = windows.values()
    if isinstance(said, dict) and said.get("hmac") == "the parent's":
        said = said | {"hmac": root.hmac}

    found = check([root, child], sealing((root.window_id, said), (child.window_id, seal_data(child))))

    assert told(found) == [
        ("window", 1, "SEAL_MISMATCH", window_id(1)),
        *(("window", 2, reason, window_id(2)) for reason in reasons),
    ]


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize("data", ["", "{", "[" * 100_000, "null", '"{}"'])
def test_a_seal_that_cannot_be_read_is_a_mismatch_and_no_crash(data):
    """No JSON, JSON too deep to be read, and JSON that is no object say nothing."""
    windows, _ = dag({"root": []})

    found = check(list(windows.values()), events_of(("WINDOW_SEALED", window_id(1), data)))

    assert told(found) == [("window", 1, "SEAL_MISMATCH", window_id(1))]


@pytest.mark.req("PRV-2")
def test_a_window_with_two_seals_is_told_so_and_not_compared():
    """The first of them is what its children follow."""
    windows, _ = dag({"root": [], "a": ["root"]})
    root, child = windows.values()
    forged = {"window_number": 5, "hmac": hash_of(5)}
    seals = [(root.window_id, seal_data(root)), (root.window_id, forged), (child.window_id, seal_data(child))]

    assert told(check([root, child], sealing(*seals))) == [("window", 1, "DUPLICATE_SEAL", window_id(1))]


@pytest.mark.req("PRV-2")
def test_events_of_other_types_are_no_seals():
    """Only WINDOW_SEALED vouches for a window."""
    windows, _ = dag({"root": []})
    root = windows["root"]

    found = check([root], events_of(("WINDOW_FAILED", root.window_id, canonical_json(seal_data(root)))))

    assert told(found) == [("window", 1, "MISSING_SEAL", root.window_id)]


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(
    ("stored", "sealed", "faults"),
    [
        ("encrypted", "encrypted", []),
        ("encrypted", "", ["REPORT_HASH_MISMATCH"]),
        ("plain", "encrypted", ["REPORT_HASH_MISMATCH"]),
        ("plain", "", []),
        ("", "encrypted", ["MISSING_REPORT"]),
    ],
)
def test_an_encrypted_report_is_held_against_the_hash_of_its_bytes(stored, sealed, faults):
    """The hash of the report itself is compared only where the report is stored as it is."""
    windows, _ = dag({"root": []})
    hashes = {"plain": windows["root"].report_hash, "encrypted": hash_of(8), "": ""}
    root = replace(windows["root"], stored_report_hash=hashes[stored], sealed_report_hash=hashes[sealed])

    assert told(check([root], sound(root))) == [("window", 1, reason, window_id(1)) for reason in faults]


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(
    ("number", "told_as"),
    [(4, 4), (2**63 - 1, 2**63 - 1), (2**63, 0), (-(2**63), -(2**63)), (-(2**63) - 1, 0), ("4", 0), (None, 0)],
)
def test_a_missing_window_is_named_by_its_seal(number, told_as):
    """By the number that the seal has, and by 0 where that is none that an answer's field can hold."""
    found = check([], sealing((window_id(4), {"window_number": number})))

    assert told(found) == [("window", told_as, "MISSING_WINDOW", window_id(4))]
    assert found.integrity is Integrity.PARTIAL


@pytest.mark.req("PRV-2")
def test_missing_windows_are_told_by_number_and_then_by_id():
    """Not in the order of their seals, and each once, by its first seal."""
    seals = [(window_id(3), 2), (window_id(4), 1), (window_id(2), 2), (window_id(4), 9)]

    found = check([], sealing(*((id_, {"window_number": number}) for id_, number in seals)))

    assert told(found) == [
        ("window", 1, "MISSING_WINDOW", window_id(4)),
        ("window", 2, "MISSING_WINDOW", window_id(2)),
        ("window", 2, "MISSING_WINDOW", window_id(3)),
    ]


# --- what the session is left with


def test_a_session_without_records_has_no_tip_and_costs_nothing():
    """The verdict on nothing is that nothing could be verified."""
    found = check([], [])

    assert found == Verification((), 0, 0, 0, "", ())
    assert found.integrity is Integrity.UNVERIFIED


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(("count", "verdict"), [(1, Integrity.UNVERIFIED), (2, Integrity.VALID), (3, Integrity.VALID)])
def test_a_chain_has_at_least_two_windows(count, verdict):
    """One has nothing to chain from, two are a chain."""
    windows, events = dag(dict(itertools.islice(LINE.items(), count)))

    assert check(list(windows.values()), events).integrity is verdict


@pytest.mark.req("PRV-2")
@pytest.mark.parametrize(
    ("reasons", "verdict"),
    [
        (["MISSING_WINDOW"], Integrity.PARTIAL),
        (["MISSING_REPORT", "MISSING_WINDOW"], Integrity.PARTIAL),
        (["MISSING_SEAL"], Integrity.BROKEN),
        (["MISSING_REPORT", "SEQUENCE_GAP"], Integrity.BROKEN),
    ],
)
@pytest.mark.parametrize("marked", [False, True])
def test_a_chain_is_partial_only_where_nothing_is_wrong_but_absence(reasons, verdict, marked):
    """One fault of another sort breaks it, and a mark of an erasure excuses none."""
    marks = tuple(notes(1)) if marked else ()
    faults = tuple(Fault("window", 1, reason) for reason in reasons)

    assert Verification(faults, 9, 3, 0, "", marks).integrity is verdict


@pytest.mark.req("PRV-2")
def test_rows_that_were_never_sealed_are_no_tip_while_another_is_sealed():
    """The tip is the last seal's; without any seal it is the highest number's."""
    windows, _ = dag(LINE)
    rows = list(windows.values())

    assert check(rows, sound(rows[0])).chain_tip == windows["root"].hmac
    assert check(rows[::-1], []).chain_tip == windows["b"].hmac


@pytest.mark.req("PRV-2", "BUD-4")
@pytest.mark.parametrize(
    ("row", "seals", "charged"),
    [
        (0, [0], 0),
        (7, [5], 7),
        (5, [7], 7),
        (0, [5, 9, 7], 9),
        (None, [5, 9, 7], 9),
        (0, [], 0),
        (6, [], 6),
        (-1, [-7], 0),
        (0, [WHOLE_BUDGET], WHOLE_BUDGET),
        (0, [WHOLE_BUDGET + 1], WHOLE_BUDGET),
        (WHOLE_BUDGET + 1, [0], WHOLE_BUDGET),
        (0, ["9"], 0),
        (0, [None], 0),
        (0, [2.5], 0),
    ],
)
def test_of_all_that_is_said_of_a_charge_the_highest_counts_within_a_budget(row, seals, charged):
    """Row and seals, or either alone; never below nothing, never more than all of a budget."""
    windows, _ = dag({"root": []})
    rows = [] if row is None else [replace(windows["root"], charge_micros=row)]

    found = check(rows, sealing(*((window_id(1), {"charge_micros": charge}) for charge in seals)))

    assert found.charged_micros == charged


@pytest.mark.req("PRV-2", "BUD-4")
def test_the_charges_of_all_windows_are_summed_whether_their_rows_are_there_or_not():
    """A row, a seal without a row, and two rows of one window, of which the higher counts."""
    windows, _ = dag({"root": [], "a": ["root"]})
    rows = [windows["root"], windows["a"], replace(windows["a"], charge_micros=30), windows["a"]]

    assert check(rows, sealing((window_id(7), {"charge_micros": 400}))).charged_micros == 10 + 30 + 400


# --- what was erased or truncated


@pytest.mark.req("PRV-2", "AUD-5")
def test_a_report_erased_by_a_mark_is_no_fault_and_one_missing_after_it_is():
    """The mark excuses what was sealed before it, and only its report."""
    windows, _ = dag(LINE)
    root, a, b = (replace(window, stored_report_hash="") for window in windows.values())
    seals = {w: ("WINDOW_SEALED", w.window_id, canonical_json(seal_data(w))) for w in windows.values()}
    first, second, third = seals.values()
    events = events_of(first, second, ("CONTENT_ERASED", "", "{}"), third)

    erased = check([root, a, windows["b"]], events)
    missing = check([root, a, b], events)
    changed = check([replace(root, risk_level=5), a, windows["b"]], events)

    assert (told(erased), erased.integrity, list(erased.marks)) == ([], Integrity.TRUNCATED, [events[2]])
    assert told(missing) == [("window", 3, "MISSING_REPORT", window_id(3))]
    assert told(changed) == [("window", 1, "SEAL_MISMATCH", window_id(1))]


def mark(**said: object) -> EventRecord:
    data = {"last_sequence": 6, "head": hash_of(6), "charged_micros": 300_000, "chain_tip": hash_of(5), "windows": 2}
    [event] = events_of(("TRUNCATED", "", canonical_json(data | said)), after=(6, hash_of(6)))
    return event


@pytest.mark.req("PRV-2", "AUD-5")
def test_a_truncated_chain_goes_on_from_what_its_mark_says():
    """The head is what the mark is chained to, the charges count on, and the tip is the old one until there is a window."""
    windows, _ = dag({"root": []})
    [root] = windows.values()
    more = events_of(("WINDOW_SEALED", root.window_id, canonical_json(seal_data(root))), after=(7, mark().hmac))

    alone, longer = check([], [mark()]), check([root], [*more, mark()])

    assert alone == Verification((), 1, 0, 300_000, hash_of(5), (mark(),))
    assert longer == Verification((), 2, 1, 300_010, root.hmac, (mark(),))
    assert alone.integrity is longer.integrity is Integrity.TRUNCATED


@pytest.mark.req("PRV-2", "AUD-5")
@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"last_sequence": 5}, Fault("event", 1, "SEQUENCE_GAP")),
        ({"head": hash_of(7)}, Fault("event", 7, "HMAC_MISMATCH")),
    ],
)
def test_a_mark_of_truncation_that_does_not_fit_its_place_excuses_nothing(said, fault):
    """What it says must lead to itself."""
    found = check([], [mark(**said)])

    assert found.faults == (fault,)
    assert found.integrity is Integrity.BROKEN


def test_the_hash_of_content_is_sha256_in_hexadecimal():
    """The known answer for the empty text."""
    assert content_hash(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
