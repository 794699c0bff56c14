"""A dpe service of its own process whose analysis finds the risk that an answer names: python -m tests.faults.parts.dpe_child

It is what the suite puts in the place of the models wherever their verdict is not what is tested: known risks, known charges.
Everything else of it is the product's: the server, health, deadlines, drain.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal

from interlock.runtime import logging
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.sidecar.world import _dpe_service as told_dpe


async def main() -> None:
    settings = Settings()
    logging.configure(settings.log_level)
    server = RpcServer([told_dpe()], settings, port=settings.dpe_port)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    port = await server.start()
    os.write(1, (json.dumps({"event": "ready", "ports": {"dpe": port}}) + "\n").encode())
    await ended.wait()
    await server.drain()


if __name__ == "__main__":
    asyncio.run(main())
