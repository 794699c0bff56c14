"""The auditor's walk through the sessions of an agent tree (SPEC-012 §8.2; PRV-4).

The walk goes from the root down and visits every session after its parent. It verifies each chain by itself, from the stored
bytes, then each link: a parent's record of a child against the child's own trail. At the end it reads the sessions that name
this root but that no parent's trail names: a trail whose end was cut off would not reveal them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from interlock.audit.sealing.reports import is_sealed, open_report
from interlock.audit.sealing.verify import examine, no_session
from interlock.audit.store.log import Chain, StoredReport
from interlock.domain.chain import provenance
from interlock.domain.chain.chain import WINDOW_SEALED, Fault, Integrity, content_hash
from interlock.domain.chain.marks import is_truncated
from interlock.domain.chain.provenance import ConsumedResult, SessionOrigin, Started, Trail
from interlock.domain.errors import Refused, exhausted, invalid
from interlock.runtime.keys.derivation import Keyring

MOST_SESSIONS = 10_000
_LINKED = "linked_results"


class TrailSource(Protocol):
    """A source of trails."""

    def chain(self, session_id: str) -> Chain:
        """Return all records of a session."""

    def report(self, *, window_id: str = "", trail_id: str = "") -> StoredReport | None:
        """Return a report by its window or trail id."""

    def naming(self, root_session_id: str) -> list[str]:
        """Return the sessions whose SESSION_CREATED mentions *root_session_id*."""


@dataclass(frozen=True)
class TreeLink:
    """One step of the walk: a delegation, or a result consumed in a window. ``fault`` is empty for a valid link."""

    kind: str
    parent_session_id: str
    child_session_id: str
    chain_tip: str
    window_id: str
    fault: str


@dataclass
class Tree:
    """The result of a walk. ``trails`` lists every session after its parent; ``broken`` describes the first fault."""

    root_id: str
    trails: list[Trail] = field(default_factory=list)
    links: list[TreeLink] = field(default_factory=list)
    broken: str = ""
    walked: set[str] = field(default_factory=set)

    @property
    def integrity(self) -> Integrity:
        """The worst integrity of all trails and links; a tree of a single window has nothing to chain from."""
        states = {trail.found.integrity for trail in self.trails}
        faults = {link.fault for link in self.links} - {""}
        if Integrity.BROKEN in states or faults - {provenance.CHILD_INCOMPLETE}:
            return Integrity.BROKEN
        if Integrity.PARTIAL in states or faults:
            return Integrity.PARTIAL
        if Integrity.TRUNCATED in states:
            return Integrity.TRUNCATED
        windows = sum(trail.found.windows for trail in self.trails)
        return Integrity.VALID if windows > 1 else Integrity.UNVERIFIED

    @property
    def charged_micros(self) -> int:
        """Sum of the charges of all sessions, micros."""
        return sum(trail.found.charged_micros for trail in self.trails)


Answer = Trail | None | list[str]
Ask = tuple[Callable[..., Answer], str]
Walk = Generator[Ask, Any, Tree]
"""A walk yields each read that it needs, as (method of the reader, id), and is sent the answer: it does no I/O itself."""


@dataclass(frozen=True)
class TreeReader:
    """Does the reads of a walk."""

    log: TrailSource
    keyring: Keyring

    def trail(self, session_id: str) -> Trail | None:
        """Return a session's trail with its verdict; ``None`` if the log has no record of it."""
        chain = self.log.chain(session_id)
        if not chain.windows and not chain.events:
            return None
        found = examine(chain, session_id, self.keyring)
        return Trail(
            session_id, found, _created(chain), tuple(_steps(chain)), _seals(chain), tuple(self._covered(chain))
        )

    def naming(self, root_session_id: str) -> list[str]:
        """Return the sessions that may name this root."""
        return self.log.naming(root_session_id)

    def _covered(self, chain: Chain) -> Iterator[tuple[str, ConsumedResult]]:
        """Yield the results named in reports whose bytes are the sealed ones."""
        for window in chain.windows:
            stored = self.log.report(window_id=window.window_id)
            if stored is None or not is_sealed(stored):
                continue
            try:
                body = open_report(stored, self.keyring)
            except Refused:
                continue  # an unreadable report covers nothing
            if f'"{_LINKED}"'.encode() in body and content_hash(body) == window.report_hash:
                for entry in _entries(_object(body)):
                    yield window.window_id, provenance.read_result(entry)


def walked(walk: Walk) -> Tree:
    """Run *walk* to its end, answering each read, and return its result."""
    answer: Answer = None
    while True:
        try:
            read, name = walk.send(answer)
        except StopIteration as done:
            found: Tree = done.value
            return found
        answer = read(name)


def walk_tree(reader: TreeReader, root_id: str) -> Walk:
    """Walk the tree of *root_id*.

    Refused with SESSION_NOT_FOUND, with NOT_A_ROOT for a session that was delegated to, naming its root, and with
    TREE_TOO_LARGE.
    """
    root: Trail | None = yield reader.trail, root_id
    if root is None:
        raise no_session()
    if root.created.parent_session_id:
        raise _not_a_root(root.created)
    tree, known = Tree(root_id), {root_id: root}
    yield from _below(tree, reader, root, known)
    named: list[str] = yield reader.naming, root_id
    # First the sessions that their parent did not record, then the rest: their parent is not below this root.
    for fault in (provenance.NOT_RECORDED, provenance.NOT_LINKED):
        for session_id in named:
            orphan = yield from _orphan(tree, reader, session_id, known)
            if orphan is None:
                continue
            parent = yield from _read(reader, orphan.created.parent_session_id, known)
            if fault == provenance.NOT_LINKED or parent is None or session_id not in parent.started:
                told = "" if parent is not None and is_truncated(parent.found.marks) else fault
                _add(tree, TreeLink(provenance.DELEGATED, orphan.created.parent_session_id, session_id, "", "", told))
                yield from _below(tree, reader, orphan, known)
    return tree


