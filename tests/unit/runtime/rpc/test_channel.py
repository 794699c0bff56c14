"""The channel that calls a servicer as a function."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.api.policy.v1 import policy_pb2
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.channel import LocalChannel, LocalContext
from tests.support.servers.probe import AuditProbe, PolicyProbe
from tests.support.texts.canary import found_in


@pytest.fixture
def policy():
    return PolicyServiceStub(LocalChannel(PolicyService=PolicyProbe()))


async def test_answer_is_the_servicers_own_message(policy):
    """What the servicer returns is handed over."""
    answer = await policy.Parse(policy_pb2.ParseRequest(text="hello"))

    assert answer.canonical_text == "hello"


@pytest.mark.req("SVC-4")
async def test_timeout_is_a_refusal(policy):
    """A call that takes longer than its timeout is refused as it is over gRPC."""
    with pytest.raises(Refused) as raised:
        await policy.Parse(policy_pb2.ParseRequest(text="wait"), timeout=0.01)

    assert (raised.value.kind, raised.value.reason) == (Kind.TIMEOUT, "DEADLINE_EXCEEDED")


@pytest.mark.req("SVC-4")
async def test_stream_timeout_is_a_refusal():
    """A stream that takes longer than its timeout is refused too."""
    audit = AuditServiceStub(LocalChannel(AuditService=AuditProbe()))
    with pytest.raises(Refused, match="DEADLINE_EXCEEDED"):
        async for _message in audit.Export(audit_pb2.ExportRequest(session_id="wait"), timeout=0.01):
            pass


@pytest.mark.req("SVC-3")
async def test_defect_is_internal_without_its_text(policy):
    """A defect of the servicer reaches the caller as INTERNAL, with nothing of its text."""
    with pytest.raises(Refused) as raised:
        await policy.Parse(policy_pb2.ParseRequest(text="crash"))

    assert raised.value.kind is Kind.INTERNAL
    assert not found_in(str(raised.value))


async def test_cancelling_the_caller_cancels_the_handler(policy):
    """A caller that gives up takes the handler with it."""
    task = asyncio.create_task(policy.Parse(policy_pb2.ParseRequest(text="wait")))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_absent_servicer_is_a_usage_error(policy):
    """A call to a service that this process does not have is a mistake of the wiring, said plainly."""
    audit = AuditServiceStub(LocalChannel(PolicyService=PolicyProbe()))

    with pytest.raises(grpc.aio.UsageError, match="AuditService"):
        await audit.GetWindow(audit_pb2.GetWindowRequest())


def test_remaining_time_counts_down():
    """The context tells what is left of the timeout, never more, and nothing without one."""
    remaining = LocalContext(5.0).time_remaining()

    assert remaining is not None
    assert 0 < remaining <= 5.0
    assert LocalContext(None).time_remaining() is None
