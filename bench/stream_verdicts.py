"""Whether an answer that leaves by sentences is judged as one that leaves whole, over labelled answers: python -m bench.stream_verdicts

    python -m bench.stream_verdicts [--answers N] [--seed N]

Both meshes are as in ``bench.streams``, with the real models; the provider sends 50 tokens a second. The answers are put together of four labelled
sentences of ``bench/everyday_pairs`` about the same sources, three of ten bent, drawn by a seed, and go through both forms at once under
the policy ``halt-on MEDIUM``, each from a caller of its own. Compared are the class of the risk and what left. Counted is what its client got whole by sentences although the whole
is CRITICAL or is stopped; and what left in parts at all: an answer that is there before its first sentence was judged leaves whole in either form.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bench.everyday import FOLDER
from tests.support.servers.processes import Processes
from tests.support.servers.provider import Provider, RunningProvider, completion, message
from tests.support.servers.streaming import spoken

ANSWERS, EACH, BENT, TOKENS_A_SECOND = 40, 4, 0.3, 50
POLICY = {"CRP-Stream-Final": "event", "CRP-Safety-Policy": "halt-on MEDIUM"}
FORMS = ("sentences", "whole")
RISK = "CRP-Safety-Hallucination-Risk"


@dataclass(frozen=True)
class Labelled:
    """An answer with its sources."""

    sources: Sequence[str]
    query: str
    text: str
    faithful: bool


@dataclass(frozen=True)
class Seen:
    """What a client saw of an answer: the class of its risk, whether all of it came, and whether a part came before that was known."""

    risk: str
    whole: bool
    in_parts: bool


def drawn(count: int, rng: random.Random) -> list[Labelled]:
    """Draw answers of four labelled sentences about the same sources; each of them is bent with three chances in ten."""
    fields = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*/*.json"))]
    about = [
        (field["sources"][source], rows)
        for field in fields for source in field["sources"]
        if len(rows := [row for row in field["pairs"] if row["source"] == source]) >= EACH
    ]  # fmt: skip
    found = []
    for _ in range(count):
        sources, rows = rng.choice(about)
        chosen = [(row, rng.random() < BENT) for row in rng.sample(rows, EACH)]
        text = " ".join(row["bent" if bent else "faithful"] for row, bent in chosen)
        query = " ".join(row["query"] for row, _ in chosen)
        found.append(Labelled(sources, query, text, not any(bent for _, bent in chosen)))
    return found


class Speaking:
    """A provider that says the answer whose number is the name of the model, which no judge reads."""

    def __init__(self, chosen: Sequence[Labelled]) -> None:
        self._chosen = chosen

    async def reply(self, request: Request) -> Response:
        """Say it a token at a time, or at once where it is not asked to stream."""
        body = await request.json()
        said = self._chosen[int(body["model"])].text
        if not body.get("stream"):
            return JSONResponse(completion(message(said)))
        return StreamingResponse(self._pieces(said), media_type="text/event-stream")

    async def _pieces(self, said: str) -> Any:
        for piece in spoken(*(word if at == 0 else " " + word for at, word in enumerate(said.split(" ")))):
            await asyncio.sleep(1 / TOKENS_A_SECOND)
            yield piece


async def asked(http: httpx.AsyncClient, number: int, one: Labelled) -> Seen:
    """Ask one mesh for one answer."""
    sources = [{"role": "system", "content": source} for source in one.sources]
    question = {"role": "user", "content": one.query}
    body = {"model": str(number), "stream": True, "messages": [*sources, question]}
    headers = {**POLICY, "Authorization": f"Bearer sk-{number}"}  # a caller of its own: no session or budget is shared
    said = ""
    async with http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
        if answer.status_code not in {200, 451}:
            raise SystemExit(f"{answer.status_code} {(await answer.aread()).decode()[:300]}")
        risk = answer.headers.get(RISK, "")
        in_parts = answer.status_code == 200 and not risk
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            told = json.loads(line[6:])
            risk = (told.get("crp") or {}).get(RISK, risk)
            for choice in told.get("choices", ()):
                said += (choice.get("delta") or {}).get("content") or ""
    return Seen(risk, said == one.text, in_parts)


async def compared(ports: dict[str, int], chosen: Sequence[Labelled]) -> list[dict[str, Seen]]:
    clients = {
        form: httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) for form, port in ports.items()
    }
    found = []
    for number, one in enumerate(chosen):
        seen = await asyncio.gather(*(asked(clients[form], number, one) for form in FORMS))
        found.append(dict(zip(FORMS, seen, strict=True)))
    return found


def figures(chosen: Sequence[Labelled], found: Sequence[dict[str, Seen]]) -> dict[str, dict[str, object]]:
    pairs = [(one["sentences"], one["whole"]) for one in found]
    same = sum(parts.risk == whole.risk for parts, whole in pairs) / len(pairs)
    slipped = sum(parts.whole and (whole.risk == "CRITICAL" or not whole.whole) for parts, whole in pairs)
    rows: dict[str, tuple[float, float | None, str, str]] = {
        f"streams: same class by parts as whole, of {len(pairs)}": (same, 0.97, "higher", ""),
        "streams: delivered by parts though the whole is stopped": (slipped, 0, "lower", ""),
        "streams: of them left in parts": (sum(parts.in_parts for parts, _ in pairs), None, "", ""),
        "streams: of them above LOW": (sum(whole.risk != "LOW" for _, whole in pairs), None, "", ""),
        "streams: of them with a bent sentence": (sum(not one.faithful for one in chosen), None, "", ""),
        "streams: of them stopped": (sum(not whole.whole for _, whole in pairs), None, "", ""),
    }
    names = ("value", "target", "better", "unit")
    return {figure: dict(zip(names, row, strict=True)) for figure, row in rows.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chosen = drawn(arguments.answers, random.Random(arguments.seed))
    provider = Provider()
    provider._reply = Speaking(chosen).reply
    with tempfile.TemporaryDirectory() as folder, RunningProvider(provider) as upstream:
        shared = {"upstream_base_url": upstream.base_url, "unaware_callers": "observe", "max_roots_per_minute": 10_000}
        ends: list[Processes] = []
        try:
            ports = {}
            for form in FORMS:
                (Path(folder) / form).mkdir()
                ends.append(Processes(Path(folder) / form, {**shared, "stream_release": form}))
                ports[form] = ends[-1].mesh().ports["sidecar_http"]
            found = asyncio.run(compared(ports, chosen))
        finally:
            for one in ends:
                one.__exit__()
    print(json.dumps(figures(chosen, found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
