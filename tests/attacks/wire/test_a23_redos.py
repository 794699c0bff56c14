"""A-23: no pattern of Interlock takes more than linear time, whatever is pumped into it."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time

import pytest

import interlock
from interlock.domain.errors import Refused
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX
from interlock.domain.policy.policy_text import parse
from interlock.sidecar.call import sources
from tests.adversarial.test_patterns import COMMON, MOST_GROWTH, PATTERNS, literals, patterns_in, worst

OF_DPE = {f"{type(each).__name__} {each.pattern}" for each in PATTERNS.values()}


def of_everything_else() -> dict[str, re.Pattern]:
    """Every compiled pattern outside the engine, whose own stand in tests/adversarial, by where it stands, once."""
    found: dict[str, re.Pattern] = {}
    seen = set(OF_DPE)
    for module in pkgutil.walk_packages(interlock.__path__, "interlock."):
        if module.name.startswith(("interlock.dpe.", "interlock.api.")) or ".__main__" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            for number, each in enumerate(patterns_in(value)):
                key = f"{type(each).__name__} {each.pattern}"
                if isinstance(each, re.Pattern) and isinstance(each.pattern, str) and key not in seen:
                    seen.add(key)
                    found[f"{module.name.removeprefix('interlock.')}.{name}.{number}"] = each
    return found


OTHERS = of_everything_else()
PUMPS = ("halt-on HIGH; ", "; ", "a=1,", "%41", "https://a", "a.", "crp_sess_", "0", "::", "a b ")


def test_a23_the_patterns_of_every_package_are_looked_at():
    """The collection sees those that read headers, ids, policies, addresses, times and keys."""
    modules = {name.rsplit(".", 2)[0] for name in OTHERS}

    assert {
        "domain.ids",
        "domain.policy.policy_text",
        "domain.policy.policy_uri",
        "domain.session.token",
        "sidecar.openai.chat",
    } <= modules
    assert {each.pattern for each in RESPONSE_SYNTAX.values()} <= {
        each.pattern for each in (*OTHERS.values(), *PATTERNS.values())
    }
    assert len(OTHERS) > 60


@pytest.mark.req("POL-1", "HDR-6")
def test_a23_no_pattern_outside_the_engine_backtracks():
    """Each with strings pumped out of its own words: four times the text takes about four times as long."""
    slow = {}
    for name, pattern in OTHERS.items():
        pumps = [*COMMON[:12], *PUMPS, *literals(pattern)]
        found, pump = worst(pattern, pumps, anchored=True)
        again = worst(pattern, [pump], anchored=True)[0] if found >= MOST_GROWTH else 0.0
        if again >= MOST_GROWTH:
            slow[name] = (found, pump)

    assert slow == {}


@pytest.mark.req("DPE-1")
def test_a23_the_patterns_of_the_engine_run_on_a_linear_matcher():
    """Most are RE2's; those that need the other one are held to the same growth beside this (tests/adversarial)."""
    backtracking = [each for each in PATTERNS.values() if isinstance(each, re.Pattern)]

    assert len(backtracking) < len(PATTERNS) / 4


@pytest.mark.req("POL-1")
@pytest.mark.parametrize(
    "piece", ["halt-on HIGH; ", "; ", "a ", "report-uri https://a.example/%41;", "require-quality S A B ", "'none' "]
)
def test_a23_the_policy_reader_is_linear(piece):
    """The longest policies that are taken, and beyond: a refusal of a hostile text costs what its length costs."""

    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        least = float("inf")
        for _ in range(3):
            began = time.thread_time()
            for _ in range(20):
                with pytest.raises(Refused):
                    parse(text)
            least = min(least, time.thread_time() - began)
        return least

    few, many = seconds(2_000), seconds(8_000)

    assert many < 0.02 or many / few < MOST_GROWTH


PUMPED = (
    "----\n", "Use the following text\n", "If the following text\n", "Translate this text\n\nPlease x\n\n", "To: x\n", "Context:\n", "x <a> y ", "<source> a ",
    "[Context] ", "=== DOC ===\n", "the text below.\n---\n", "\n", "Kontext: a\n-----\n", "2026-01-01 10:00 x\n", "上下文", "Frage:\n", "« ", "### Example\n",
)  # fmt: skip


@pytest.mark.req("SVC-9")
@pytest.mark.parametrize("pump", PUMPED)
def test_a23_the_search_for_given_text_is_linear(pump, monkeypatch):
    """Labels, rules, leads, elements, quotations: none is looked for again from every line."""
    monkeypatch.setattr(sources, "_KNOWN", {})

    def seconds(length: int) -> float:
        text = f"Context:\n{pump * (length // len(pump))}\nQuestion: How tall are {length}?"  # none was read before
        began = time.thread_time()
        sources.read(text)
        return time.thread_time() - began

    few, many = min(seconds(10_000 + n) for n in range(3)), min(seconds(40_000 + n) for n in range(2))

    assert many < 0.1 or many / few < MOST_GROWTH
