"""The verifier can fail: for each invariant a run that holds it, and the same run bent so that it does not."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.faults.facts import (
    Call,
    Caller,
    Checkpoint,
    Event,
    Facts,
    Kernel,
    Limits,
    Received,
    Record,
    Seal,
    Session,
    Told,
    Window,
)  # fmt: skip
from tests.faults.stream_rules import hashed, open_streams, still_holds
from tests.faults.suite import experiment_runs
from tests.faults.verifier import NEEDED, RULES, claims_of, verify

SESSION, CHILD = "crp_sess_" + "1" * 32, "crp_sess_" + "2" * 32


def hmac(number: int) -> str:
    return f"sha256:{number:064x}"


def token(tip: str = "", budget: str = "1.000000") -> str:
    payload = json.dumps({"ct": tip, "sb": None}).replace("null", budget)
    return base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=") + ".signature"


def window(number: int, left: int, charge: int, *parents: str, **changed: Any) -> Window:
    given = {
        "window_id": f"w{number}", "number": number, "parents": parents, "pattern": "LINEAR", "charge": charge,
        "path_budget": left, "hmac": hmac(number), "response_hash": f"body-{number}", "status": "COMPLETED",
    }  # fmt: skip
    return Window(**{**given, **changed})


def seal(of: Window, **changed: Any) -> Seal:
    found = Seal(of.window_id, of.number, of.parents, of.charge, of.hmac, of.response_hash, of.status)
    return replace(found, **changed)


def call(number: int, of: Window | None = None, *, sent: str = "", **changed: Any) -> Call:
    headers = dict.fromkeys(NEEDED, "x") | {"crp-context-session-id": SESSION}
    if of is not None:
        left = f"{of.path_budget // 1_000_000}.{of.path_budget % 1_000_000:06d}"
        headers |= {
            "crp-provenance-hmac": of.hmac, "crp-agent-safety-budget": left,
            "crp-set-session": f"token={token(of.hmac, left)}; max-age=60",
        }  # fmt: skip
    given = {
        "number": number, "client": "c", "kind": "chat", "started": number * 10.0, "ended": number * 10.0 + 1,
        "limit_s": 5.0, "status": 200, "headers": headers, "body_hash": of.response_hash if of else "", "token": sent,
    }  # fmt: skip
    return Call(**{**given, **changed})


FIRST = window(1, 850_000, 150_000)
SECOND = window(2, 800_000, 50_000, "w1")
CHARGED = (call(1, FIRST), call(2, SECOND, sent=token(FIRST.hmac)))


def session(*windows: Window, **changed: Any) -> Session:
    events = tuple(Event(n, "WINDOW_SEALED", one.window_id, f"e{n}") for n, one in enumerate(windows, 1))
    given = {
        "session_id": SESSION, "parent": "", "depth": 0, "active": True, "policy": "halt-on CRITICAL",
        "budget": min((one.path_budget for one in windows), default=1_000_000), "windows": windows,
        "seals": tuple(map(seal, windows)), "events": events, "integrity": "VALID",
    }  # fmt: skip
    return Session(**{**given, **changed})


GOOD = Facts(calls=CHARGED, sessions=(session(FIRST, SECOND),), received=(Received((("host", "x"),), "{}"),),
             callers=(Caller("key", 200_000, 200_000, 200_000),))  # fmt: skip


def one(**changed: Any) -> Facts:
    """The good run with its session changed."""
    return replace(GOOD, sessions=(replace(GOOD.sessions[0], **changed),))


def with_calls(*calls: Call, **changed: Any) -> Facts:
    return replace(GOOD, calls=(*CHARGED, *calls), **changed)


def with_linked(began: int) -> Facts:
    """The good run, and a session that continues its own without a token."""
    more = session(session_id="crp_sess_" + "3" * 32, continues=SESSION, began=began, budget=began)
    return replace(GOOD, sessions=(*GOOD.sessions, more))


def look(number: int, budget: int, **changed: Any) -> Call:
    return call(number, kind="look", budget=budget, **changed)


def child(**changed: Any) -> Session:
    return session(**{"session_id": CHILD, "parent": SESSION, "depth": 1, "budget": 800_000, **changed})


def below(number: int) -> Call:
    """An answer in the child's session."""
    return call(number, headers={**dict.fromkeys(NEEDED, "x"), "crp-context-session-id": CHILD})


