"""Names of sessions in headers, cookies, traces and bodies: what is read, and what cannot be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.binding import cookie
from interlock.domain.binding.digests import Digests
from interlock.domain.binding.evidence import EvidenceSources, read, session_digest
from interlock.domain.binding.rank import Rank

pytestmark = pytest.mark.req("ATT-1")

KEY = bytes(range(32))
MINE, THEIRS = Digests(KEY, "mine"), Digests(KEY, "theirs")
ALL = EvidenceSources(
    frozenset(Rank), ("x-session-id", "x-litellm-session-id"), ("metadata.session_id", "metadata.thread_id", "user")
)
OWN = "crp_sess_" + "0a" * 16
TRACE = "00-" + "4b" * 16 + "-" + "00f0" * 4 + "-01"
COOKIE = cookie.value_of(MINE, OWN)


def names(lines=(), body=None, *, sources=ALL, digests=MINE, cookies=True):
    return read(sources, digests, lines, body or {}, cookies=cookies)


def ranks(found):
    return [name.rank for name in found.names]


def test_every_kind_is_read_and_the_strongest_comes_first():
    """One of each: a hint, a cookie, a response id, baggage, a trace, two fields."""
    found = names(
        [
            ("baggage", "a=b, session.id=s%2042;p=1"), ("traceparent", TRACE), ("Cookie", f"a=b; crp_session={COOKIE}"),
            ("X-Session-Id", "chat-42"),
        ],
        {"previous_response_id": "chatcmpl-1", "metadata": {"session_id": "chat-42", "else": "x"}, "user": "u"},
    )  # fmt: skip

    assert ranks(found) == [
        Rank.HINT, Rank.COOKIE, Rank.RESPONSE, Rank.TRACE, Rank.TRACE, Rank.BODY, Rank.BODY,
    ]  # fmt: skip
    assert [name.begins for name in found.names] == [True, False, False, False, False, True, True]
    assert len({name.digest for name in found.names}) == 7
    assert (found.cookie, found.session_id, found.unusable) == (COOKIE, "", ())


def test_the_same_evidence_of_another_caller_is_other_evidence():
    """No digest of one caller is one of another's, for any rank."""
    lines = [("x-session-id", "chat-42"), ("traceparent", TRACE), ("baggage", "session.id=1")]
    body = {"user": "u", "conversation": "c", "metadata": {"session_id": "s"}}
    mine, theirs = (names(lines, body, digests=digests) for digests in (MINE, THEIRS))

    assert ranks(mine) == ranks(theirs)
    assert len(mine.names) == 6
    assert not {name.digest for name in mine.names} & {name.digest for name in theirs.names}


def test_an_id_of_ours_names_its_session_and_begins_none():
    """In the protocol's own header alone: as a name in another header it is a name like any other."""
    found, spoken = names([("crp-context-session-id", OWN)]), names([("x-session-id", OWN)])

    assert found.session_id == OWN
    assert (found.names[0].digest, found.names[0].begins) == (session_digest(MINE, OWN), False)
    assert (spoken.session_id, spoken.names[0].begins) == ("", True)
    assert spoken.names[0].digest != found.names[0].digest
    assert names([("crp-context-session-id", "crp_sess_" + "A" * 20)]).names[0].begins


