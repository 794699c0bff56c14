"""The cluster's own certificates: one authority, and a certificate for the server and for each of its clients."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = dt.timedelta(days=1)


class Authority:
    """An authority whose files are below *folder*."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = _name("kube-stand-in")
        made = self._builder(name, self._key.public_key()).issuer_name(name)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._certificate = made.sign(self._key, hashes.SHA256())
        self.file = folder / "ca.crt"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, common_name: str, *, group: str = "", hosts: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Return certificate and key of a client, or of a server with these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._builder(_name(common_name, group), key.public_key()).issuer_name(self._certificate.subject)
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        made = made.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if hosts:
            made = made.add_extension(x509.SubjectAlternativeName([_general(one) for one in hosts]), critical=False)
        stem = common_name.replace(":", "-")
        certificate, private = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        private.write_bytes(_pem(key))
        return certificate, private

    @staticmethod
    def _builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        made = x509.CertificateBuilder().subject_name(subject).public_key(public)
        return made.serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + DAY)


def signing_key(folder: Path) -> tuple[Path, Path]:
    """Return private and public key of the tokens of service accounts."""
    key = rsa.generate_private_key(65537, 2048)
    private, public = folder / "accounts.key", folder / "accounts.pub"
    private.write_bytes(_pem(key))
    format_ = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, format_))
    return private, public


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    format_ = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, format_, serialization.NoEncryption())


def _name(common: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
