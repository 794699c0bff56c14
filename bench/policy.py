"""Policies per second on one core: parse, compare, and both, with texts seen for the first time and again.

    python -m bench.policy

Rates are per second of this thread's CPU time: it never waits, and other jobs on the machine do not count. The peer is
lark's LALR parser over the same grammar, which the tests use as an oracle. Rounds are interleaved; a figure is the
median of its rounds.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from interlock.domain.policy.directives import canonical
from interlock.domain.policy.policy_order import merge, relaxations
from interlock.domain.policy.policy_text import parse
from interlock.policy.servicer import CACHED_POLICIES
from tests.support.policy import policy_grammar

ROUNDS = 9
TEXTS = 4000
TARGET = 100_000

_CHOICES = (
    [f"default-src {sources}" for sources in ("context", "context parametric", "context ckf")],
    [f"halt-on {level}" for level in ("CRITICAL", "HIGH", "MEDIUM")],
    [f"warn-on {level}" for level in ("CRITICAL", "HIGH", "MEDIUM")],
    [f"require-grounding 0.{n}" for n in range(10, 100)],
    [f"require-entailment 0.{n}" for n in range(10, 100)],
    [f"require-quality {tiers}" for tiers in ("S", "S A", "S A B")],
    ["block-ungrounded", "block-parametric"],
    ["block-pii", "block-fabrication"],
    [f"oversight {mode}" for mode in ("auto", "human-review", "halt")],
    [f"upgrade-on-risk {strategy}" for strategy in ("reflexive", "batch")],
)


def corpus(seed: int, *, endpoints: bool) -> list[str]:
    """Return distinct texts of seven directives, each with an endpoint that no other text has if *endpoints*."""
    chance, found = random.Random(seed), dict[str, None]()
    while len(found) < TEXTS:
        directives = [chance.choice(values) for values in chance.sample(_CHOICES, 6 if endpoints else 7)]
        if endpoints:
            directives.append(f"report-uri https://reports.example/{seed}/{len(found)}")
        found["; ".join(directives)] = None
    return list(found)


def per_second(work: Callable[[Any], object], items: Sequence[Any]) -> float:
    started = time.thread_time()
    for item in items:
        work(item)
    return len(items) / (time.thread_time() - started)


def main() -> None:
    parent = parse("default-src context parametric; halt-on CRITICAL; require-grounding 0.75; block-pii")
    cached = lru_cache(maxsize=CACHED_POLICIES)(parse)
    repeated = corpus(0, endpoints=True)[: CACHED_POLICIES // 2]
    rates: dict[str, list[float]] = {}

    def compare(child: Any) -> object:
        return relaxations(parent, child)

    def note(name: str, work: Callable[[Any], object], items: Sequence[Any]) -> None:
        rates.setdefault(name, []).append(per_second(work, items))

    for number in range(ROUNDS):
        fresh, endpoints = corpus(2 * number + 1, endpoints=False), corpus(2 * number + 2, endpoints=True)
        tighter = list({canonical(merge(parent, parse(text))) for text in fresh})
        note("parse, new texts", parse, fresh)
        note("parse, new texts, an endpoint of its own in each", parse, endpoints)
        note("parse, texts of the service's cache", cached, repeated * 8)
        note("compare, a tightening", compare, [parse(text) for text in tighter])
        note("compare, about four relaxations", compare, [parse(text) for text in fresh])
        note("parse and compare, new texts, a tightening", lambda text: compare(parse(text)), tighter)
        note("parse and compare, new texts, about four relaxations", lambda text: compare(parse(text)), fresh)
        note("parse and compare, texts of the service's cache", lambda text: compare(cached(text)), repeated * 8)
        note("lark, new texts", policy_grammar.read, fresh[:200])
    figures = {
        f"policy: {name}": {
            "value": statistics.median(values),
            "target": TARGET if name.startswith("parse and compare") else None,
            "better": "higher",
            "unit": "/s",
        }
        for name, values in rates.items()
    }
    ratio = statistics.median(rates["parse, new texts"]) / statistics.median(rates["lark, new texts"])
    figures["policy: parse over lark, new texts"] = {
        "value": ratio,
        "target": None,
        "better": "higher",
        "unit": "ratio",
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
