"""The page of figures over time: risk, time of calls, first token and spending, as pictures that the server draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlock.domain.budget import Micros, as_decimal
from interlock.oversight.markup import render
from interlock.oversight.pages import frame_of
from interlock.oversight.views import View
from interlock.runtime.pictures.recent import RISKS, UNJUDGED, Figures

COLUMNS = 60
SPANS: Mapping[str, int] = {"1h": 1, "24h": 24}
"""Span that is shown → minutes of one of its columns."""
WIDTH, HEIGHT, GAP = 600, 120, 1.5
_SHARES = ((0.5, "half"), (0.95, "most"))


class Bar(NamedTuple):
    """A rectangle of a picture, in its own units."""

    kind: str
    x: float
    y: float
    height: float


class Chart(NamedTuple):
    """One picture: what it says in words, its bars, and the value at its top."""

    name: str
    summary: str
    top: str
    bars: Sequence[Bar]


def over_time_page(view: View, columns: Sequence[Figures], span: str) -> str:
    """Return the page. Each column is a number of minutes; the same numbers are in a table."""
    return render(
        "over_time.html", title="Over time", **frame_of(view), here="figures", span=span, spans=tuple(SPANS), width=WIDTH, height=HEIGHT,
        column=round(WIDTH / COLUMNS - GAP, 2), pictures=[_risk(columns), _times("Time of a call", columns, "took"),
        _times("First token of the provider", columns, "first"), _spend(columns)], rows=_rows(columns, SPANS[span]), minutes=SPANS[span],
    )  # fmt: skip


def _risk(columns: Sequence[Figures]) -> Chart:
    most = max(1, *(sum(one.calls.values()) for one in columns))
    totals = {kind: sum(one.calls[kind] for one in columns) for kind in (*RISKS, UNJUDGED)}
    words = ", ".join(f"{count} {_word(kind)}" for kind, count in totals.items() if count) or "no calls"
    return Chart("Calls by risk", words, str(most), [
        bar for at, one in enumerate(columns)
        for bar in _stacked(at, [(kind.lower(), one.calls[kind] / most) for kind in (*RISKS, UNJUDGED)])
    ])  # fmt: skip


def _times(name: str, columns: Sequence[Figures], which: str) -> Chart:
    """Return bars for the time that most calls do not exceed, and in front of them that of half of them."""
    found = [[getattr(one, which).quantile(share) or 0.0 for share, _ in _SHARES] for one in columns]
    top = max((most for _, most in found), default=0.0)
    latest = next((pair for pair in reversed(found) if pair[1]), None)
    words = f"latest: half within {_time(latest[0])}, 95 of 100 within {_time(latest[1])}" if latest else "none yet"
    bars = []
    for at, (half, most) in enumerate(found):
        bars += [_bar(at, "most", most / top), _bar(at, "half", half / top)] if top and most else []
    return Chart(name, words, _time(top) if top else "", bars)


def _spend(columns: Sequence[Figures]) -> Chart:
    """Return spending in money, or in tokens where no price is known."""
    money = any(one.usd_micros for one in columns)
    found = [one.usd_micros if money else one.tokens for one in columns]
    top, total = max(found), sum(found)
    words = f"{_usd(total)} in all" if money else f"{total:,} tokens in all"
    bars = [_bar(at, "spent", value / top) for at, value in enumerate(found) if value]
    return Chart("Spending", words, (_usd(top) if money else f"{top:,}") if top else "", bars)


def _rows(columns: Sequence[Figures], minutes: int) -> list[Mapping[str, Any]]:
    """Return the columns that have something, the latest first."""
    return [
        {
            "ago": "now" if not at else f"{at * minutes} min ago", "calls": [one.calls[kind] for kind in (*RISKS, UNJUDGED)],
            "half": _time(one.took.quantile(0.5)), "most": _time(one.took.quantile(0.95)), "first": _time(one.first.quantile(0.5)),
            "usd": _usd(one.usd_micros), "tokens": f"{one.tokens:,}",
        }
        for at, one in enumerate(reversed(columns)) if sum(one.calls.values()) or one.tokens or one.usd_micros
    ]  # fmt: skip


def _stacked(at: int, parts: Sequence[tuple[str, float]]) -> list[Bar]:
    bars, below = [], 0.0
    for kind, share in parts:
        if share:
            bars.append(_bar(at, kind, share, below))
            below += share
    return bars


def _bar(at: int, kind: str, share: float, below: float = 0.0) -> Bar:
    return Bar(kind, round(at * WIDTH / COLUMNS, 2), round(HEIGHT * (1 - below - share), 2), round(HEIGHT * share, 2))


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _usd(micros: int) -> str:
    return f"${as_decimal(Micros(micros))}"


def _word(kind: str) -> str:
    return "not judged" if kind == UNJUDGED else kind
