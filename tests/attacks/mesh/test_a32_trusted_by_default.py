"""A-32: defaults that are known to everybody, secrets on command lines, and headers that are believed because they are there."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

import psutil
import pytest

import interlock
from interlock.domain.errors import Refused
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.settings.model import Settings
from tests.support.paths import ROOT
from tests.support.servers.processes import Processes, environment, run
from tests.support.sidecar.sidecar import token_of
from tests.support.texts.canary import API_KEY, MASTER_KEY

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("SVC-6")

SAMPLES = ["changeme", "secret", "0" * 64, "f" * 64, "0123456789abcdef" * 4, "deadbeef" * 8, "00112233" * 8, "ab" * 32]
HERE = Path(interlock.__file__).parent
TRUSTED = {
    "x-forwarded-user": "admin", "x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", "x-forwarded-proto": "https",
    "x-remote-user": "admin", "x-auth-request-user": "admin", "x-interlock-scope": "admin", "x-interlock-internal": "1",
    "x-envoy-internal": "true", "x-envoy-peer-metadata": "sidecar", "x-forwarded-client-cert": "URI=spiffe://interlock/operator",
    "x-original-url": "/crp/v3/admin", "x-http-method-override": "DELETE", "forwarded": "for=127.0.0.1;by=admin",
}  # fmt: skip


@pytest.mark.parametrize("key", SAMPLES)
def test_a32_a_placeholder_is_no_master_key(key):
    """What stands in examples and templates as a key starts nothing."""
    with pytest.raises(Refused, match="MASTER_KEY_WEAK"):
        load_keyring(Settings(master_key=key))


def test_a32_no_master_key_that_we_print_anywhere_is_a_good_one():
    """Every 64 hex digits in our documents and deployment files that a setting names as a key are refused as a key."""
    texts = [
        path.read_text(encoding="utf-8")
        for folder in ("docs", "deploy", "examples", ".")
        for path in (ROOT / folder).glob("**/*" if folder != "." else "*")
        if path.suffix in {".md", ".yaml", ".yml", ".env", ".toml", ".json"} and path.is_file()
    ]
    printed = {found for text in texts for found in re.findall(r"(?i)master_?key\"?[=:]\s*\"?([0-9a-f]{64,})", text)}

    assert len(texts) > 5
    for key in printed:
        with pytest.raises(Refused, match="MASTER_KEY_WEAK"):
            load_keyring(Settings(master_key=key))


def test_a32_no_setting_has_a_secret_by_default():
    """A key, a token or a password that nobody set is absent, and not a value that everybody has."""
    secret = re.compile(r"(?:^|_)(?:key|secret|token|password)$")
    defaults = {name: field.default for name, field in Settings.model_fields.items() if secret.search(name)}

    assert defaults
    assert set(defaults.values()) <= {None, ""}


@pytest.mark.long
def test_a32_serving_on_a_placeholder_is_one_clear_line(tmp_path):
    """`interlock serve` with a placeholder ends before it listens."""
    done = run("serve", "session", env=environment(tmp_path, {"master_key": "0" * 64, "redis_url": "memory://"}))

    assert (done.returncode, "MASTER_KEY_WEAK" in done.stderr) == (2, True)
    assert "0" * 64 not in done.stderr + done.stdout


def test_a32_no_command_takes_a_secret_on_its_command_line():
    """Everybody on a machine can read command lines: no option of ours is a key, a token or a password, only its file."""
    options = {
        str(argument.value)
        for path in (HERE / "cli").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"typer.Option", "Option"}
        for argument in node.args
        if isinstance(argument, ast.Constant) and str(argument.value).startswith("--")
    }
    suspicious = {one for one in options if re.search(r"(?:secret|password|passphrase|token|api-key|master-key)$", one)}

    assert len(options) > 20
    # --api-key of `agents register` takes a hash, and refuses a key; --token of `session` is read from a file or a pipe.
    assert suspicious <= {"--api-key"}


@pytest.mark.long
def test_a32_no_secret_is_in_the_process_list(tmp_path):
    """The embedded Valkey and our own process show no key and no password of it in /proc."""
    with Processes(tmp_path, {"master_key": MASTER_KEY, "upstream_api_key": API_KEY}) as processes:
        process = processes.process("session").start().wait()
        whole = [psutil.Process(process.child.pid)]
        whole += whole[0].children(recursive=True)
        shown = "\n".join(" ".join(one.cmdline()) for one in whole)

    assert len(whole) > 1
    assert MASTER_KEY not in shown
    assert API_KEY not in shown
    assert not re.search(r"requirepass|\b[0-9a-f]{32,}\b", shown)


async def test_a32_headers_that_a_proxy_would_set_change_nothing(sidecar, provider):
    """Who a caller is comes from its key: no header says so instead, and none of them is passed on or believed."""
    bearer = {"authorization": "Bearer sk-agent"}
    plain = await sidecar.chat(headers=bearer)
    dressed = await sidecar.chat(headers={**bearer, **TRUSTED})
    stolen = await sidecar.chat(
        token=token_of(plain), headers={**TRUSTED, "x-forwarded-user": "key_" + digest("sk-agent")}
    )

    assert (plain.status_code, dressed.status_code, stolen.status_code) == (200, 200, 401)
    assert not {name for one in provider.received for name, _ in one.headers} & set(TRUSTED)
    assert dressed.headers["crp-provenance-report-uri"].startswith(sidecar.http)


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:24]
