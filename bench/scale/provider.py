"""A provider that answers at once, in a process of its own: python -m bench.scale.provider"""

from __future__ import annotations

import asyncio

import uvloop

from bench.overload import Provider
from bench.sidecar import ready


async def serve() -> None:
    provider = Provider(wait_s=0.0)
    await provider.start()
    ready(int(provider.url.rsplit(":", 1)[1].removesuffix("/v1")))
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
