"""The signatures of ID tokens that a console reads, each made by hand with the key that it needs (OBS-5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from interlock.oversight.oidc.id_token import KEY_TYPES
from tests.support.servers.openid import OpenIdProvider, jwk, key, word
from tests.wire.oversight.test_oidc_provider_wire import reason_of, signed_in, signing_in

pytestmark = pytest.mark.req("OBS-5")

HASHES = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
CURVES = {"256": (ec.SECP256R1(), "P-256"), "384": (ec.SECP384R1(), "P-384"), "512": (ec.SECP521R1(), "P-521")}

Signer = Callable[[bytes], bytes]


def rsa_signer(algorithm: str) -> tuple[Signer, dict[str, Any]]:
    """RS and PS with the provider's key."""
    digest = HASHES[algorithm[2:]]
    salted = padding.PSS(padding.MGF1(digest()), digest().digest_size)
    how = salted if algorithm.startswith("PS") else padding.PKCS1v15()
    return lambda text: key(1, 2048).sign(text, how, digest()), jwk(1)


def curve_signer(algorithm: str) -> tuple[Signer, dict[str, Any]]:
    """ES with a key of its curve: the two numbers one after the other."""
    curve, name = CURVES[algorithm[2:]]
    private, size = ec.generate_private_key(curve), (curve.key_size + 7) // 8
    point = private.public_key().public_numbers()

    def sign(text: bytes) -> bytes:
        pair = decode_dss_signature(private.sign(text, ec.ECDSA(HASHES[algorithm[2:]]())))
        return b"".join(part.to_bytes(size, "big") for part in pair)

    x, y = (word(part.to_bytes(size, "big")) for part in (point.x, point.y))
    return sign, {"kty": "EC", "crv": name, "x": x, "y": y, "kid": "k1"}


def edwards_signer(_algorithm: str) -> tuple[Signer, dict[str, Any]]:
    private = ed25519.Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    return private.sign, {"kty": "OKP", "crv": "Ed25519", "x": word(public), "kid": "k1", "use": "sig"}


def signer_of(algorithm: str) -> tuple[Signer, dict[str, Any]]:
    """Return what signs by an algorithm, and the key as the set has it."""
    return {"RSA": rsa_signer, "EC": curve_signer, "OKP": edwards_signer}[KEY_TYPES[algorithm]](algorithm)


def signed_again(sign: Signer, algorithm: str) -> Callable[[str], str]:
    """Return what puts another signature on a token."""

    def change(token: str) -> str:
        head = word(json.dumps({"alg": algorithm, "kid": "k1"}).encode())
        text = f"{head}.{token.split('.')[1]}"
        return f"{text}.{word(sign(text.encode()))}"

    return change


@pytest.fixture
def openid():
    with OpenIdProvider() as running:
        yield running


@pytest.mark.parametrize("algorithm", KEY_TYPES)
async def test_every_algorithm_of_the_list_is_read(openid, algorithm):
    """RSA with both paddings, three curves, Ed25519 by both of its names; and a signature of another key of the kind is none."""
    sign, public = signer_of(algorithm)
    stranger = signer_of(algorithm)[1] if KEY_TYPES[algorithm] != "RSA" else {**jwk(2), "kid": "k1"}
    openid.behave(keys=[public], token=signed_again(sign, algorithm))
    person = await signed_in(openid, signing_in(openid.issuer))
    openid.behave(keys=[stranger], token=signed_again(sign, algorithm))

    assert person.name == "person@company.com"
    assert await reason_of(signed_in(openid, signing_in(openid.issuer))) == "OIDC_SIGNATURE_INVALID"


async def test_a_key_of_one_algorithm_signs_by_no_other(openid):
    """What the key set says of a key's use holds: RS512 alone is not RS256."""
    openid.behave(keys=[{**jwk(1), "alg": "RS512"}])

    assert await reason_of(signed_in(openid, signing_in(openid.issuer))) == "OIDC_KEY_UNKNOWN"


@pytest.mark.parametrize("algorithm", ["ES256", "ES384"])
async def test_a_curve_of_another_algorithm_is_refused(openid, algorithm):
    """ES512's key under the name of another curve verifies nothing."""
    sign, public = signer_of("ES512")
    openid.behave(keys=[public], token=signed_again(sign, algorithm))

    assert await reason_of(signed_in(openid, signing_in(openid.issuer))) == "OIDC_SIGNATURE_INVALID"
