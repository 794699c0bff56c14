"""``interlock models serve``: the real tritonserver of the wheel, started and ended as a person would."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import psutil
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from interlock.domain.errors import Refused
from interlock.dpe.inference import triton_wire as wire
from interlock.dpe.inference.models import BUNDLED, manifest
from interlock.dpe.inference.tokenizing import Row
from tests.support.dpe import constant_onnx
from tests.support.servers import triton
from tests.support.servers.processes import environment

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-18")]
COMMAND = [sys.executable, "-m", "interlock.cli.main", "models", "serve", "--port", "0"]


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict]]:
    """A running ``models serve`` and its ready line."""
    child = subprocess.Popen(COMMAND, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, "it ended without being ready"
    yield child, json.loads(line)
    child.kill()
    child.communicate()


def gone(pids: list[int]) -> bool:
    """Wait until none of these processes runs."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
            return True
        time.sleep(0.1)
    return False


def family(pid: int) -> list[int]:
    """Return a server and the interpreters that it started."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


async def test_it_serves_until_it_is_told_to_end(serving):
    """Ready line, verified models, an answer; then SIGTERM ends the server and all that it started, with exit code 0."""
    child, ready = serving
    pids = family(ready["server_pid"])
    engine = triton.client(ready["address"])
    await engine.check()
    rows = await engine.nli([("The tower is tall.", "It is tall.")])
    await asyncio.to_thread(engine.close)
    child.send_signal(signal.SIGTERM)

    assert rows.shape == (1, 3)
    assert ready["models"] == ["nli", "embed", "ner"]
    assert len(pids) >= 3
    assert await asyncio.to_thread(child.wait, 30) == 0
    assert gone(pids)


def test_it_does_not_outlive_its_owner(serving):
    """kill -9 of the command leaves no server behind."""
    child, ready = serving
    pids = family(ready["server_pid"])
    child.kill()

    assert gone(pids)


def test_it_says_so_when_the_server_ends_by_itself(serving):
    """A supervisor sees an exit code and can start it again."""
    child, ready = serving
    os.kill(ready["server_pid"], signal.SIGKILL)

    assert child.wait(30) == 2


def test_administrative_calls_are_off(serving):
    """A-39: nobody loads models, maps shared memory or changes logging over the port."""
    _, ready = serving
    with grpc.insecure_channel(ready["address"]) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for call, request in (
            (stub.RepositoryModelUnload, service_pb2.RepositoryModelUnloadRequest(model_name="nli")),
            (stub.RepositoryModelLoad, service_pb2.RepositoryModelLoadRequest(model_name="nli")),
            (stub.SystemSharedMemoryRegister, service_pb2.SystemSharedMemoryRegisterRequest(name="x", key="/x", byte_size=8)),
            (stub.LogSettings, service_pb2.LogSettingsRequest()),
        ):  # fmt: skip
            with pytest.raises(grpc.RpcError) as refused:
                call(request, timeout=10)
            assert "restricted" in refused.value.details()


def test_a_server_hears_nothing_of_our_settings(serving):
    """Keys stay here: the server's environment has what it needs and no more."""
    _, ready = serving
    for pid in family(ready["server_pid"]):
        assert not [name for name in psutil.Process(pid).environ() if name.startswith("INTERLOCK_")]


def test_a_taken_port_is_refused(serving, tmp_path):
    """Two servers on one port would answer in turns."""
    _, ready = serving
    server = triton.server_of(tmp_path / "second", [manifest("embed")])
    server._port = int(ready["address"].rpartition(":")[2])

    with pytest.raises(Refused, match="PORT_TAKEN"):
        server.start()


async def test_a_token_classifier_is_served_in_the_ner_slot(tmp_path):
    """The third slot takes an ONNX token classifier: a score for each label of each token, checked like the others."""
    folder = tmp_path / "ner"
    folder.mkdir()
    scores = np.arange(12, dtype=np.float32)
    (folder / "model.onnx").write_bytes(constant_onnx(scores.tolist(), (1, 4, 3)))
    (folder / "tokenizer.json").write_bytes((BUNDLED / "nli" / "tokenizer.json").read_bytes())
    files = {f.name: {"sha256": hashlib.sha256(f.read_bytes()).hexdigest()} for f in folder.iterdir()}
    described = {
        "slot": "ner", "name": "constant", "version": "1", "licence": "none", "labels": ["O", "B-PERSON", "I-PERSON"],
        "max_length": 64, "model": "model.onnx", "tokenizer": "tokenizer.json", "files": files,
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(described))
    model = manifest("ner", folder)
    row = Row(np.arange(4), np.zeros(4, dtype=np.int64))
    with triton.running(tmp_path / "server", [model]) as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            config = await stub.ModelConfig(service_pb2.ModelConfigRequest(name="ner"), timeout=10)
            served = wire.verified(model, config.config)
            reply = await stub.ModelInfer(wire.request(served, [row, row], timeout_s=10), timeout=10)

    found = wire.answer(served, [row, row], reply)
    assert (found == scores.reshape(1, 4, 3)).all()
    assert found.shape == (2, 4, 3)
    assert model.labels == ("O", "B-PERSON", "I-PERSON")
