"""Sessions as GetDag returns them: the example of SPEC-004 Appendix A, and a tree with everything that can go wrong."""

from __future__ import annotations

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2

RISKS = {name: getattr(common_pb2, f"RISK_LEVEL_{name}") for name in ("LOW", "MEDIUM", "HIGH", "CRITICAL")}


def window(
    name: str, number: int, pattern: str, parents: str, tier: str, risk: str, budget: int, **fields
) -> session_pb2.Window:
    """Return a window; *name* is also its id, and *parents* are names."""
    given = {
        "window_id": name,
        "window_number": number,
        "parent_ids": parents.split(),
        "pattern": pattern,
        "strategy": "push",
        "quality_tier": tier,
        "risk_level": RISKS.get(risk, 0),
        "safety_budget_micros": budget * 10_000,
        "hmac": "sha256:" + (name.encode().hex() + "0" * 64)[:64],
        "timestamp": f"2026-05-25T10:00:00.{number:06d}Z",
        "status": "COMPLETED",
    }
    return session_pb2.Window(**{**given, **fields})


def appendix_a() -> session_pb2.Session:
    """SPEC-004 Appendix A as written: its windows, tiers, risks and budgets."""
    return session_pb2.Session(
        session_id="crp_sess_7f3a9bc2",
        root_session_id="crp_sess_7f3a9bc2",
        status=session_pb2.SESSION_STATUS_ACTIVE,
        breaker=common_pb2.BREAKER_STATE_CLOSED,
        safety_budget_micros=800_000,
        windows=[
            window("w1", 1, "LINEAR", "", "A", "LOW", 100),
            window("w2a", 2, "FAN_OUT", "w1", "A", "LOW", 95),
            window("w2b", 2, "FAN_OUT", "w1", "A", "MEDIUM", 90),
            window("w2c", 2, "FAN_OUT", "w1", "B", "LOW", 95),
            window("w3a", 3, "LINEAR", "w2a", "B", "HIGH", 80),
            window(
                "w4", 4, "FAN_IN", "w3a w2b w2c", "B", "MEDIUM", 80,
                edges=[
                    session_pb2.Edge(source_id="w3a", target_id="w4", transfer_type=session_pb2.TRANSFER_TYPE_SUMMARY, transferred_tokens=120),
                    session_pb2.Edge(source_id="w2b", target_id="w4", transfer_type=session_pb2.TRANSFER_TYPE_RESULT_ONLY),
                ],
            ),
        ],
    )  # fmt: skip


def troubled(agent: str = "specialist_legal") -> list[session_pb2.Session]:
    """An orchestrator with a failed and a held window, a halted specialist, and one that has said nothing yet."""
    root = session_pb2.Session(
        session_id="crp_sess_root",
        status=session_pb2.SESSION_STATUS_ACTIVE,
        breaker=common_pb2.BREAKER_STATE_HALF_OPEN,
        safety_budget_micros=280_000,
        agent=session_pb2.AgentTerms(agent_type="orchestrator"),
        windows=[
            window("r1", 1, "LINEAR", "", "A", "LOW", 63),
            window("r2a", 2, "FAN_OUT", "r1", "", "", 0, status="FAILED", hmac=""),
            window("r2b", 2, "FAN_OUT", "r1", "B", "HIGH", 48, status="HELD"),
        ],
    )
    legal = session_pb2.Session(
        session_id="crp_sess_legal",
        parent_session_id="crp_sess_root",
        loop_depth=1,
        status=session_pb2.SESSION_STATUS_HALTED,
        breaker=common_pb2.BREAKER_STATE_OPEN,
        safety_budget_micros=80_000,
        agent=session_pb2.AgentTerms(agent_type=agent),
        windows=[window("l1", 1, "LINEAR", "", "C", "CRITICAL", 8, status="HALTED")],
    )
    new = session_pb2.Session(session_id="crp_sess_new", parent_session_id="crp_sess_root", loop_depth=1)
    return [root, legal, new]