HALT = call(3, status=451, reason="SAFETY_HALT", headers={"crp-context-session-id": SESSION})


def spent_at(left: str) -> Call:
    """Return a halt for a spent budget, of which so much is told to be left."""
    return replace(HALT, reason="BUDGET_DEPLETED", headers={**HALT.headers, "crp-agent-safety-budget": left})


DEPLETED = window(3, 100_000, 350_000, "w2")
FAN = tuple(window(3, 800_000, 0, "w2", pattern="FAN_OUT", window_id=f"f{n}", hmac=hmac(n)) for n in range(30, 42))

SAID, WHOLE = "It is so.", "It is so. It stays so."


def noted(kind: str, window_id: str = "w2", **data: Any) -> Event:
    return Event(0, kind, window_id, "e", data)


STREAMED = (
    noted("STREAM_BEGUN", hold_micros=350_000), noted("STREAM_PART", part=1, characters=9, running_hash=hashed(SAID)),
    noted("STREAM_ENDED", parts=2, characters=22, running_hash=hashed(WHOLE), ending="COMPLETE"),
    noted("WINDOW_SEALED"),
)  # fmt: skip


def in_parts(heard: str = WHOLE, *, without: str = "", events: tuple[Event, ...] = STREAMED, **changed: Any) -> Facts:
    """The good run whose second answer left in parts, with other events of it, or without those of one kind."""
    kept = [noted("WINDOW_SEALED", "w1"), *(one for one in events if one.event_type != without)]
    told = tuple(replace(one, sequence=number) for number, one in enumerate(kept, 1))
    calls = (CHARGED[0], replace(CHARGED[1], entry="parts", heard=heard))
    given = {"calls": calls, "sessions": (replace(GOOD.sessions[0], events=told),), **changed}
    return replace(GOOD, **given)


def bent(place: int, **data: Any) -> tuple[Event, ...]:
    """The events of the stream, the data of one of them changed."""
    changed = replace(STREAMED[place], data={**STREAMED[place].data, **data})
    return (*STREAMED[:place], changed, *STREAMED[place + 1 :])


def torn(heard: str) -> Call:
    """A stream that broke off after that."""
    started = {"crp-context-session-id": SESSION}
    return replace(CHARGED[1], status=0, reason="left", left=True, headers=started, entry="parts", heard=heard)


LOST_FREE = bent(2, parts=1, running_hash=hashed(SAID), ending="LOST")
OPEN = session(FIRST, events=tuple(
    replace(one, sequence=number) for number, one in enumerate((noted("WINDOW_SEALED", "w1"), *STREAMED[:2]), 1)))  # fmt: skip
HOLDING = replace(GOOD.callers[0], holds=frozenset({"w2"}))


def record(
    sequence: int, kind: str, key: str = "", action: str = "", dropped: tuple[str, ...] = (), **changes: str
) -> Record:
    told = {name.replace("__", ":"): value for name, value in changes.items()}
    told |= {"version": str(sequence)}
    return Record(sequence, f"KERNEL_{kind}", {
        "key": key, "action": action, "approved": "1", "changes": told, "dropped": list(dropped)})  # fmt: skip


def spent(gross: int, refunded: int = 0) -> dict[str, str]:
    """What a kernel and its child have spent."""
    return {"r__usd": f"100 1 {gross} {refunded} 0", "q__c__usd": f"50 0 {gross} {refunded} 0"}


