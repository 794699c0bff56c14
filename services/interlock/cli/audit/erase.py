"""``interlock audit erase`` and ``interlock audit migrate``: erase with a mark, and prepare a PostgreSQL database."""

from __future__ import annotations

import typer

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.cli.asking import asked
from interlock.cli.output import Format, Output, print_json, refusals
from interlock.domain import approval, ids
from interlock.domain.errors import invalid
from interlock.runtime.clock import system_clock
from interlock.runtime.settings.loading import load

SESSION = typer.Argument(help="Session id: crp_sess_ and 32 hex digits.")
APPROVAL = typer.Option(..., "--approval", help="A reviewer's approval of the action erase for this session.")
REASON = typer.Option(
    "ERASURE_REQUEST", "--reason", help="ERASURE_REQUEST, CONSENT_WITHDRAWN, LEGAL_ORDER or OPERATOR_DECISION."
)
OWNER = typer.Option(
    ..., "--owner-url", envvar="INTERLOCK_AUDIT_OWNER_URL", help="postgresql:// URL of the role that owns the tables."
)
ROLE = typer.Option("", "--role", help="Role that the service connects as. Default: the user of INTERLOCK_AUDIT_URL.")


def erase(session_id: str = SESSION, token: str = APPROVAL, reason: str = REASON, output: Output = Format.TEXT) -> None:
    """Destroy a session's data key, with a reviewer's approval. Its contents and reports can never be read again.

    Its chain still verifies, as TRUNCATED, and names the reviewer and the reason. Two persons are needed: an operator runs
    this command, and a reviewer approves. Earlier copies of the database still hold the key. Exit 0: erased, now or before.
    2: refused.
    """
    with refusals(output):
        settings = load()
        ids.check("crp_sess_", session_id)
        asking = policy_pb2.VerifyApprovalRequest(token=token, action=approval.ERASE, scope={"session": session_id})
        verified = asked(
            "policy",
            settings,
            lambda channel: policy_pb2_grpc.PolicyServiceStub(channel).VerifyApproval(
                asking, timeout=settings.rpc_timeout_s
            ),
        )
        request = audit_pb2.EraseSessionRequest(
            session_id=session_id, approval_id=verified.approval_id, reviewer_id=verified.reviewer_id, reason=reason
        )
        answer = asked(
            "audit",
            settings,
            lambda channel: audit_pb2_grpc.AuditServiceStub(channel).EraseSession(
                request, timeout=settings.rpc_timeout_s
            ),
        )
    if output is Format.JSON:
        print_json({"session_id": session_id, "erased": answer.erased, "reviewer_id": verified.reviewer_id})
    else:
        typer.echo(f"{'erased' if answer.erased else 'was erased already'}: {session_id}")


def migrate(owner_url: str = OWNER, role: str = ROLE, output: Output = Format.TEXT) -> None:
    """Create or update the audit log's tables on PostgreSQL as their owner, and grant the service's role its rights.

    The service then connects as a role that may add and read, but not change or delete. Exit 0: done. 2: refused.
    """
    with refusals(output):
        import psycopg

        from interlock.audit.store import database_postgres as database

        granted = role or _role(load().audit_url)
        try:
            with database.connect(owner_url, limit_s=60) as connection:
                applied = database.migrate(connection, system_clock)
                database.grant(connection, granted)
        except (psycopg.Error, OSError) as error:
            failed = database.store_failed(error, owner_url)
            failed.metadata["hint"] = failed.hint
            raise failed from None
    if output is Format.JSON:
        print_json({"applied": applied, "role": granted})
    else:
        typer.echo(f"{applied} migrations applied; {granted} may add and read")


def _role(url: str) -> str:
    from psycopg.conninfo import conninfo_to_dict

    found = conninfo_to_dict(url).get("user") if url.startswith(("postgresql://", "postgres://")) else None
    if not found:
        raise invalid(
            "ROLE_MISSING", "the role of the service is not known", hint="--role NAME, or INTERLOCK_AUDIT_URL"
        )
    return str(found)