@pytest.mark.parametrize(
    ("lines", "body", "rank"),
    [
        ([("x-session-id", "x" * 257)], {}, Rank.HINT),
        ([("x-session-id", "a"), ("x-session-id", "a")], {}, Rank.HINT),
        ([("x-session-id", "a\x1fb")], {}, Rank.HINT),
        ([("x-session-id", "\x85")], {}, Rank.HINT),
        ([("x-session-id", " ")], {}, Rank.HINT),
        ([("cookie", "crp_session=" + "0" * 32 + "." + "0" * 32)], {}, Rank.COOKIE),
        ([("cookie", "crp_session=" + COOKIE[:-1])], {}, Rank.COOKIE),
        ([("cookie", "crp_session=" + "x" * 9000)], {}, Rank.COOKIE),
        ([("cookie", f"crp_session={COOKIE}; crp_session={COOKIE}")], {}, Rank.COOKIE),
        ([("cookie", "crp_session=" + cookie.value_of(THEIRS, OWN))], {}, Rank.COOKIE),
        ([("traceparent", TRACE.replace("4b", "00"))], {}, Rank.TRACE),
        ([("traceparent", TRACE.replace("00f0", "0000"))], {}, Rank.TRACE),
        ([("traceparent", "ff" + TRACE[2:])], {}, Rank.TRACE),
        ([("traceparent", TRACE + "-more")], {}, Rank.TRACE),
        ([("traceparent", TRACE.upper())], {}, Rank.TRACE),
        ([("traceparent", TRACE), ("traceparent", TRACE)], {}, Rank.TRACE),
        ([("baggage", "session.id=a"), ("baggage", "session.id=b")], {}, Rank.TRACE),
        ([("baggage", "session.id=%00")], {}, Rank.TRACE),
        ([], {"user": "x" * 257}, Rank.BODY),
        ([], {"user": "a\nb"}, Rank.BODY),
        ([], {"metadata": {"session_id": 7}}, Rank.BODY),
    ],
)
def test_what_cannot_be_used_is_left_out_and_told(lines, body, rank):
    """Oversized, twice, with control characters, forged, cut off, of another caller, not of its form: never an error."""
    found = names(lines, body)

    assert found.names == ()
    assert found.unusable == (rank,)
    assert found.cookie is None


def test_a_later_version_of_a_trace_may_say_more():
    """W3C Trace Context §3.2.2.1: a higher version is read as far as it is known."""
    assert ranks(names([("traceparent", "01" + TRACE[2:] + "-more")])) == [Rank.TRACE]


@pytest.mark.parametrize("rank", [Rank.HINT, Rank.COOKIE, Rank.RESPONSE, Rank.TRACE, Rank.BODY])
def test_a_rank_that_is_switched_off_is_not_read(rank):
    """Neither as evidence nor as something unusable."""
    lines = [
        ("x-session-id", "h"), ("cookie", f"crp_session={COOKIE}"), ("traceparent", TRACE), ("x-litellm-session-id", "\x00"),
    ]  # fmt: skip
    body = {"user": "u", "previous_response_id": "r"}
    found = names(lines, body, sources=replace(ALL, ranks=frozenset(Rank) - {rank}))

    assert rank not in {*ranks(found), *found.unusable}
    assert len(found.names) == 4


def test_a_front_without_cookies_reads_none():
    """gRPC has no cookies."""
    assert names([("cookie", f"crp_session={COOKIE}")], cookies=False).names == ()


def test_fields_of_one_value_are_told_apart():
    """A user called 42 is not the thread 42; two headers of one name are one session."""
    found = names([], {"user": "42", "metadata": {"session_id": "42", "thread_id": "42"}})
    headers = [names([(header, "42")]).names[0].digest for header in ALL.headers]

    assert len({name.digest for name in found.names}) == 3
    assert len(set(headers)) == 1


@pytest.mark.req("ATT-3")
def test_the_cookie_holds_no_id_and_is_bound_to_its_caller():
    """It is one value for each session and caller, and it is set for our paths alone, unread by scripts."""
    header = cookie.set_cookie(COOKIE, cookie.CookieTerms(60, secure=True))

    assert OWN.removeprefix("crp_sess_") not in header
    assert cookie.genuine(MINE, [COOKIE]) == COOKIE
    assert cookie.genuine(THEIRS, [COOKIE]) is None
    assert cookie.value_of(MINE, OWN) == COOKIE != cookie.value_of(MINE, OWN[:-1] + "b")
    assert header == f"crp_session={COOKIE}; Max-Age=60; Path=/; HttpOnly; SameSite=Strict; Secure"
    assert "Secure" not in cookie.set_cookie(COOKIE, cookie.CookieTerms(60, secure=False))
