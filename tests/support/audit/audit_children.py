"""Processes with the real audit service that are killed, and the check that nothing acknowledged is lost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from interlock.audit.sealing.verify import examine
from interlock.domain.chain.chain import Integrity
from tests.support.audit.audit import KEYRING, session_id
from tests.support.audit.audit_child import a_log
from tests.support.paths import ROOT


class Child:
    """A process with the real audit service; it does not outlive its ``with``."""

    def __init__(self, place: Path | str, *arguments: object, failpoints: str = "") -> None:
        command = [sys.executable, "-m", "tests.support.audit.audit_child", str(place), *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'services'}:{ROOT}", "INTERLOCK_FAILPOINTS": failpoints}
        self._errors = tempfile.TemporaryFile("w+b")
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self.said: list[list[str]] = []

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def hear(self, lines: int) -> None:
        """Wait until the child has said *lines* more."""
        assert self._process.stdout is not None
        for _ in range(lines):
            line = self._process.stdout.readline()
            assert line, self._why()
            self.said.append(line.decode().split())

    def go(self) -> None:
        """Let a child that waits for it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """kill -9, then hear what it had said before that; a line cut short was not said."""
        self._process.kill()
        out, _ = self._process.communicate()
        self.said += [line.decode().split() for line in out.splitlines(keepends=True) if line.endswith(b"\n")]

    def dies(self) -> None:
        """Hear all until it kills itself, as a failpoint of its own makes it."""
        out, _ = self._process.communicate(timeout=60)
        self.said += [line.decode().split() for line in out.splitlines(keepends=True) if line.endswith(b"\n")]
        assert self._process.returncode == -signal.SIGKILL, self._why()

    def end(self) -> None:
        """Hear all until it ends by itself, which it must do well."""
        out, _ = self._process.communicate(timeout=60)
        self.said += [line.decode().split() for line in out.splitlines()]
        assert self._process.returncode == 0, self._why()

    @property
    def acknowledged(self) -> list[list[str]]:
        return [words for words in self.said if words[0] in {"E", "W"}]

    def _why(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode()[-2000:]


def check(place: Path | str, acknowledged: list[list[str]]) -> None:
    """Assert that everything acknowledged is there as acknowledged, and that every chain verifies."""
    with contextlib.closing(a_log(place)) as reader:
        chains = {session: reader.chain(session_id(session)) for session in {int(words[1]) for words in acknowledged}}
    kept = set()
    for session, chain in chains.items():
        found = examine(chain, session_id(session), KEYRING)
        assert found.integrity in {Integrity.VALID, Integrity.UNVERIFIED}, found.faults[:3]
        kept |= {("E", session, e.sequence, json.loads(e.data_json).get("n", "")) for e in chain.events}
        kept |= {("W", session, w.window_number, w.hmac) for w in chain.windows}
    for kind, session, position, value in acknowledged:
        record = (kind, int(session), int(position), value)
        assert record in kept, f"acknowledged and lost: {record}"
