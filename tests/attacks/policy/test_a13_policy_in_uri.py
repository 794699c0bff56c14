"""A-13: a report address carries no policy: what parts directives must be percent-encoded in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.domain.policy.directives import canonical, directives
from interlock.domain.policy.policy_text import parse
from tests.support.sidecar.sidecar import reason_of

pytest_plugins = ("tests.support.sidecar.fronts",)

# Every character that RFC 3986 lets stand in a path, a query or a fragment, and some that it does not.
URI = st.text("abcXYZ019-._~!$&'()*+,;=:@/?#[]%\\\"<>^`{|} \t", max_size=40).map(
    lambda rest: "https://a.example/" + rest
)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("POL-1", "POL-9")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("report-uri https://a.example/x,halt-on", "POLICY_BAD_URI"),
        ("report-uri https://a.example/x;warn-on HIGH;", "POLICY_BAD_SYNTAX"),
        ("report-uri https://a.example/x; report-uri=", "POLICY_UNKNOWN_DIRECTIVE"),
        ("report-uri https://a.example/x;y=1", "POLICY_UNKNOWN_DIRECTIVE"),
        ("report-uri https://a.example/?q=a,b", "POLICY_BAD_URI"),
        ("report-uri https://a.example/#;halt-on CRITICAL; halt-on LOW", "POLICY_"),
        ("report-uri https://u:p@a.example/", "POLICY_BAD_URI"),
        ("report-uri https://a.example/%3", "POLICY_BAD_URI"),
        ("report-uri javascript:alert(1)", "POLICY_BAD_URI"),
        ("report-uri //a.example/", "POLICY_BAD_URI"),
    ],
)
async def test_a13_a_uri_that_parts_a_policy_is_refused(shared_sidecar, provider, text, reason):
    """Over HTTP: a semicolon always ends the directive, a comma never stands in the address, and nothing is guessed."""
    answer = await shared_sidecar.chat(headers={"crp-safety-policy": text})

    assert answer.status_code == 400
    assert reason_of(answer).startswith(reason), answer.text
    assert provider.received == []


@pytest.mark.req("POL-1", "POL-9")
@given(URI)
def test_a13_whatever_is_in_an_address_it_adds_no_directive(uri):
    """An accepted policy with a report address has its two directives, reads again as itself, and its address no separator."""
    try:
        policy = parse(f"halt-on CRITICAL; report-uri {uri}")
    except Refused:
        return
    assert [name for name, _ in directives(policy)] in (["halt-on", "report-uri"], ["halt-on", "warn-on", "report-uri"])
    (address,) = policy.report_uri
    assert not {",", ";", " ", "\t", '"', "\\"} & set(address)
    assert address == uri
    assert parse(canonical(policy)) == policy
