"""The details of a gRPC status besides its code."""

from __future__ import annotations

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status


def reason_of_status(error: grpc.aio.AioRpcError) -> str:
    """The reason in the ErrorInfo of a status; empty where there is none."""
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    return next((info.reason for detail in (status.details if status else ()) if detail.Unpack(info)), "")
