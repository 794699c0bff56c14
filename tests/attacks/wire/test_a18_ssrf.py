"""A-18: nobody can make Interlock call an address that is not public, whatever a name, a redirect or a resolver says."""

from __future__ import annotations

import asyncio

import pytest

from interlock.domain.errors import Refused
from interlock.runtime.egress.addresses import check_addresses, check_url
from interlock.runtime.egress.fetch import Egress
from tests.support.servers.dns import DnsServer
from tests.support.servers.webhooks import Receiver, certificate

pytestmark = pytest.mark.req("POL-9")

PUBLIC = "93.184.215.14"


async def _refusal(egress: Egress, url: str, **more) -> str:
    with pytest.raises(Refused) as refused:
        await egress.post(url, b"{}", {}, **{"deadline_s": 5, **more})
    return refused.value.reason


@pytest.mark.parametrize("address", [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "192.88.99.1", "100.100.100.200",
    "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2001::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::", "3fff::1", "100::1", "5f00::1", "4000::1",
])  # fmt: skip
async def test_a18_an_address_that_is_not_public_is_refused_before_a_connection(address):
    """Loopback, private, link-local, metadata, multicast, reserved, and IPv4 in every disguise that IPv6 offers."""
    async with DnsServer(hooks_example_test=[[address.partition("%")[0]]]) as dns:
        assert await _refusal(Egress(resolver=dns.resolve), "https://hooks.example.test/") == "EGRESS_ADDRESS_REFUSED"


@pytest.mark.parametrize("address", [PUBLIC, "2606:2800:21f:cb07::1", "64:ff9b::5db8:d70e", "2002:5db8:d70e::1"])
def test_a18_a_public_address_is_accepted(address):
    """The rule refuses what is special and nothing else."""
    assert check_addresses(check_url("https://hooks.example.test/"), [address]) == [address]


async def test_a18_one_bad_address_among_good_ones_is_refused():
    """A name with a public and a loopback address is not called at all."""
    async with DnsServer(hooks_example_test=[[PUBLIC, "::1"]]) as dns:
        assert await _refusal(Egress(resolver=dns.resolve), "https://hooks.example.test/") == "EGRESS_ADDRESS_REFUSED"


@pytest.mark.parametrize("url", [
    "http://hooks.example.test/", "ftp://hooks.example.test/", "https://user@hooks.example.test/",
    "https://user:word@hooks.example.test/", "https://hooks.example.test#@127.0.0.1/", "https://127.0.0.1/",
    "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/", "https://127.1/",
    "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://hooks.example.test\\@127.0.0.1/",
    "https://127.0.0.1\\.example.test/", "https://localhost/", "https://metadata/", "https://hooks.example.test./",
    "https://hooks.example.test:22/", "https://hooks.example.test:6379/", "https://hooks.example.test:0/",
    "https://hooks.example.test:99999/", "https://hooks.example.test/\r\nHost: 127.0.0.1", "https://hooks.example.test/ x",
    "https://hooks.example.test/\x00", "https://①②⑦.⓪.⓪.①/", "https://hooks。example.test/", "https:///x", "//x.test/",
    "FILE:///x", "gopher://hooks.example.test/", "https://hooks.example.test/" + "a" * 2048, "https://a..test/",
    "https://-a.test/", "https://[fe80::1%25eth0]/", "https://[::1/", "",
])  # fmt: skip
async def test_a18_an_unusual_url_is_refused_without_asking_a_resolver(url):
    """No scheme but https, no user, no address in any notation, no odd port, nothing that two readers read differently."""
    async with DnsServer() as dns:
        reason = await _refusal(Egress(resolver=dns.resolve), url)
        assert reason in {"EGRESS_URL_REFUSED", "EGRESS_HOST_REFUSED", "EGRESS_PORT_REFUSED"}
        assert dns.asked == []


async def test_a18_the_connection_goes_to_the_address_that_was_checked(tmp_path):
    """A name that rebinds between check and connection gains nothing: it is resolved once, and that address is connected to."""
    ca, tls = certificate(tmp_path, "hooks.example.test")
    async with Receiver(tls) as inside:
        allow = f"hooks.example.test:{inside.port}"
        async with DnsServer(hooks_example_test=[["127.0.0.1"], ["127.0.0.2"]]) as dns:
            egress = Egress(allow=allow, ca_file=str(ca), resolver=dns.resolve)
            reply = await egress.post(f"https://{allow}/in", b"{}", {}, deadline_s=5)
            assert (reply.status, dns.asked) == (204, ["hooks.example.test"])
            # Now the name leads to an address where nobody listens: the new check decides, and nothing old is used.
            assert await _refusal(egress, f"https://{allow}/in") == "EGRESS_FAILED"
    assert len(inside.received) == 1


