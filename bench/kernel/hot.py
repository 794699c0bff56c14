"""Sixteen processes on one kernel: what all of them get done in a time, and how evenly.

    python -m bench.kernel.hot TARGET KERNEL SECONDS

A child says when it is ready, begins at the line that it is sent, and prints how many of its actions were answered.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import uuid

import grpc

from bench.kernel.meshes import ACTION
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.kernel.v1.kernel_pb2_grpc import KernelServiceStub

PROCESSES, SECONDS = 16, 6.0


def act(target: str, kernel: str, seconds: float) -> None:
    """Execute one action after the other until the time is over."""
    stub, done, refused = KernelServiceStub(grpc.insecure_channel(target)), 0, 0
    stub.Describe(kernel_pb2.DescribeRequest(kernel=kernel), timeout=60)
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        asked = kernel_pb2.ExecuteRequest(kernel=kernel, action=ACTION, key=uuid.uuid4().hex)
        try:
            done += stub.Execute(asked, timeout=30).verdict.approved
        except grpc.RpcError:
            refused += 1
    print(done, refused, flush=True)


def hot(target: str, kernel: str) -> tuple[float, float, int]:
    """Return actions per second of all, the lowest share over the mean, and how many calls were refused."""
    command = [sys.executable, "-m", "bench.kernel.hot", target, kernel, str(SECONDS)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    try:
        assert all(child.stdout.readline() == "ready\n" for child in children)
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        told = [tuple(map(int, child.communicate(timeout=60)[0].split())) for child in children]
    finally:
        for child in children:
            child.kill()
    done, refused = zip(*told, strict=True)
    return sum(done) / SECONDS, min(done) / statistics.mean(done), sum(refused)


if __name__ == "__main__":
    act(sys.argv[1], sys.argv[2], float(sys.argv[3]))
