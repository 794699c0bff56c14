"""What every answer of a service must hold before anything rests on it, in this process and over the network (I10, A-52).

The echo (``echo.py``) shows that an answer belongs to its call. Here an answer that belongs to it, but is incomplete, speaks of
another session or window, or contradicts itself, is refused with ANSWER_CONTRADICTORY. The rules are in ``domain/answers``.

Every method of ``Peers`` needs an entry, or one in ``EMPTY_ANSWERS``, whose answers may be empty and say no more than no.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain.answers import governing
from interlock.domain.budget import FULL, Micros
from interlock.domain.errors import Refused, unavailable
from interlock.runtime.rpc.echo import ANOTHER_CALL, UNDECODABLE_ANSWER, WITHOUT_ECHO

A = TypeVar("A", bound=Any)

CONTRADICTORY = "ANSWER_CONTRADICTORY"

UNUSABLE = frozenset({CONTRADICTORY, WITHOUT_ECHO, ANOTHER_CALL, UNDECODABLE_ANSWER})
"""Why an answer was refused here: what was asked may have been done all the same."""

NEEDED: Mapping[str, tuple[str, ...]] = {
    "StartSessionResponse": ("session.session_id", "session.root_session_id", "token", "record_json"),
    "OpenWindowResponse": ("window.session_id", "window.root_session_id", "window.window_id", "window.window_number"),
    "CommitWindowResponse": ("token", "nonce"),
    "GetSessionResponse": ("session.session_id", "session.root_session_id"),
    "GetDagResponse": ("sessions",),
    "TerminateSessionResponse": ("session.session_id",),
    "HoldWindowResponse": ("held_micros",),
    "RenewWindowResponse": ("until_ms",),
    "SpendWindowResponse": ("window_id",),
    "DelegateResponse": ("grant", "delegation.parent_session_id", "delegation.root_session_id"),
    "ReadGrantResponse": ("delegation.parent_session_id", "delegation.root_session_id"),
    "ResolveResponse": ("policy_hash",),
    "IdentifyPodResponse": ("namespace", "service_account", "pod_name", "pod_uid"),
    "DecideResponse": ("decision.action", "decision.oversight_mode"),
    "VerifyApprovalResponse": ("approval_id", "reviewer_id", "expires_at"),
    "AnalyzeResponse": ("report.stages", "report.risk_level"),
    "AppendResponse": ("hmac", "window_hmac", "timestamp", "report_hash", "trail_id", "integrity", "root_window_id"),
    "RecordResponse": ("sequence",),
    "RecordStopResponse": ("sequence",),
    "VerifyResponse": ("integrity",),
    "GetCheckpointResponse": ("note", "size", "log_size"),
    "GetStandingResponse": ("standing",),
    "GetWindowResponse": ("window_number", "hmac", "timestamp", "status"),
    "GetReportResponse": ("session_id", "window_id", "report_json", "report_hash", "hmac"),
    "GetTreeRecordResponse": ("steps",),
    "GetHeldResponse": ("item.window_id", "item.status"),
    "DecideHeldResponse": ("item.window_id", "item.status"),
    "ReleaseHeldResponse": ("held", "item.window_id", "sealed.hmac"),
    "KeepAnswerResponse": ("expires_at",),
    "GetKeptAnswersResponse": ("answers",),
    "DropKeptAnswerResponse": ("dropped",),
    "StepKernelResponse": ("kernel_id",),
    "StepKernelsResponse": ("kernel_id",),
    "ReadKernelResponse": ("kernel_id",),
    "SealKernelResponse": ("sequence",),
    "SealDecisionResponse": ("sequence",),
}
"""Answer → fields without which it is none. Scalars must not be their default."""

SAME: Mapping[str, tuple[tuple[str, str], ...]] = {
    "StartSessionResponse": (("policy_hash", "session.policy_hash"),),
    "GetSessionResponse": (("session_id", "session.session_id"),),
    "IdentifyPodResponse": (("pod_uid", "pod_uid"),),
    "GetReportResponse": (("window_id", "window_id"),),
    "SpendWindowResponse": (("window_id", "window_id"),),
    "GetHeldResponse": (("window_id", "item.window_id"),),
    "DecideHeldResponse": (("window_id", "item.window_id"),),
    "ReleaseHeldResponse": (("window_id", "item.window_id"), ("session_id", "item.session_id")),
    "ReadGrantResponse": (("parent_session_id", "delegation.parent_session_id"),),
}
"""Answer → fields of the request, where set, and those of the answer that must be the same."""

AS_MANY: Mapping[str, tuple[str, str]] = {
    "VerifyResultsResponse": ("results", "results"),
    "RestoreTreesResponse": ("trees", "results"),
    "GetTreeRecordsResponse": ("root_session_ids", "records"),
    "StepKernelsResponse": ("steps", "answers"),
}
"""Answer → a list of the request and the list of the answer that has one entry for each of its own."""

_ACTIONS = frozenset(policy_pb2.Action.values())
_INTEGRITIES = frozenset(common_pb2.ChainIntegrity.values())

EMPTY_ANSWERS = frozenset({
    "FailWindowResponse", "AbandonWindowResponse", "AcknowledgeMovesResponse", "RestoreTreeResponse", "RestoreCallerResponse",
    "IdentifyAgentResponse", "ListReviewersResponse", "CheckSummaryResponse", "GetContentsResponse", "DropContentResponse",
    "GetCallerRecordResponse", "GetCallerResponse", "ListSessionsResponse", "ListHeldResponse", "ReservePlaceResponse", "ReleasePlaceResponse",
    "AcknowledgeKernelResponse", "RestoreKernelResponse", "GetKernelRecordResponse", "GetDecisionRecordResponse",
    "ListStuckResponse", "ListWouldHavesResponse", "ListKernelsResponse", "ListExperimentsResponse", "ListCyclesResponse",
})  # fmt: skip
"""Answers that may be empty and then allow nothing: nobody registered, nothing kept, nothing released, no place."""


def checked(request: Any, answer: A) -> A:
    """Return *answer* to *request*. Refused with ANSWER_CONTRADICTORY, and the name of what does not hold as ``fault``."""
    if fault := fault_of(request, answer):
        raise contradictory(answer.DESCRIPTOR.name, fault)
    return answer


def contradictory(name: str, fault: str) -> Refused:
    """Return the refusal of an answer."""
    return unavailable(
        CONTRADICTORY, "an answer inside the mesh is incomplete or contradicts itself", answer=name, fault=fault
    )


def fault_of(request: Any, answer: Any) -> str:
    """Return what does not hold in an answer that is no refusal; empty where all holds."""
    name = answer.DESCRIPTOR.name
    if not _is_complete(answer, name):
        return "INCOMPLETE"
    for asked, told in SAME.get(name, ()):
        wanted = _value(request, asked)
        if wanted and _value(answer, told) != wanted:
            return "ANOTHER_SUBJECT"
    if name in AS_MANY:
        asked, told = AS_MANY[name]
        if len(_value(request, asked)) != len(_value(answer, told)):
            return "INCOMPLETE"
    rule = RULES.get(name)
    return rule(request, answer) if rule else ""


def _is_complete(answer: Any, name: str) -> bool:
    needed = NEEDED.get(name, ())
    scalars, messages = _needed(answer.DESCRIPTOR, needed)
    return all(scalars(answer)) and (not messages or all(_value(answer, path) for path in messages))


@lru_cache(maxsize=256)
def _needed(descriptor: Any, paths: tuple[str, ...]) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[str, ...]]:
    """Return what reads the scalars and lists of *paths* at once, and the other paths, which end in a message.

    A field of a message that is not set reads as its default, which is none.
    """
    messages = tuple(path for path in paths if _ends_in_message(descriptor, path))
    scalars = [path for path in paths if path not in messages]
    read = attrgetter(*scalars, "DESCRIPTOR", "DESCRIPTOR")  # of two names at least it gives a tuple
    return read, messages


def _ends_in_message(descriptor: Any, path: str) -> bool:
    first, _, rest = path.partition(".")
    field = descriptor.fields_by_name[first]
    if rest:
        return _ends_in_message(field.message_type, rest)
    return field.message_type is not None and not field.is_repeated


def _value(message: Any, path: str) -> Any:
    for name in path.split("."):
        field = message.DESCRIPTOR.fields_by_name[name]
        if field.message_type is not None and not field.is_repeated and not message.HasField(name):
            return None
        message = getattr(message, name)
    return message


def _resolved(_request: Any, answer: Any) -> str:
    return governing.policy_fault(answer.policy_text, answer.policy_hash)


def _decided(request: Any, answer: Any) -> str:
    decision = answer.decision
    if decision.action not in _ACTIONS:
        return "ACTION"
    return governing.decision_fault(
        governing.ToldDecision(
            action=policy_pb2.Action.Name(decision.action).removeprefix("ACTION_"),
            reason=decision.reason,
            halt_reason=decision.halt_reason,
            remedies=len(decision.remedies),
            observed=request.observed,
            breaker=request.breaker,
            budget=Micros(request.session_budget_micros),
            charge=Micros(request.charge_micros),
        )
    )


def _opened(_request: Any, answer: Any) -> str:
    window = answer.window
    if not 0 <= window.safety_budget_micros <= FULL:
        return "BUDGET_RANGE"
    return governing.policy_fault(window.policy_text, window.policy_hash) or governing.standing_fault(
        window.session_budget_micros, window.breaker
    )


def _started(request: Any, answer: Any) -> str:
    session = answer.session
    if request.HasField("first_window") and not answer.HasField("first_window"):
        return "INCOMPLETE"
    if answer.first_window.HasField("window"):
        if answer.first_window.window.session_id != session.session_id:
            return "ANOTHER_SUBJECT"
        if fault := fault_of(request.first_window, answer.first_window):
            return fault
    return _stands(request, answer)


def _stands(_request: Any, answer: Any) -> str:
    session = answer.session
    return governing.policy_fault(session.policy_text, session.policy_hash) or governing.standing_fault(
        session.safety_budget_micros, session.breaker
    )


def _settled(request: Any, answer: Any) -> str:
    return governing.settlement_fault(
        governing.ToldSettlement(
            path_budget=answer.safety_budget_micros,
            session_budget=answer.session_budget_micros,
            breaker=answer.breaker,
            ceiling=request.ceiling_micros,
            charge=request.charge_micros,
        )
    )


def _sealed(_request: Any, answer: Any) -> str:
    return "" if answer.integrity in _INTEGRITIES else "INTEGRITY"


def _window(request: Any, answer: Any) -> str:
    """A seal of another window has a settlement of another window."""
    if not answer.HasField("settlement"):
        return ""
    told = answer.settlement
    same = (told.session_id, told.window_id) == (request.session_id, request.window_id)
    return "" if same and told.charge_micros == answer.charge_micros else "ANOTHER_SUBJECT"


def _contents(request: Any, answer: Any) -> str:
    return "" if {one.window_id for one in answer.contents} <= set(request.window_ids) else "ANOTHER_SUBJECT"


def _stepped(request: Any, answer: Any) -> str:
    """An answer is of the kind that was asked for, unless records have to be sealed first."""
    kind = answer.WhichOneof("answer")
    right = kind is None if answer.full else kind == _KERNEL_ANSWERS.get(request.WhichOneof("ask"), "verdict")
    return "" if right else "INCOMPLETE"


def _stepped_together(request: Any, answer: Any) -> str:
    """Each answer that is no refusal is one to its step."""
    told = zip(request.steps, answer.answers, strict=True)
    return next((fault for asked, one in told if not one.HasField("refusal") and (fault := _stepped(asked, one))), "")


def _settled_by_a_person(_request: Any, answer: Any) -> str:
    """A decision has a verdict, unless records have to be sealed first."""
    return "" if answer.HasField("verdict") != answer.full else "INCOMPLETE"


_KERNEL_ANSWERS = {
    "open": "opened",
    "describe": "described",
    "evaluate": "evaluated",
    "lease": "leased",
    "begin_saga": "begun",
    "ticket": "ticketed",
    "claim": "claimed",
}


RULES: Mapping[str, Callable[[Any, Any], str]] = {
    "ResolveResponse": _resolved,
    "DecideResponse": _decided,
    "OpenWindowResponse": _opened,
    "StartSessionResponse": _started,
    "GetSessionResponse": _stands,
    "TerminateSessionResponse": _stands,
    "CommitWindowResponse": _settled,
    "AppendResponse": _sealed,
    "GetWindowResponse": _window,
    "GetContentsResponse": _contents,
    "StepKernelResponse": _stepped,
    "StepKernelsResponse": _stepped_together,
    "DecideCompensationResponse": _settled_by_a_person,
}
"""Answer → the rule of its own."""
