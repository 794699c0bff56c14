"""The real sidecar, which asks every process of a service in turn where its address names several: python -m bench.scale.sidecar

gRPC's own rule takes the first that answers, and a sidecar would fill one audit service with what one sidecar brings.
"""

from __future__ import annotations

import sys

from interlock.cli.main import run
from interlock.runtime.rpc import mesh

IN_TURN = '{"loadBalancingConfig": [{"round_robin": {}}]}'

if __name__ == "__main__":
    mesh._OPTIONS = (*mesh._OPTIONS, ("grpc.service_config", IN_TURN))  # type: ignore[assignment]
    sys.argv[1:] = ["serve", "sidecar"]
    run()
