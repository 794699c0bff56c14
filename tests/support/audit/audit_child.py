"""A process with the real audit service, for tests that kill it: python -m tests.support.audit.audit_child PLACE MODE ...

PLACE is a file or the URL of a PostgreSQL database; INTERLOCK_FAILPOINTS may say where it kills itself. Every acknowledgement is one line on standard output, written after the service has answered:
``E SESSION SEQUENCE N`` for an event and ``W SESSION NUMBER HMAC`` for a window.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import resource
import sys
from pathlib import Path

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.store.log import AuditLog
from interlock.audit.store.log_postgres import PostgresLog
from interlock.audit.store.log_sql import SqliteLog
from interlock.runtime import failpoints
from tests.support.audit.audit import Service, event, serving, session_id, window

SESSIONS = 4
RECORDERS = 4


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def record(service: Service, session: int, n: object) -> str:
    answer = await service.record(event(data=f'{{"n":"{n}"}}'), session=session)
    if not answer.HasField("refusal"):
        say("E", session, answer.sequence, n)
    return answer.refusal.reason


async def record_for_ever(service: Service, session: int, name: str) -> None:
    for n in itertools.count():
        await record(service, session, f"{os.getpid()}-{name}-{n}")


async def seal_for_ever(service: Service, session: int) -> None:
    sealed = service.log.chain(session_id(session)).windows
    number, tip = len(sealed), sealed[-1].hmac if sealed else ""
    while True:
        number += 1
        answer = await service.stub.Append(window(number, tip, session=session))
        assert not answer.HasField("refusal"), answer.refusal
        tip = answer.hmac
        say("W", session, number, tip)


async def run_until_killed(service: Service) -> None:
    """Write on all sessions at once."""
    await asyncio.gather(
        *(seal_for_ever(service, session) for session in range(1, SESSIONS + 1)),
        *(record_for_ever(service, session, str(n)) for session in range(1, SESSIONS + 1) for n in range(RECORDERS)),
    )


async def run_shared(service: Service, count: int) -> None:
    """Write *count* events to one session that others write to too."""
    await record(service, 1, "ready")
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(record(service, 1, f"{os.getpid()}-{n}") for n in range(count)))


async def run_against_limit(service: Service) -> None:
    """Write while no file may grow, say why that fails, then lift the limit and write again."""
    await record(service, 1, "first")
    service.log.ping()  # reading goes on working: only the writer can tell
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    answers = await asyncio.gather(*(record(service, 1, n) for n in range(20)))
    say("REFUSED", *sorted(set(answers)))
    say("MISSING", *await service.unready_dependencies())
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    say("MISSING", *await service.unready_dependencies())
    await record(service, 1, "after")


async def run_erasing(service: Service) -> None:
    """Seal two windows that said something, then erase them, and say so."""
    for number, answer in enumerate(await service.seal(2, content="Said."), 1):
        say("W", 1, number, answer.hmac)
    request = audit_pb2.EraseSessionRequest(session_id=session_id(), approval_id="a", reviewer_id="r")
    say("ERASED", (await service.stub.EraseSession(request)).erased)


def a_log(place: Path | str) -> AuditLog:
    """Return the log at a place."""
    return PostgresLog(str(place)) if str(place).startswith("postgresql://") else SqliteLog(Path(place))


async def main(place: str, mode: str, *arguments: str) -> None:
    # Neither on standard output, which is for acknowledgements, nor in a file, which may not grow.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    failpoints.configure()
    modes = {"run": run_until_killed, "shared": run_shared, "limit": run_against_limit, "erase": run_erasing}
    run = modes[mode]
    async with serving(a_log(place)) as service:
        await service.appender.submit(lambda writing: writing.touch())
        await run(service, *map(int, arguments))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
