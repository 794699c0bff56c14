"""The models on an NVIDIA Triton Inference Server: the same rows as in process, sent and checked (DPE-18).

All rows of a call are sent in as few requests as their bound allows. The server must publish the hashes that the
manifests pin, before the first request and again after each lost connection; every answer must name the version made
from that hash. A late or malformed answer, or one of another model, is a refusal, never a default.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import grpc
import numpy as np
import structlog
from prometheus_client import Counter
from tritonclient.grpc import service_pb2, service_pb2_grpc

from interlock.domain.errors import Refused, invalid
from interlock.dpe.document import Entity
from interlock.dpe.inference import triton_wire as wire
from interlock.dpe.inference.models import LABELS, ModelManifest
from interlock.dpe.inference.port import EMBEDDING_WIDTH, Floats, ModelInfo, deadline
from interlock.dpe.inference.recent import Recent
from interlock.dpe.inference.tokenizing import REMEMBERED_TEXTS, Row, Tokens, label_order, names, probabilities, vector
from interlock.dpe.inference.triton_wire import Served

FAILURES = Counter("interlock_dpe_triton_failures", "Requests to Triton without a usable answer.", ["slot", "reason"])
SECURE = "grpcs://"
AT_ONCE = 4
"""Concurrent requests of one process: enough that Triton's threads never wait for the network."""
CHECK_S = 2.0
LONGEST_BACKOFF_MS = 1000

log = structlog.get_logger()
T = TypeVar("T")


class TritonInference:
    """Embeddings, NLI and names from *url*, ``HOST:PORT`` or ``grpcs://HOST:PORT``, with a cache for vectors."""

    def __init__(
        self,
        *,
        nli: ModelManifest,
        embed: ModelManifest,
        ner: ModelManifest,
        url: str,
        timeout_s: float,
        ca_file: Path | None = None,
    ) -> None:
        self._nli, self._embed, self._ner = nli, embed, ner
        self._nli_tokens, self._embed_tokens, self._ner_tokens = Tokens(nli), Tokens(embed), Tokens(ner)
        self._order = label_order(nli)
        self._server = _Server(url, timeout_s, _roots(ca_file))
        self._cache: Recent[Floats] = Recent(REMEMBERED_TEXTS)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="dpe-tokens")
        self.max_pair_tokens = self._nli_tokens.max_pair_tokens

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector for each text. Each distinct text is sent once."""
        distinct = dict.fromkeys(texts)
        found = {text: cached for text in distinct if (cached := self._cache.recall(text)) is not None}
        missing = [text for text in distinct if text not in found]
        windows = await self._in_thread(lambda: [self._embed_tokens.windows(text) for text in missing])
        hidden = iter(await self._server.run(self._embed, [row for rows in windows for row in rows]))
        for text, rows in zip(missing, windows, strict=True):
            # Cut to the real length; the rest is padding.
            found[text] = vector([next(hidden)[: len(row)] for row in rows])
            self._cache.keep(found[text], text)
        if not texts:
            return np.zeros((0, EMBEDDING_WIDTH), dtype=np.float32)
        return np.stack([found[text] for text in texts])

    async def nli(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """Return P(entailment), P(neutral) and P(contradiction) for each pair. Each distinct pair is sent once."""
        distinct = list(dict.fromkeys(pairs))
        rows = await self._in_thread(lambda: [self._nli_tokens.pair(pair) for pair in distinct])
        logits = await self._server.run(self._nli, rows)
        found = {pair: probabilities(one, self._order) for pair, one in zip(distinct, logits, strict=True)}
        if not pairs:
            return np.zeros((0, len(LABELS)), dtype=np.float32)
        return np.stack([found[pair] for pair in pairs])

    async def names(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """Return the names in each text. Each distinct text is sent once."""
        distinct = list(dict.fromkeys(texts))
        windows_by_text = await self._in_thread(lambda: [self._ner_tokens.ner_windows(text) for text in distinct])
        scores = iter(
            await self._server.run(self._ner, [window.row for windows in windows_by_text for window in windows])
        )
        found = {
            # Cut to the real length; the rest is padding.
            text: names(text, windows, [next(scores)[: len(one.row)] for one in windows], self._ner.labels)
            for text, windows in zip(distinct, windows_by_text, strict=True)
        }
        return [found[text] for text in texts]

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of NLI tokens of each text, without a request to the server."""
        return self._nli_tokens.count(texts)

    def models(self) -> tuple[ModelInfo, ...]:
        """Return the three models."""
        return tuple(ModelInfo.of(manifest, "triton") for manifest in (self._nli, self._embed, self._ner))

    async def check(self) -> None:
        """Return when Triton serves the pinned models.

        Refused with TRITON_UNAVAILABLE, MODEL_HASH_MISMATCH and others.
        """
        for manifest in (self._nli, self._embed, self._ner):
            await self._server.verify(manifest)

    def close(self) -> None:
        """Close the connection."""
        self._worker.shutdown(wait=True, cancel_futures=True)
        self._server.close()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)


