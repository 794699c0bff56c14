"""Test vectors of SPEC-014 that need a mesh: headers, the engine, chains and tokens, over HTTP.

The mesh is ``interlock serve`` in a separate process with its state in a temporary folder. The model provider is a real local
HTTP server that gives the answer of a vector, and records the names of the CRP headers that reach it.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import httpx
from google.protobuf import json_format

from interlock.api.dpe.v1 import dpe_pb2
from interlock.audit.sealing.verify import examine
from interlock.audit.store.log import Chain
from interlock.audit.store.log_sql import SqliteReader
from interlock.audit.store.opening import database_path
from interlock.cli.conformance.domain_vectors import Expectations, Vector
from interlock.demo.mesh import DemoMesh
from interlock.demo.provider import Replay, RunningProvider
from interlock.demo.recording import Recording, Turn
from interlock.domain.chain import chain
from interlock.domain.session import token
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import HMAC, SIGN, Keyring
from interlock.runtime.settings.model import Settings
from interlock.session.ownership import verified

MODEL = "recorded"
JUDGING = ("dpe_attribution", "nli_model_dir", "embed_model_dir", "ner_model_dir", "triton_url", "triton_ca_file")
"""Settings that the mesh of the vectors takes over, so that it judges with the values in the report."""
SOUND = "The Act classifies AI systems into four risk levels."
SOUND_FACTS = ({"fact_id": "f1", "content": SOUND},)
MADE_UP = (
    "According to Commissioner Hans Müller, Brightwater Holdings paid 48 million euros to Dr. Elena Petrova on 3 March "
    "2019. Director Tomas Lindqvist confirmed 17 deaths at the Karlsruhe plant of Nordwind Chemicals. Judge Amara "
    "Okonkwo fined Silverline Airways 92 percent of its turnover in Case C-4711/18."
)
_EXPIRED_ISSUED = 999_996_400


class VectorAnswer(Recording):
    """A recording that returns the last answer that a vector set, because a remedy may have changed the question."""

    answer = SOUND

    def answer_to(self, question: str) -> Turn | None:
        """Return the last set answer."""
        return Turn("vector", "SPEC-014", "CC BY 4.0", consistent=True, question=question, answer=VectorAnswer.answer)


@dataclass(frozen=True)
class MeshUnderTest:
    """The running mesh, its provider, and a plain HTTP client, which sends headers unchanged."""

    client: httpx.Client
    provider: Replay
    state_dir: Path
    keyring: Keyring

    def chat(
        self, answer: str, *, question: str = "What does the text say?", facts: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:  # fmt: skip
        """Send one chat request that the provider answers with *answer*."""
        VectorAnswer.answer = answer
        body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": question}]}
        if facts:
            body["interlock"] = {"facts": [{"id": f["fact_id"], "content": f["content"]} for f in facts]}
        return self.client.post("/chat/completions", json=body, headers=dict(headers or {}))

    def sound(self, token: str = "") -> httpx.Response:
        """Send one chat request whose answer is grounded; with *token* in its session."""
        return self.chat(SOUND, facts=SOUND_FACTS, headers={"CRP-Session-Token": token} if token else {})

    def report(self, response: httpx.Response) -> dpe_pb2.Report:
        """Return the stored report of a call."""
        found = self.client.get(response.headers["crp-provenance-report-uri"])
        found.raise_for_status()
        return json_format.Parse(found.content, dpe_pb2.Report())

    def chain(self, session_id: str) -> Chain:
        """Return the stored audit chain of a session."""
        with closing(SqliteReader(database_path(Settings(state_dir=self.state_dir)))) as reader:
            return reader.chain(session_id)


@contextmanager
def front(judging: Settings) -> Iterator[MeshUnderTest]:
    """Start a mesh and its provider; both end with the block. Raises ``MeshFailedError``.

    It takes only the settings about models and judging from *judging*; ports, stores and policies are the vectors' own.
    """
    nothing = VectorAnswer("", "", "", "", "", "", ())
    replay, master = Replay(nothing), secrets.token_hex(32)
    with tempfile.TemporaryDirectory(prefix="interlock-conformance-") as folder, RunningProvider(replay) as provider:
        settings = {
            "INTERLOCK_UPSTREAM_BASE_URL": provider.base_url,
            "INTERLOCK_REDIS_URL": "memory://",
            "INTERLOCK_MASTER_KEY": master,
            **{
                f"INTERLOCK_{name.upper()}": str(value)
                for name in JUDGING
                if (value := getattr(judging, name)) is not None and value != ""
            },
        }
        with DemoMesh(Path(folder), settings) as mesh:
            mesh.wait_ready(lambda _: None)
            key = {"Authorization": "Bearer conformance"}
            # Each vector begins sessions of its own: a cookie would bind it to the one before (docs/bindings.md).
            none = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            sessionless = httpx.Client(base_url=mesh.base_url, headers=key, timeout=90, trust_env=False, cookies=none)
            with sessionless as client:
                yield MeshUnderTest(client, replay, Path(folder), Keyring({1: bytes.fromhex(master)}))


def session_token(response: httpx.Response) -> str:
    """Return the session token of an answer."""
    return response.headers["crp-set-session"].split(";", 1)[0].strip().removeprefix("token=")


def basic_headers(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-001."""
    question = vector["input"]["body"]["messages"][0]["content"]
    response = mesh.chat(SOUND, question=question)
    expect.note("sent to /v1/chat/completions, the path of the OpenAI API, in place of /v1/chat")
    expect.hold(response.status_code == 200, f"expected 200, got {response.status_code}: {response.text[:200]}")
    for each in vector["assertions"]:
        name = each["header_present"]
        value = response.headers.get(name)
        expect.hold(value is not None, f"{name} is absent")
        if value is not None:
            _holds(each, name, value, expect)


