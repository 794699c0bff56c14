"""An agent that books in the middle of a saga and waits to be killed: ``python -m tests.support.kernel_saga KERNEL URL``."""

from __future__ import annotations

import sys
import time

from interlock.client.kernel import SafetyKernel, State


def main() -> None:
    from tests.e2e.test_kernel_sagas import BOOK, FEW, NOTE

    kernel = SafetyKernel(20.0, [FEW], min_action_cost=1.0, name=sys.argv[1], base_url=sys.argv[2])
    kernel.prepare(State({"booked": 0, "notes": []}), None)
    with kernel.saga(lifetime_s=2.0) as saga:
        saga.execute(State({"booked": 0, "notes": []}), NOTE)
        saga.perform(BOOK, lambda: None)
        sys.stdout.write("booked\n")
        sys.stdout.flush()
        time.sleep(60)


if __name__ == "__main__":
    main()
