"""A tool server that breaks the rules, each tool in its way: ``python -m tests.support.mcp_hostile``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def say(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(text: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}]}


def called(number: object, name: str) -> None:
    with Path(os.environ["MCP_DONE"]).open("a") as file:
        file.write(name + "\n")
    if name == "hang":
        return
    if name == "garbage":
        sys.stdout.write('not json\n[{"jsonrpc":"2.0"}]\n{"jsonrpc":"2.0","id":true,"result":{}}\n')
        say(id="never-asked", result=result("nobody asked"))
    if name == "huge":
        sys.stdout.write("x" * 300_000)
        sys.stdout.write("\n")
        sys.stdout.flush()
        return
    say(id=number, result=result(f"{name} first"))
    if name == "twice":
        say(id=number, result=result("twice second"))


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            shown = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                     "serverInfo": {"name": "hostile", "version": "1"}}  # fmt: skip
            say(id=message["id"], result=shown)
        elif message.get("method") == "tools/call":
            called(message["id"], message["params"]["name"])
        elif "id" in message and "method" in message:
            say(id=message["id"], result={"echo": message})


if __name__ == "__main__":
    main()
