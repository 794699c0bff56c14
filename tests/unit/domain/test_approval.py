"""A reviewer's approval: one text, one action, one scope, for a time (SPEC-012 §6.2; reliability.md A-30)."""

from __future__ import annotations

import base64
import json

import pytest

from interlock.domain import approval
from interlock.domain.errors import Kind, Refused
from interlock.policy.reviewers import NO_REVIEWERS, read_reviewers
from tests.support.policy.agents import APPROVAL, NOW_S, REVIEWER, SESSION, approved, private_key, reviewers

SCOPE = {"session": SESSION, "agent": "specialist_legal"}
REGISTERED = read_reviewers(reviewers())


def verified(token: str, *, now_s: int = NOW_S, action: str = "delegate", among=REGISTERED, **scope):
    return among.verified(token, action, {**SCOPE, **scope}, now_s=now_s)


def refusal(token: str, **asked) -> str:
    with pytest.raises(Refused) as refused:
        verified(token, **asked)
    assert refused.value.kind is Kind.UNAUTHENTICATED
    return refused.value.reason


def signed(payload: bytes) -> str:
    return approval.token(payload, private_key().sign(approval.signed_bytes(payload)))


def payload_with(**changes) -> bytes:
    values = json.loads(approval.canonical_payload(approval.read(approved()).approval))
    return json.dumps({**values, **changes}, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.req("OVR-3")
def test_a_registered_reviewers_approval_holds():
    """Its text begins as SPEC-012 §6.2 writes it, and what was signed comes back."""
    token = approved()

    found = verified(token)

    assert token.startswith("approved:sha256:")
    assert (found.approval_id, found.reviewer, found.scope) == (APPROVAL, REVIEWER, SCOPE)


@pytest.mark.req("OVR-3")
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"session": "crp_sess_" + "9" * 32}, "APPROVAL_MISMATCH"),
        ({"agent": "specialist_tax"}, "APPROVAL_MISMATCH"),
        ({"agent": ""}, "APPROVAL_MISMATCH"),
        ({"action": "release"}, "APPROVAL_MISMATCH"),
        ({"action": ""}, "APPROVAL_MISMATCH"),
        ({"now_s": NOW_S + 900}, "APPROVAL_EXPIRED"),
        ({"now_s": NOW_S - 61}, "APPROVAL_FROM_FUTURE"),
        ({"among": NO_REVIEWERS}, "APPROVAL_INVALID"),
        ({"among": read_reviewers(reviewers(another=private_key()))}, "APPROVAL_INVALID"),
        ({"among": read_reviewers(reviewers(**{REVIEWER: private_key(2)}))}, "APPROVAL_INVALID"),
    ],
)
def test_an_approval_holds_for_what_it_was_given_only(asked, reason):
    """Another session, agent type, action or time, and a reviewer who is not registered, or has another key by now."""
    assert refusal(approved(), **asked) == reason


@pytest.mark.req("OVR-3")
def test_it_holds_until_its_last_second():
    """And for a clock that goes a minute after ours."""
    assert verified(approved(), now_s=NOW_S + 899)
    assert verified(approved(), now_s=NOW_S - 60)


@pytest.mark.req("OVR-3")
@pytest.mark.parametrize(
    "changes",
    [
        {"expires_at": NOW_S + 86_401},
        {"expires_at": NOW_S},
        {"approval_id": "x"},
        {"reviewer": "a b"},
        {"action": "release"},
        {"scope": {"session": SESSION}},
        {"scope": {**SCOPE, "window": "w"}},
    ],
)
def test_what_no_honest_command_makes_is_refused_though_it_is_signed(changes):
    """Longer than a day, without an end, or about something else than its action needs."""
    assert refusal(approved(**changes)) == "APPROVAL_INVALID"


BAD = {
    "empty": "",
    "no prefix": approved().removeprefix("approved:"),
    "prefix in capitals": approved().replace("approved", "APPROVED"),
    "no signature": approved().partition(".")[0],
    "empty signature": approved().partition(".")[0] + ".",
    "three parts": approved() + ".x",
    "padding": approved() + "==",
    "space": approved() + " ",
    "line break": approved() + "\n",
    "not ASCII": approved() + "é",
    "too long": approved() + "A" * 4096,
    "not JSON": signed(b"{"),
    "deep": signed(b"[" * 2000),
    "a list": signed(b"[]"),
    "spaces": signed(json.dumps(json.loads(payload_with())).encode()),
    "key twice": signed(payload_with()[:-1] + b',"id":"x"}'),
    "one field more": signed(payload_with(admin=True)),
    "another form": signed(payload_with(kv=2)),
    "form is true": signed(payload_with(kv=True)),
    "time is NaN": signed(payload_with().replace(str(NOW_S + 900).encode(), b"NaN")),
    "time is a text": signed(payload_with(exp="never")),
    "time is 1e308": signed(payload_with().replace(str(NOW_S + 900).encode(), b"1e308")),
    "id is a list": signed(payload_with(id=[])),
    "scope is a text": signed(payload_with(scope="all")),
    "scope is a number": signed(payload_with(scope={"session": 1, "agent": ""})),
    "action is a list": signed(payload_with(action=[])),
}


