"""What a window is made from: earlier answers of its session and results of sub-agents (SPEC-004 §7, §8).

The windows on the path are what an answer is compared with. The windows that a fan-in merges are more than that: their
answers are its material, so that it is held against them as facts and they against one another (SPEC-012 §9).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.dag.transfer import Transfer
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.admission import Admitted
from interlock.sidecar.call.call import Call, Run
from interlock.sidecar.context import linked_results, packing
from interlock.sidecar.context.linked_results import AnswerSource, Results
from interlock.sidecar.context.packing import TransferredContext
from interlock.sidecar.context.transfer import Transferred, Transfers
from interlock.sidecar.trail.events import FAN_IN


@dataclass(frozen=True)
class EarlierAnswers:
    """What was said before this window."""

    prior: tuple[dpe_pb2.PriorWindow, ...]
    """Answers that this one is compared with, oldest first."""
    parents: tuple[AnswerSource, ...]
    """Each window that is continued, by id; its text is empty when it was not released."""
    results: Results


def mode_of(call: Call, opened: session_pb2.OpenedWindow) -> str:
    """Return what is transferred from the windows that this one continues: nothing, unless it is asked for or merged."""
    return call.envelope.wanted.transfer or ("auto" if opened.pattern == FAN_IN else "none")


def comes_first(call: Call, opened: session_pb2.OpenedWindow) -> bool:
    """Tell whether the context must be there before the answer is asked for."""
    wanted = call.envelope.wanted
    return bool(wanted.results or wanted.token_budget) or mode_of(call, opened) != "none"


async def read(peers: Peers, run: Run, admitted: Admitted, *, latest: int) -> EarlierAnswers:
    """Read the *latest* earlier answers. Refused when one cannot be read: nothing is compared with less, nor made from less.

    Refused with RESULT_NOT_LINKED or RESULT_NOT_AVAILABLE for an answer that nothing may or can be made from.
    """
    opened, named = admitted.opened, run.call.envelope.wanted.results
    contents = _contents(peers, opened, run, latest)
    if named:
        found, linked = await asyncio.gather(contents, linked_results.fetched(peers, opened, named, run.deadline))
    else:
        found, linked = await contents, linked_results.NO_RESULTS
    parents = tuple(_parent(window_id, found, run.call) for window_id in opened.parent_ids)
    if mode_of(run.call, opened) != "none":
        parents = tuple([await _judged(peers, opened.session_id, parent) for parent in parents])
    merging = opened.pattern == FAN_IN
    for source in parents:
        if merging and not source.text.strip():
            raise linked_results.gone(session_id=opened.session_id, window_id=source.source_id)
    left_out = run.call.apart | (frozenset(opened.parent_ids) if merging else frozenset())
    prior = tuple(
        dpe_pb2.PriorWindow(window_id=one.window_id, text=one.text)
        for one in found
        if one.text and one.window_id not in left_out
    )
    return EarlierAnswers(prior, parents, linked)


async def _contents(
    peers: Peers, opened: session_pb2.OpenedWindow, run: Run, latest: int
) -> Sequence[audit_pb2.Content]:
    """Return what the *latest* windows on the path to this one said, and its parents, oldest first."""
    if not opened.lineage:
        return ()
    wanted = list(dict.fromkeys([*opened.parent_ids, *opened.lineage[-latest:]]))
    place = {window_id: at for at, window_id in enumerate(opened.lineage)}
    wanted.sort(key=lambda window_id: place.get(window_id, -1))
    if run.ahead is not None and run.ahead.fits(opened.session_id, wanted):
        return await run.ahead.task
    return await peers.audit.get_contents(opened.session_id, wanted, run.deadline)


def _parent(window_id: str, found: Sequence[audit_pb2.Content], call: Call) -> AnswerSource:
    sub_query = call.sub_query_of.get(window_id, "")
    for one in found:
        if one.window_id == window_id:
            return AnswerSource(window_id, one.text, tuple(one.deferred_facts), sub_query=sub_query)
    return AnswerSource(window_id, "", sub_query=sub_query)


async def _judged(peers: Peers, session_id: str, parent: AnswerSource) -> AnswerSource:
    """Return a window that this one is made from with how it was judged; one that was not released gives nothing."""
    if not parent.text.strip():
        return parent
    return replace(parent, judged=await linked_results.judged_as(peers, session_id, parent.source_id))


async def given(
    earlier: EarlierAnswers, call: Call, opened: session_pb2.OpenedWindow, transfers: Transfers, settings: Settings
) -> TransferredContext:
    """Transfer what is asked for; each source gets an equal share of the room. Refused with TRANSFER_TOO_LARGE.

    A completion that the caller brings is not made here: what it was made from is evidence, whole.
    """
    merging, sources = opened.pattern == FAN_IN, earlier.results.sources
    if not call.body:
        parents = packing.evidence(earlier.parents) if merging else _nothing(earlier.parents)
        return TransferredContext(parents, packing.evidence(sources), earlier.results.linked)
    mode = mode_of(call, opened)
    wanted = [] if mode == "none" else [(parent, mode, merging) for parent in earlier.parents if _says(parent, mode)]
    wanted += [(source, "auto" if mode in {"none", "facts"} else mode, True) for source in sources]
    share = packing.room(call.envelope, settings) // max(1, len(wanted))
    made = await _all([(transfers, *one, share) for one in wanted])
    by_parent = {one.source.source_id: one for one in made[: len(wanted) - len(sources)]}
    return TransferredContext(
        parents=tuple(by_parent.get(parent.source_id) or _nothing([parent])[0] for parent in earlier.parents),
        results=made[len(wanted) - len(sources) :],
        linked=earlier.results.linked,
    )


def _says(parent: AnswerSource, mode: str) -> bool:
    """Tell whether there is something to transfer; refused when it was demanded and there is nothing."""
    if parent.text.strip() or mode in {"auto", "facts"}:
        return bool(parent.text.strip() or parent.deferred)
    raise linked_results.gone(window_id=parent.source_id)


def _nothing(sources: Sequence[AnswerSource]) -> tuple[Transferred, ...]:
    return tuple(Transferred(source, Transfer.NONE) for source in sources)


async def _all(wanted: Sequence[tuple[Transfers, AnswerSource, str, bool, int]]) -> tuple[Transferred, ...]:
    """Make all transfers at once: each summary is a call of its own. The first that is refused ends the others."""
    tasks = [
        asyncio.ensure_future(transfers.of(source, mode, share, merging=merging))
        for transfers, source, mode, merging, share in wanted
    ]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
