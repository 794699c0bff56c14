"""What leaving by sentences gives and costs, with real models: ratios against the provider's own times and against `whole`.

    python -m bench.streams [--open N] [--only-open]

A mesh in one process per form, a provider that sends 50 tokens a second, answers of ten short sentences, or of five long ones, that their
sources show. The forms take turns in one run. How long the first token takes is counted from when the provider had sent the whole first
sentence. CPU is the mesh's, per answer: it also reads the provider's stream token by token, where ``whole`` gets one answer at once
(``bench.parts`` measures the judge alone). Memory is what an open stream adds while its provider is silent; short calls are asked meanwhile.
Then the providers of all of them go on in the same moment: each stream comes to its end, or is told why it does not.
``bench.stream_verdicts`` compares what the forms say of labelled answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
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

ROUNDS, TOKENS_A_SECOND, OPEN = 5, 50, 200
SHORT_CALLS = 12
PATIENCE_S = 120.0
"""How long the open streams may take: to open, and again to end once their providers go on."""
SENTENCES = (
    "Paris is the capital of France.", "Paris lies on the river Seine.", "The Louvre is a museum in Paris.",
    "The Louvre was opened in 1793.", "The Eiffel Tower was completed in 1889.", "The Eiffel Tower is 330 metres tall.",
    "Notre-Dame stands on the Ile de la Cite.", "The Seine is 777 kilometres long.", "Lyon lies on the Rhone.",
    "Marseille is a port on the Mediterranean.",
)  # fmt: skip
ANSWER = " ".join(SENTENCES)
LONG = " ".join(
    f"{one[:-1]}, and as every visitor hears {other}"
    for one, other in zip(SENTENCES[::2], SENTENCES[1::2], strict=True)
)
SHORT = "One word?"
FORMS = ("sentences", "whole")


@dataclass
class Measured:
    """Per answer: first token and end as the client saw them, over what the provider took, and milliseconds of CPU.

    *late*: milliseconds from the provider's first whole sentence to the first token.
    """

    first: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)


def anew(number: int, text: str = ANSWER) -> str:
    """Return another answer of the same length."""
    return text.replace("Paris", f"Paris{number}").replace("Lyon", f"Lyon{number}").replace("The ", f"The N{number} ")


def _tokens(text: str) -> list[str]:
    return [word if at == 0 else " " + word for at, word in enumerate(text.split(" "))]


class Paced:
    """A provider that sends a token at a time; while *silent* is set it stops behind the second sentence."""

    def __init__(self) -> None:
        self.silent = threading.Event()
        self.tokens: list[str] = []
        self.turn(0)

    def turn(self, number: int, text: str = ANSWER) -> None:
        """Say something else from now on, of the same length: no cache of the judge knows it yet."""
        self.answer = anew(number, text)
        self.tokens = _tokens(self.answer)
        # A sentence is whole once the word behind it is there.
        self._whole = next(at for at, word in enumerate(self.tokens) if word.endswith(".")) + 2
        self.first_sentence_s, self.total_s = self._whole / TOKENS_A_SECOND, len(self.tokens) / TOKENS_A_SECOND
        self.whole_at = 0.0

    async def reply(self, request: Request) -> Response:
        """Say what the system message says: stream it, or answer at once when all of it would have been sent."""
        asked = await request.json()
        said = asked["messages"][0]["content"]
        if asked["messages"][-1]["content"] == SHORT:
            return JSONResponse(completion(message(said)))
        if not asked.get("stream"):
            await asyncio.sleep(self.total_s)
            return JSONResponse(completion(message(said)))
        return StreamingResponse(self._pieces(_tokens(said)), media_type="text/event-stream")

    async def _pieces(self, tokens: list[str]) -> Any:
        begun = time.perf_counter()
        for number, piece in enumerate(spoken(*tokens)):
            if self.silent.is_set() and number == 15:
                while self.silent.is_set():
                    await asyncio.sleep(0.2)
            await asyncio.sleep(max(0.0, begun + min(number, len(tokens)) / TOKENS_A_SECOND - time.perf_counter()))
            if number == self._whole:
                self.whole_at = time.perf_counter()
            yield piece


class Told(Exception):
    """A stream ended with an error, whose reason this has."""


class Agent:
    """Asks one mesh, over as many connections as it has streams: with a bound of its own it would measure itself."""

    def __init__(self, process: Any) -> None:
        self.pid = process.child.pid
        base_url = f"http://127.0.0.1:{process.ports['sidecar_http']}"
        self._http = httpx.AsyncClient(base_url=base_url, timeout=300, limits=httpx.Limits(max_connections=None))

    async def short(self, number: int) -> float:
        """Ask a short question whose answer is there at once; return how long that took, seconds, with waiting for room."""
        said = f"Paris{number} is the capital of France{number}."
        messages = [{"role": "system", "content": said}, {"role": "user", "content": SHORT}]
        begun = time.perf_counter()
        body = {"model": "m", "messages": messages}
        while (answer := await self._http.post("/v1/chat/completions", json=body)).status_code == 429:
            await asyncio.sleep(float(answer.headers.get("retry-after", 1)))
        assert answer.json()["choices"][0]["message"]["content"] == said, answer.text
        return time.perf_counter() - begun

    async def admitted(self, answer_text: str, heard: asyncio.Event) -> None:
        """Ask until there is room for one more, as a client does that is told to come again."""
        while True:
            try:
                await self.ask(answer_text, heard)
                return
            except httpx.HTTPStatusError as refused:
                if refused.response.status_code != 429:
                    raise
                await asyncio.sleep(float(refused.response.headers.get("retry-after", 1)))

    async def ask(self, answer_text: str, heard: asyncio.Event | None = None) -> tuple[float, float, float]:
        """Return when the first content and the end came, seconds, and when the first came by the clock."""
        messages = [{"role": "system", "content": answer_text}, {"role": "user", "content": "Tell me about France."}]
        body = {"model": "m", "stream": True, "messages": messages}
        begun, first, said = time.perf_counter(), 0.0, ""
        async with self._http.stream("POST", "/v1/chat/completions", json=body) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                event = json.loads(line[6:]) if line.startswith("data: {") else {}
                if error := event.get("error"):
                    raise Told(error["code"])
                for choice in event.get("choices", ()):
                    said += choice["delta"].get("content") or ""
                    first = first or (time.perf_counter() - begun if said else 0.0)
                if heard is not None and said:
                    heard.set()
        assert said == answer_text, said
        return first, time.perf_counter() - begun, begun + first


async def measure(agents: dict[str, Agent], paced: Paced) -> dict[str, Measured]:
    found = {form: Measured() for form in FORMS}
    for number in range(ROUNDS + 1):
        for turn, (form, agent) in enumerate(agents.items()):
            paced.turn(2 * number + turn)
            used = cpu_ns([agent.pid])
            first, total, at = await agent.ask(paced.answer)
            if number:  # the first one warms
                found[form].first.append(first / paced.first_sentence_s)
                found[form].total.append(total / paced.total_s)
                found[form].cpu.append((cpu_ns([agent.pid]) - used) / 1e6)
                found[form].late.append((at - paced.whole_at) * 1000)
    return found


async def long_sentences(agent: Agent, paced: Paced) -> float:
    """Return milliseconds from the first whole sentence to the first token, where sentences are long; the median."""
    late = []
    for number in range(ROUNDS):
        paced.turn(100 + number, LONG)
        _, _, at = await agent.ask(paced.answer)
        late.append((at - paced.whole_at) * 1000)
    return statistics.median(late)


@dataclass
class Open:
    """Many streams at once: how many were open together, what each of them added, MiB, short calls without and beside them, seconds.

    When their providers went on: how many came to their end, how many were told why not, and seconds until the median one ended.
    """

    count: int
    mib: float
    alone: list[float]
    beside: list[float]
    ended: int
    told: Counter[str]
    median_s: float


async def opened(agent: Agent, paced: Paced, wanted: int) -> Open:
    """Open streams whose provider falls silent, ask short questions meanwhile, and let all of them go on at once."""
    paced.turn(200)
    await agent.short(0)
    alone = [await agent.short(number) for number in range(1, SHORT_CALLS)]
    process = psutil.Process(agent.pid)
    before = process.memory_info().rss
    paced.silent.set()
    heard = [asyncio.Event() for _ in range(wanted)]
    asking = [asyncio.create_task(agent.admitted(paced.answer, event)) for event in heard]
    waiting = [asyncio.create_task(event.wait()) for event in heard]
    await asyncio.wait(waiting, timeout=PATIENCE_S)
    grown = process.memory_info().rss - before
    together = [task for task, event in zip(asking, heard, strict=True) if event.is_set() and not task.done()]
    for task in {*asking, *waiting} - {*together}:  # who is not let in by now counts as not open
        task.cancel()
    beside = [await agent.short(SHORT_CALLS + number) for number in range(1, SHORT_CALLS)]
    paced.silent.clear()
    took_s = await _ends(together)
    told = Counter(str(task.exception()) for task in together if task.done() and isinstance(task.exception(), Told))
    ended = sum(task.done() and task.exception() is None for task in together)
    for task in together:
        task.cancel()
    await asyncio.gather(*asking, *waiting, return_exceptions=True)
    median_s = statistics.median(took_s or [PATIENCE_S])
    return Open(len(together), grown / 2**20 / max(1, len(together)), alone, beside, ended, told, median_s)


async def _ends(asking: list[asyncio.Task[None]]) -> list[float]:
    """Wait for the ends of streams and return when each of them came."""
    begun, took_s = time.perf_counter(), list[float]()
    for task in asking:
        task.add_done_callback(lambda _: took_s.append(time.perf_counter() - begun))
    await asyncio.wait(asking, timeout=PATIENCE_S)
    return took_s


Row = tuple[float, float | None, str]


def of_one(found: dict[str, Measured], long_ms: float) -> dict[str, Row]:
    parts, whole = found["sentences"], found["whole"]
    cpu = statistics.median(parts.cpu) / statistics.median(whole.cpu)
    return {
        "streams: first token after the first whole sentence": (statistics.median(parts.late), 150, "ms"),
        "streams: the same where sentences are long": (long_ms, 300, "ms"),
        "streams: first token over the provider's first sentence": (statistics.median(parts.first), None, "times"),
        "streams: first token of whole, for comparison": (statistics.median(whole.first), None, "times"),
        "streams: total over the provider's total": (statistics.median(parts.total), 1.15, "times"),
        "streams: total of whole, for comparison": (statistics.median(whole.total), None, "times"),
        "streams: CPU of a mesh in one process, sentences over whole": (cpu, None, "times"),
    }


def of_many(many: Open) -> dict[str, Row]:
    return {
        f"streams: memory of an open stream, {many.count} of them": (many.mib, 1.5, "MiB"),
        "streams: a short call beside them over one without": (
            statistics.median(many.beside) / statistics.median(many.alone),
            None,
            "times",
        ),
        "streams: the slowest short call beside them": (max(many.beside) * 1000, None, "ms"),
        "streams: of them, neither ended nor told why when all go on at once": (
            many.count - many.ended - many.told.total(), 0, "streams"
        ),
        f"streams: of them, told why they end early {dict(many.told)}": (many.told.total(), None, "streams"),
        "streams: end of the median one when all go on at once": (many.median_s, None, "s"),
    }  # fmt: skip


def figures(rows: dict[str, Row]) -> dict[str, dict[str, object]]:
    return {
        name: {"value": round(value, 3), "target": target, "better": "lower", "unit": unit}
        for name, (value, target, unit) in rows.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", type=int, default=OPEN, help="streams that are open at once")
    parser.add_argument("--only-open", action="store_true", help="open them and measure nothing else: a minute")
    options = parser.parse_args()
    paced, provider = Paced(), Provider()
    provider._reply = paced.reply
    with tempfile.TemporaryDirectory() as folder, RunningProvider(provider) as upstream:
        settings = {
            "upstream_base_url": upstream.base_url,
            "unaware_callers": "observe",
            "max_roots_per_minute": 10_000,
        }
        # All are to be open at the same time, however long a busy machine takes to let them in.
        settings |= {"upstream_timeout_s": 2 * PATIENCE_S, "request_timeout_s": 2.5 * PATIENCE_S}
        with ExitStack() as ends:
            agents = {}
            for form in ("sentences",) if options.only_open else FORMS:
                processes = ends.enter_context(_processes(Path(folder) / form, settings, form))
                agents[form] = Agent(processes.mesh())
            rows = asyncio.run(everything(agents, paced, options.open))
    print(json.dumps(figures(rows)))
    return 0


def _processes(folder: Path, settings: dict[str, Any], form: str) -> Processes:
    folder.mkdir(parents=True)
    return Processes(folder, {**settings, "stream_release": form})


async def everything(agents: dict[str, Agent], paced: Paced, wanted: int) -> dict[str, Row]:
    parts = agents["sentences"]
    alone = of_one(await measure(agents, paced), await long_sentences(parts, paced)) if len(agents) > 1 else {}
    return alone | of_many(await opened(parts, paced, wanted))


if __name__ == "__main__":
    sys.exit(main())
