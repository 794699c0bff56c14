"""How a session stands, as a value that two stores can be compared by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from interlock.domain.binding.links import NO_LINKS
from interlock.domain.ids import SessionId
from interlock.session.store.store import Store


async def told(store: Store, root: SessionId, session: SessionId) -> Any:
    """Return what *store* tells of a session with all of its windows, of the first few how they lead to one another."""
    state = await store.read(root, session)
    windows = [node.window_id for node in state.nodes] if state else []
    found = await store.standing(root, session, windows)
    if found is None:
        return None
    links, some = found.links, windows[:9]
    return (
        replace(found, links=NO_LINKS),
        [links.continued(each) for each in windows],
        [[links.leads(each, other) for other in some] for each in some],
        [links.continues(each, windows[:at]) for at, each in enumerate(windows)],
    )