BOOKED = '{"state":"S","child":"c","compensation":"unbook"}'
RECORDS = (
    record(1, "OPENED", r__usd="100 1 0 0 0", v__booked="n:0", a__book='{"costs":[["usd","2"]]}', a__small='{"costs":[["usd","1"]]}'),
    record(2, "CHILD_OPENED", "open", p__c="-", q__c__usd="50 0 0 0 0"),
    record(3, "SAGA_BEGUN", "s1", sagas="s1"),
    record(4, "PERMITTED", "b1", "book", v__booked="n:1000000", x__b1=BOOKED.replace("S", "P"), **spent(2)),
    record(5, "EXECUTED", "e1", "small", x__e1='{"state":"E","child":"c"}', **spent(3)),
    record(6, "SAGA_ROLLED_BACK", "u1", sagas="", j__b1="s1 unbook book 0 1 0 due", x__b1=BOOKED,
           x__e1='{"state":"R","child":"c"}', **spent(3, 1)),
    record(7, "COMPENSATION_CLAIMED", "c1", "unbook", j__b1="s1 unbook book 1 2 7 due"),
    record(8, "COMPENSATED", "d1", "unbook", ("j:b1",), v__booked="n:0"),
)  # fmt: skip
USD = [{"gross_micros": "3", "refunded_micros": "1", "leased_micros": "0"}]
SHOWN = {
    "resources": USD, "children": [{"name": "c", "resources": USD}], "state": {"booked": {"number_micros": "0"}}, "version": "8",
    "compensations": [],
}  # fmt: skip
KERNEL = Kernel(
    "k",
    RECORDS,
    "VALID",
    SHOWN,
    (Told("permit", "b1", approved=True, sequence=4, action="book"),),
    frozenset({"b1"}),
    ("b1", "b1"),
)


def kernel(**changed: Any) -> Facts:
    """The good run with a kernel, changed."""
    return replace(GOOD, kernels=(replace(KERNEL, **changed),))


def recorded(place: int, dropped: tuple[str, ...] | None = None, **changes: str) -> Facts:
    """The kernel with other changes in one of its records."""
    old = RECORDS[place]
    told = {**old.data["changes"], **{name.replace("__", ":"): value for name, value in changes.items()}}
    data = {**old.data, "changes": told, "dropped": old.data["dropped"] if dropped is None else dropped}
    return kernel(records=(*RECORDS[:place], replace(old, data=data), *RECORDS[place + 1 :]))


