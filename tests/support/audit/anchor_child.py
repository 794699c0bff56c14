"""A process with the real audit service that seals and publishes three times: for tests that kill it on the way."""

from __future__ import annotations

import asyncio
import os

from interlock.runtime import failpoints
from interlock.runtime.settings.model import Settings
from tests.support.audit.auditors import audited


async def main() -> None:
    failpoints.configure()
    async with audited(Settings(checkpoint_s=3600, checkpoint_entries=1_000_000)) as audit:
        for _ in range(3):
            answer = await audit.seal(session=os.getpid())
            assert not answer.HasField("refusal"), answer.refusal
            await audit.notary.round()


if __name__ == "__main__":
    asyncio.run(main())
