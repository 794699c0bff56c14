"""Certificates of a mesh, its servers on real ports, and callers with any certificate a test wants."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509

from interlock.cli.keys import certificates
from interlock.cli.keys.certificates import make
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.mutual import dns_name, spiffe_id

TRUST_DOMAIN = "interlock"


def files(folder: Path, name: str) -> dict[str, Path]:
    """Return the three settings of a member of the mesh whose certificates are in *folder*."""
    return {
        "tls_cert_file": folder / f"{name}.pem",
        "tls_key_file": folder / f"{name}.key",
        "tls_ca_file": folder / "ca.pem",
    }


def a_mesh_of_certificates(folder: Path, *, trust_domain: str = TRUST_DOMAIN) -> Path:
    """Make an authority and a certificate for each member below *folder*, and return it."""
    make(folder, trust_domain=trust_domain, days=1)
    return folder


def issue(folder: Path, name: str, names: Sequence[x509.GeneralName], *, days: int = 1) -> dict[str, Path]:
    """Issue a certificate with any names by the authority of *folder*, and return the settings that use it."""
    certificates._issued(folder, name, certificates._existing(folder), names, days=days)
    return files(folder, name)


def uri(service: str, trust_domain: str = TRUST_DOMAIN) -> x509.GeneralName:
    """The SPIFFE id of a service as a name in a certificate."""
    return x509.UniformResourceIdentifier(spiffe_id(trust_domain, service))


def dns(service: str, trust_domain: str = TRUST_DOMAIN) -> x509.GeneralName:
    """The DNS name of a service as a name in a certificate."""
    return x509.DNSName(dns_name(trust_domain, service))


def replace(folder: Path, name: str, other: str) -> None:
    """Put the certificate and key of *other* in the place of those of *name*."""
    for kind in ("key", "pem"):
        content = (folder / f"{other}.{kind}").read_bytes()
        scratch = folder / f"{name}.{kind}.new"
        scratch.write_bytes(content)
        scratch.chmod(0o600)
        scratch.replace(folder / f"{name}.{kind}")


@asynccontextmanager
async def serving(services: Sequence[Any], **settings: Any):
    """Serve *services* on one port of this machine, and yield the port."""
    server = RpcServer(services, Settings(**{"drain_s": 0.2, "allow_plaintext": True, **settings}), port=0)
    yield await server.start()
    await server.drain()


@asynccontextmanager
async def mesh_of(port: int, **settings: Any):
    """Yield a mesh whose every service is at *port*."""
    addresses = {f"{name}_address": f"127.0.0.1:{port}" for name in ("session", "policy", "dpe", "audit")}
    mesh = Mesh.remote(Settings(**{**addresses, **settings}))
    yield mesh
    await mesh.close()


def raw_channel(port: int, held: dict[str, Path], *, target: str) -> grpc.aio.Channel:
    """Return a channel with any certificate, to a peer that is expected to be *target*."""
    credentials = grpc.ssl_channel_credentials(
        held["tls_ca_file"].read_bytes(), held["tls_key_file"].read_bytes(), held["tls_cert_file"].read_bytes()
    )
    options = [("grpc.ssl_target_name_override", target), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options=options)


def until(condition, *, seconds: float = 10) -> None:
    """Wait until *condition* holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.05)
