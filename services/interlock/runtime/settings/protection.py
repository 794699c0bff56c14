"""The settings that protect a deployment: certificates, keys, and what is verified before anything runs."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings


class Protection(BaseSettings):
    """Settings of certificates and keys. Every one that names a file is read again when the file changes."""

    tls_cert_file: Path | None = Field(
        default=None,
        description="PEM file of this process's certificate, which names it as spiffe://TRUST_DOMAIN/SERVICE, and of the "
        "authorities between it and those of tls_ca_file. With tls_key_file and tls_ca_file every gRPC port of the mesh is "
        "mutual TLS; one or two of the three refuse to start. Absent: plain text.",
    )
    tls_key_file: Path | None = Field(
        default=None, description="PEM file of the private key of tls_cert_file, which nobody else may read."
    )
    tls_ca_file: Path | None = Field(
        default=None, description="PEM file of the authorities that certificates of the mesh are checked by."
    )
    tls_trust_domain: str = Field(
        default="interlock",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,254}$",
        description="SPIFFE trust domain of the mesh; certificates of another one are no member of it.",
    )
    allow_plaintext: bool = Field(
        default=False,
        description="Whether a port on an address that other machines reach may be plain text, as behind a mesh that "
        "encrypts by itself. Absent: such a start is refused with PLAINTEXT_REFUSED.",
    )
    front_cert_file: Path | None = Field(
        default=None,
        description="PEM file of the certificate of the fronts that agents and reviewers reach, HTTP and gRPC. Absent: they "
        "are plain text.",
    )
    front_key_file: Path | None = Field(
        default=None, description="PEM file of the private key of front_cert_file, which nobody else may read."
    )
    master_keys_file: Path | None = Field(
        default=None,
        description="YAML file of master keys by version, made and rotated by `interlock keys`; all services of a mesh need "
        "the same ones. master_key, where it is set too, is version 1. Absent: the one master key.",
    )
    require_verified_code: bool = Field(
        default=False,
        description="Whether a process whose code cannot be verified against its package, such as a source checkout, "
        "refuses to start with CODE_UNVERIFIED. Absent: it says so.",
    )
