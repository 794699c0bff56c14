"""A kernel whose sagas left steps to a person, and reviewers' decisions about them."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.domain import approval
from interlock.domain.approval import Approval
from interlock.policy.reviewers import key_text
from tests.support.kernels import UNIT, KernelClient, done
from tests.support.policy import agents

_NUMBERS = itertools.count(7_000)
STEP = 'step/1?&"+'
"""A key as an agent may choose it."""
DECIDER = agents.REVIEWER
OTHER, OTHER_KEY = "second@company.com", agents.private_key(2)
NO_RIGHT, NO_RIGHT_KEY = "third@company.com", agents.private_key(3)
VIEWER, LIMITED = "viewer@company.com", "limited@company.com"
_KEYS = {VIEWER: agents.private_key(4), LIMITED: agents.private_key(5)}

DEFINITION = {
    "resources": [{"name": "usd", "limit_micros": 100 * UNIT}],
    "variables": [{"name": "booked", "type": "VARIABLE_TYPE_NUMBER", "initial": {"number_micros": 0}}],
    "actions": [
        {
            "id": "book", "name": "Book <b>a</b> room", "compensation": "unbook",
            "costs": [{"resource": "usd", "micros": 2 * UNIT}],
            "effects": [{"variable": "booked", "mode": "EFFECT_MODE_INCREMENT", "value": {"number_micros": UNIT}}],
        },
        {
            "id": "unbook",
            "effects": [{"variable": "booked", "mode": "EFFECT_MODE_DECREMENT", "value": {"number_micros": UNIT}}],
        },
        {"id": "send", "irreversible": True, "costs": [{"resource": "usd", "micros": UNIT}]},
    ],
}  # fmt: skip


def reviewers(*callers: str) -> dict[str, Any]:
    """Two reviewers who may compensate, one who may not, and any that are named as *callers*, who may."""
    may = {DECIDER: agents.private_key(), OTHER: OTHER_KEY}
    may |= {name: agents.private_key(20 + number) for number, name in enumerate(callers)}
    return {
        "reviewers": {
            **{name: {"public_key": _public(key), "actions": ["compensate"]} for name, key in may.items()},
            NO_RIGHT: {"public_key": _public(NO_RIGHT_KEY)},
            VIEWER: {"public_key": _public(_KEYS[VIEWER]), "role": "viewer"},
            LIMITED: {
                "public_key": _public(_KEYS[LIMITED]), "actions": ["compensate"], "role": "reviewer",
                "sees": {"keys": ["another-key"]},
            },
        }
    }  # fmt: skip


def key_of(person: str) -> Ed25519PrivateKey:
    """Return the key of the viewer, or of the reviewer whose sight is limited."""
    return _KEYS[person]


def _public(key: Ed25519PrivateKey) -> str:
    return key_text(key.public_key().public_bytes_raw())


async def stuck_step(client: Any, name: str, action: str, *, key: str = "") -> tuple[str, str, int]:
    """Leave a step of a new kernel to a person; return kernel id, step and record."""
    kernel = KernelClient(client, name, key=key)
    opened = done(await kernel.post("open", definition=DEFINITION))
    done(await kernel.post("begin-saga", lifetime_ms=60_000, key="saga"))
    await kernel.execute(action, STEP, saga="saga")
    done(await kernel.post("rollback", saga="saga", key="back"))
    one = (await kernel.describe())["compensations"][0]
    while not one["stuck"]:  # its workers die, five times
        done(await kernel.post("claim-compensation", lifetime_ms=100, key=f"c{next(_NUMBERS)}"))
        await asyncio.sleep(0.02)
        one = (await kernel.describe())["compensations"][0]
    return opened["kernel_id"], one["execution"], int(one["fence"])


def signed(
    kernel_id: str, step: str, record: int, outcome: str, /, *, key: Ed25519PrivateKey | None = None,
    reviewer: str = DECIDER, action: str = approval.COMPENSATE, **scope: str,
) -> str:  # fmt: skip
    """Return a reviewer's signed decision, each with an id of its own."""
    names = {"kernel": kernel_id, "step": step, "record": str(record), "outcome": outcome, **scope}
    issued = int(time.time()) - 1
    made = Approval(f"crp_appr_{next(_NUMBERS):032x}", reviewer, action, names, issued, issued + 600)
    payload = approval.canonical_payload(made)
    return approval.token(payload, (key or agents.private_key()).sign(approval.signed_bytes(payload)))
