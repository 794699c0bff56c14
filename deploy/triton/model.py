"""The CPU profile's model for Triton's python backend: any of our ONNX files, one row per run.

The int8 models scale their activations by the whole batch they are in, so rows never run together: each runs alone, cut
to its real length, on one thread. As many rows run in parallel as there are threads. So a row's output is bit for bit what
``interlock.dpe.inference.local`` computes, independently of concurrent requests.

The bytes that were hashed are the bytes that run: a file whose hash is not the parameter ``sha256`` is not served.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# The backend's interpreter reads neither PYTHONPATH nor a virtual environment.
sys.path[:0] = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p not in sys.path]

import numpy as np  # noqa: E402 - found by the line above
import onnxruntime  # noqa: E402
import triton_python_backend_utils as pb_utils  # noqa: E402 - Triton's own, there only inside the backend

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def _unraisable(unraisable: Any, otherwise: Any = sys.unraisablehook) -> None:
    """Drop one false alarm per response: the backend renames the capsule in another way than numpy expects."""
    if not (isinstance(unraisable.exc_value, ValueError) and "PyCapsule_GetPointer" in str(unraisable.exc_value)):
        otherwise(unraisable)


sys.unraisablehook = _unraisable


class TritonPythonModel:
    """Triton's interface: initialize, execute, finalize."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Read the file, check it, build the session; an exception here keeps the server from being ready."""
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config["parameters"].items()}
        data = (Path(args["model_repository"]) / args["model_version"] / "model.onnx").read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if digest != parameters["sha256"] or int(digest[:15], 16) != int(args["model_version"]):
            raise pb_utils.TritonModelException("MODEL_HASH_MISMATCH: model.onnx is not the pinned file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        self.wanted = [given.name for given in self.session.get_inputs()]
        self.output = config["output"][0]["name"]
        self.threads = ThreadPoolExecutor(int(parameters["threads"]))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer each request. All rows share the threads; the longest row runs first."""
        asked = [None if request.is_cancelled() else _tensors(request) for request in requests]
        rows = [(n, r, length) for n, one in enumerate(asked) if one for r, length in enumerate(one[1])]
        rows.sort(key=lambda row: -row[2])
        found: list[dict[int, Any]] = [{} for _ in requests]
        failed: dict[int, str] = {}

        def run(row: tuple[int, int, int]) -> None:
            request, at, length = row
            if request in failed or requests[request].is_cancelled():
                return
            try:
                feed = {name: asked[request][0][name][at : at + 1, :length] for name in self.wanted}
                found[request][at] = self.session.run(None, feed)[0]
            except Exception as error:  # noqa: BLE001 - its name is the answer to this one request
                failed[request] = type(error).__name__

        list(self.threads.map(run, rows))
        return [self._response(n, asked[n], found[n], failed) for n in range(len(requests))]

    def finalize(self) -> None:
        """End the threads."""
        self.threads.shutdown(wait=True, cancel_futures=True)

    def _response(self, number: int, asked: Any, found: Mapping[int, Any], failed: Mapping[int, str]) -> Any:
        if number in failed:
            return pb_utils.InferenceResponse([], pb_utils.TritonError(f"MODEL_FAILED: {failed[number]}"))
        if asked is None or len(found) < len(asked[1]):
            error = pb_utils.TritonError("cancelled", pb_utils.TritonError.CANCELLED)
            return pb_utils.InferenceResponse([], error)
        rows = _stacked([found[n] for n in range(len(found))])
        return pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack(self.output, rows)])


def _tensors(request: Any) -> tuple[dict[str, Any], list[int]]:
    """Return the inputs of one request and the real length of each row: its mask is ones, then zeros."""
    # By DLPack both ways: the backend in the wheel was built for numpy 1, and numpy 2 reads garbage from its as_numpy().
    given = {name: np.from_dlpack(pb_utils.get_input_tensor_by_name(request, name)) for name in INPUTS}
    return given, [int(length) for length in given["attention_mask"].sum(axis=1)]


def _stacked(rows: Sequence[Any]) -> Any:
    """Return the rows as one array; rows of tokens are padded with zeros to the longest."""
    if rows[0].ndim != 3 or rows[0].shape[0] != 1:
        return np.concatenate(rows).astype(np.float32, copy=False)
    longest = max(row.shape[1] for row in rows)
    filled = np.zeros((len(rows), longest, rows[0].shape[2]), dtype=np.float32)
    for n, row in enumerate(rows):
        filled[n, : row.shape[1]] = row[0]
    return filled
