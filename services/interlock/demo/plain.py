"""The second agent of the demonstration knows nothing of Interlock: it sends no token and begins a new conversation each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openai
from rich.console import Console
from rich.text import Text

from interlock.demo.agent import HALTED, DemoWindow
from interlock.demo.mesh import DemoMesh
from interlock.demo.provider import MODEL, Replay

KEY = "plain-agent"
SPENT = "CALLER_BUDGET_DEPLETED"
MOST = 12
"""Conversations after which the agent must have been stopped."""


def start_anew(out: Console, mesh: DemoMesh, passage: str, windows: Sequence[DemoWindow], replay: Replay) -> list[str]:
    """Ask the riskiest question in one new conversation after the other, and show how that ends. Return broken promises."""
    turn = max(windows, key=lambda window: window.report.risk_level).turn
    messages = [{"role": "system", "content": passage}, {"role": "user", "content": turn.question}]
    out.print(Text("\nAnother agent sends no token, and starts anew after every answer:", style="bold"))
    calls = replay.calls
    for number in range(1, MOST + 1):
        status, body = _ask(mesh.base_url, messages)
        reason = str(body.get("reason") or body.get("crp_halt_reason") or "delivered")
        out.print(f"  conversation {number}: {status} {reason}", markup=False)
        if reason == SPENT:
            break
        calls = replay.calls
    else:
        return ["an agent that starts anew was never stopped"]
    out.print(f"Until {body.get('retry_condition')} nothing more is asked for it.", markup=False)
    said = mesh.command("session", "list", "--limit", "3")
    out.print(Text("\n$ interlock session list    # its last table", style="bold"))
    out.print(Text(said.stdout.rpartition("\n\n")[2].rstrip()))
    return [] if replay.calls == calls else ["the provider was asked for a caller that had spent its budget"]


def _ask(base_url: str, messages: Sequence[dict[str, str]]) -> tuple[int, dict[str, Any]]:
    """Ask as a program that has just started: a client of its own, which remembers nothing."""
    conversation: Any = messages
    with openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0, timeout=180) as client:
        try:
            raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=conversation)
        except openai.APIStatusError as error:
            if error.status_code != HALTED:
                raise
            return HALTED, error.response.json()
    return raw.status_code, {}