BENT: tuple[tuple[str, str, Facts], ...] = (
    *experiment_runs.BENT,
    ("I1", "a look that rises", with_calls(look(3, 800_000), look(4, 850_000))),
    ("I1", "a store that ends above a look", with_calls(look(3, 790_000))),
    ("I1", "a path above what its parent left", one(windows=(FIRST, replace(SECOND, path_budget=820_000)))),
    ("I1", "a root above all", one(windows=(replace(FIRST, path_budget=1_000_000), SECOND))),
    ("I1", "a budget that was refilled", one(budget=1_000_000)),
    ("I1", "a budget above the charges", one(budget=850_000)),
    ("I1", "a budget that was charged too often", one(budget=750_000)),
    ("I1", "a parent above its child", replace(GOOD, sessions=(*GOOD.sessions, child(budget=600_000)))),
    ("I1", "a header that says more", with_calls(replace(
        CHARGED[1], number=3, headers={**CHARGED[1].headers, "crp-agent-safety-budget": "0.95"}))),
    ("I1", "a token that says more", with_calls(replace(
        CHARGED[1], number=3, headers={**CHARGED[1].headers, "crp-set-session": f"token={token(SECOND.hmac, '0.950000')}"}))),
    ("I1", "a token that says less", with_calls(replace(
        CHARGED[1], number=3, headers={**CHARGED[1].headers, "crp-set-session": f"token={token(SECOND.hmac, '0.750000')}"}))),
    ("I1", "a session that is gone", one(budget=None)),
    ("I1", "a caller whose charge was forgotten", replace(GOOD, callers=(Caller("key", 150_000, 200_000, 200_000),))),
    ("I1", "a linked session that begins with more than was left", with_linked(900_000)),
    ("I1", "a caller that was charged twice", replace(GOOD, callers=(Caller("key", 250_000, 200_000, 200_000),))),
    ("I15", "a call in another key's session", with_calls(replace(CHARGED[1], number=3, client="other", kind="plain"))),
    ("I1", "a token that rises", with_calls(replace(CHARGED[0], number=3, started=30.0, ended=31.0))),
    ("I1", "a sum that is not what was charged", one(summing=True, budget=850_000)),
    ("I20", "an answer below a session that was ended", replace(
        GOOD, sessions=(*GOOD.sessions, child(budget=None)), calls=(*CHARGED, call(3, kind="end"), below(4)))),
    ("I20", "an answer below a session that was spent", replace(
        GOOD, sessions=(*GOOD.sessions, child(budget=None)), calls=(*CHARGED, look(3, 90_000), below(4)))),
    ("I2", "an answer that leaves nothing", replace(
        GOOD, calls=(*CHARGED, call(3, DEPLETED, sent=token(SECOND.hmac))), sessions=(session(FIRST, SECOND, DEPLETED),))),
    ("I2", "an answer after the end was told", with_calls(look(3, 90_000), replace(
        CHARGED[1], number=4, started=50.0, ended=51.0))),
    ("I3", "a settlement twice", one(windows=(FIRST, SECOND, replace(SECOND, window_id="w3")))),
    ("I3", "a seal twice", one(seals=(seal(FIRST), seal(SECOND), seal(SECOND)))),
    ("I3", "a settlement without a seal", one(seals=(seal(FIRST),))),
    ("I3", "another charge than was sealed", one(seals=(seal(FIRST), seal(SECOND, charge=0)))),
    ("I3", "a seal that is never settled", one(windows=(FIRST,), budget=850_000)),
    ("I3", "an answer without a settlement", with_calls(call(3, window(9, 800_000, 0)))),
    ("I3", "an answer given twice", with_calls(replace(CHARGED[1], number=3))),
    ("I3", "an answer of an unknown session", with_calls(call(
        3, SECOND, headers={**CHARGED[1].headers, "crp-context-session-id": CHILD}))),
    ("I4", "an answer that is not in the log", with_calls(call(3, window(9, 800_000, 0)))),
    ("I4", "other bytes than were sealed", replace(GOOD, calls=(CHARGED[0], replace(CHARGED[1], body_hash="other")))),
    ("I4", "a held answer that was released", one(seals=(seal(FIRST), seal(SECOND, status="HELD")))),
    ("I4", "a charge that no risk costs", one(seals=(seal(FIRST), seal(SECOND, charge=1)))),
    ("I4", "a part that no record covers", in_parts("It is so. It", calls=(CHARGED[0], torn("It is so. It")))),
    ("I4", "a stream without a part on record", in_parts(calls=(CHARGED[0], torn(SAID)), without="STREAM_PART", events=STREAMED[:2])),
    ("I4", "a whole answer that did not end as its stream did", in_parts(SAID)),
    ("I4", "an answer in parts that the log holds as halted", replace(
        in_parts(), sessions=(replace(GOOD.sessions[0], seals=(seal(FIRST), seal(SECOND, status="HALTED"))),))),
    ("I4", "a stream that began twice", in_parts(events=(STREAMED[0], *STREAMED))),
    ("I4", "a part without the one before it", in_parts(events=bent(1, part=2))),
    ("I4", "parts that do not grow", in_parts(events=(*STREAMED[:2], replace(
        STREAMED[1], data={**STREAMED[1].data, "part": 2}), *STREAMED[2:]))),
    ("I4", "a part behind the seal", in_parts(events=(STREAMED[0], *STREAMED[2:], STREAMED[1]))),
    ("I4", "a seal without the stream's end", in_parts(without="STREAM_ENDED")),
    ("I4", "an end that counts other parts", in_parts(events=bent(2, ending="CUT"))),
    ("I3", "a stream that nobody closed", replace(GOOD, sessions=(OPEN,), calls=(CHARGED[0], torn(SAID)))),
    ("I3", "a lost stream that was not charged what it held", in_parts(events=LOST_FREE)),
    ("I3", "a hold of a session that outlives its settlement", one(holds=frozenset({"w2"}))),
    ("I3", "a hold of a caller that outlives its settlement", replace(GOOD, callers=(HOLDING,))),
    ("I3", "a hold that nobody closes", one(holds=frozenset({"w9"}))),
    ("I2", "parts after the session was told to be spent", with_calls(
        spent_at("0.10"), replace(torn(SAID), number=4, started=50.0, ended=51.0))),
    ("I5", "a gap", one(events=(replace(GOOD.sessions[0].events[0], sequence=1), replace(
        GOOD.sessions[0].events[1], sequence=3)))),
    ("I5", "a chain that is broken", one(integrity="BROKEN")),
    ("I5", "a seal without its event", one(events=GOOD.sessions[0].events[:1])),
    ("I6", "a log that does not extend its checkpoint", replace(GOOD, checkpoints=(Checkpoint(5, "a", False),))),
    ("I6", "a checkpoint that went back", replace(GOOD, checkpoints=(Checkpoint(5, "a", True), Checkpoint(4, "b", True)))),
    ("I6", "two roots of one size", replace(GOOD, checkpoints=(Checkpoint(5, "a", True), Checkpoint(5, "b", True)))),
    ("I7", "a child with a looser policy", replace(GOOD, sessions=(*GOOD.sessions, child(policy="warn-on HIGH")))),
    ("I7", "a child without its parent's policy", replace(GOOD, sessions=(*GOOD.sessions, child(policy="")))),
    ("I8", "two lines from one window", one(windows=(FIRST, SECOND, replace(SECOND, window_id="w3", hmac=hmac(3))))),
    ("I8", "one token that won twice", with_calls(replace(CHARGED[1], number=3))),
    ("I8", "an answer before its tip was asked for", replace(GOOD, calls=(CHARGED[0], replace(
        CHARGED[1], started=1.0, ended=2.0)))),
    ("I8", "a replay without a rival", with_calls(call(
        3, sent=token(SECOND.hmac), status=409, reason="TOKEN_REPLAYED"))),
    ("I9", "two roots", one(windows=(FIRST, replace(FIRST, window_id="w9", hmac=hmac(9)), SECOND))),
    ("I9", "a window after itself", one(windows=(FIRST, replace(SECOND, parents=("w2",))))),
    ("I9", "a parent that is not there", one(windows=(FIRST, replace(SECOND, parents=("w7",))))),
    ("I9", "too wide a fan-out", one(windows=(FIRST, SECOND, *FAN))),
    ("I9", "too many windows", replace(GOOD, limits=Limits(40, 1, 10, 5))),
    ("I9", "too long a line", replace(GOOD, limits=Limits(1, 100, 10, 5))),
    ("I9", "too deep a tree", replace(GOOD, sessions=(*GOOD.sessions, child(depth=6)))),
    ("I10", "an answer that came too late", with_calls(replace(HALT, ended=HALT.started + 9))),
    ("I10", "no answer from a front that was whole", with_calls(replace(HALT, status=0, reason="ReadError"))),
    ("I10", "an answer without its headers", with_calls(replace(HALT, status=200, reason=""))),
    ("I10", "a refusal without a reason", with_calls(replace(HALT, status=503, reason=""))),
    ("I10", "a defect", with_calls(replace(HALT, status=500, reason="INTERNAL"))),
    ("I10", "a verdict for a failure", with_calls(replace(HALT, reason="AUDIT_UNAVAILABLE"))),
    ("I10", "a failure for a verdict", with_calls(replace(HALT, status=503))),
    ("I10", "a defect in a log", replace(GOOD, log_entries=("audit: rpc.defect",))),
    ("I11", "a header of ours at the provider", replace(GOOD, received=(Received((("crp-session-token", "x"),), ""),))),
    ("I11", "a token at the provider", replace(
        GOOD, received=(Received((), "say secret-token"),), secrets=frozenset({"secret-token"}))),
    ("I12", "an approval used twice", with_calls(
        replace(CHARGED[0], number=3, approval="a"), replace(CHARGED[1], number=4, approval="a"))),
    ("I12", "an approval used by two clients", with_calls(
        replace(CHARGED[1], number=3, approval="a"), replace(CHARGED[1], number=4, approval="a", token="other"))),
    ("I12", "a held answer released twice", with_calls(
        replace(CHARGED[1], number=3, approval="a"), replace(CHARGED[1], number=4, approval="b"))),
    ("I13", "a mild answer that was halted, as a policy would that only reports", one(
        seals=(seal(FIRST), seal(SECOND, status="HALTED")))),
    ("I13", "a grave answer that was let through", one(seals=(seal(FIRST, charge=350_000), seal(SECOND)))),
    ("I18", "a record that is missing", kernel(records=(*RECORDS[:6], RECORDS[7]))),
    ("I18", "a kernel's chain that is broken", kernel(integrity="BROKEN")),
    ("I18", "a key that did something twice", kernel(records=(*RECORDS, replace(RECORDS[7], sequence=9)))),
    ("I18", "a child above its limit", recorded(4, q__c__usd="2 0 3 0 0")),
    ("I18", "a refund that was taken back", recorded(7, r__usd="100 1 3 0 0")),
    ("I18", "a child that was charged and what is above it was not", recorded(4, r__usd="100 1 2 0 0")),
    ("I18", "a refund to the child alone", recorded(5, r__usd="100 1 3 0 0")),
    ("I18", "a store with another budget", kernel(shown={**SHOWN, "children": []})),
    ("I18", "a store with another state", kernel(shown={**SHOWN, "version": "7"})),
    ("I18", "a store that forgot a compensation", recorded(7, dropped=())),
    ("I18", "an answer that is not on record", kernel(told=(Told("execute", "x", approved=True, sequence=9),))),
    ("I18", "an answer that was told otherwise", kernel(told=(Told("permit", "b1", approved=False, sequence=4),))),
    ("I18", "an emergency action that was recorded and is not on record", kernel(told=(
        Told("emergency", "x", approved=True, sequence=0, recorded=True),))),
    ("I18", "an action that was permitted behind a stop", kernel(told=(
        Told("emergency", "b1", approved=True, sequence=4, stop=True, child="c", front=1, ended=5.0),
        Told("execute", "e1", approved=True, sequence=5, child="c", front=1, began=6.0)))),
    ("I18", "a saga that stays open", recorded(5, sagas="s1")),
    ("I18", "a compensation that nobody made", kernel(unmade=())),
    ("I18", "a compensation of what had not failed", kernel(unmade=("b1", "e9"))),
    ("I18", "a step in the world that is not on record", kernel(made=frozenset({"b1", "b2"}))),
    ("I18", "a booking that nothing undid", recorded(7, v__booked="n:1000000")),
    ("I14", "a halt that one way in gave away", one(seals=(seal(FIRST), seal(SECOND, status="HALTED")))),
    ("I14", "an answer that one way in called a halt", replace(
        GOOD, calls=(CHARGED[0], replace(CHARGED[1], status=451, reason="SAFETY_HALT", entry="grpc")))),
)  # fmt: skip


