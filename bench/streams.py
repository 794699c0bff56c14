"""What leaving by sentences gives and costs, with real models: ratios against the provider's own times and against `whole`.

    python -m bench.streams

A mesh in one process per form, a provider that sends 50 tokens a second, answers of ten sentences that their sources show. The forms
take turns in one run. CPU is the mesh's, per answer. Memory is what an open stream adds while its provider is silent.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bench.length import cpu_ns
from tests.support.servers.processes import Processes
from tests.support.servers.provider import Provider, RunningProvider, completion, message
from tests.support.servers.streaming import spoken

ROUNDS, TOKENS_A_SECOND, OPEN = 5, 50, 40
SENTENCES = (
    "Paris is the capital of France.", "Paris lies on the river Seine.", "The Louvre is a museum in Paris.",
    "The Louvre was opened in 1793.", "The Eiffel Tower was completed in 1889.", "The Eiffel Tower is 330 metres tall.",
    "Notre-Dame stands on the Ile de la Cite.", "The Seine is 777 kilometres long.", "Lyon lies on the Rhone.",
    "Marseille is a port on the Mediterranean.",
)  # fmt: skip
ANSWER = " ".join(SENTENCES)
FORMS = ("sentences", "whole")


@dataclass
class Measured:
    """Per answer: first token and end as the client saw them, over what the provider took, and milliseconds of CPU."""

    first: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


class Paced:
    """A provider that sends a token at a time; while *silent* is set it stops behind the second sentence."""

    def __init__(self) -> None:
        self.silent = threading.Event()
        self.tokens: list[str] = []
        self.turn(0)
        whole = len(SENTENCES[0].split(" ")) + 1
        self.first_sentence_s, self.total_s = whole / TOKENS_A_SECOND, len(self.tokens) / TOKENS_A_SECOND

    def turn(self, number: int) -> None:
        """Say something else from now on, of the same length: no cache of the judge knows it yet."""
        self.answer = (
            ANSWER.replace("Paris", f"Paris{number}")
            .replace("Lyon", f"Lyon{number}")
            .replace("The ", f"The N{number} ")
        )
        self.tokens = [word if at == 0 else " " + word for at, word in enumerate(self.answer.split(" "))]

    async def reply(self, request: Request) -> Response:
        """Stream, or answer at once when all of it would have been sent."""
        if not (await request.json()).get("stream"):
            await asyncio.sleep(self.total_s)
            return JSONResponse(completion(message(self.answer)))
        return StreamingResponse(self._pieces(), media_type="text/event-stream")

    async def _pieces(self) -> Any:
        begun = time.perf_counter()
        for number, piece in enumerate(spoken(*self.tokens)):
            if self.silent.is_set() and number == 15:
                while self.silent.is_set():
                    await asyncio.sleep(0.2)
            await asyncio.sleep(max(0.0, begun + min(number, len(self.tokens)) / TOKENS_A_SECOND - time.perf_counter()))
            yield piece


class Agent:
    """Asks one mesh."""

    def __init__(self, process: Any) -> None:
        self.pid = process.child.pid
        self._http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{process.ports['sidecar_http']}", timeout=120)

    async def ask(self, answer_text: str, heard: asyncio.Event | None = None) -> tuple[float, float]:
        """Return when the first content and the end came, seconds."""
        messages = [{"role": "system", "content": answer_text}, {"role": "user", "content": "Tell me about France."}]
        body = {"model": "m", "stream": True, "messages": messages}
        begun, first, said = time.perf_counter(), 0.0, ""
        async with self._http.stream("POST", "/v1/chat/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                for choice in json.loads(line[6:])["choices"] if line.startswith("data: {") else ():
                    said += choice["delta"].get("content") or ""
                    first = first or (time.perf_counter() - begun if said else 0.0)
                if heard is not None and said:
                    heard.set()
        assert said == answer_text, said
        return first, time.perf_counter() - begun


async def measure(agents: dict[str, Agent], paced: Paced) -> dict[str, Measured]:
    found = {form: Measured() for form in FORMS}
    for number in range(ROUNDS + 1):
        for turn, (form, agent) in enumerate(agents.items()):
            paced.turn(2 * number + turn)
            used = cpu_ns([agent.pid])
            first, total = await agent.ask(paced.answer)
            if number:  # the first one warms
                found[form].first.append(first / paced.first_sentence_s)
                found[form].total.append(total / paced.total_s)
                found[form].cpu.append((cpu_ns([agent.pid]) - used) / 1e6)
    return found


async def memory(agent: Agent, paced: Paced) -> float:
    """Return what each of many open streams adds, MiB."""
    process = psutil.Process(agent.pid)
    before = process.memory_info().rss
    paced.silent.set()
    heard = [asyncio.Event() for _ in range(OPEN)]
    asking = [asyncio.create_task(agent.ask(paced.answer, event)) for event in heard]
    await asyncio.wait([asyncio.create_task(event.wait()) for event in heard], timeout=60)
    grown = process.memory_info().rss - before
    begun = sum(event.is_set() for event in heard)
    paced.silent.clear()
    await asyncio.gather(*asking, return_exceptions=True)
    return grown / 2**20 / max(1, begun)


def figures(found: dict[str, Measured], open_mib: float) -> dict[str, dict[str, object]]:
    parts, whole = found["sentences"], found["whole"]
    cpu = statistics.median(parts.cpu) / statistics.median(whole.cpu)
    rows = {
        "streams: first token over the provider's first sentence": (statistics.median(parts.first), None, "times"),
        "streams: first token of whole, for comparison": (statistics.median(whole.first), None, "times"),
        "streams: total over the provider's total": (statistics.median(parts.total), 1.15, "times"),
        "streams: total of whole, for comparison": (statistics.median(whole.total), None, "times"),
        "streams: CPU of sentences over whole": (cpu, 1.3, "times"),
        "streams: memory of an open stream": (open_mib, 1.5, "MiB"),
    }
    return {
        name: {"value": round(value, 3), "target": target, "better": "lower", "unit": unit}
        for name, (value, target, unit) in rows.items()
    }


def main() -> int:
    paced, provider = Paced(), Provider()
    provider._reply = paced.reply
    with tempfile.TemporaryDirectory() as folder, RunningProvider(provider) as upstream:
        shared = {"upstream_base_url": upstream.base_url, "unaware_callers": "observe", "max_roots_per_minute": 10_000}
        ends: list[Processes] = []
        try:
            agents = {}
            for form in FORMS:
                processes = Processes(Path(folder) / form, {**shared, "stream_release": form})
                (Path(folder) / form).mkdir()
                ends.append(processes)
                agents[form] = Agent(processes.mesh())
            found, open_mib = asyncio.run(both(agents, paced))
        finally:
            for processes in ends:
                processes.__exit__()
    print(json.dumps(figures(found, open_mib)))
    return 0


async def both(agents: dict[str, Agent], paced: Paced) -> tuple[dict[str, Measured], float]:
    found = await measure(agents, paced)
    return found, await memory(agents["sentences"], paced)


if __name__ == "__main__":
    sys.exit(main())
