"""What Redis holds of a session: read as our scripts write it, or refused; never guessed (A-02)."""

from __future__ import annotations

from fuzz.reading import told
from interlock.domain.session.state import Status
from interlock.session.store import records
from interlock.session.store.batcher import readable  # what the store itself reads with
from interlock.session.terms import terms_to_json

WORDS = (
    b"terms\x00", b"policy\x00", b"policy_hash\x00", b"status\x00", b"budget\x00", b"dag\x00", b"nodes\x00", b"lease\x00",
    b"unsettled\x00", b"cap\x00", b"kids\x00", b"facts\x00", b"r:crp_win_", b"w:crp_win_", b"g:", b"a:", b"o:", b"\x01",
    b"1000000", b"-1", b"1e6", b" 1 ", b"0_1", b"NaN", b" L", b" C", b"AC", b'"limits":', b'"agent":', b'"seal":', b"null",
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """Every hash is a state or SESSION_STATE_CORRUPT, and a state has as many outcomes as windows."""
    fields = {}
    for pair in data.split(b"\x01"):
        name, _, value = pair.partition(b"\x00")
        fields[name.decode("latin-1")] = value
    state = told(lambda: _state(fields))
    if state is None:
        return
    assert len(state.nodes) == len(state.outcomes)
    assert isinstance(state.status, Status)
    assert type(state.budget) is int


def _state(fields: dict[str, bytes]) -> records.SessionState:
    with readable():
        return records.state_from(fields)


def seeds() -> dict[str, bytes]:
    """A new session, one with two windows and a lease, and one whose record was cut."""
    whole = _fields()
    joined = b"\x01".join(name.encode() + b"\x00" + value for name, value in whole.items())
    return {
        "whole": joined,
        "cut": joined[: len(joined) // 2],
        "negative": joined.replace(b"budget\x00950000", b"budget\x00-1"),
    }


def _fields() -> dict[str, bytes]:
    from tests.support.session.sessions import NOW_MS, digest, new_state, window_id

    state = new_state()
    first, second = window_id(1), window_id(2)
    entry = f"{first.removeprefix('crp_win_')} SCL;{second.removeprefix('crp_win_')} BCL;"
    outcome = "{} 950000 950000 1 1 50000 {} {} {} -"
    record = b'{"number":%d,"parents":%s,"seal":null}'
    fields = {
        "terms": terms_to_json(state.terms), "policy": state.policy.text, "policy_hash": state.policy.hash,
        "status": "1", "budget": "950000", "dag": entry, "nodes": "2", "cap": "1000000", "kids": "", "facts": "",
        "lease": f"{window_id(3)} {NOW_MS} L {second}", "unsettled": "",
        f"r:{first}": outcome.format(1, digest("a"), "crp_cont_" + "0a" * 16, 1),
        f"r:{second}": outcome.format(2, digest("b"), "-", 2),
        f"w:{first}": (record % (1, b"[]")).decode(), f"w:{second}": (record % (2, f'["{first}"]'.encode())).decode(),
        "g:" + "0c" * 16: "crp_sess_" + "0d" * 16,
    }  # fmt: skip
    return {name: value.encode() for name, value in fields.items()}