def test_a_good_run_has_no_violation():
    """Two answers in a line, sealed, settled, told and released as they must be."""
    assert verify(GOOD) == []


def test_a_good_kernel_has_no_violation():
    """A saga that failed, of which one step was undone at once and the other made up for, twice in the world."""
    assert verify(kernel()) == []


def test_a_good_experiment_has_no_violation():
    """A reserved action, a rule that spoke for a silent agent, that agent failed and not asked, and a call without an answer."""
    good = experiment_runs.run_of()

    assert [head["outcome"] for head in experiment_runs.HEADS] == [
        "EXTEND_TRIALS",
        "SWITCH_HPO",
        "CONTINUE",
        "CONTINUE",
    ]
    assert experiment_runs.STATUSES["protocol"] == "FAILED"
    assert verify(good) == []


def test_good_streams_have_no_violation():
    """A whole one, one that its client left behind a part, and one that was lost and charged what it held."""
    lost = replace(SECOND, charge=350_000, path_budget=500_000, status="HALTED", response_hash=hashed(SAID))
    paid = session(FIRST, lost, events=tuple(replace(one, sequence=number) for number, one in enumerate(
        (noted("WINDOW_SEALED", "w1"), *LOST_FREE), 1)))  # fmt: skip

    assert verify(in_parts()) == []
    assert verify(in_parts(calls=(CHARGED[0], torn(SAID)))) == []
    assert verify(replace(GOOD, sessions=(paid,), calls=(CHARGED[0], torn(SAID)), callers=())) == []


