"""Every pattern of the engine, pumped: four times the text takes about four times as long (reliability.md A-23).

No time is asserted, only how it grows: a pattern that backtracks takes sixteen times as long, or for ever.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import interlock.dpe

SIZES, FACTOR = (1_500, 6_000), 4
MOST_GROWTH = 11.0  # linear is 4, quadratic 16
LEAST_S = 0.004  # below this, noise is measured
MUCH_S = 1.5
COMMON = (
    " ", "a", "A", "1", ".", "-", "_", "*", "[", "(", "<", "`", '"', "\\", "|", "#", "\n", "a ", "1,", "a.", "![a](",
    "[a](b ", "<a", "**a", "Note that ", "It is ", "I think ", '"\\', "1 000 ", "½", "I'm Bob ", "A of ", "a@", "%41", "&#1;",
    "\\u0041",
)  # fmt: skip


def modules() -> Iterator[Any]:
    """Every module of the engine."""
    for found in pkgutil.walk_packages(interlock.dpe.__path__, "interlock.dpe."):
        if ".models." not in found.name:
            try:
                yield importlib.import_module(found.name)
            except ImportError as error:  # an extra that is not installed
                assert error.name, found.name
                assert not error.name.startswith("interlock"), error


def patterns_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Patterns in a value, in containers and in what has attributes of its own."""
    if isinstance(value, re.Pattern) or type(value).__module__.startswith("re2"):
        if hasattr(value, "finditer"):
            yield value
    elif isinstance(value, tuple | list | set | frozenset) and depth < 3:
        for each in value:
            yield from patterns_in(each, depth + 1)
    elif isinstance(value, dict) and depth < 3:
        for each in value.values():
            yield from patterns_in(each, depth + 1)


def collected() -> dict[str, Any]:
    """Every compiled pattern of the engine by where it stands, once."""
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for module in modules():
        for name, value in vars(module).items():
            for number, each in enumerate(patterns_in(value)):
                if (key := f"{type(each).__name__} {each.pattern}") not in seen:
                    seen.add(key)
                    found[f"{module.__name__.removeprefix('interlock.dpe.')}.{name}.{number}"] = each
    return found


PATTERNS = collected()
BACKTRACKING = {name: each for name, each in PATTERNS.items() if isinstance(each, re.Pattern)}


def literals(pattern: Any) -> list[str]:
    """Runs of plain letters in an expression, and single signs of it: what it most likely stumbles over."""
    source = pattern.pattern
    runs = re.findall(r"[A-Za-z]{3,}(?: [a-z]+)*", re.sub(r"\\[pPdDwWsSbBAZ](?:\{[^}]*\})?", " ", source))[:4]
    signs = sorted({c for c in source if not c.isalnum() and c not in "\\^$.?+{}"})[:6]
    return [*runs, *(run + " " for run in runs[:2]), *signs]


def seconds(pattern: Any, text: str, *, anchored: bool) -> float:
    """CPU time of what the module does with the pattern: all matches, or the one at the start. The less of two."""
    least = float("inf")
    for _ in range(2):
        began = time.thread_time()
        if anchored:
            pattern.match(text)
        else:
            for _match in pattern.finditer(text):
                pass
        least = min(least, time.thread_time() - began)
        if least < LEAST_S / 4:
            break
    return least


def growth(pattern: Any, pump: str, ending: str, *, anchored: bool, sizes: Sequence[int]) -> float:
    """How many times longer four times the text takes; 0.0 where it is too quick to tell.

    A bounded repeat looks quadratic until the text is longer than its bound: the larger size decides.
    """
    ratio = 0.0
    for size in sizes:
        few, many = (pump * (n // len(pump)) + ending for n in (size, size * FACTOR))
        after = seconds(pattern, many, anchored=anchored)
        ratio = after / max(seconds(pattern, few, anchored=anchored), 1e-6) if after >= LEAST_S else 0.0
        if after > MUCH_S:
            break
    return ratio


def worst(pattern: Any, pumps: list[str], *, anchored: bool = False, sizes: Sequence[int] = SIZES) -> tuple[float, str]:
    return max(
        (growth(pattern, pump, ending, anchored=anchored, sizes=sizes), pump)
        for pump in pumps
        for ending in ("", "\x01")
    )


def is_anchored(name: str) -> bool:
    """Whether the module asks for a match at one place alone, and never searches with the pattern."""
    module, variable, _ = name.rsplit(".", 2)
    source = inspect.getsource(importlib.import_module(f"interlock.dpe.{module}"))
    return set(re.findall(rf"{variable}\.(\w+)", source)) <= {"match", "fullmatch"}


def test_the_patterns_are_found():
    """The generator sees the patterns that there are; most run on RE2."""
    assert len(PATTERNS) > 60
    assert len(BACKTRACKING) < len(PATTERNS) / 4


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize("name", BACKTRACKING)
def test_patterns_of_the_standard_library_are_linear(name):
    """Those few that need what RE2 does not have, with every pump."""
    pattern = BACKTRACKING[name]
    found, pump = worst(pattern, [*COMMON, *literals(pattern)], anchored=is_anchored(name))

    assert found < MOST_GROWTH, (found, pump)


@pytest.mark.req("DPE-1")
def test_patterns_on_re2_are_linear():
    """RE2 is so by construction; that the binding adds nothing is seen here."""
    slow = {}
    for name, pattern in PATTERNS.items():
        if name not in BACKTRACKING:
            found, pump = worst(pattern, literals(pattern)[:2] or ["a"], sizes=SIZES[:1])
            if found >= MOST_GROWTH:
                slow[name] = (found, pump)

    assert slow == {}


def test_a_backtracking_pattern_would_be_seen():
    """The generator finds what it is for; a machine that is busy at the wrong moment hides it once, not three times."""
    pattern = re.compile(r"(?:a\s*)*b|\s+$")

    assert any(worst(pattern, [" "], sizes=SIZES[:1])[0] > MOST_GROWTH for _ in range(3))
