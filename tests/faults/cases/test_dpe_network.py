"""The dpe service runs and answers without a network: nothing but loopback is ever asked for (A-22, DPE-17)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from tests.support.paths import ROOT, TESTS
from tests.support.servers.processes import ON_PORTS, Process, environment

pytestmark = pytest.mark.models

GUARD = TESTS / "support" / "guarded"
MEMORY_LIMIT_BYTES = 700 * 2**20
ANSWERS = 50
REQUEST = dpe_pb2.AnalyzeRequest(
    outputs=[
        {
            "text": "Write to jane.doe@acme-widgets.co.uk or call +44 20 7946 0958; see https://status.acme-widgets.co.uk/x. "
            "Acme rose 5 % and fell 3 % in May. Her IBAN is DE89 3704 0044 0532 0130 00, her server 36.106.174.11."
        }
    ],
    facts=[common_pb2.Fact(id="f1", content="Acme rose 5 % in May, says https://news.example.org/a.", importance=0.9)],
    query="How did Acme do? Mail me at joe.bloggs@posteo.de.",
    prompt="My name is Joe Bloggs, joe.bloggs@posteo.de; see http://www.bbc.co.uk/news.",
)


def guarded(folder: Path) -> dict[str, str]:
    """The environment of a child that may not leave this machine, and that finds no cache of an earlier run."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    (folder / "attempts").touch()
    return {
        **environment(folder / "state", ON_PORTS),
        "PYTHONPATH": str(GUARD),
        "NETWORK_GUARD_LOG": str(folder / "attempts"),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TLDEXTRACT_CACHE": str(home / "tld"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("alone")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Process]:
    """A real dpe process from a cold start under the guard."""
    process = Process(folder, "dpe", guarded(folder)).start()
    try:
        yield process.wait()
    finally:
        process.stop()


def analyze(service: Process, count: int = 1) -> list[dpe_pb2.AnalyzeResponse]:
    with grpc.insecure_channel(f"127.0.0.1:{service.ports['dpe']}") as channel:
        stub = dpe_pb2_grpc.DpeServiceStub(channel)
        return [stub.Analyze(REQUEST, timeout=60) for _ in range(count)]


@pytest.mark.timeout(180)
@pytest.mark.req("DPE-17", "DPE-11")
def test_an_answer_with_addresses_is_judged_without_a_way_out(service, folder):
    """From a cold start to a report on text with mail addresses and links, no name is resolved and no address is connected to."""
    (answer,) = analyze(service)

    assert {"EMAIL_ADDRESS", "PHONE_NUMBER", "IBAN_CODE"} <= {finding.type for finding in answer.report.pii}
    assert (folder / "attempts").read_text() == ""
    remote = {c.raddr.ip for c in psutil.Process(service.child.pid).net_connections("inet") if c.raddr}
    assert all(ip.startswith("127.") or ip in {"::1", "::ffff:127.0.0.1"} for ip in remote)


@pytest.mark.timeout(300)
@pytest.mark.req("DPE-17")
def test_memory_stays_bounded_over_many_answers(service):
    """After fifty answers the process holds at most 700 MiB."""
    answers = analyze(service, ANSWERS)

    assert all(answer.report.claims_total for answer in answers)
    assert psutil.Process(service.child.pid).memory_info().rss <= MEMORY_LIMIT_BYTES


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('192.0.2.1', 80), timeout=1)",
        "socket.getaddrinfo('publicsuffix.org', 443)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "__import__('tldextract').TLDExtract()('jane@acme.co.uk')",
    ],
)
def test_the_guard_notes_who_tries(attempt, tmp_path):
    """A call, a name, a datagram and the suffix list that presidio would fetch: each is noted, swallowed or not."""
    subprocess.run(
        [sys.executable, "-c", f"import socket; {attempt}"], env=guarded(tmp_path), capture_output=True, timeout=60
    )

    assert (tmp_path / "attempts").read_text() != ""


@pytest.mark.timeout(180)
@pytest.mark.req("DPE-17")
def test_it_answers_in_an_empty_network(tmp_path):
    """In a network namespace with a loopback and nothing else, native libraries included, the report is whole."""
    unshare, ip = shutil.which("unshare"), shutil.which("ip")
    if not unshare or not ip or subprocess.run([unshare, "-rn", "true"], capture_output=True).returncode:
        pytest.skip("this machine grants no network namespace")
    script = f"{ip} link set lo up && exec {sys.executable} -m tests.faults.cases.test_dpe_network {tmp_path}"
    done = subprocess.run([unshare, "-rn", "sh", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=150)

    assert done.stdout.split() == ["3", "True"], done.stderr[-2000:]


def main(folder: Path) -> None:
    """Start the service, ask once, and print how many claims it found and whether it saw personal data."""
    process = Process(folder, "dpe", guarded(folder)).start()
    try:
        (answer,) = analyze(process.wait())
        print(min(3, answer.report.claims_total), answer.report.gdpr_pii_detected)
    finally:
        process.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