@pytest.mark.req("OVR-3")
@pytest.mark.parametrize("token", BAD.values(), ids=BAD)
def test_what_is_no_approval_is_refused(token):
    """Each malformed one by itself, with one answer."""
    assert refusal(token) == "APPROVAL_INVALID"


@pytest.mark.req("OVR-3")
def test_every_changed_character_of_a_token_is_noticed():
    """No second text of one approval, and no other approval under its signature."""
    token = approved()
    head = len("approved:sha256:")
    for position in range(head, len(token)):
        changed = token[:position] + ("A" if token[position] != "A" else "B") + token[position + 1 :]
        assert refusal(changed) == "APPROVAL_INVALID"


@pytest.mark.req("OVR-3")
def test_an_approval_has_one_text():
    """The bits that base64 leaves over at the end of either part are no second way of writing it."""
    head, _, signature = approved(reviewer="reviewer+1@company.com").partition(".")
    among = read_reviewers(reviewers(**{"reviewer+1@company.com": private_key()}))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    texts = [f"{head[:-1]}{a}.{signature[:-1]}{b}" for a in alphabet for b in (signature[-1],)]
    texts += [f"{head}.{signature[:-1]}{b}" for b in alphabet]

    accepted = set()
    for text in texts:
        try:
            verified(text, among=among)
            accepted.add(text)
        except Refused:
            pass

    assert accepted == {f"{head}.{signature}"}


@pytest.mark.req("OVR-3")
def test_a_signature_over_the_payload_alone_is_none():
    """What a reviewer's key signs is tagged, so that a signature made for another purpose cannot stand for an approval."""
    payload = payload_with()

    assert refusal(approval.token(payload, private_key().sign(payload))) == "APPROVAL_INVALID"


@pytest.mark.req("OVR-3")
def test_a_reviewer_approves_only_the_actions_that_are_registered():
    """``actions`` narrows what a reviewer may do; what is not an action is refused at reading."""
    document = reviewers()
    document["reviewers"][REVIEWER]["actions"] = ["release"]
    among = read_reviewers(document)
    document["reviewers"][REVIEWER]["actions"] = ["replenish"]

    assert refusal(approved(), among=among) == "APPROVAL_MISMATCH"
    with pytest.raises(Refused, match="REVIEWERS_INVALID"):
        read_reviewers(document)


def test_what_cannot_be_undone_is_allowed_by_name_alone():
    """A reviewer for whom no actions are named decides about delegations and held responses, and erases nothing."""
    erasure = approved(action="erase", scope={"session": SESSION})
    document = reviewers()
    document["reviewers"][REVIEWER]["actions"] = ["erase"]

    with pytest.raises(Refused, match="APPROVAL_MISMATCH"):
        REGISTERED.verified(erasure, "erase", {"session": SESSION}, now_s=NOW_S)
    assert read_reviewers(document).verified(erasure, "erase", {"session": SESSION}, now_s=NOW_S)


GOOD_KEY = reviewers()["reviewers"][REVIEWER]["public_key"]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (None, "the file"),
        ({}, "the file"),
        ({"reviewers": {}, "x": 1}, "the file"),
        ({"reviewers": []}, "reviewers"),
        ({"reviewers": {"a b": {"public_key": GOOD_KEY}}}, "reviewers"),
        ({"reviewers": {"a": GOOD_KEY}}, "reviewers.a"),
        ({"reviewers": {"a": {}}}, "reviewers.a"),
        ({"reviewers": {"a": {"public_key": GOOD_KEY, "x": 1}}}, "reviewers.a"),
        ({"reviewers": {"a": {"public_key": "ed25519:short"}}}, "reviewers.a.public_key"),
        ({"reviewers": {"a": {"public_key": GOOD_KEY[8:]}}}, "reviewers.a.public_key"),
        ({"reviewers": {"a": {"public_key": None}}}, "reviewers.a.public_key"),
        ({"reviewers": {"a": {"public_key": GOOD_KEY, "actions": []}}}, "reviewers.a.actions"),
        ({"reviewers": {n: {"public_key": GOOD_KEY} for n in "ab"}}, "reviewers.b.public_key"),
    ],
)
def test_a_bad_list_of_reviewers_is_refused_by_its_place(document, place):
    """Nobody becomes a reviewer by a misprint, and no two by one key."""
    with pytest.raises(Refused) as refused:
        read_reviewers(document)

    assert (refused.value.reason, refused.value.metadata["place"]) == ("REVIEWERS_INVALID", place)


def test_an_approvals_id_is_128_random_bits():
    """It is what makes an approval usable once."""
    assert approval.approval_id(bytes(range(16))) == "crp_appr_000102030405060708090a0b0c0d0e0f"
    with pytest.raises(ValueError, match="16 bytes"):
        approval.approval_id(b"x")


def test_the_payload_is_what_it_says():
    """Canonical JSON, readable by anyone."""
    payload = approved().removeprefix("approved:sha256:").partition(".")[0]

    assert json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))) == {
        "action": "delegate", "exp": NOW_S + 900, "iat": NOW_S, "id": APPROVAL, "kv": 1, "reviewer": REVIEWER,
        "scope": SCOPE,
    }  # fmt: skip
