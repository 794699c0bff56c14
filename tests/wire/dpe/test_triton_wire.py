"""The client of Triton against a server that misbehaves: every fault is a refusal, none is a score (A-39, A-40)."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import math
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tritonclient.grpc import model_config_pb2

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.models import manifest
from interlock.dpe.inference.port import ENTAILMENT, deadline
from interlock.dpe.inference.triton import TritonInference
from interlock.dpe.inference.triton_wire import LARGEST_ANSWER_BYTES, MESSAGE_MARGIN_BYTES, MOST_ROWS
from tests.support.dpe import own_model
from tests.support.servers.fake_triton import FakeTriton, fake_triton, put
from tests.support.servers.triton import client

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-18")]
PAIRS = [("The tower is tall.", "It is tall."), ("Bread is cheap in Lyon today.", "Milk is white.")]


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeTriton]:
    """A server that behaves until it is told otherwise."""
    async with fake_triton() as server:
        yield server


@pytest_asyncio.fixture
async def engine(fake: FakeTriton) -> AsyncIterator[TritonInference]:
    """Our client of it."""
    opened = client(fake.address)
    yield opened
    await asyncio.to_thread(opened.close)


async def refusal(work: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        await work
    return refused.value


def values(*numbers: float) -> Callable[[Any], None]:
    """Answer two rows that hold these numbers."""
    return lambda reply: put(reply, np.array([numbers, numbers]))


def field(name: str, value: object) -> Callable[[Any], None]:
    """Answer with one field of the output changed."""
    return lambda reply: setattr(reply.outputs[0], name, value)


def shape(*sizes: int) -> Callable[[Any], None]:
    def spoil(reply: Any) -> None:
        reply.outputs[0].shape[:] = sizes

    return spoil


def raw(change: Callable[[bytes], bytes]) -> Callable[[Any], None]:
    def spoil(reply: Any) -> None:
        reply.raw_output_contents[0] = change(reply.raw_output_contents[0])

    return spoil


async def test_a_server_that_behaves_is_believed(fake, engine):
    """The fake's entailment arrives as entailment, so what follows fails for its fault alone."""
    rows = await engine.nli(PAIRS)

    assert rows[:, ENTAILMENT] == pytest.approx(math.exp(4) / (math.exp(4) + 2))
    assert (await engine.embed(["a", "b"])).shape == (2, 384)
    assert [[name.text for name in names] for names in await engine.names(["a b", "c"])] == [["a", "b"], ["c"]]
    await engine.check()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(values(math.nan, 0, 0), id="nan"),
        pytest.param(values(math.inf, 0, 0), id="inf"),
        pytest.param(values(-math.inf, 0, 0), id="minus inf"),
        pytest.param(values(3e38, 0, 0), id="beyond any score"),
        pytest.param(values(0.0, 1.0), id="two classes"),
        pytest.param(lambda reply: put(reply, np.zeros((1, 3))), id="a row too few"),
        pytest.param(lambda reply: put(reply, np.zeros((3, 3))), id="a row too many"),
        pytest.param(lambda reply: put(reply, np.zeros((0, 3))), id="no rows"),
        pytest.param(lambda reply: put(reply, np.zeros(6)), id="flat"),
        pytest.param(lambda reply: put(reply, np.zeros((2, 3, 1))), id="deep"),
        pytest.param(field("datatype", "FP64"), id="other type"),
        pytest.param(field("name", "embedding"), id="other output"),
        pytest.param(shape(2, -3), id="negative size"),
        pytest.param(raw(lambda data: data[:-4]), id="bytes too few"),
        pytest.param(raw(lambda data: data + bytes(4)), id="bytes too many"),
        pytest.param(raw(lambda data: b""), id="no bytes"),
        pytest.param(lambda reply: reply.ClearField("raw_output_contents"), id="no contents"),
        pytest.param(lambda reply: reply.ClearField("outputs"), id="no outputs"),
        pytest.param(lambda reply: reply.outputs.add(name="more", datatype="FP32"), id="two outputs"),
    ],
)
async def test_what_is_no_result_is_refused(fake, engine, spoil):
    """NaN, infinity, wrong shapes, types, rows and sizes never become a score."""
    fake.spoil = spoil
    refused = await refusal(engine.nli(PAIRS))

    assert (refused.kind, refused.reason) == (Kind.UNAVAILABLE, "MODEL_OUTPUT_INVALID")
    assert refused.metadata["slot"] == "nli"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(np.full((2, 16, 384), math.nan), id="nan"),
        pytest.param(np.zeros((2, 16, 384)), id="no direction"),
        pytest.param(np.ones((2, 1, 384)), id="too short"),
        pytest.param(np.ones((2, 64, 384)), id="too long"),
        pytest.param(np.ones((2, 16, 383)), id="too narrow"),
        pytest.param(np.ones((2, 384)), id="pooled"),
    ],
)
async def test_what_is_no_vector_is_refused(fake, engine, answer):
    """The same for embeddings."""
    fake.spoil = lambda reply: put(reply, answer)
    refused = await refusal(engine.embed(["one text of several words", "another one"]))

    assert (refused.kind, refused.reason) == (Kind.UNAVAILABLE, "MODEL_OUTPUT_INVALID")
    assert refused.metadata["slot"] == "embed"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(np.full((2, 16, 9), math.nan), id="nan"),
        pytest.param(np.full((2, 16, 9), math.inf), id="inf"),
        pytest.param(np.full((2, 16, 9), 3e38), id="beyond any score"),
        pytest.param(np.zeros((2, 1, 9)), id="too short"),
        pytest.param(np.zeros((2, 64, 9)), id="too long"),
        pytest.param(np.zeros((2, 16, 8)), id="a label too few"),
        pytest.param(np.zeros((1, 16, 9)), id="a row too few"),
        pytest.param(np.zeros((2, 9)), id="one label a text"),
    ],
)
async def test_what_is_no_labelling_is_refused(fake, engine, answer):
    """The same for names: nonsense is neither a name nor the absence of one."""
    fake.spoil = lambda reply: put(reply, answer)
    refused = await refusal(engine.names(["one text of several words", "another one"]))

    assert (refused.kind, refused.reason) == (Kind.UNAVAILABLE, "MODEL_OUTPUT_INVALID")
    assert refused.metadata["slot"] == "ner"


