"""`helm test`: the sidecar is ready, a governed call is judged and sealed, and the audit service verifies what was sealed."""

import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.common.v1 import common_pb2
from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc

FACT = common_pb2.Fact(id="price", content="The Premium Package costs $1,500 per office.", importance=0.9)
TEXT = "The Premium Package costs $9,700 per office."


def ready(url: str, limit_s: float) -> None:
    """Wait until the sidecar reaches the whole mesh."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError) as error:
            if time.monotonic() > deadline:
                sys.exit(f"the sidecar is not ready: {error}")
            time.sleep(1)


def audit_channel(address: str) -> grpc.Channel:
    """Return a channel to the audit service with the operator's certificate, or in plain text where there is none."""
    files = [os.environ.get(f"INTERLOCK_TLS_{name}_FILE") for name in ("CA", "KEY", "CERT")]
    if not all(files):
        return grpc.insecure_channel(address)
    credentials = grpc.ssl_channel_credentials(*(Path(file).read_bytes() for file in files))
    return grpc.secure_channel(address, credentials, options=[("grpc.ssl_target_name_override", "audit.interlock")])


def main() -> None:
    ready(os.environ.get("SIDECAR_READY", "http://127.0.0.1:7070/readyz"), 120)
    print("health: the sidecar reaches session, policy, dpe and audit")
    with grpc.insecure_channel(os.environ.get("SIDECAR_TARGET", "127.0.0.1:7071")) as channel:
        stub = sidecar_pb2_grpc.SidecarServiceStub(channel)
        asked = sidecar_pb2.CheckRequest(text=TEXT, facts=[FACT], query="What does the Premium Package cost?")
        metadata = [("authorization", "Bearer " + os.environ.get("TEST_API_KEY", "helm-test"))]
        outcome = stub.Check(asked, metadata=metadata, timeout=60).outcome
        # A second window: the first of a session has nothing to chain from.
        asked.context.session_token = outcome.session_token
        outcome = stub.Check(asked, metadata=metadata, timeout=60).outcome
    risk = outcome.headers.get("CRP-Safety-Hallucination-Risk", "")
    if risk not in {"MEDIUM", "HIGH", "CRITICAL"}:
        sys.exit(f"a claim that its fact speaks against was judged {risk or 'nothing'}")
    print(f"governed call: a false claim is {risk}, sealed in session {outcome.session_id}")
    with audit_channel(os.environ["INTERLOCK_AUDIT_ADDRESS"]) as channel:
        stub = audit_pb2_grpc.AuditServiceStub(channel)
        verified = stub.Verify(audit_pb2.VerifyRequest(session_id=outcome.session_id), timeout=30)
    if verified.HasField("refusal") or verified.integrity != common_pb2.CHAIN_INTEGRITY_VALID:
        sys.exit(f"the audit chain does not verify: {verified}")
    print("audit: the chain of the session verifies")


if __name__ == "__main__":
    main()
