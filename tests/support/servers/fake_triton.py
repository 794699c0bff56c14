"""A server that speaks Triton's protocol and misbehaves on request: what a real one does when it is broken or taken over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

from interlock.dpe.inference.models import ModelManifest, manifest
from interlock.dpe.inference.port import EMBEDDING_WIDTH
from interlock.dpe.inference.tokenizing import INPUTS

Spoil = Callable[[Any], None]


class FakeTriton(service_pb2_grpc.GRPCInferenceServiceServicer):
    """Answers every pair with entailment, every word with B-PERSON, and every token with ones; *spoil* may change the reply."""

    def __init__(self) -> None:
        self.models: dict[str, ModelManifest] = {slot: manifest(slot) for slot in ("nli", "embed", "ner")}
        self.spoil: Spoil = lambda reply: None
        self.spoil_config: Spoil = lambda config: None
        self.wait_s = 0.0
        self.status: grpc.StatusCode | None = None
        self.asked: list[Any] = []
        self.left: list[float] = []
        self.verified = 0
        self.address = ""
        self._server: Any = None

    async def start(self, *, port: int = 0, credentials: grpc.ServerCredentials | None = None) -> None:
        """Serve on loopback."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(self, self._server)
        where = f"127.0.0.1:{port}"
        bound = (
            self._server.add_secure_port(where, credentials) if credentials else self._server.add_insecure_port(where)
        )
        self.address = f"127.0.0.1:{bound}"
        await self._server.start()

    async def stop(self) -> None:
        """End it with its connections."""
        await self._server.stop(None)

    async def ModelConfig(self, request: Any, context: Any) -> Any:
        self.verified += 1
        model = self.models[request.name]
        config = model_config_pb2.ModelConfig(name=request.name, max_batch_size=64)
        config.parameters["sha256"].string_value = model.hash.removeprefix("sha256:")
        for name in INPUTS:
            config.input.add(name=name, data_type=model_config_pb2.TYPE_INT64, dims=[-1])
        config.output.add(name="out", data_type=model_config_pb2.TYPE_FP32, dims=[-1])
        self.spoil_config(config)
        return service_pb2.ModelConfigResponse(config=config)

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        self.asked.append(request)
        self.left.append(context.time_remaining())
        await asyncio.sleep(self.wait_s)
        if self.status is not None:
            await context.abort(self.status, "no")
        rows, length = request.inputs[0].shape
        values = self._values(request.model_name, rows, length)
        reply = service_pb2.ModelInferResponse(
            model_name=request.model_name, model_version=self.models[request.model_name].served_version
        )
        put(reply, values)
        self.spoil(reply)
        return reply

    def _values(self, slot: str, rows: int, length: int) -> Any:
        if slot == "nli":
            return np.tile(np.array([4.0, 0.0, 0.0], dtype="<f4"), (rows, 1))
        if slot == "embed":
            return np.ones((rows, length, EMBEDDING_WIDTH), dtype="<f4")
        labels = self.models["ner"].labels
        return np.tile(np.eye(len(labels), dtype="<f4")[labels.index("B-PERSON")], (rows, length, 1))


def put(reply: Any, values: Any) -> None:
    """Make *values* the one output of a reply."""
    del reply.outputs[:], reply.raw_output_contents[:]
    reply.outputs.add(name="out", datatype="FP32", shape=values.shape)
    reply.raw_output_contents.append(values.astype("<f4").tobytes())


@asynccontextmanager
async def fake_triton(**fields: Any) -> AsyncIterator[FakeTriton]:
    """Give a running fake."""
    fake = FakeTriton()
    await fake.start(**fields)
    try:
        yield fake
    finally:
        await fake.stop()
