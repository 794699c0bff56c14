"""Triton's tensors: requests built, answers checked before use (reliability.md A-39).

An answer is accepted when it names the requested model and version, has the requested type, rows and sizes, and holds
finite numbers only. The version is made from the file's hash (``ModelManifest.served_version``), so every answer states
which bytes produced it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2

from interlock.domain.errors import Kind, Refused, unavailable
from interlock.dpe.inference.models import ModelManifest
from interlock.dpe.inference.port import EMBEDDING_WIDTH, Floats
from interlock.dpe.inference.tokenizing import INPUTS, Row, no_result

MOST_ROWS = 64
"""Rows of one request (dpe-quality.md section 5: 32 to 64 rows a request cost least for each row)."""
LARGEST_ANSWER_BYTES = 8_388_608
MESSAGE_MARGIN_BYTES = 65_536
STEP = 16
"""Rows are padded to a multiple of this length, so that a batching server sees few shapes."""


@dataclass(frozen=True)
class Served:
    """One model of a server, verified against its manifest."""

    manifest: ModelManifest
    inputs: tuple[str, ...]
    output: str
    most_rows: int

    @property
    def slot(self) -> str:
        """The slot, which is the model's name on the server."""
        return self.manifest.slot


def verified(manifest: ModelManifest, config: Any) -> Served:
    """Return the model that a server's configuration describes.

    Refused with MODEL_HASH_MISMATCH when it publishes another hash or none, and with MODEL_UNUSABLE when its tensors
    differ from ours.
    """
    published = config.parameters["sha256"].string_value if "sha256" in config.parameters else ""
    if config.name != manifest.slot or f"sha256:{published}" != manifest.hash:
        raise mismatch(manifest.slot)
    inputs, outputs = tuple(tensor.name for tensor in config.input), list(config.output)
    if "input_ids" not in inputs or set(inputs) - set(INPUTS) or len(outputs) != 1 or config.max_batch_size < 1:
        raise unavailable(
            "MODEL_UNUSABLE",
            f"slot {manifest.slot}: Triton serves unexpected tensors",
            slot=manifest.slot,
            retry_after_ms=0,
        )
    return Served(manifest, inputs, outputs[0].name, min(MOST_ROWS, config.max_batch_size))


def slices(served: Served, rows: Sequence[Row]) -> list[list[int]]:
    """Return the row indexes of each request.

    Rows of similar length go together, and the size of an answer is bounded.
    """
    order = sorted(range(len(rows)), key=lambda n: -len(rows[n]))
    found: list[list[int]] = []
    while order:
        most = served.most_rows
        if served.slot != "nli":
            most = min(
                most, max(1, LARGEST_ANSWER_BYTES // (4 * _width(served) * _padded(len(rows[order[0]]), served)))
            )
        found.append(order[:most])
        order = order[most:]
    return found


def request(served: Served, rows: Sequence[Row], *, timeout_s: float) -> Any:
    """Return the request for these rows. The server may drop it after *timeout_s* in its queue."""
    length = _padded(max(map(len, rows)), served)
    columns = {name: np.zeros((len(rows), length), dtype=np.int64) for name in INPUTS}
    for n, row in enumerate(rows):
        columns["input_ids"][n, : len(row)] = row.ids
        columns["attention_mask"][n, : len(row)] = 1
        columns["token_type_ids"][n, : len(row)] = row.types
    message = service_pb2.ModelInferRequest(model_name=served.slot, model_version=served.manifest.served_version)
    message.parameters["timeout"].int64_param = max(1, int(timeout_s * 1_000_000))
    for name in served.inputs:
        message.inputs.add(name=name, datatype="INT64", shape=[len(rows), length])
        message.raw_input_contents.append(columns[name].tobytes())
    message.outputs.add(name=served.output)
    return message


def answer(served: Served, rows: Sequence[Row], reply: Any) -> Floats:
    """Return the tensor of an answer, one row for each requested row.

    Refused with MODEL_HASH_MISMATCH when another model answered, and with MODEL_OUTPUT_INVALID for anything else that
    is not a result.
    """
    if (reply.model_name, reply.model_version) != (served.slot, served.manifest.served_version):
        raise mismatch(served.slot)
    if len(reply.outputs) != 1 or len(reply.raw_output_contents) != 1:
        raise no_result(served.slot)
    tensor, raw = reply.outputs[0], reply.raw_output_contents[0]
    shape = tuple(tensor.shape)
    if (tensor.name, tensor.datatype) != (served.output, "FP32") or not _fits(served, rows, shape):
        raise no_result(served.slot)
    if len(raw) != 4 * math.prod(shape):
        raise no_result(served.slot)
    found: Floats = np.frombuffer(raw, dtype="<f4").reshape(shape)
    if not np.isfinite(found).all():
        raise no_result(served.slot)
    return found


def mismatch(slot: str) -> Refused:
    """Return the refusal for a server with other bytes under the slot's name."""
    return unavailable("MODEL_HASH_MISMATCH", f"Triton serves another model as {slot}", slot=slot)


def from_rpc_error(error: grpc.aio.AioRpcError, slot: str) -> Refused:
    """Return the refusal for a failed call: timeout, oversized answer, unreachable server or failure."""
    code = error.code()
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return late(slot)
    if code == grpc.StatusCode.RESOURCE_EXHAUSTED:  # the answer exceeds our own channel's limit
        return no_result(slot)
    if code == grpc.StatusCode.UNAVAILABLE:
        return unavailable("TRITON_UNAVAILABLE", "Triton cannot answer now", slot=slot)
    return unavailable("MODEL_FAILED", f"slot {slot}: Triton answered {code.name}", slot=slot)


def late(slot: str) -> Refused:
    """Return the refusal for a model that did not answer in time."""
    return Refused(Kind.TIMEOUT, "MODEL_TIMEOUT", f"slot {slot} ran out of time", metadata={"slot": slot})


def _fits(served: Served, rows: Sequence[Row], shape: tuple[int, ...]) -> bool:
    """Whether a shape fits the request: a row of class scores for each row, or one for each token of it."""
    if served.slot == "nli":
        return shape == (len(rows), _width(served))
    longest = max(map(len, rows))
    return (
        len(shape) == 3
        and (shape[0], shape[2]) == (len(rows), _width(served))
        and longest <= shape[1] <= _padded(longest, served)
    )


def _width(served: Served) -> int:
    return EMBEDDING_WIDTH if served.slot == "embed" else len(served.manifest.labels)


def _padded(length: int, served: Served) -> int:
    return max(length, min(served.manifest.max_length, -(-length // STEP) * STEP))
