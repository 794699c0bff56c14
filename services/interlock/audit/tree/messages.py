"""Verdicts on chains and trees, as messages."""

from __future__ import annotations

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.export.export import text, to_message
from interlock.audit.tree.walk import Tree, TreeLink
from interlock.domain.chain.chain import Verification
from interlock.domain.chain.provenance import Trail


def verification_message(found: Verification) -> audit_pb2.VerifyResponse:
    """Return the verdict on one chain."""
    return audit_pb2.VerifyResponse(
        integrity=common_pb2.ChainIntegrity.ValueType(int(found.integrity)),
        events=found.events,
        windows=found.windows,
        faults=[
            audit_pb2.Fault(what=f.what, index=f.index, reason=f.reason, window_id=f.window_id) for f in found.faults
        ],
        chain_tip=text(found.chain_tip),
        charged_micros=found.charged_micros,
        marks=map(to_message, found.marks),
    )


def tree_message(tree: Tree) -> audit_pb2.VerifyTreeResponse:
    """Return the verdict on a tree."""
    return audit_pb2.VerifyTreeResponse(
        integrity=common_pb2.ChainIntegrity.ValueType(int(tree.integrity)),
        sessions=map(_session, tree.trails),
        links=map(_link, tree.links),
        broken=text(tree.broken),
        charged_micros=tree.charged_micros,
    )


def _session(trail: Trail) -> audit_pb2.VerifiedSession:
    return audit_pb2.VerifiedSession(
        session_id=trail.session_id,
        parent_session_id=text(trail.created.parent_session_id),
        agent_type=text(trail.created.agent_type),
        loop_depth=max(-1, min(trail.created.loop_depth, 2**31 - 1)),
        chain=verification_message(trail.found),
    )


def _link(link: TreeLink) -> audit_pb2.Link:
    return audit_pb2.Link(
        kind=link.kind,
        parent_session_id=text(link.parent_session_id),
        child_session_id=text(link.child_session_id),
        chain_tip=text(link.chain_tip),
        window_id=text(link.window_id),
        fault=link.fault,
    )
