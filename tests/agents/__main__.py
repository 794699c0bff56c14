"""Run the suite of stock agents: ``python -m tests.agents [--full] [--minutes 8] [--agents a,b] [--scenarios x,y]``.

Prints the figures and every cause, and writes docs/agents.md after a full run. Ends with 1 where a clean answer was harmed or a
planted fault passed that is not on the list of known gaps, where clean turns cost more than it says, and where the list is stale.
What cannot run here, such as Node, is named and left out.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.agents import gaps
from tests.agents.catalogue import AGENTS, ROOT, Agent
from tests.agents.scenario import Fault, Scenario, load, names
from tests.agents.suite import Suite, running
from tests.agents.table import Outcome, causes, page, stopped_in_words, summary

OF_THE_SHORT_SET = 4
"""Conversations of each agent in the short set; they turn, so that every conversation is had."""
PLANTED_OF_THE_SHORT_SET = 2
PAGE = ROOT / "docs" / "agents.md"

Planned = tuple[Agent, Scenario, Fault | None]


def planned(agents: list[Agent], scenarios: list[Scenario], *, full: bool) -> Iterator[Planned]:
    """Yield the runs in rounds over all agents, so that what a lack of time leaves out is a little of each.

    The faults go round too, so that each is planted in some agent.
    """
    count = len(scenarios)
    for step in range(count if full else min(count, OF_THE_SHORT_SET)):
        for place, agent in enumerate(agents):
            scenario = scenarios[(place * OF_THE_SHORT_SET + step) % count]
            yield agent, scenario, None
            if full or step < PLANTED_OF_THE_SHORT_SET:
                yield agent, scenario, scenario.faults[(place + step) % len(scenario.faults)]


def had(suite: Suite, plan: list[Planned], outcome: Outcome, *, until: float) -> None:
    """Have the planned conversations while there is time."""
    for number, (agent, scenario, fault) in enumerate(plan):
        if time.monotonic() > until:
            outcome.skipped.append(f"{len(plan) - number} conversations, for the time is over")
            return
        try:
            run = suite.run(agent, scenario, fault)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            outcome.broken.append(f"{agent.name} / {scenario.name}: {str(error)[-300:]}")
            continue
        (outcome.planted if fault else outcome.clean).append(run)
        if fault:
            print(f"{agent.name:22} {scenario.name:9} {fault.kind:18} stopped: {stopped_in_words(run)}", flush=True)
        else:
            print(
                f"{agent.name:22} {scenario.name:9} {run.turns} turns, {len(run.stops)} harmed, spent {run.spent:.2f}",
                flush=True,
            )


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.agents", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--full", action="store_true", help="every agent with every conversation, and write docs/agents.md"
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="start no conversation after so many minutes")
    parser.add_argument("--agents", default="", help="names, with commas between (default: all)")
    parser.add_argument("--scenarios", default="", help="names, with commas between (default: all)")
    parser.add_argument(
        "--page", action="store_true", help="write docs/agents.md from this run, even if it is not full"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="end with 1 only where an agent could not run or an answer was asked for twice",
    )
    parser.add_argument("--accept", action="store_true", help="write the list of known gaps anew from this run")
    options = parser.parse_args()
    outcome = Outcome()
    wanted = [one for one in AGENTS if not options.agents or one.name in options.agents.split(",")]
    outcome.skipped += [f"{one.name}: {why}" for one in wanted if (why := one.missing())]
    agents = [one for one in wanted if not one.missing()]
    scenarios = [load(name) for name in (options.scenarios.split(",") if options.scenarios else names())]
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as suite:
        had(suite, list(planned(agents, scenarios, full=options.full)), outcome, until=until)
        outcome.broken += [f"no scenario knows the request {text[:200]}" for text in suite.script.unknown]
    print("", *causes(outcome), "", *summary(outcome), sep="\n")
    whole = options.full and not (options.agents or options.scenarios or outcome.skipped or outcome.broken)
    if options.accept:
        gaps.write(outcome)
    if whole or options.page:
        PAGE.write_text(page(outcome, full=whole), encoding="utf-8")
        print(f"written: {PAGE.relative_to(ROOT)}")
    return told(outcome, whole=whole, report=options.report)


def told(outcome: Outcome, *, whole: bool, report: bool = False) -> int:
    """Print what is wrong beyond the known gaps, and return the exit code; with *report* the judge's gaps do not count for it."""
    known, judged = gaps.load(), list[str]()
    judged += known.new([*outcome.clean, *outcome.planted])
    if outcome.spent_by_100 > known.spent_by_100:
        judged.append(f"100 clean turns spent {outcome.spent_by_100:.2f}, at most {known.spent_by_100:.2f}")
    if whole:
        judged += [f"a known gap that is gone; take it off the list: {text}" for text in known.gone(outcome)]
    wrong = list(outcome.broken)
    if round(outcome.calls_by_answer, 2) > 1.00:  # what is refused is not asked for: it may be less
        wrong.append(f"{outcome.calls_by_answer:.2f} provider calls per answer")
    if not outcome.clean:
        wrong.append("no conversation was had")
    print("", f"known gaps: {len(known.harmed)} answers, {len(known.passed)} faults", sep="\n")
    print(*(f"{'TOLD' if report else 'WRONG'}: {text}" for text in judged), sep="\n")
    print(*(f"WRONG: {text}" for text in wrong), sep="\n")
    return 1 if wrong or (judged and not report) else 0


if __name__ == "__main__":
    raise SystemExit(main())