async def test_a18_a_name_that_rebinds_to_loopback_is_refused(tmp_path):
    """First a public address, then loopback: the second call is refused although the first was fine."""
    async with Receiver() as inside, DnsServer(hooks_example_test=[[PUBLIC], ["127.0.0.1"]]) as dns:
        egress, url = Egress(resolver=dns.resolve), "https://hooks.example.test/"
        check_addresses(egress.check(url), await dns.resolve("hooks.example.test", 443))
        assert await _refusal(egress, url) == "EGRESS_ADDRESS_REFUSED"
    assert inside.connections == 0


async def test_a18_the_certificate_is_checked_for_the_name(tmp_path):
    """Whoever has the address but not the name's certificate is told nothing."""
    ca, tls = certificate(tmp_path, "other.example.test")
    async with Receiver(tls) as inside, DnsServer(hooks_example_test=[["127.0.0.1"]]) as dns:
        allow = f"hooks.example.test:{inside.port}"
        egress = Egress(allow=allow, ca_file=str(ca), resolver=dns.resolve)
        assert await _refusal(egress, f"https://{allow}/") == "EGRESS_FAILED"
    assert inside.received == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a18_a_redirect_is_an_answer_and_is_not_followed(status):
    """302 to loopback: nobody goes there."""
    async with Receiver() as trap, Receiver() as inside:
        inside.answer = lambda _posted: (status, f"location: http://127.0.0.1:{trap.port}/\r\n", 0)
        reply = await Egress(allow=inside.origin).post(f"http://{inside.origin}/", b"{}", {}, deadline_s=5)
    assert (reply.status, trap.connections) == (status, 0)


async def test_a18_no_setting_opens_a_metadata_address():
    """Even an origin that egress_allow names must not lead to link-local."""
    async with DnsServer(inside_test=[["169.254.169.254"]]) as dns:
        egress = Egress(allow="inside.test:80,169.254.169.254:80,[fd00:ec2::254]:80", resolver=dns.resolve)
        for url in ("http://inside.test/", "http://169.254.169.254/", "http://[fd00:ec2::254]/"):
            assert await _refusal(egress, url) == "EGRESS_ADDRESS_REFUSED"


async def test_a18_an_exception_is_one_exact_origin():
    """What egress_allow names by host and port opens no other port and no other host."""
    egress = Egress(allow="127.0.0.1:9000")
    assert await _refusal(egress, "http://127.0.0.1:9001/") == "EGRESS_URL_REFUSED"
    assert await _refusal(egress, "http://127.0.0.2:9000/") == "EGRESS_URL_REFUSED"


async def test_a18_proxies_of_the_environment_are_not_asked(monkeypatch):
    """HTTP_PROXY would see every event and choose every address."""
    async with Receiver() as proxy, Receiver() as inside:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await Egress(allow=inside.origin).post(f"http://{inside.origin}/", b"{}", {}, deadline_s=5)
    assert (proxy.connections, len(inside.received)) == (0, 1)


async def test_a18_a_slow_answer_ends_at_the_deadline():
    """One deadline covers name, connection, handshake, body and answer."""
    async with Receiver() as inside:
        inside.answer = lambda _posted: (200, "", 30)
        reason = await _refusal(Egress(allow=inside.origin), f"http://{inside.origin}/", deadline_s=0.3)
    assert reason == "EGRESS_DEADLINE_EXCEEDED"


async def test_a18_an_endless_body_is_not_read():
    """The status is all that is wanted: a body of any size costs nothing and is never shown."""
    async with Receiver(trickle=b"secret " * 10_000) as inside:
        reply = await Egress(allow=inside.origin).post(f"http://{inside.origin}/", b"{}", {}, deadline_s=5)
    assert reply.status == 204
    assert "secret" not in repr(reply)


async def test_a18_endless_headers_are_refused():
    """A head that does not end is no answer."""
    async with Receiver() as inside:
        inside.answer = lambda _posted: (200, "x-more: " + "a" * 1_000_000 + "\r\n", 0)
        assert await _refusal(Egress(allow=inside.origin), f"http://{inside.origin}/") == "EGRESS_FAILED"


async def test_a18_one_slow_origin_holds_two_connections_at_most():
    """The third call to it is refused at once; another origin is served meanwhile."""
    async with Receiver() as slow, Receiver() as quick:
        slow.answer = lambda _posted: (200, "", 20)
        egress = Egress(allow=f"{slow.origin},{quick.origin}")
        waiting = [
            asyncio.create_task(egress.post(f"http://{slow.origin}/", b"{}", {}, deadline_s=30)) for _ in range(2)
        ]
        await slow.until(lambda: len(slow.received) == 2)
        assert await _refusal(egress, f"http://{slow.origin}/") == "EGRESS_BUSY"
        assert (await egress.post(f"http://{quick.origin}/", b"{}", {}, deadline_s=5)).status == 204
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert slow.most_open == 2


async def test_a18_a_header_cannot_be_split():
    """A value with a line break is refused before a connection."""
    async with Receiver() as inside:
        egress = Egress(allow=inside.origin)
        with pytest.raises(Refused, match="EGRESS_HEADER_INVALID"):
            await egress.post(f"http://{inside.origin}/", b"{}", {"webhook-id": "a\r\nx: y"}, deadline_s=5)
    assert inside.connections == 0