def test_a_session_that_a_lost_stream_held_up_is_not_spent():
    """What the hold left was spent for one answer; freed, the session goes on with what it was told to have left."""
    after = replace(torn(SAID), number=4, started=50.0, ended=51.0)

    assert "I2" not in {one.invariant for one in verify(with_calls(spent_at("0.30"), after))}


@pytest.mark.parametrize(
    ("entry", "ended", "explained"),
    [("parts", 15.0, True), ("parts", 9.0, True), ("http", 15.0, False)],
    ids=["a stream beside it", "a stream that was lost before it", "no stream"],
)
def test_an_answer_may_be_held_for_what_a_stream_held_beside_it(entry, ended, explained):
    """A HIGH answer at 0.70 is released, unless a call in parts of its session held the most that it might cost."""
    high = replace(SECOND, charge=150_000, path_budget=700_000, status="HELD")
    told = replace(
        call(2, high, sent=token(FIRST.hmac)), status=451, reason="HELD_FOR_REVIEW", started=10.0, ended=12.0
    )
    lost = call(3, entry=entry, started=5.0, ended=ended, status=504, headers={"crp-context-session-id": SESSION})
    bent = replace(GOOD, sessions=(session(FIRST, high),), calls=(CHARGED[0], told, lost), callers=())

    wrong = [one for one in verify(bent) if "its rule says" in one.what]

    assert (wrong == []) is explained


