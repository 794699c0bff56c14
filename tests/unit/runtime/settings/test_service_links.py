"""A Service called interlock-* beside a pod changes no setting of what runs in it."""

from __future__ import annotations

import pytest

from interlock.runtime.settings.loading import explain, load, unknown_variables

pytestmark = pytest.mark.req("KUB-3", "KUB-5")

LINKS = {
    "INTERLOCK_SESSION_PORT": "tcp://10.0.0.1:80",
    "INTERLOCK_SESSION_SERVICE_HOST": "10.0.0.1",
    "INTERLOCK_SESSION_SERVICE_PORT": "80",
    "INTERLOCK_SESSION_SERVICE_PORT_GRPC": "80",
    "INTERLOCK_SESSION_PORT_80_TCP": "tcp://10.0.0.1:80",
    "INTERLOCK_SESSION_PORT_80_TCP_PORT": "80",
    "INTERLOCK_DNS_PORT": "udp://10.0.0.1:53",
}


@pytest.fixture
def beside_services(monkeypatch):
    """The variables that Kubernetes makes of the Services interlock-session and interlock-dns."""
    for name, value in LINKS.items():
        monkeypatch.setenv(name, value)


def test_a_service_sets_no_port(beside_services):
    """The default holds, and it is told as such."""
    origins = {one.name: one.origin for one in explain()}

    assert (7081, "default") == (load().session_port, origins["session_port"])


def test_what_the_operator_sets_holds_beside_a_service(beside_services, monkeypatch):
    """Neither a port nor a setting whose name begins as a Service's does is taken away."""
    monkeypatch.setenv("INTERLOCK_SESSION_PORT", "7181")
    monkeypatch.setenv("INTERLOCK_SESSION_ADDRESS", "session.example:1")

    assert (7181, "session.example:1") == (load().session_port, load().session_address)


def test_nobody_is_warned_of_what_nobody_wrote():
    """Links are no misspelt settings; what only looks like one is."""
    assert [] == unknown_variables(LINKS)
    assert ["INTERLOCK_SESION_PORT"] == unknown_variables({**LINKS, "INTERLOCK_SESION_PORT": "7081"})
