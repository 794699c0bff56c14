"""What every Python agent of the suite shares: its tools, the user's turns on standard input, one line per turn on output.

Nothing here knows of Interlock. The agents are told where the model is by OPENAI_BASE_URL and OPENAI_API_KEY.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, create_model

MODEL = "gpt-4.1-mini"
PYTHON = {"string": str, "number": float, "integer": int, "boolean": bool}
Say = Callable[[str, type[BaseModel] | None], Awaitable[str]]


def base_url() -> str:
    """Return the address of the model, for the frameworks that do not read OPENAI_BASE_URL themselves."""
    return os.environ["OPENAI_BASE_URL"]


def look_up(tools: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> str:
    """Return what a tool finds: the result of the first row whose conditions the arguments meet."""
    for row in tools[name]["results"]:
        if all(
            str(arguments.get(key, "")).casefold() == str(value).casefold()
            for key, value in row.get("when", {}).items()
        ):
            return row["result"] if isinstance(row["result"], str) else json.dumps(row["result"], ensure_ascii=False)
    return "No results."


def source(tools: Mapping[str, Any]) -> str:
    """Return the tools as a Python module, since the frameworks read signatures, docstrings and even source text."""
    lines = ["from tools_data import found", ""]
    for name, tool in tools.items():
        given = tool["parameters"]
        signature = ", ".join(f"{key}: {PYTHON[kind].__name__}" for key, (kind, _) in given.items())
        lines += [f"def {name}({signature}) -> str:", f'    """{tool["description"]}']
        lines += ["", "    Args:", *(f"        {key}: {text}" for key, (_, text) in given.items())] if given else []
        arguments = ", ".join(f"{key!r}: {key}" for key in given)
        lines += ['    """', f"    return found({name!r}, {{{arguments}}})", ""]
    return "\n".join(lines)


def functions(tools: Mapping[str, Any]) -> list[Callable[..., str]]:
    """Return the tools as functions of a module that was written for this conversation."""
    folder = Path(tempfile.mkdtemp())
    data = type(sys)("tools_data")
    data.found = lambda name, arguments: look_up(tools, name, arguments)  # type: ignore[attr-defined]
    sys.modules["tools_data"] = data
    (folder / "tools.py").write_text(source(tools), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("tools", folder / "tools.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["tools"] = module
    spec.loader.exec_module(module)
    return [getattr(module, name) for name in tools]


def schemas(tools: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools as the OpenAI API declares them, for the plain loops."""
    made = []
    for name, tool in tools.items():
        properties = {key: {"type": kind, "description": text} for key, (kind, text) in tool["parameters"].items()}
        parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
        parameters["additionalProperties"] = False  # as `strict` wants it
        function = {"name": name, "description": tool["description"], "parameters": parameters, "strict": True}
        made.append({"type": "function", "function": function})
    return made


def model_of(fields: Mapping[str, str] | None) -> type[BaseModel] | None:
    """Return the model of a structured answer."""
    if not fields:
        return None
    wanted: dict[str, Any] = {name: (PYTHON[kind], ...) for name, kind in fields.items()}
    return create_model("Answer", **wanted)


def converse(make: Callable[[str, dict[str, Any]], Say]) -> None:
    """Have the conversation on standard input; a turn that fails is told and the user goes on."""
    case = json.load(sys.stdin)

    async def every() -> None:
        say = make(case["system"], case["tools"])
        for turn in case["turns"]:
            try:
                told = {"text": await say(turn["user"], model_of(turn["fields"]))}
            except Exception as error:  # an agent may fail in any way, which is what is measured
                told = {"error": type(error).__name__, "detail": str(error)[:300]}
            print(json.dumps({"turn": turn["number"], **told}, ensure_ascii=False), flush=True)

    asyncio.run(every())
