"""What is derived from texts is remembered, within bounds."""

from __future__ import annotations

import gc
import tracemalloc

from interlock.dpe.document import Fact
from interlock.dpe.grounding import envelope
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.text.memory.remembered import STORE, Remembered
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import names_known

PROSE = " ".join(
    f"In {1900 + n} the town of Northwick{n} bought {n + 3} boats for ${n * 17}.50 from J. Albrecht{n}, who left on {n % 27 + 1} May."
    for n in range(120)
)


class Clock:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_text_is_read_once_and_texts_are_told_apart():
    """By what is derived, by their bounds and by their order."""
    store, derived = Remembered(), []

    def of(what: str, *texts: str) -> int:
        return store.of(what, texts, lambda: derived.append(texts) or len(derived), bytes_a_character=1)

    assert [of("a", "xy", "z"), of("a", "xy", "z"), of("a", "x", "yz"), of("a", "z", "xy"), of("b", "xy", "z")] == [
        1, 1, 2, 3, 4,
    ]  # fmt: skip


def test_of_several_texts_only_the_unknown_are_read():
    """They are handed on together, each once, in their order."""
    store, asked = Remembered(), []

    def lengths(texts: list[str]) -> list[int]:
        asked.append(texts)
        return [len(text) for text in texts]

    store.of_each("length", ["a", "bb"], lengths, bytes_a_character=1)
    found = store.of_each("length", ["bb", "ccc", "ccc", "a"], lengths, bytes_a_character=1)

    assert (found, asked) == ({"bb": 2, "ccc": 3, "a": 1}, [["a", "bb"], ["ccc"]])


def test_the_store_stays_within_its_bytes():
    """The longest unused goes first, and what alone exceeds the bound is not kept."""
    store = Remembered(most_bytes=3000)
    for text in ("a" * 900, "b" * 900, "c" * 900, "d" * 9000):
        store.of("t", (text,), lambda: 1, bytes_a_character=1)

    assert store.held_bytes <= 3000
    assert store.of("t", ("c" * 900,), lambda: 2, bytes_a_character=1) == 1
    assert store.of("t", ("a" * 900,), lambda: 2, bytes_a_character=1) == 2
    assert store.of("t", ("d" * 9000,), lambda: 2, bytes_a_character=1) == 2


def test_nothing_stays_that_nothing_asks_for():
    """An entry goes when it was not asked for in that time, and asking begins it anew."""
    clock = Clock()
    store = Remembered(unused_s=600.0, clock=clock)
    for text in ("kept", "left"):
        store.of("t", (text,), lambda: 1, bytes_a_character=1)
    clock.now_s = 500.0
    store.of("t", ("kept",), lambda: 1, bytes_a_character=1)
    clock.now_s = 700.0
    store.forget_unused()
    held = store.held_bytes
    clock.now_s = 1100.0
    store.forget_unused()

    assert 0 < held < 2 * 400
    assert store.held_bytes == 0


def test_a_store_without_bytes_remembers_nothing():
    """Every text is read anew."""
    store = Remembered()
    store.of("t", ("a",), lambda: 1, bytes_a_character=1)
    store.resize(0)

    assert (store.of("t", ("a",), lambda: 2, bytes_a_character=1), store.held_bytes) == (2, 0)


def test_what_is_counted_is_at_least_what_it_takes(monkeypatch):
    """The bound is one of real memory: what readings of sources take is no more than they are counted at."""

    def derive(text: str) -> tuple[object, ...]:
        cut = envelope.cut([Fact("f", text, 0.5)], limit=200, count=lambda ts: [len(t) // 4 for t in ts], split=_split, own="t")  # fmt: skip
        return read(text), names_known(text), content_stems(text), cut

    derive(f"{PROSE} first")  # what is loaded once counts for nobody
    monkeypatch.setattr(STORE, "most_bytes", 2**30)
    counted = STORE.held_bytes
    gc.collect()
    tracemalloc.start()
    kept = [derive(f"{PROSE} {n}") for n in range(3)]
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(kept) == 3
    assert 0 < taken <= STORE.held_bytes - counted


def _split(text: str) -> list[tuple[int, int]]:
    ends = [place + 1 for place, sign in enumerate(text) if text[place : place + 2] == ". "]
    return list(zip([0, *ends], [*ends, len(text)], strict=True))
