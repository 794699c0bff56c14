"""NVIDIA's tritonserver from the ``nvidia-pytriton`` wheel, on CPU: for laptops and tests. Servers use NVIDIA's image.

It binds loopback by default, speaks only gRPC, loads only the repository that it was started with, and allows no
administrative calls. It and its interpreters die with their owner.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path

import grpc

from interlock.cli.local.tethered import tethered
from interlock.domain.errors import Refused, invalid, unavailable

START_LIMIT_S = 120.0
STOP_LIMIT_S = 15.0
STARTS = 3
"""Start attempts if it dies by a signal: its models sometimes collide in shared memory (lock_exception)."""
LOG = "triton.log"
INSTALL = "pip install --no-deps nvidia-pytriton==0.7.0"

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where the python backend puts its regions
_OURS = "interlock_triton_"
_ADMINISTRATIVE = "model-repository,shared-memory,logging,trace"
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class TritonServer:
    """One tritonserver over a model repository. ``start`` it, ``stop`` it; after a ``kill`` it can be started again."""

    def __init__(self, repository: Path, work: Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.address = ""
        self.log = work.absolute() / LOG
        self._repository, self._work, self._host, self._port = repository.absolute(), work.absolute(), host, port
        self._regions = f"{_OURS}{os.getpid()}_{secrets.token_hex(4)}_"
        self._process: subprocess.Popen[bytes] | None = None
        self._crashed = False

    @property
    def pid(self) -> int | None:
        """Process id of the server; ``None`` when it does not run."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> str:
        """Start it, wait until every model is ready, and return its HOST:PORT. It ends with the thread that starts it.

        Refused with TRITON_MISSING, TRITON_PYTHON_UNSUPPORTED, PORT_TAKEN, or TRITON_FAILED, which names the log.
        """
        home = _home()
        self._port = _free(self._host, self._port)
        self.address = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
        _sweep()
        self.log.unlink(missing_ok=True)
        for left in reversed(range(STARTS)):
            try:
                return self._started(home)
            except Refused:
                if not left or not self._crashed:
                    raise
        raise AssertionError

    def _started(self, home: Path) -> str:
        self._crashed = False
        try:
            backends = _backends(home, self._work)
            with self.log.open("ab") as output:
                self._process = subprocess.Popen(  # noqa: S603 - our own wheel's binary, arguments of our own
                    tethered(*self._command(home, backends)),
                    env=_environment(home), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    start_new_session=True,
                )  # fmt: skip
            self._until_ready(self._process)
        except OSError as error:
            raise self._failed(type(error).__name__) from None
        except BaseException:
            self.kill()
            raise
        return self.address

    def stop(self) -> None:
        """Stop it and its interpreters; kill them if they do not end in time."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_LIMIT_S)
        self.kill()

    def kill(self) -> None:
        """Kill it immediately, as in a machine failure."""
        if self._process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # its own group: the interpreters are in it
        self._process.wait()
        self._process = None
        for region in _SHARED_MEMORY.glob(f"{self._regions}*"):
            region.unlink(missing_ok=True)

    def _command(self, home: Path, backends: Path) -> list[str]:
        return [
            str(home / "bin" / "tritonserver"),
            f"--model-repository={self._repository}",
            f"--backend-directory={backends}",
            f"--backend-config=python,shm-region-prefix-name={self._regions}",
            "--model-control-mode=none",
            "--disable-auto-complete-config",
            "--allow-http=false",
            "--allow-metrics=false",
            f"--grpc-address={self._host}",
            f"--grpc-port={self._port}",
            # No caller knows the value, so these calls are disabled.
            f"--grpc-restricted-protocol={_ADMINISTRATIVE}:interlock={secrets.token_hex(16)}",
            f"--exit-timeout-secs={STOP_LIMIT_S:.0f}",
        ]

    def _until_ready(self, process: subprocess.Popen[bytes]) -> None:
        from tritonclient.grpc import service_pb2, service_pb2_grpc

        options = [("grpc.enable_http_proxy", 0), ("grpc.max_reconnect_backoff_ms", 200)]
        deadline = time.monotonic() + START_LIMIT_S
        with grpc.insecure_channel(self.address, options) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            while time.monotonic() < deadline:
                if process.poll() is not None:
                    self._crashed = process.returncode < 0
                    raise self._failed(f"it ended with {process.returncode}")
                with suppress(grpc.RpcError):
                    if stub.ServerReady(service_pb2.ServerReadyRequest(), timeout=1.0).ready:
                        return
                time.sleep(0.05)
        raise self._failed(f"it is not ready after {START_LIMIT_S:g} s")

    def _failed(self, why: str) -> Refused:
        return unavailable(
            "TRITON_FAILED", f"tritonserver did not start: {why}", retry_after_ms=0, hint=f"see {self.log}"
        )


def _home() -> Path:
    """Return the server's folder in the wheel, without importing the wheel."""
    spec = importlib.util.find_spec("pytriton")
    home = Path(spec.origin).parent / "tritonserver" if spec and spec.origin else Path()
    if not (home / "bin" / "tritonserver").is_file() or importlib.util.find_spec("tritonclient") is None:
        hint = f"pip install 'interlock[dpe,triton]' and {INSTALL}; or set INTERLOCK_TRITON_URL to your own server"
        raise unavailable("TRITON_MISSING", "there is no tritonserver here", retry_after_ms=0, hint=hint)
    return home


def _backends(home: Path, work: Path) -> Path:
    """Return a backend folder with the interpreter of this Python, which must be next to the backend's library."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = home / "python_backend_stubs" / version / "triton_python_backend_stub"
    if not stub.is_file() or not _library_folder():
        hint = "use a CPython from 3.11 to 3.13 with a shared library (apt: libpython3.x; python.org's images have it)"
        raise unavailable(
            "TRITON_PYTHON_UNSUPPORTED", f"no interpreter for Python {version} here", retry_after_ms=0, hint=hint
        )
    folder = work / "backends" / "python"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    there = home / "backends" / "python"
    for path in (there / "libtriton_python.so", there / "triton_python_backend_utils.py", stub):
        (folder / path.name).symlink_to(path)
    return folder.parent


def _library_folder() -> str:
    """Return the folder of this Python's shared library, or the loader's folder if only the loader finds it."""
    name = str(sysconfig.get_config_var("INSTSONAME") or "")
    for folder in (sysconfig.get_config_var("LIBDIR"), f"{sys.base_prefix}/lib"):
        if folder and ".so" in name and (Path(folder) / name).is_file():
            return str(folder)
    try:
        ctypes.CDLL(f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0")
    except OSError:
        return ""
    return "/usr/lib"


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of the server: none of our settings, and so none of our keys."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    packages = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    return {
        **kept,
        "LD_LIBRARY_PATH": f"{home.parents[1] / 'nvidia_pytriton.libs'}:{_library_folder()}",
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _free(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise invalid(
                "PORT_TAKEN", f"{host} port {port}: {type(error).__name__}", hint="choose another with --port"
            ) from None
        found: int = probe.getsockname()[1]
        return found


def _sweep() -> None:
    """Remove the shared memory of servers whose owner was killed: no other process knows the names."""
    for region in _SHARED_MEMORY.glob(f"{_OURS}*"):
        owner = region.name.removeprefix(_OURS).partition("_")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            region.unlink(missing_ok=True)