@pytest.mark.parametrize(
    ("opened", "more", "explained"),
    [
        (9.5, {}, False),
        (8.5, {}, True),
        (9.5, {"set_back_at": 9.7}, True),
        (9.5, {"holds": frozenset({"w9"})}, True),
        (9.5, {"reason": "WINDOW_IN_FLIGHT"}, True),
    ],
    ids=["closed by an opening", "before its lease is over", "set back since", "still held", "opened nothing"],
)
def test_a_lost_stream_explains_no_verdict_once_an_opening_has_closed_it(opened, more, explained):
    """Its lease is over by 9.0, and whoever opens a window after that closes it first: a HIGH answer at 0.70 is released then."""
    high = replace(SECOND, charge=150_000, path_budget=700_000, status="HELD")
    told = replace(
        call(2, high, sent=token(FIRST.hmac)), status=451, reason="HELD_FOR_REVIEW", started=10.0, ended=12.0
    )
    named = {"crp-context-session-id": SESSION}
    lost = replace(call(3, entry="parts", started=3.0, ended=5.0, status=504, headers=named), limit_s=4.0)
    reason = more.get("reason", "WINDOW_ALREADY_SETTLED")
    closing = call(4, started=opened, ended=9.9, status=409, reason=reason, headers=named)
    one = replace(session(FIRST, high), holds=more.get("holds", frozenset()))
    bent = replace(GOOD, sessions=(one,), calls=(CHARGED[0], told, lost, closing), callers=())

    wrong = [
        one for one in verify(replace(bent, set_back_at=more.get("set_back_at", 0.0))) if "its rule says" in one.what
    ]

    assert (wrong == []) is explained


@pytest.mark.parametrize(
    ("bent", "waits"),
    [
        (one(holds=frozenset({"w9"})), True),
        (replace(GOOD, callers=(replace(HOLDING, holds=frozenset({"w1"})),)), True),
        (one(holds=frozenset({"w9"}), active=False), False),
        (GOOD, False),
    ],
    ids=["of the session", "of the caller", "of an ended session", "nothing"],
)
def test_a_run_waits_for_what_is_held_where_the_end_of_its_window_is_on_record(bent, waits):
    """Its end is on record before it is freed, so that no stream looks open then."""
    (found,) = bent.sessions

    assert open_streams(found, bent) == []
    assert still_holds(found, bent) is waits