async def test_late_names_are_refused_in_time(fake):
    """An analysis does not go on without them."""
    engine = client(fake.address, timeout_s=0.2)
    await engine.check()
    fake.wait_s = 30.0
    async with asyncio.timeout(10):
        refused = await refusal(engine.names(["Ada came."]))
    engine.close()

    assert (refused.kind, refused.reason, refused.metadata["slot"]) == (Kind.TIMEOUT, "MODEL_TIMEOUT", "ner")


async def test_a_long_text_goes_in_windows_of_the_models_length(fake, engine):
    """Nothing is cut off: the classifier sees every word, in rows that it can take, in few requests."""
    text = " ".join(f"word{n}" for n in range(900))
    (found,) = await engine.names([text])

    assert [name.text for name in found] == text.split()
    assert all(request.inputs[0].shape[1] <= manifest("ner").max_length for request in fake.asked)
    assert len(fake.asked) <= 2


async def test_a_huge_answer_is_refused_unread(fake, engine):
    """An answer beyond the bound is not even taken from the connection."""
    fake.spoil = raw(lambda data: bytes(LARGEST_ANSWER_BYTES + MESSAGE_MARGIN_BYTES + 1))

    assert (await refusal(engine.nli(PAIRS))).reason == "MODEL_OUTPUT_INVALID"


async def test_a_late_answer_is_refused_in_time(fake):
    """Our own bound ends the wait, whatever the server does."""
    engine = client(fake.address, timeout_s=0.2)
    await engine.check()
    fake.wait_s = 30.0
    async with asyncio.timeout(10):
        refused = await refusal(engine.nli(PAIRS))
    engine.close()

    assert (refused.kind, refused.reason) == (Kind.TIMEOUT, "MODEL_TIMEOUT")


async def test_the_callers_deadline_is_passed_on_and_kept(fake, engine):
    """The server hears how long its answer is of use, on the call and in the request; then nobody waits."""
    await engine.check()
    fake.wait_s = 30.0
    deadline.set(asyncio.get_running_loop().time() + 0.4)  # gRPC rounds it up on the wire
    async with asyncio.timeout(10):
        refused = await refusal(engine.nli(PAIRS))

    assert refused.reason == "MODEL_TIMEOUT"
    assert fake.left[0] <= 0.5
    assert 0 < fake.asked[0].parameters["timeout"].int64_param <= 500_000
    assert (await refusal(engine.nli(PAIRS))).reason == "MODEL_TIMEOUT"
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, "TRITON_UNAVAILABLE"),
        (grpc.StatusCode.INTERNAL, "MODEL_FAILED"),
        (grpc.StatusCode.INVALID_ARGUMENT, "MODEL_FAILED"),
        (grpc.StatusCode.NOT_FOUND, "MODEL_FAILED"),
        (grpc.StatusCode.CANCELLED, "MODEL_FAILED"),
    ],
)
async def test_an_error_is_refused_and_its_text_goes_nowhere(fake, engine, status, reason):
    """The server's own words are not shown to callers."""
    fake.status = status
    refused = await refusal(engine.nli(PAIRS))

    assert (refused.kind, refused.reason) == (Kind.UNAVAILABLE, reason)
    assert "no" not in refused.message.split()