def _holds(each: Mapping[str, Any], name: str, value: str, expect: Expectations) -> None:
    if "pattern" in each:
        expect.hold(re.search(each["pattern"], value), f"{name}: {value!r} does not match {each['pattern']}")
    if "values" in each:
        expect.hold(value in each["values"], f"{name}: {value!r} is none of {each['values']}")
    if "range" in each:
        low, high = each["range"]
        expect.hold(low <= float(value) <= high, f"{name}: {value} is outside {low} to {high}")
    if "contains" in each:
        expect.hold(each["contains"] in value, f"{name}: {value!r} does not hold {each['contains']!r}")
    if "value_gte" in each:
        expect.hold(
            float(value.split(";", maxsplit=1)[0]) >= each["value_gte"], f"{name}: {value} is below {each['value_gte']}"
        )


def headers_stay(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-002."""
    given = dict(vector["input"]["headers"])
    given["CRP-Session-Token"] = session_token(mesh.sound())
    expect.note("the printed token is truncated (eyJ...); a token of this mesh is sent")
    calls = mesh.provider.calls
    mesh.chat(SOUND, headers=given)
    expect.hold(mesh.provider.calls > calls, "the request did not reach the provider, so it proves nothing")
    expect.hold(not mesh.provider.crp_headers, f"the provider saw {sorted(mesh.provider.crp_headers)}")


def critical_halts(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-003."""
    facts = [{"fact_id": "f1", "content": "The museum opens at nine on weekdays."}]
    response = mesh.chat(MADE_UP, facts=facts, headers=vector["input"]["headers"])
    expect.note("the whole answer is invented; the engine's real models judge it")
    wanted = vector["assertions"][0]["http_status"]
    expect.hold(response.status_code == wanted, f"expected {wanted}, got {response.status_code}")
    for each in vector["assertions"][1:]:
        name = each.get("header_present")
        value = response.headers.get(name or "")
        expect.hold(name is None or value is not None, f"{name} is absent")
        expect.hold("value" not in each or value == each["value"], f"{name} is {value}, expected {each.get('value')}")
        field = each.get("body_json_field")
        expect.hold(field is None or field in response.json(), f"the body has no {field}")


def condition_holds(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-004."""
    given, name = vector["input"], "crp-context-etag"
    first, then = (given[step]["body"]["messages"][0]["content"] for step in ("step_1", "step_2"))
    before = mesh.chat(SOUND, question=first)
    expect.hold(name in before.headers, f"{name} is absent")
    calls = mesh.provider.calls
    after = mesh.chat(SOUND, question=then, headers={"CRP-Context-If-Match": before.headers.get(name, "*")})
    expect.hold(after.status_code == 304, f"expected 304, got {after.status_code}")
    expect.hold(mesh.provider.calls == calls, "the provider was asked again")
    expect.hold(after.headers.get(name) == before.headers.get(name), f"{name} is {after.headers.get(name)}")
    status = after.headers.get("crp-context-cache-status")
    wanted = vector["assertions"][-1]["value"]
    expect.hold(status == wanted, f"CRP-Context-Cache-Status is {status}, expected {wanted}")
    expect.note("sent to /v1/chat/completions, the path of the OpenAI API, in place of /v1/chat")


def engine(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-010 to TV-013: an answer with its facts, or with the previous window."""
    given = vector["input"]
    headers = {}
    if before := given.get("prior_window_response"):
        first = mesh.chat(before)
        expect.hold(first.status_code == 200, f"the first window was not released: {first.status_code}")
        headers = {"CRP-Session-Token": session_token(first)}
    answer = given.get("llm_response") or given["current_response"]
    response = mesh.chat(answer, facts=given.get("envelope_facts", ()), headers=headers)
    if response.status_code != 200:
        expect.note(f"the vector gives no facts, so the answer was analysed and then withheld: {response.status_code}")
    report = mesh.report(response)
    for each in vector["assertions"]:
        if name := each.get("header"):
            value = response.headers.get(name)
            expect.hold(value is not None, f"{name} is absent")
            _holds(each, name, value or "0", expect)
        if field := each.get("dpe_report_field"):
            found = _field(report, field)
            least = each.get("value_gte", each.get("length_gte"))
            expect.hold(found >= least, f"{field} is {found}, expected at least {least}")
        if entity := each.get("dpe_report_contains_entity"):
            found_names = list(report.fabricated_entities)
            expect.hold(any(entity in name for name in found_names), f"{entity} is not in {found_names}")


def _field(report: dpe_pb2.Report, name: str) -> int:
    """Return a count of the report; cross-window contradictions are counted by their scope."""
    if name == "cross_window_contradictions":
        return sum(one.scope == "cross-window" for one in report.contradictions)
    return int(getattr(report, name))


def _three_windows(expect: Expectations, mesh: MeshUnderTest) -> tuple[str, Chain, httpx.Response]:
    response = mesh.sound()
    for _ in range(2):
        response = mesh.sound(session_token(response))
    session_id = response.headers["crp-context-session-id"]
    stored = mesh.chain(session_id)
    expect.hold(len(stored.windows) == 3, f"expected 3 windows, got {len(stored.windows)}")
    return session_id, stored, response


def chain_holds(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-030."""
    session_id, stored, response = _three_windows(expect, mesh)
    expect.note("the printed key and hashes are truncated (sha256:aaa...); three windows of this mesh replace them")
    wanted = vector["assertions"][-1]["value"]
    said = response.headers["crp-provenance-chain-integrity"]
    expect.hold(said == wanted, f"CRP-Provenance-Chain-Integrity is {said}, expected {wanted}")
    verified = examine(stored, session_id, mesh.keyring)
    expect.hold(verified.integrity.name == wanted, f"verified afterwards: {verified.integrity.name}")
    previous: list[str] = []
    for window in sorted(stored.windows, key=lambda one: one.window_number):
        key = mesh.keyring.derive(window.key_version, session_id, HMAC) or b""
        mac = chain.window_hmac(
            key, session_id=session_id, window_number=window.window_number, timestamp=window.timestamp,
            response_hash=window.response_hash, report_hash=window.report_hash, parent_hmacs=previous,
        )  # fmt: skip
        expect.hold(mac == window.hmac, f"window {window.window_number} does not chain from the previous one")
        previous = [mac]


def chain_breaks(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-031."""
    session_id, stored, _ = _three_windows(expect, mesh)
    forged = "sha256:" + "0" * 64
    windows = tuple(replace(one, response_hash=forged) if one.window_number == 2 else one for one in stored.windows)
    verified = examine(replace(stored, windows=windows), session_id, mesh.keyring)
    wanted = vector["assertions"][0]["value"]
    expect.hold(verified.integrity.name == wanted, f"expected {wanted}, got {verified.integrity.name}")
    named = {fault.index for fault in verified.faults if fault.what == "window"}
    expect.hold(2 in named, f"window 2 is not among the faults: {sorted(named)}")


def token_resumes(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-040."""
    first = mesh.sound()
    second = mesh.sound(session_token(first))
    expect.note("the printed key is truncated and the printed session id has 16 digits; ids here have 32")
    expect.hold(second.status_code == 200, f"the signature was refused: {second.status_code}")
    name = "crp-context-session-id"
    expect.hold(first.headers.get(name) == second.headers.get(name), "the session was not resumed")
    del vector


def token_expires(vector: Vector, expect: Expectations, mesh: MeshUnderTest) -> None:
    """TV-041."""
    fresh = session_token(mesh.sound())
    past = replace(
        _read(fresh, mesh.keyring), issued_at=_EXPIRED_ISSUED, expires_at=vector["input"]["token_payload"]["exp"]
    )
    key = mesh.keyring.derive(past.key_version, past.session_id, SIGN)
    response = mesh.sound(token.mint(past, key or b""))
    wanted = vector["assertions"][0]["http_status"]
    expect.hold(response.status_code == wanted, f"expected {wanted}, got {response.status_code}")
    reason = response.json().get("reason")
    expect.hold(reason == "TOKEN_EXPIRED", f"it was refused for {reason}, not for its age")


def _read(text: str, keyring: Keyring) -> token.Token:
    """Return the verified content of a token, as the session service verifies it."""
    return verified(text, keyring, now_us=system_clock(), scope=None)