def _orphan(
    tree: Tree, reader: TreeReader, session_id: str, known: dict[str, Trail]
) -> Generator[Ask, Any, Trail | None]:
    """Return the trail of a session that names this root and that the walk has not visited; else ``None``."""
    if session_id in tree.walked:
        return None
    found = yield from _read(reader, session_id, known)
    return found if found is not None and found.created.root_session_id == tree.root_id else None


def _below(tree: Tree, reader: TreeReader, top: Trail, known: dict[str, Trail]) -> Generator[Ask, Any, None]:
    """Add *top* and every session below it, each after its parent."""
    waiting = [top]
    while waiting:
        trail = waiting.pop()
        if trail.session_id in tree.walked:
            continue
        _add_session(tree, trail)
        children = []
        for window_id, step in dict.fromkeys(trail.steps):
            child = yield from _read(reader, step.session_id, known)
            _add(tree, _link(trail, window_id, step, child, tree.root_id), child)
            # A session that names another parent belongs to that one: a forged event must not pull it in.
            place = (trail.session_id, tree.root_id)
            found = child and (child.created.parent_session_id, child.created.root_session_id)
            if child is not None and (found == place or is_truncated(child.found.marks)):
                children.append(child)
        for window_id, result in provenance.unrecorded(trail):
            fault = provenance.RESULT_NOT_RECORDED
            _add(tree, _result_link(trail, window_id, result, fault))
        waiting.extend(reversed(children))


def _read(reader: TreeReader, session_id: str, known: dict[str, Trail]) -> Generator[Ask, Any, Trail | None]:
    if session_id not in known:
        if len(known) >= MOST_SESSIONS:
            raise exhausted("TREE_TOO_LARGE", f"a tree of at most {MOST_SESSIONS} sessions is walked at a time")
        found: Trail | None = yield reader.trail, session_id
        if found is None:
            return None
        known[session_id] = found
    return known[session_id]


def _link(trail: Trail, window_id: str, step: Started | ConsumedResult, child: Trail | None, root_id: str) -> TreeLink:
    if isinstance(step, Started):
        fault = provenance.delegation_fault(trail, step, child, root_id=root_id)
        return TreeLink(provenance.DELEGATED, trail.session_id, step.session_id, "", "", fault)
    fault = provenance.result_fault(trail, window_id, step, child, root_id=root_id)
    return _result_link(trail, window_id, step, fault)


def _result_link(trail: Trail, window_id: str, result: ConsumedResult, fault: str) -> TreeLink:
    return TreeLink(
        provenance.SUB_AGENT_RESULT, trail.session_id, result.session_id, result.chain_tip, window_id, fault
    )


def _add_session(tree: Tree, trail: Trail) -> None:
    tree.trails.append(trail)
    tree.walked.add(trail.session_id)
    if trail.found.faults and not tree.broken:
        tree.broken = f"session {trail.session_id}: {_told(trail.found.faults[0])}"


def _told(fault: Fault) -> str:
    return f"{fault.what} {fault.index}: {fault.reason}" + (f" ({fault.window_id})" if fault.window_id else "")


def _add(tree: Tree, link: TreeLink, child: Trail | None = None) -> None:
    tree.links.append(link)
    if link.fault and not tree.broken:
        where = f" in window {link.window_id}" if link.window_id else ""
        own = f" ({_told(child.found.faults[0])})" if child and link.fault in provenance.OF_THE_CHILD else ""
        tree.broken = (
            f"{link.kind} of {link.child_session_id} by {link.parent_session_id}{where}: {link.fault}, "
            f"{provenance.MEANING[link.fault]}{own}"
        )


def _not_a_root(created: SessionOrigin) -> Refused:
    return invalid(
        "NOT_A_ROOT", "that session is a delegate; verify the tree from its root",
        root_session_id=created.root_session_id, hint=f"its root is {created.root_session_id}",
    )  # fmt: skip


def _created(chain: Chain) -> SessionOrigin:
    found = (event.data_json for event in chain.events if event.event_type == provenance.SESSION_CREATED)
    return provenance.read_origin(_object(next(found, "{}")))


def _steps(chain: Chain) -> Iterator[tuple[str, Started | ConsumedResult]]:
    for event in chain.events:
        if event.event_type == provenance.SUB_AGENT_STARTED:
            yield event.window_id, provenance.read_started(_object(event.data_json))
        elif event.event_type == provenance.SUB_AGENT_RESULT:
            yield event.window_id, provenance.read_result(_object(event.data_json), prefix="sub_agent_")


def _seals(chain: Chain) -> Mapping[str, tuple[int, str]]:
    order = {event.window_id: event.sequence for event in chain.events if event.event_type == WINDOW_SEALED}
    return {window.window_id: (order.get(window.window_id, 0), window.hmac) for window in chain.windows}


def _entries(report: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    found = report.get(_LINKED)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else ()


def _object(text: str | bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
