"""Resident memory of an idle sidecar without models: `interlock serve sidecar`, after it is up.

python -m bench.memory
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

import psutil


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "INTERLOCK_STATE_DIR": folder, "INTERLOCK_SIDECAR_HTTP_PORT": "0",
            "INTERLOCK_SIDECAR_GRPC_PORT": "0",
        }  # fmt: skip
        command = [sys.executable, "-m", "interlock.cli.main", "serve", "sidecar", "-o", "json"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            ports = json.loads(process.stdout.readline())["ports"]
            urllib.request.urlopen(f"http://127.0.0.1:{ports['sidecar_http']}/healthz", timeout=5).read()
            time.sleep(2)
            resident = psutil.Process(process.pid).memory_info().rss / 2**20
        finally:
            process.kill()
    figure = {"value": resident, "target": 80, "better": "lower", "unit": "MiB"}
    print(json.dumps({"memory: idle sidecar without models": figure}))


if __name__ == "__main__":
    main()
