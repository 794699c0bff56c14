"""Probes of ``interlock check`` for files that a service reads at its start or later: what is wrong with one shows here first."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from interlock.cli.probing.probes import refusable
from interlock.domain.errors import Refused, unavailable
from interlock.domain.policy.workbench.lint import lint
from interlock.domain.policy.workbench.rules import Gravity
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import read_content


def files(settings: Settings) -> Iterator[ProbeFinding]:
    """Check prices, webhooks and the authority of webhooks, and what the deployment's policy hardly means."""
    line = partial(ProbeFinding, "configuration")
    if prices := settings.prices_file:
        from interlock.sidecar.call.prices import prices_from

        yield refusable(
            line, "prices_file", partial(_regular, prices, lambda: prices_from(prices, "refuse")), str(prices)
        )
    if sinks := settings.sinks_file:
        from interlock.audit.streams.streaming import check_sinks

        yield refusable(line, "sinks_file", partial(_regular, sinks, lambda: check_sinks(settings)), str(sinks))
    if authority := settings.egress_ca_file:
        yield refusable(line, "egress_ca_file", lambda: _authority(authority), str(authority))
    yield from _policy(settings.default_policy)


def _regular(path: Path, read: Callable[[], object]) -> None:
    """Read a file by *read*, unless it is a pipe, which would be waited for."""
    read_content(path)
    read()


def _authority(path: Path) -> None:
    read_content(path)
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise unavailable(
            "EGRESS_CA_UNUSABLE", f"{path}: no certificate in PEM is in it", retry_after_ms=0,
            hint="give the authority's certificate, or take INTERLOCK_EGRESS_CA_FILE away",
        ) from None  # fmt: skip


def _policy(text: str) -> Iterator[ProbeFinding]:
    try:
        found = lint(text) if text else []
    except Refused:
        return  # that it does not parse is told already
    for one in found:
        if one.weight is Gravity.WARNING:
            says = f"{one.directive}: {one.says}" if one.directive else one.says
            hint = "`interlock policy lint` shows the place, `interlock policy explain` what each directive does"
            yield ProbeFinding("configuration", "default_policy", ProbeStatus.WARN, says, hint)


def second_place(settings: Settings) -> Iterator[ProbeFinding]:
    """Check the checkpoint key and the anchor, without making either."""
    line = partial(ProbeFinding, "audit store")
    key = settings.checkpoint_key_file or settings.state_dir / "checkpoint.key"
    if key.exists() or settings.checkpoint_key_file:
        yield refusable(line, "checkpoint key", lambda: _checkpoint_key(settings, key), str(key))
    anchor = settings.audit_anchor
    if anchor is None:
        return
    if anchor.is_dir() and os.access(anchor, os.W_OK | os.X_OK):
        yield line("anchor", ProbeStatus.OK, str(anchor))
        return
    why = "is not writable" if anchor.is_dir() else "is not a folder" if anchor.exists() else "is not there"
    status = ProbeStatus.FAIL if settings.audit_anchor_required else ProbeStatus.WARN
    hint = "whoever keeps it has to mount or create it; until then checkpoints are not published"
    yield line("anchor", status, f"{anchor} {why}", hint)


def _checkpoint_key(settings: Settings, path: Path) -> None:
    from interlock.audit.merkle.checkpoint_key import load_checkpoint_key

    read_content(path)
    load_checkpoint_key(settings)
