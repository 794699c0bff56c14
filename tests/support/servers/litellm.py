"""A real LiteLLM proxy as a process, with the configuration of deploy/litellm; it is no dependency of ours and has an environment of its own."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.support.paths import ROOT
from tests.support.servers.ports import free_port

SHIPPED = ROOT / "deploy" / "litellm" / "config.yaml"
START_S = 110.0
KEY, MASTER = "interlock-and-litellm", "sk-of-the-proxy"
"""What LiteLLM presents to Interlock, and what its clients present to LiteLLM."""

_PROGRAM = Path(os.environ.get("LITELLM_VENV", "none")) / "bin" / "litellm"
needs_litellm = pytest.mark.skipif(
    not _PROGRAM.exists(),
    reason="LiteLLM's proxy is not installed: make litellm, or LITELLM_VENV=folder of its environment",
)


class RunningLiteLLM:
    """The proxy on a free port, for as long as the ``with`` block lasts."""

    def __init__(self, folder: Path, *, interlock: str, provider: str) -> None:
        """*interlock*: base URL of the guardrail. *provider*: base URL of the provider, with its /v1."""
        self.folder, self.port, self.log = folder, free_port(), folder / "litellm.log"
        self._env = {
            "PATH": f"{_PROGRAM.parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches its price list
            "LITELLM_MASTER_KEY": MASTER,
            "PROVIDER_BASE_URL": provider,
            "PROVIDER_API_KEY": "sk-provider",
            "GUARDRAIL_BASE_URL": interlock,
            "INTERLOCK_LITELLM_KEY": KEY,
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> RunningLiteLLM:
        command = [str(_PROGRAM), "--config", str(SHIPPED), "--host", "127.0.0.1", "--port", str(self.port)]
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(command, cwd=self.folder, env=self._env, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._child.poll() is None:
            try:
                if httpx.get(f"{self.url}/health/liveliness", trust_env=False).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        self.__exit__()
        raise AssertionError(f"LiteLLM does not answer\n{self.log.read_text()[-4000:]}")

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        try:
            self._child.wait(15)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
