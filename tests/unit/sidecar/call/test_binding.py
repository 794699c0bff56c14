"""How a deployment reads evidence: by which key, from which sources; and what of it a session is found by."""

from __future__ import annotations

import secrets

import pytest
from pydantic import ValidationError

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.binding import UNBOUND, answer_id, binding_reader
from interlock.sidecar.openai import chat, completion

pytestmark = pytest.mark.req("ATT-1")

LINES = [("x-session-id", "chat-42"), ("cookie", "a=b")]
SESSION = "crp_sess_" + "0a" * 16
BODY = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Where does it rise?"},
        {"role": "assistant", "content": "In the mountains of the north, it is said."},
        {"role": "user", "content": "And then?"},
    ],
}


def settings(tmp_path, **more) -> Settings:
    return Settings(state_dir=tmp_path, **more)


def names_of(bound) -> list[str]:
    return [name.digest for name in bound.evidence().names]


def test_replicas_of_one_key_read_the_same(tmp_path):
    """The master key below one state folder, or one binding_key; another key reads everything differently."""
    key, other = secrets.token_hex(32), secrets.token_hex(32)
    own = [names_of(binding_reader(settings(tmp_path)).read("s", LINES)) for _ in range(2)]
    given = [
        names_of(binding_reader(settings(tmp_path / folder, binding_key=one)).read("s", LINES))
        for folder, one in (("a", key), ("b", key), ("c", other))
    ]

    assert own[0] == own[1] != given[0]
    assert given[0] == given[1] != given[2]
    assert not (tmp_path / "a" / "master.key").exists()


def test_a_weak_key_is_refused(tmp_path):
    """As a weak master key is, under a name of its own."""
    with pytest.raises(Refused, match="binding_key is refused") as refused:
        binding_reader(settings(tmp_path, binding_key="00" * 32))

    assert refused.value.reason == "BINDING_KEY_WEAK"


def test_a_rotation_changes_no_digest(tmp_path):
    """Of a file of keys the lowest version is used, as long as it is kept."""
    first, second, file = secrets.token_hex(32), secrets.token_hex(32), tmp_path / "keys.yaml"
    read = []
    for keys in ({1: first}, {1: first, 2: second}):
        file.write_text("keys:\n" + "".join(f"  {version}: {{key: {key}}}\n" for version, key in keys.items()))
        file.chmod(0o600)
        read.append(names_of(binding_reader(settings(tmp_path, master_keys_file=file)).read("s", LINES)))

    assert read[0] == read[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bindings", "hint,everything"),
        ("bindings", "token"),
        ("binding_headers", "X-Session-Id"),
        ("binding_headers", "crp-session"),
        ("binding_headers", "authorization"),
        ("binding_headers", "cookie"),
        ("binding_fields", "messages"),
        ("binding_fields", "metadata"),
    ],
)
def test_settings_name_known_sources_alone(tmp_path, name, value):
    """A word that means nothing here is refused at the start, and so is a header that has another meaning."""
    with pytest.raises(ValidationError):
        settings(tmp_path, **{name: value})


def test_lists_may_be_empty_and_spaced(tmp_path):
    """No source of a kind is a choice too."""
    made = settings(tmp_path, bindings=" hint , caller ", binding_headers="", binding_fields="user, metadata.a-b")
    sources = binding_reader(made).sources

    assert sorted(rank.word for rank in sources.ranks) == ["caller", "hint"]
    assert (sources.headers, sources.fields) == ((), ("user", "metadata.a-b"))


def test_an_answer_is_found_by_its_turn_its_id_and_its_session(tmp_path):
    """All that a settlement notes: the session by id and cookie, the answer by id, the names of the call; no cookie of gRPC."""
    made = settings(tmp_path)
    request = chat.read(BODY, made)
    reader = binding_reader(made)
    http, grpc = (reader.read("s", LINES, request, cookies=cookies) for cookies in (True, False))
    answer = completion.assembled(
        {"id": answer_id("crp_win_" + "7" * 32)},
        [{"index": 0, "message": {"role": "assistant", "content": "To the sea."}}],
        {},
    )
    noted = [name.rank for name in http.learnt(SESSION, answer, cookie_set=True)]
    later = reader.read("s", [], chat.read({**BODY, "messages": [*BODY["messages"], *answered(answer)]}, made))

    assert noted == [
        session_pb2.BINDING_RANK_HINT, session_pb2.BINDING_RANK_COOKIE, session_pb2.BINDING_RANK_RESPONSE,
        session_pb2.BINDING_RANK_HINT,
    ]  # fmt: skip
    assert session_pb2.BINDING_RANK_COOKIE not in [name.rank for name in grpc.learnt(SESSION, answer, cookie_set=True)]
    assert http.cookie_for(SESSION).startswith("crp_session=")
    assert grpc.cookie_for(SESSION) == ""
    assert http.turn(answer) == later.evidence().turns[-1]
    assert len(later.turns) == 2


def answered(answer) -> list[dict]:
    """What a client makes of an answer, and its next question."""
    return [dict(answer.choices[0]["message"]), {"role": "user", "content": "Which one?"}]


def test_what_nobody_receives_is_no_turn(tmp_path):
    """A part of a plan, a text, a call without evidence."""
    made = settings(tmp_path)
    read = binding_reader(made).read("s", LINES, chat.read(BODY, made))
    answer = completion.assembled({"id": "a"}, [{"index": 0, "message": {"content": "x"}}], {})
    text = completion.Completion(b"x", {}, (), None)

    assert read.turn(answer) is not None
    assert read.unasked().turn(answer) is UNBOUND.turn(answer) is read.turn(text) is None
    assert UNBOUND.learnt(SESSION, answer, cookie_set=True) == []
    assert not UNBOUND.speaks
