"""The agents of the suite: which framework, which program, what is missing where it cannot run."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NODE = HERE / "node"
VENV = Path(os.environ.get("AGENTS_VENV", ROOT / ".venv-agents"))


@dataclass(frozen=True)
class Agent:
    """One agent: a program that reads a conversation and has it."""

    name: str
    framework: str
    """What the table calls it."""
    package: str
    """Package whose version the table gives."""
    program: str
    """File below ``drivers`` or ``node``."""
    options: tuple[str, ...] = ()
    everywhere: bool = False
    """Whether the environment of our own tests can run it too."""
    one_key: bool = False
    """Whether all of its clean conversations share one key: the caller's envelope then bears them all."""

    @property
    def is_node(self) -> bool:
        """Whether it runs on Node."""
        return self.program.endswith(".mjs")

    def command(self) -> list[str]:
        """Return the command that runs it."""
        if self.is_node:
            return [shutil.which("node") or "node", str(NODE / self.program), *self.options]
        python = VENV / "bin" / "python"
        interpreter = sys.executable if self.everywhere and not python.exists() else str(python)
        return [interpreter, str(HERE / "drivers" / self.program), *self.options]

    def missing(self) -> str:
        """Return what it cannot run without, in words; empty where all is there."""
        if self.is_node and not shutil.which("node"):
            return "Node is not installed"
        if self.is_node and not (NODE / "node_modules" / self.package).exists():
            return f"the npm package {self.package} is not installed"
        if not self.is_node and not self.everywhere and not (VENV / "bin" / "python").exists():
            return f"the environment {VENV.name} is not there"
        return ""

    def version(self) -> str:
        """Return its version: of the lock file of npm, of the pinned requirements, or of our own environment where it runs there."""
        if self.is_node:
            lock = json.loads((NODE / "package-lock.json").read_text(encoding="utf-8"))
            return str(lock["packages"][f"node_modules/{self.package}"]["version"])
        if self.command()[0] == sys.executable:
            return version(self.package)
        pinned = (HERE / "requirements.txt").read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(self.package)}==(\S+)$", pinned, re.MULTILINE)
        return found[1] if found else "?"


AGENTS = (
    Agent("openai-python", "plain loop, openai (Python)", "openai", "plain.py", everywhere=True, one_key=True),
    Agent(
        "openai-python-stream",
        "plain loop, streamed, openai (Python)",
        "openai",
        "plain.py",
        ("--stream",),
        everywhere=True,
    ),
    Agent("openai-node", "plain loop, openai (Node)", "openai", "plain.mjs"),
    Agent("langgraph", "LangGraph", "langgraph", "langgraph_agent.py"),
    Agent("openai-agents", "OpenAI Agents SDK", "openai-agents", "openai_agents.py"),
    Agent(
        "openai-agents-chat", "OpenAI Agents SDK, chat completions", "openai-agents", "openai_agents.py", ("--chat",)
    ),
    Agent("pydantic-ai", "pydantic-ai", "pydantic-ai-slim", "pydantic_agent.py"),
    Agent("llamaindex", "LlamaIndex", "llama-index-core", "llamaindex_agent.py"),
    Agent("smolagents", "smolagents", "smolagents", "smolagents_agent.py"),
    Agent("autogen", "AutoGen", "autogen-agentchat", "autogen_agent.py"),
    Agent("vercel", "Vercel AI SDK", "ai", "vercel.mjs"),
    Agent("vercel-stream", "Vercel AI SDK, streamed", "ai", "vercel.mjs", ("--stream",)),
    Agent("vercel-responses", "Vercel AI SDK, Responses API", "ai", "vercel.mjs", ("--responses",)),
    Agent(
        "vercel-responses-stream",
        "Vercel AI SDK, Responses API, streamed",
        "ai",
        "vercel.mjs",
        ("--responses", "--stream"),
    ),
)


def agent(name: str) -> Agent:
    """Return the agent of that *name*."""
    return next(one for one in AGENTS if one.name == name)
