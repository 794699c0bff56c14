"""How clean conversations of agents are judged, without any agent: python -m bench.conversations [NAME ...] [--show]

Each turn of a conversation of ``tests/agents`` is put to the engine as the sidecar would put it: the messages so far, the tools, the
answer. Told are the clean answers that are not LOW, those that are HIGH or more, and the planted faults that are found. Conversations of
``tests/agents/held`` were not looked at when rules were written: for them it prints figures and never a row. ``--show`` prints what
was found in the others.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.servicer import read_request
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call import envelope
from interlock.sidecar.openai import chat
from tests.agents import scenario
from tests.agents.drivers._conversation import look_up, schemas
from tests.agents.provider import calling
from tests.agents.scenario import Scenario

HALTING = common_pb2.RISK_LEVEL_HIGH
"""What ``halt-on HIGH`` stops."""


@dataclass
class Conversation:
    """The messages of one agent, and what the session keeps of its answers."""

    given: Scenario
    messages: list[dict[str, Any]] = field(default_factory=list)
    prior: list[str] = field(default_factory=list)

    def copy(self) -> Conversation:
        """Return a conversation that goes on from here by itself."""
        return Conversation(self.given, list(self.messages), list(self.prior))

    def asked(self, message: Mapping[str, Any], settings: Settings) -> dpe_pb2.AnalyzeRequest:
        """Return what the sidecar asks about *message*."""
        tools = schemas(self.given.tools)
        body = {"model": "m", "messages": self.messages, **({"tools": tools} if tools else {})}
        told = envelope.of_chat(chat.read(body, settings), settings)
        return dpe_pb2.AnalyzeRequest(
            session_id="s", window_id="w", window_number=len(self.prior) + 1, query=told.query, prompt=told.prompt,
            facts=told.facts, said=told.said, tools=told.tools, earlier_facts=told.earlier_facts, outputs=_outputs(message),
            prior=[dpe_pb2.PriorWindow(window_id=f"w{number}", text=text) for number, text in enumerate(self.prior)],
        )  # fmt: skip

    def add(self, message: dict[str, Any]) -> None:
        """Take *message* as delivered, with the results of its tool calls."""
        self.messages.append(message)
        if message.get("content"):
            self.prior.append(message["content"])
        for call in message.get("tool_calls") or ():
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            found = look_up(self.given.tools, name, arguments) if name in self.given.tools else "No such tool."
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})


def _outputs(message: Mapping[str, Any]) -> Iterator[dpe_pb2.Output]:
    if message.get("content"):
        yield dpe_pb2.Output(choice_index=0, text=message["content"], kind="content")
    for call in message.get("tool_calls") or ():
        made = call["function"]
        yield dpe_pb2.Output(choice_index=0, text=made["arguments"], kind="tool_call", tool_name=made["name"])


def _answers(rounds: Sequence[Any], says: str, turn: int) -> Iterator[dict[str, Any]]:
    """Yield the messages of one turn: its tool calls, then the answer."""
    for number, one in enumerate(rounds):
        yield dict(calling(one, f"{turn}{number}"))
    yield {"role": "assistant", "content": says}


async def judged(given: Scenario, pipeline: Any, settings: Settings, *, show: bool) -> Counter[str]:
    """Return the counts of one conversation: had clean, then each fault planted at its turn."""
    counts: Counter[str] = Counter()
    talk = Conversation(given, [{"role": "system", "content": given.system}])
    before: dict[int, Conversation] = {}
    for turn in given.turns:
        talk.messages.append({"role": "user", "content": turn.user})
        before[turn.number] = talk.copy()
        for message in _answers(turn.rounds, turn.says, turn.number):
            report = await pipeline.analyse(read_request(talk.asked(message, settings)))
            level = report.risk_level
            counts.update(
                {
                    "clean": 1,
                    "not LOW": level > 1,
                    "halted": level >= HALTING,
                    "cannot tell": report.cannot_tell_count > 0,
                }
            )
            if show and level > 1:
                _show(f"{given.name} turn {turn.number} ({turn.kind})", report)
            talk.add(message)
    for fault in given.faults:
        talk, turn = before[fault.turn].copy(), given.turns[fault.turn - 1]
        rounds = turn.rounds if fault.rounds is None else fault.rounds
        worst = 0
        for message in _answers(rounds, turn.says if fault.says is None else fault.says, turn.number):
            worst = max(worst, (await pipeline.analyse(read_request(talk.asked(message, settings)))).risk_level)
            talk.add(message)
        counts.update({"faults": 1, "noticed": worst > 1, "stopped": worst >= HALTING})
        if show and worst < HALTING:
            print(
                f"{given.name} turn {fault.turn}: {fault.kind} is {common_pb2.RiskLevel.Name(worst)}", file=sys.stderr
            )
    return counts


def _show(place: str, report: dpe_pb2.Report) -> None:
    print(f"{place}: {common_pb2.RiskLevel.Name(report.risk_level)} {list(report.floors)}", file=sys.stderr)
    for claim in report.claims:
        if claim.fabrications or claim.distortions or (claim.attribution > 1 and not claim.cannot_tell):
            bent = [(one.type, one.source_value, one.claim_value) for one in claim.distortions]
            print(f"    {claim.text[:160]!r} {list(claim.fabrications)} {bent}", file=sys.stderr)


def figures(name: str, counts: Counter[str]) -> dict[str, dict[str, object]]:
    """Return the figures of a folder of conversations."""
    unit = f"of {counts['clean']}"
    return {
        f"conversations, {name}: clean answers not LOW": {
            "value": counts["not LOW"],
            "target": None,
            "better": "lower",
            "unit": unit,
        },
        f"conversations, {name}: clean answers HIGH or more": {
            "value": counts["halted"],
            "target": 0,
            "better": "lower",
            "unit": unit,
        },
        f"conversations, {name}: faults noticed": {
            "value": counts["noticed"],
            "target": None,
            "better": "higher",
            "unit": f"of {counts['faults']}",
        },
        f"conversations, {name}: faults HIGH or more": {
            "value": counts["stopped"],
            "target": counts["faults"],
            "better": "higher",
            "unit": f"of {counts['faults']}",
        },
    }


async def measure(names: Sequence[str], *, show: bool) -> dict[str, dict[str, object]]:
    """Return the figures of both folders."""
    settings = Settings()
    pipeline = open_pipeline(settings)
    found: dict[str, dict[str, object]] = {}
    try:
        for folder, title in ((scenario.FOLDER, "of the suite"), (scenario.DEV, "dev"), (scenario.HELD, "held")):
            counts: Counter[str] = Counter()
            for path in sorted(Path(folder).glob("*.yaml")):
                if not names or path.stem in names:
                    counts += await judged(
                        scenario.load(path.stem, folder), pipeline, settings, show=show and title != "held"
                    )
            if counts:
                found |= figures(title, counts)
    finally:
        pipeline.close()
    return found


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    print(json.dumps(asyncio.run(measure(given, show="--show" in sys.argv))))