@pytest.mark.req("DPE-17")
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda config: config.parameters["sha256"].__setattr__("string_value", "0" * 64), id="other hash"),
        pytest.param(lambda config: config.ClearField("parameters"), id="no hash"),
        pytest.param(lambda config: setattr(config, "name", "other"), id="other name"),
    ],
)
async def test_a_server_of_other_bytes_is_refused_unasked(fake, engine, spoil):
    """A-39: no text goes to a model that does not publish the pinned hash."""
    fake.spoil_config = spoil
    refused = await refusal(engine.nli(PAIRS))

    assert (refused.kind, refused.reason) == (Kind.UNAVAILABLE, "MODEL_HASH_MISMATCH")
    assert not fake.asked
    assert (await refusal(engine.check())).reason == "MODEL_HASH_MISMATCH"


@pytest.mark.req("DPE-17")
@pytest.mark.parametrize("name", ["model_name", "model_version"])
async def test_an_answer_of_another_model_is_refused(fake, engine, name):
    """Verified or not: an answer that does not name the version made of the pinned hash is none."""
    fake.spoil = lambda reply: setattr(reply, name, "1")

    assert (await refusal(engine.nli(PAIRS))).reason == "MODEL_HASH_MISMATCH"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda config: config.input.add(name="pixels"), id="unknown input"),
        pytest.param(lambda config: config.ClearField("input"), id="no inputs"),
        pytest.param(lambda config: config.ClearField("output"), id="no output"),
        pytest.param(lambda config: config.output.add(name="more"), id="two outputs"),
        pytest.param(lambda config: setattr(config, "max_batch_size", 0), id="no batches"),
    ],
)
async def test_a_model_with_other_tensors_is_refused(fake, engine, spoil):
    """The right hash with tensors that are not ours is no model for us."""
    fake.spoil_config = spoil

    assert (await refusal(engine.nli(PAIRS))).reason == "MODEL_UNUSABLE"


async def test_the_version_that_was_verified_is_the_one_that_is_asked_for(fake, engine):
    """Every request pins the version made of the hash; a server that has another one cannot answer it."""
    await engine.nli(PAIRS)
    await engine.embed(["a"])
    await engine.names(["a"])

    assert [r.model_version for r in fake.asked] == [manifest(s).served_version for s in ("nli", "embed", "ner")]


@pytest.mark.req("DPE-17")
async def test_a_connection_is_verified_once_and_again_after_it_was_lost(tmp_path):
    """A-39: a server that came back with other bytes is found out before it is asked anything."""
    async with fake_triton() as fake:
        engine = client(fake.address)
        await engine.nli(PAIRS)
        await engine.nli([("another", "pair")])
        assert fake.verified == 1
        port = int(fake.address.rpartition(":")[2])
    async with fake_triton(port=port) as same:
        await _until_answered(engine)
        assert same.verified >= 1
    async with fake_triton(port=port) as swapped:
        swapped.models["nli"] = manifest("nli", own_model(tmp_path / "m", [4.0, 0, 0], ("entailment", "neutral", "contradiction")))  # fmt: skip
        assert await _until_refused(engine, "MODEL_HASH_MISMATCH")
        assert not swapped.asked
    engine.close()


@pytest.mark.req("DPE-17")
async def test_a_server_that_was_replaced_between_two_calls_is_verified(tmp_path):
    """A-39: no call saw the connection break, and it stands again before the next one is made."""
    async with fake_triton() as fake:
        engine = client(fake.address)
        await engine.nli(PAIRS)
        port = int(fake.address.rpartition(":")[2])
    async with fake_triton(port=port) as swapped:
        swapped.models["nli"] = manifest("nli", own_model(tmp_path / "m", [4.0, 0, 0], ("entailment", "neutral", "contradiction")))  # fmt: skip
        channel = engine._server._channel
        async with asyncio.timeout(20):
            while channel.get_state(try_to_connect=True) != grpc.ChannelConnectivity.READY:
                await asyncio.sleep(0.01)
        assert await _until_refused(engine, "MODEL_HASH_MISMATCH")
        assert not swapped.asked
    engine.close()