class _Server:
    """One connection and the models that were verified over it."""

    def __init__(self, url: str, timeout_s: float, roots: bytes | None) -> None:
        self._url, self._timeout_s, self._roots = url, timeout_s, roots
        self._loop: asyncio.AbstractEventLoop | None = None
        self._channel: Any = None
        self._stub: Any = None
        self._served: dict[str, Served] = {}
        self._watching: asyncio.Task[None] | None = None

    async def run(self, manifest: ModelManifest, rows: Sequence[Row]) -> list[Floats]:
        """Return the model's output for each row, in order. The first request that fails twice cancels the others."""
        if not rows:
            return []
        try:
            return await self._run_once(manifest, rows)
        except Refused as refused:
            if refused.reason != "MODEL_FAILED":
                raise
        # On a starved machine the server's backend now and then fails to lock its shared memory. An answer depends only
        # on its rows, so the request is repeated once; the failure makes the model be verified again first.
        return await self._run_once(manifest, rows)

    async def _run_once(self, manifest: ModelManifest, rows: Sequence[Row]) -> list[Floats]:
        served = await self._ready(manifest)
        parts = wire.slices(served, rows)
        outputs = await _gather([self._infer(served, [rows[n] for n in part]) for part in parts])
        done = {
            n: output
            for part, part_outputs in zip(parts, outputs, strict=True)
            for n, output in zip(part, part_outputs, strict=True)
        }
        return [done[n] for n in range(len(rows))]

    async def verify(self, manifest: ModelManifest) -> Served:
        """Ask the server for its configuration and compare it with the manifest."""
        slot = manifest.slot
        message = service_pb2.ModelConfigRequest(name=slot)
        try:
            reply = await self._call(slot, "ModelConfig", message, min(CHECK_S, self._time_left(slot)))
            served = wire.verified(manifest, reply.config)
        except Refused:
            self._served.pop(slot, None)
            raise
        if slot not in self._served:
            log.info("triton.verified", slot=slot, version=manifest.served_version)
        self._served[slot] = served
        return served

    def close(self) -> None:
        """Close the connection on its own loop, from any thread."""
        loop, channel, self._channel = self._loop, self._channel, None
        if loop is None or channel is None or not loop.is_running():
            return
        ending = asyncio.run_coroutine_threadsafe(self._end(channel), loop)
        if not _on_a_loop():
            ending.result(CHECK_S)

    async def _end(self, channel: Any) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await channel.close(None)

    async def _ready(self, manifest: ModelManifest) -> Served:
        """Return the verified model. Models verified over a lost connection are verified again."""
        self._connect()
        if self._channel.get_state() != grpc.ChannelConnectivity.READY:
            self._served.clear()
        return self._served.get(manifest.slot) or await self.verify(manifest)

    async def _infer(self, served: Served, rows: Sequence[Row]) -> Floats:
        async with self._at_once:
            remaining_s = self._time_left(served.slot)
            message = wire.request(served, rows, timeout_s=remaining_s)
            reply = await self._call(served.slot, "ModelInfer", message, remaining_s)
        try:
            return wire.answer(served, rows, reply)
        except Refused as refused:
            self._forget(refused)
            raise

    async def _call(self, slot: str, method: str, message: Any, timeout_s: float) -> Any:
        self._connect()
        try:
            return await getattr(self._stub, method)(message, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            refused = wire.from_rpc_error(error, slot)
            self._forget(refused)
            raise refused from None

    def _forget(self, refused: Refused) -> None:
        """Clear the verified models: after a failure another server may answer."""
        FAILURES.labels(refused.metadata["slot"], refused.reason).inc()
        self._served.clear()

    def _time_left(self, slot: str) -> float:
        """Return the timeout of a request in seconds: the caller's remaining time, at most our own bound."""
        remaining_s = min(self._timeout_s, deadline.get() - asyncio.get_running_loop().time())
        if remaining_s <= 0:
            raise wire.late(slot)
        return remaining_s

    def _connect(self) -> None:
        """Open the channel on the current loop. It connects and reconnects by itself."""
        loop = asyncio.get_running_loop()
        if self._channel is not None and self._loop is loop:
            return
        options = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_reconnect_backoff_ms", LONGEST_BACKOFF_MS),
            ("grpc.max_receive_message_length", wire.LARGEST_ANSWER_BYTES + wire.MESSAGE_MARGIN_BYTES),
        ]
        if self._url.startswith(SECURE):
            credentials = grpc.ssl_channel_credentials(self._roots)
            self._channel = grpc.aio.secure_channel(self._url.removeprefix(SECURE), credentials, options)
        else:
            self._channel = grpc.aio.insecure_channel(self._url, options)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._loop, self._at_once = loop, asyncio.Semaphore(AT_ONCE)
        self._served.clear()
        self._watching = loop.create_task(self._watch(self._channel), name="triton-connection")

    async def _watch(self, channel: Any) -> None:
        """Clear the verified models when the connection is lost, also between two calls: another server may come back."""
        with contextlib.suppress(
            AssertionError, grpc.aio.UsageError
        ):  # this is how it ends where the channel is closed
            state = channel.get_state()
            while True:
                await channel.wait_for_state_change(state)
                if state == grpc.ChannelConnectivity.READY and channel is self._channel:
                    self._served.clear()
                state = channel.get_state()


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _gather(work: Sequence[Awaitable[T]]) -> list[T]:
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _roots(ca_file: Path | None) -> bytes | None:
    try:
        return ca_file.read_bytes() if ca_file else None
    except OSError as error:
        raise invalid("TRITON_CA_FILE_UNREADABLE", f"{ca_file}: {type(error).__name__}") from None
