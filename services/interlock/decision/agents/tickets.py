"""Tickets: what an agent presents. One names an experiment and an agent, and opens nothing but that agent's tasks (DEC-7)."""

from __future__ import annotations

import hmac

from interlock.domain.decision.reading import is_name
from interlock.domain.errors import unauthenticated
from interlock.runtime.keys.derivation import Keyring

PURPOSE = b"interlock-decision-ticket-v1"
LONGEST = 256


class Tickets:
    """Makes and reads tickets ``experiment:agent:mac``. Nothing is stored: the same agent always has the same one."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    def made(self, experiment_id: str, agent: str) -> str:
        """Return the ticket of an agent."""
        return f"{experiment_id}:{agent}:{self._mac(self._keyring.oldest, experiment_id, agent)}"

    def read(self, ticket: str) -> tuple[str, str]:
        """Return the experiment and the agent of a ticket. Refused with DECISION_TICKET_INVALID."""
        experiment_id, _, rest = ticket[:LONGEST].partition(":")
        agent, _, mac = rest.partition(":")
        if is_name(agent) and mac.isascii():
            for version in self._keyring.versions:
                if hmac.compare_digest(mac, self._mac(version, experiment_id, agent)):
                    return experiment_id, agent
        raise unauthenticated("DECISION_TICKET_INVALID", "this is no ticket of an agent of this mesh")

    def _mac(self, version: int, experiment_id: str, agent: str) -> str:
        key = self._keyring.derive(version, experiment_id, PURPOSE) or b""
        return hmac.digest(key, agent.encode(), "sha256").hex() if key else ""
