"""Ports that the tests' servers are told: none twice, none of another process, none that the kernel lends out."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from tests.support.paths import ROOT
from tests.support.servers.ports import BLOCK, FIRST, free_port, free_ports

CHILD = """
import json, sys
from tests.support.servers.ports import free_ports
print(json.dumps(free_ports(int(sys.argv[1]))), flush=True)
sys.stdin.read()
"""


def child(count: int) -> subprocess.Popen[str]:
    """Start a process that takes *count* ports, prints them, and lives until its standard input is closed."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'services'}:{ROOT}"}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(count)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_no_port_is_returned_twice():
    """More ports than a block holds, some alone and some together, all different."""
    taken = [free_port() for _ in range(BLOCK)] + free_ports(10) + [free_port()]

    assert len(set(taken)) == len(taken)


def test_processes_that_live_at_the_same_time_share_no_port():
    """Three processes, as xdist workers are, and this one."""
    children = [child(BLOCK + 1) for _ in range(3)]
    taken = [json.loads(one.stdout.readline()) for one in children] + [free_ports(5)]
    for one in children:
        one.communicate()

    assert sum(map(len, taken)) == len(set().union(*taken))


def test_a_port_in_use_is_passed_over():
    """A server of another program on the next port is left alone."""
    first = free_port()
    while (first + 1 - FIRST) % BLOCK == 0:  # the next port is of another block, which may be another process's
        first = free_port()
    with socket.socket() as other:
        other.bind(("127.0.0.1", first + 1))
        following = free_ports(2)

    assert first + 1 not in following
