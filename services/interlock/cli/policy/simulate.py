"""``interlock policy simulate``: recorded answers decided again under another policy, by the code that decides calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from interlock.cli.asking import conversed
from interlock.cli.output import Format, Output, plain, print_json, refusals, table
from interlock.cli.policy import recorded
from interlock.cli.policy.recorded import RecordedAnswers, Wanted
from interlock.cli.policy.texts import TEXT, given, read
from interlock.domain.errors import invalid
from interlock.domain.policy.directives import canonical
from interlock.domain.policy.workbench.replay import OUTCOMES, ReplayedAnswer, Summary, replay, summary
from interlock.domain.policy.workbench.trial import word
from interlock.runtime.clock import iso8601, system_clock
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

LAST = typer.Option("24h", "--last", help="How far back: a number and s, m, h or d.")
ON_TOP = typer.Option(
    False,
    "--on-top",
    help="Join it with the policy of each answer, the tighter value counts, instead of taking its place.",
)
REVIEWER = typer.Option(
    None, "--reviewer/--no-reviewer", help="Whether a reviewer is registered. Default: as the settings say."
)
MOST = typer.Option(10_000, "--most", help="How many answers at most, the latest.", min=1, max=1_000_000)
SHOW = typer.Option(20, "--show", help="How many of the answers that would have been decided otherwise to list.", min=0)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LAST = re.compile(r"([0-9]{1,6})([smhd])")


def simulate(  # noqa: PLR0917 - typer passes options by name
    text: str = TEXT,
    last: str = LAST,
    on_top: bool = ON_TOP,
    reviewer: bool | None = REVIEWER,
    most: int = MOST,
    show: int = SHOW,
    output: Output = Format.TEXT,
) -> None:
    """Say what would have happened to the recorded answers of the last hours under another policy.

    Queries the audit service, and changes nothing. Exit 0: told. 2: the policy is malformed, or no answer.
    """
    policy = read(given(text, output), "", output)
    with refusals(output):
        settings = load()
        since = iso8601(system_clock() - _seconds(last) * 1_000_000)
        wanted = _wanted(settings, since, most, reviewer)
        found = conversed("audit", settings, lambda channel: recorded.read(channel, wanted))
        replayed = [replay(one, policy, on_top=on_top) for one in found.recorded]
    if output is Format.JSON:
        print_json(_as_json(canonical(policy), since, wanted, found, replayed, on_top=on_top))
        return
    for line in _as_text(last, wanted, found, replayed, show):
        typer.echo(plain(line).rstrip())


def _wanted(settings: Settings, since: str, most: int, reviewer: bool | None) -> Wanted:
    registered = settings.reviewers_file is not None or settings.reviewers_by_rpc
    return Wanted(
        since=since, most=most, reviewed=registered if reviewer is None else reviewer,
        user_words_ground=settings.user_words_ground, timeout_s=settings.rpc_timeout_s,
    )  # fmt: skip


def _seconds(last: str) -> int:
    found = _LAST.fullmatch(last)
    if found is None:
        raise invalid("TIME_SPAN_INVALID", "--last takes a number and s, m, h or d, such as 24h", got=last[:32])
    return int(found[1]) * _UNITS[found[2]]


def _as_text(
    last: str, wanted: Wanted, found: RecordedAnswers, replayed: Sequence[ReplayedAnswer], show: int
) -> Iterator[str]:
    told = summary(replayed)
    if not replayed:
        yield f"no answer of the last {last} can be replayed"
    else:
        yield f"would have {_headline(told)} of {told.answers:,} answers in the last {last}"
        yield ""
        yield from _outcomes(told)
        yield from _moved([one for one in replayed if one.moves], show)
        yield ""
    yield from _untold(told, wanted, found)


def _headline(told: Summary) -> str:
    stopped = [f"{name} {told.other[name]:,}" for name in OUTCOMES[1:] if told.other[name] or name == "halted"]
    return ", ".join(reversed(stopped))


def _outcomes(told: Summary) -> Iterator[str]:
    rows = [("", "recorded", "then", "")]
    for name in OUTCOMES:
        moved = told.other[name] - told.recorded[name]
        rows.append((name, f"{told.recorded[name]:,}", f"{told.other[name]:,}", f"{moved:+,}" if moved else ""))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        yield "  " + row[0].ljust(widths[0]) + "".join(f"  {row[column].rjust(widths[column])}" for column in (1, 2, 3))
    if told.stopped_by:
        causes = ", ".join(f"{cause} {count:,}" for cause, count in told.stopped_by.items())
        yield f"\n  newly kept back {told.newly_stopped:,}: {causes}"
    if told.newly_delivered:
        yield f"{'' if told.stopped_by else chr(10)}  newly delivered {told.newly_delivered:,}"


def _moved(moved: Sequence[ReplayedAnswer], show: int) -> Iterator[str]:
    shown = moved[-show:] if show else []
    if shown:
        rows = [
            (one.recorded.at[:19], one.recorded.agent_type or "agent", one.recorded.trial.findings.risk.name,
             f"{one.recorded.outcome} -> {word(one.other)}", one.other.cause, one.recorded.window_id)
            for one in shown
        ]  # fmt: skip
        yield ""
        for line in table([("sealed (UTC)", "agent", "risk", "recorded -> then", "by", "window"), *rows]):
            yield f"  {line}"
    if len(moved) > len(shown) > 0:
        yield f"  and {len(moved) - len(shown):,} earlier ones; --show {len(moved)} lists all"


def _untold(told: Summary, wanted: Wanted, found: RecordedAnswers) -> Iterator[str]:
    """Yield what the record does not tell, so that nobody takes the figures for more than they are."""
    if told.answers:
        agree = told.answers - told.disagree
        yield f"check: under their own policies {agree:,} of {told.answers:,} come out as they are recorded"
        yield f"reviewers: as if {'one is' if wanted.reviewed else 'none were'} registered; who was, is not recorded"
        yield "each answer stands for itself: what an agent would have done after another verdict is not known"
    if told.retried:
        yield f"retries: the policy would first have asked for a better answer {told.retried:,} times; what would have come is not known"
    if told.observed:
        yield f"watched: {told.observed:,} were delivered because they were only watched; counted is what would have been done"
    for reason, count in sorted(found.left_out.items()):
        if count:
            yield f"left out: {count:,} that cannot be read again ({reason})"
    if found.removed:
        yield f"left out: what {found.removed:,} entries told that retention has removed"
    if found.more:
        yield f"left out: all but the latest {wanted.most:,}; --most takes more"


def _as_json(
    policy: str, since: str, wanted: Wanted, found: RecordedAnswers, replayed: Sequence[ReplayedAnswer], *, on_top: bool
) -> dict[str, Any]:  # fmt: skip
    told = summary(replayed)
    return {
        "policy": policy,
        "on_top": on_top,
        "since": since,
        "reviewer": wanted.reviewed,
        "answers": told.answers,
        "sessions": told.sessions,
        "recorded": told.recorded,
        "then": told.other,
        "newly_kept_back": told.newly_stopped,
        "newly_delivered": told.newly_delivered,
        "kept_back_by": told.stopped_by,
        "would_retry": told.retried,
        "only_watched": told.observed,
        "own_policy_agrees": told.answers - told.disagree,
        "left_out": {reason: count for reason, count in sorted(found.left_out.items()) if count},
        "entries_removed": found.removed,
        "more": found.more,
        "moved": [_moved_json(one) for one in replayed if one.moves],
    }


def _moved_json(one: ReplayedAnswer) -> dict[str, Any]:
    return {
        "session_id": one.recorded.session_id, "window_id": one.recorded.window_id, "sealed_at": one.recorded.at,
        "agent_type": one.recorded.agent_type or None, "risk": one.recorded.trial.findings.risk.name,
        "recorded": one.recorded.outcome, "then": word(one.other), "cause": one.other.cause,
        "reason": one.other.halt_reason, "own_policy_agrees": one.agrees,
    }  # fmt: skip