async def test_an_answer_that_was_refused_is_followed_by_verification(fake, engine):
    """After nonsense it may be another server that answers: it is asked who it is, and then believed again."""
    fake.spoil = values(math.nan, 0, 0)
    await refusal(engine.nli(PAIRS))
    fake.spoil = lambda reply: None
    await engine.nli(PAIRS)

    assert fake.verified == 2


async def test_all_pairs_of_a_question_go_in_few_requests(fake, engine):
    """DPE-18: never one request a pair; rows of like length together, so that little is filled up."""
    pairs = [("The tower is tall.", "It is tall." + " Very." * n) for n in range(MOST_ROWS + 10)]
    await engine.nli(pairs)

    assert sorted(r.inputs[0].shape[0] for r in fake.asked) == [10, MOST_ROWS]
    assert min(r.inputs[0].shape[1] for r in fake.asked) < max(r.inputs[0].shape[1] for r in fake.asked)


async def test_vectors_of_long_texts_come_in_answers_of_bounded_size(fake, engine):
    """Hidden states are large: fewer rows a request where they are long."""
    await engine.embed([f"{n} " + "The tower is tall. " * 60 for n in range(60)])

    assert len(fake.asked) > 1
    assert all(math.prod(r.inputs[0].shape) * 384 * 4 <= LARGEST_ANSWER_BYTES for r in fake.asked)


async def test_a_text_goes_over_once(fake, engine):
    """Vectors of recent texts are kept, doubles of a question are one row."""
    await engine.embed(["a", "b", "a"])
    await engine.embed(["b", "a"])
    await engine.nli([PAIRS[0], PAIRS[0]])

    assert [r.inputs[0].shape[0] for r in fake.asked] == [2, 1]


async def test_nobody_there_is_refused_at_once():
    """A server that is away is UNAVAILABLE, not a hang."""
    async with fake_triton() as gone:
        address = gone.address
    engine = client(address)
    async with asyncio.timeout(10):
        refused = await refusal(engine.nli(PAIRS))
    engine.close()

    assert (refused.kind, refused.reason) == (Kind.UNAVAILABLE, "TRITON_UNAVAILABLE")
    assert refused.metadata["slot"] == "nli"


async def test_a_model_without_a_type_input_is_fed_what_it_takes(fake, engine):
    """Inputs are those that the server names: not every encoder has token types."""

    def without_types(config: Any) -> None:
        del config.input[2]
        assert config.input[1].data_type == model_config_pb2.TYPE_INT64

    fake.spoil_config = without_types
    await engine.nli(PAIRS)

    assert [one.name for one in fake.asked[0].inputs] == ["input_ids", "attention_mask"]


async def test_tls_is_checked_against_the_given_authority(tmp_path):
    """grpcs:// with the right CA works; with another, or without, nothing is sent."""
    key, certificate = _certificate()
    (tmp_path / "ca.pem").write_bytes(certificate)
    (tmp_path / "other.pem").write_bytes(_certificate()[1])
    async with fake_triton(credentials=grpc.ssl_server_credentials([(key, certificate)])) as fake:
        trusted = client(f"grpcs://{fake.address}", ca_file=tmp_path / "ca.pem")
        assert len(await trusted.nli(PAIRS)) == 2
        trusted.close()
        asked = len(fake.asked)
        for url, ca in ((f"grpcs://{fake.address}", tmp_path / "other.pem"), (fake.address, None)):
            stranger = client(url, ca_file=ca)
            assert (await refusal(stranger.nli(PAIRS))).reason == "TRITON_UNAVAILABLE"
            stranger.close()
        assert len(fake.asked) == asked


def test_an_unreadable_authority_is_refused(tmp_path: Path):
    """A CA file that is not there is a setting to correct, not a connection without checks."""
    with pytest.raises(Refused, match="TRITON_CA_FILE_UNREADABLE"):
        client("grpcs://127.0.0.1:1", ca_file=tmp_path / "none.pem")


async def _until_answered(engine: TritonInference) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await engine.nli([("once", "more")])
            except Refused as refused:
                assert refused.reason == "TRITON_UNAVAILABLE"
                await asyncio.sleep(0.05)
            else:
                return


async def _until_refused(engine: TritonInference, reason: str) -> bool:
    async with asyncio.timeout(20):
        while True:
            found = (await refusal(engine.nli([("once", "more")]))).reason
            if found != "TRITON_UNAVAILABLE":
                return found == reason
            await asyncio.sleep(0.05)


def _certificate() -> tuple[bytes, bytes]:
    """Return a key and a certificate of 127.0.0.1 that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "triton")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, made.public_bytes(serialization.Encoding.PEM)
