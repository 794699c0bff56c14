"""A small OpenID provider that does as a test says, badly too. It signs by hand, so that it shares no code with what it is for."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import hmac
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT, SECRET, SUBJECT = "interlock-console", "a secret: with / and +", "person-1"


def word(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _number(value: int) -> str:
    return word(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@cache
def key(number: int, bits: int) -> rsa.RSAPrivateKey:
    """One of the provider's keys, made once in a run of the tests."""
    del number
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def jwk(number: int, bits: int = 2048) -> dict[str, str]:
    """The public half, as a key set has it."""
    numbers = key(number, bits).public_key().public_numbers()
    return {"kty": "RSA", "use": "sig", "kid": f"k{number}", "n": _number(numbers.n), "e": _number(numbers.e)}


def signed(claims: Mapping[str, Any], header: Mapping[str, Any], number: int, bits: int = 2048) -> str:
    """Return a JWT: by RS256 unless *header* says none or HS256, which has the public key as its secret."""
    head = {name: value for name, value in {"alg": "RS256", "kid": f"k{number}", **header}.items() if value is not None}
    parts = [word(json.dumps(part).encode()) for part in (head, claims)]
    text = ".".join(parts).encode()
    algorithm = header.get("alg", "RS256")
    if algorithm == "none":
        return f"{text.decode()}."
    if algorithm == "HS256":
        public = key(number, bits).public_key()
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        return f"{text.decode()}.{word(hmac.digest(pem, text, 'sha256'))}"
    return f"{text.decode()}.{word(key(number, bits).sign(text, padding.PKCS1v15(), hashes.SHA256()))}"


@dataclass
class Behaviour:
    """How the provider behaves; a test sets what it needs, and ``OpenIdProvider.behave`` puts all of it back."""

    claims: dict[str, Any] = field(default_factory=dict)
    """Claims of the ID token over the proper ones; ``None`` leaves one out."""
    header: dict[str, Any] = field(default_factory=dict)
    key: int = 1
    bits: int = 2048
    keys: list[Any] = field(default_factory=lambda: [jwk(1)])
    metadata: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    token: Callable[[str], str] = str
    """Changes the ID token as it was signed."""
    bodies: dict[str, bytes] = field(default_factory=dict)
    """Path → bytes that are answered instead."""
    status: int = 200
    compressed: bool = False
    hangs: bool = False
    drips: bool = False
    """Whether three seconds of spaces, one at a time, come before each answer."""
    ahead_s: int = 0
    """How far its clock is ahead."""


class OpenIdProvider:
    """Use it as a context manager; ``issuer`` is for the settings."""

    def __init__(self, cert: Path | None = None, secret: Path | None = None) -> None:
        self.does = Behaviour()
        self.codes: dict[str, dict[str, str]] = {}
        self.forms: list[dict[str, str]] = []
        self.asked: list[str] = []
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        if cert is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, secret)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self.issuer = f"https://localhost:{self._server.server_address[1]}"

    def __enter__(self) -> OpenIdProvider:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def behave(self, **does: Any) -> None:
        """Behave as a good provider, but for what a test says."""
        self.does = Behaviour(**does)

    def authorize(self, location: str) -> str:
        """Sign the person in who was sent to *location*, and return where the provider sends the browser."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query, strict_parsing=True).items()}
        assert asked["client_id"] == CLIENT
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        code = word(hashlib.sha256(location.encode()).digest())
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def id_token(self, asked: Mapping[str, str]) -> str:
        now, does = int(time.time()) + self.does.ahead_s, self.does
        proper = {
            "iss": self.issuer, "aud": CLIENT, "sub": SUBJECT, "exp": now + 300, "iat": now, "nonce": asked["nonce"],
            "email": "person@company.com", "email_verified": True, "groups": ["staff", "interlock-reviewers"],
        }  # fmt: skip
        claims = {name: value for name, value in {**proper, **does.claims}.items() if value is not None}
        return does.token(signed(claims, does.header, does.key, does.bits))

    def discovery(self) -> dict[str, Any]:
        at = self.issuer
        return {
            "issuer": at, "authorization_endpoint": f"{at}/authorize", "token_endpoint": f"{at}/token",
            "jwks_uri": f"{at}/jwks", "userinfo_endpoint": f"{at}/userinfo", "end_session_endpoint": f"{at}/end",
            **self.does.metadata,
        }  # fmt: skip

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Answer a code: once, to its client, with its verifier and redirect URI."""
        self.forms.append(form)
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        if word(hashlib.sha256(form.get("code_verifier", "").encode()).digest()) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "<b>PKCE</b>"}
        who = "".join(f"{part}" for part in (CLIENT, ":", "a%20secret%3A%20with%20%2F%20and%20%2B"))
        basic = f"Basic {base64.b64encode(who.encode()).decode()}"
        if authorization != basic and form.get("client_secret") != SECRET:
            return 401, {"error": "invalid_client"}
        return 200, {"id_token": self.id_token(asked), "access_token": "opaque-token", "token_type": "Bearer"}

    def answer(self, method: str, path: str, body: bytes, authorization: str) -> tuple[int, dict[str, Any]]:
        if path == "/.well-known/openid-configuration":
            return 200, self.discovery()
        if path == "/jwks":
            return 200, {"keys": self.does.keys}
        if path == "/token" and method == "POST":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            return self.exchange(form, authorization)
        if path == "/userinfo" and authorization == "Bearer opaque-token":
            return 200, self.does.userinfo
        return 404, {"error": "not_found"}


class _Handler(BaseHTTPRequestHandler):
    provider: OpenIdProvider

    def do_GET(self) -> None:
        does, path = self.provider.does, urlsplit(self.path).path
        self.provider.asked.append(path)
        if does.hangs:
            self.provider.released.wait(30)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, value = self.provider.answer(self.command, path, body, self.headers.get("authorization", ""))
        data = does.bodies.get(path, json.dumps(value).encode())
        if does.compressed:
            data = gzip.compress(data)
        self.send_response(status if does.status == 200 else does.status)
        self.send_header("content-type", "application/json")
        if does.compressed:
            self.send_header("content-encoding", "gzip")
        if does.status in {301, 302, 307}:
            self.send_header("location", f"{self.provider.issuer}{self.path}")
        first = 30 if does.drips else 0
        self.send_header("content-length", str(first + len(data)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for _ in range(first):
                self.wfile.write(b" ")
                self.wfile.flush()
                self.provider.released.wait(0.1)
            self.wfile.write(data)

    do_POST = do_GET

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string((timestamp or time.time()) + self.provider.does.ahead_s)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
