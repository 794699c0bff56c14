"""The dpe service as a process: from start to its first answer, and what it holds after fifty answers.

python -m bench.dpe_service

CPU seconds are given beside wall seconds: on a machine that does other things too, they say more. The answers are those
of bench.dpe. Prints JSON, the figures last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import grpc
import psutil

from bench.dpe import ANSWERS, figure
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc

ASKED = 50


def requests() -> list[dpe_pb2.AnalyzeRequest]:
    rows = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    return [
        dpe_pb2.AnalyzeRequest(
            outputs=[dpe_pb2.Output(text=row["response"])],
            facts=[common_pb2.Fact(**fact) for fact in row["facts"]],
            query=row.get("query", ""),
        )
        for row in rows
    ]


def main() -> int:
    asked = requests()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "INTERLOCK_STATE_DIR": folder, "INTERLOCK_DPE_PORT": "0", "INTERLOCK_METRICS_PORT": "0",
        }  # fmt: skip
        started = time.perf_counter()
        command = [sys.executable, "-m", "interlock.cli.main", "serve", "dpe", "-o", "json"]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert child.stdout
            port = json.loads(child.stdout.readline())["ports"]["dpe"]
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub = dpe_pb2_grpc.DpeServiceStub(channel)
                stub.Analyze(asked[0], timeout=60)
                first = time.perf_counter() - started
                times = psutil.Process(child.pid).cpu_times()
                for number in range(1, ASKED):
                    stub.Analyze(asked[number % len(asked)], timeout=60)
            resident = psutil.Process(child.pid).memory_info().rss / 2**20
        finally:
            child.terminate()
            child.wait(30)
    print(
        json.dumps(
            {
                "dpe: start to first answer": figure(first, 10.0, "s"),
                "dpe: CPU time from start to first answer": figure(times.user + times.system, 10.0, "s"),
                "memory: dpe after 50 answers": figure(resident, 700.0, "MiB"),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