def test_a_good_tree_has_no_violation():
    """A child that spent lowers its parent, and a halt of it is no fault."""
    spent = window(1, 450_000, 350_000, window_id="c1", hmac=hmac(71), status="HALTED")
    tree = (replace(GOOD.sessions[0], budget=450_000), child(
        windows=(spent,), seals=(seal(spent),), events=(Event(1, "WINDOW_SEALED", "c1", "e"),), budget=450_000))  # fmt: skip

    assert verify(replace(GOOD, sessions=tree)) == []


@pytest.mark.parametrize(("invariant", "what", "facts"), BENT, ids=[f"{name}-{what}" for name, what, _ in BENT])
def test_a_bent_run_is_caught_by_its_invariant(invariant, what, facts):
    """What was bent is named by the invariant that forbids it."""
    assert invariant in {violation.invariant for violation in verify(facts)}, what


@pytest.mark.parametrize(
    ("what", "words", "facts"), experiment_runs.WORDS, ids=[one for one, *_ in experiment_runs.WORDS]
)
def test_what_was_bent_in_an_experiment_is_named(what, words, facts):
    """A replay notices any trace that was changed; what it must not do is told besides."""
    assert any(words in one.what for one in verify(facts)), what


def test_every_rule_is_shown_to_fail():
    """No rule of the verifier passes everything: each one catches a run of the table above."""
    silent = [
        rule.__name__
        for name, rules in RULES.items()
        for rule in rules
        if not any(list(rule(facts)) for invariant, _, facts in BENT if invariant == name)
    ]

    assert silent == []


def test_a_refusal_by_a_front_that_was_down_is_no_silence():
    """What the run itself had broken need not answer, and who hangs up is not answered."""
    assert verify(with_calls(replace(HALT, status=0, reason="ReadError", front_up=False))) == []
    assert verify(with_calls(replace(HALT, status=0, reason="left", left=True))) == []


def test_a_linked_session_goes_on_with_what_was_left():
    """Its charges count from there."""
    assert verify(with_linked(800_000)) == []


def test_a_client_that_gives_up_on_a_front_that_was_down_says_nothing_of_time():
    """Its patience is its own; where the front was whole, it is not."""
    late = replace(HALT, status=0, reason="rpc DEADLINE_EXCEEDED", ended=HALT.started + 9)
    assert verify(with_calls(replace(late, front_up=False))) == []
    assert {one.invariant for one in verify(with_calls(late))} == {"I10"}


def test_a_look_after_the_store_was_set_back_may_show_more_until_the_session_is_used():
    """What the store ends at may not."""
    rising = with_calls(look(3, 700_000), look(4, 750_000), sessions=(session(FIRST, SECOND, budget=700_000),))
    said = [str(one) for one in verify(rising)]
    assert any("in call 3" in one for one in said)
    assert not any("in call 3" in one for one in map(str, verify(replace(rising, set_back_at=35.0))))
    assert any("the store ends at" in str(one) for one in verify(with_calls(look(3, 700_000), set_back_at=35.0)))


def test_a_token_is_read_without_being_checked():
    """Its tip and its budget as written; something else says nothing."""
    assert claims_of(token("sha256:1", "0.850000")) == {"ct": "sha256:1", "sb": "0.850000"}
    assert claims_of("nonsense") == claims_of("") == {}


@pytest.mark.parametrize(("cost", "sound"), [(50_000, True), (40_000, False)])
def test_what_was_told_may_be_higher_by_what_sessions_below_cost_and_no_more(cost, sound):
    """A rebuild takes the cost of a session below off a path that was told before that cost was settled."""
    rebuilt = session(FIRST, replace(SECOND, path_budget=SECOND.path_budget - 50_000))
    spent = window(1, 1_000_000 - cost, cost, hmac=hmac(40), window_id="c1")
    below = child(windows=(spent,), seals=(seal(spent),))
    wrong = verify(replace(GOOD, sessions=(rebuilt, below)))

    assert any("was told" in one.what or "says" in one.what for one in wrong) is not sound, wrong
