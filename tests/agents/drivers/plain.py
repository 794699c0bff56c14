"""A loop over the plain ``openai`` client: ask, run the tools, ask again. ``--stream`` reads the answer as a stream."""

from __future__ import annotations

import json
import sys
from typing import Any

from _conversation import MODEL, Say, converse, look_up, schemas
from openai import AsyncOpenAI

STREAM = "--stream" in sys.argv
STEPS = 8


def make(system: str, tools: dict[str, Any]) -> Say:
    client = AsyncOpenAI()
    messages: list[Any] = [{"role": "system", "content": system}]

    async def ask(**more: Any) -> Any:
        declared = {"tools": schemas(tools)} if tools else {}
        if STREAM:
            async with client.chat.completions.stream(model=MODEL, messages=messages, **declared, **more) as stream:
                return (await stream.get_final_completion()).choices[0].message
        if more:
            parsed = await client.chat.completions.parse(model=MODEL, messages=messages, **declared, **more)
            return parsed.choices[0].message
        return (await client.chat.completions.create(model=MODEL, messages=messages, **declared)).choices[0].message

    async def say(text: str, answer: Any) -> str:
        messages.append({"role": "user", "content": text})
        for _ in range(STEPS):
            message = await ask(**({"response_format": answer} if answer else {}))
            calls = message.tool_calls or []
            sent = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.function.name, "arguments": c.function.arguments},
                }
                for c in calls
            ]
            messages.append({"role": "assistant", "content": message.content, **({"tool_calls": sent} if sent else {})})
            if not calls:
                return message.content or ""
            for call in calls:
                result = look_up(tools, call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        raise RuntimeError("too many steps")

    return say


converse(make)
