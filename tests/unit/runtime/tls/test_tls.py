"""Certificates are looked at before they are in force, and plain text is refused where it can be read (SVC-6)."""

from __future__ import annotations

import datetime as dt

import pytest

from interlock.cli.keys import certificates
from interlock.domain.errors import Refused
from interlock.runtime.rpc.callers import CALLERS, MEMBERS, Gate
from interlock.runtime.settings.access import is_loopback
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.fronts import open_front_tls
from interlock.runtime.tls.mutual import (
    check_time,
    open_tls,
    read_certificates,
    read_identity,
    require_private,
)
from tests.support.paths import ROOT
from tests.support.servers.tls import a_mesh_of_certificates, dns, files, issue, uri

pytestmark = pytest.mark.req("SVC-6")


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    return a_mesh_of_certificates(tmp_path_factory.mktemp("certificates"))


def identity(held, *, chain="session.pem", key="session.key", ca="ca.pem", domain="interlock"):
    return read_identity(*((held / name).read_bytes() for name in (chain, key, ca)), domain)


def test_a_certificate_of_ours_names_its_service(held):
    """One service for a member; all of them for the process that is all of them."""
    assert identity(held).services == {"session"}
    assert identity(held, chain="mesh.pem", key="mesh.key").services == {*certificates.SERVICES, "sidecar"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"key": "audit.key"}, "does not belong to the certificate"),
        ({"chain": "session.key"}, "no certificates in PEM"),
        ({"key": "session.pem"}, "no private key in PEM"),
        ({"ca": "audit.pem"}, "does not lead to an authority"),
        ({"domain": "elsewhere"}, "names no service"),
        ({"chain": "front.pem", "key": "front.key"}, "names no service"),
    ],
)
def test_what_does_not_fit_is_told(held, given, why):
    """Another key, another authority, another trust domain, something else altogether."""
    with pytest.raises(ValueError, match=why):
        identity(held, **given)


@pytest.mark.parametrize("names", [[uri("session")], [dns("session")], [uri("session"), dns("audit")]])
def test_a_service_is_named_both_ways_or_not_at_all(tmp_path, names):
    """Those it calls read its URI, those who call it its DNS name: a certificate with one of them works half."""
    held = a_mesh_of_certificates(tmp_path)
    issue(held, "half", names)

    with pytest.raises(ValueError, match="names no service"):
        identity(held, chain="half.pem", key="half.key")


def test_an_expired_certificate_is_refused(tmp_path):
    """At start; in a running process the one before stays."""
    held = a_mesh_of_certificates(tmp_path)
    issue(held, "old", [uri("session"), dns("session")], days=0)
    leaf = read_certificates((held / "old.pem").read_bytes(), "tls_cert_file")[0]
    check_time(leaf, now=leaf.not_valid_after_utc - dt.timedelta(seconds=1))

    for late in (dt.timedelta(seconds=1), -dt.timedelta(days=2)):
        with pytest.raises(ValueError, match="not valid now"):
            check_time(leaf, now=leaf.not_valid_after_utc + late)
    with pytest.raises(ValueError, match="not valid now"):
        identity(held, chain="old.pem", key="old.key")


@pytest.mark.parametrize("given", [("cert",), ("key",), ("ca",), ("cert", "key"), ("cert", "ca"), ("key", "ca")])
def test_part_of_the_settings_is_refused(held, given):
    """Two of three files are a mistake and not a wish for plain text."""
    settings = {name: path for name, path in files(held, "session").items() if name.split("_")[1] in given}

    with pytest.raises(Refused, match="TLS_SETTINGS_INCOMPLETE"):
        open_tls(Settings(**settings))


@pytest.mark.parametrize("name", ["front_cert_file", "front_key_file"])
def test_half_a_front_is_refused(held, name):
    """A certificate without its key, or the other way round."""
    with pytest.raises(Refused, match="TLS_SETTINGS_INCOMPLETE"):
        open_front_tls(Settings(**{name: held / "front.pem"}))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.1", False), ("example.org", False), ("", False)],
)  # fmt: skip
def test_only_this_machine_may_hear_plain_text(host, loopback):
    """Every address that others reach needs TLS, or a setting that says so; a port of the mesh needs it on loopback too."""
    assert is_loopback(host) is loopback
    for front in (True, False):
        if loopback and front:
            require_private(Settings(host=host), front=front)
        else:
            with pytest.raises(Refused, match="PLAINTEXT_REFUSED"):
                require_private(Settings(host=host), front=front)
            require_private(Settings(host=host, allow_plaintext=True), front=front)


@pytest.mark.parametrize(
    "ids",
    [[], [b"spiffe://interlock/sidecar", b"spiffe://interlock/audit"], [b"spiffe://other/sidecar"], [b"spiffe://interlock/"],
     [b"spiffe://interlock/sidecar/x"], [b"spiffe://interlock/\xff"], [b"sidecar"], [b"spiffe://INTERLOCK/sidecar"]],
)  # fmt: skip
def test_whoever_is_not_one_member_is_unknown(ids):
    """No id, two, a foreign one or half of one is nobody."""
    assert Gate("interlock").caller({"peer_spiffe_id": ids} if ids else {}) == "unknown"


def test_the_page_for_operators_has_the_table_of_callers():
    """docs/security-operations.md says who may call what, as the code does."""
    page = (ROOT / "docs" / "security-operations.md").read_text(encoding="utf-8")
    rows = {
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in page.splitlines()
        if line.startswith("| `")
    }
    ours = {
        (f"`{service}`", f"`{method}`", "every member" if callers == MEMBERS else ", ".join(sorted(callers)))
        for service, methods in CALLERS.items()
        for method, callers in methods.items()
    }

    assert ours <= rows
    assert {row for row in rows if len(row) == 3 and row[0].strip("`") in CALLERS} == ours
