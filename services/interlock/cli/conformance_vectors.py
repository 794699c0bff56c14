"""The test vectors of SPEC-014 §2, run as printed: what they say in, what they assert out.

``conformance_vectors.json`` holds them word for word. Those about headers, the engine, chains and tokens go through a
real mesh over HTTP; those about policies and budgets through the domain that the mesh itself uses. Where the printed
text is cut short or names a path of another product, a note says what stands in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from interlock.cli import conformance_domain, conformance_mesh
from interlock.cli.conformance_domain import Expectations, Vector
from interlock.cli.conformance_mesh import Front, front
from interlock.demo.mesh import MeshFailedError
from interlock.runtime.config import Settings

PASS, FAIL, NOT_APPLICABLE = "pass", "fail", "not applicable"


@dataclass(frozen=True)
class Result:
    """How one vector went. ``notes`` tell what failed, and what stands in for what the text leaves open."""

    test_id: str
    level: str
    category: str
    description: str
    outcome: str
    notes: tuple[str, ...]


def vectors() -> list[Vector]:
    """Return the vectors as printed."""
    text = resources.files("interlock.cli").joinpath("conformance_vectors.json").read_text(encoding="utf-8")
    found: list[Vector] = json.loads(text)["vectors"]
    return found


DOMAIN: Mapping[str, Callable[[Vector, Expectations], None]] = {
    "TV-020": conformance_domain.policy_parses,
    "TV-021": conformance_domain.policy_is_rejected,
    "TV-022": conformance_domain.tightening_is_accepted,
    "TV-023": conformance_domain.relaxation_is_rejected,
    "TV-050": conformance_domain.budget_falls,
    "TV-051": conformance_domain.budget_halts,
}
MESH: Mapping[str, Callable[[Vector, Expectations, Front], None]] = {
    "TV-001": conformance_mesh.basic_headers,
    "TV-002": conformance_mesh.headers_stay,
    "TV-003": conformance_mesh.critical_halts,
    "TV-010": conformance_mesh.engine,
    "TV-011": conformance_mesh.engine,
    "TV-012": conformance_mesh.engine,
    "TV-013": conformance_mesh.engine,
    "TV-030": conformance_mesh.chain_holds,
    "TV-031": conformance_mesh.chain_breaks,
    "TV-040": conformance_mesh.token_resumes,
    "TV-041": conformance_mesh.token_expires,
}
LEFT_OUT = {
    "TV-004": "there is no knowledge fabric here whose state a caller could name, so nothing answers 304; "
    "CRP-Context-If-Match is checked for its form and changes nothing",
}


def run_all(settings: Settings, only: re.Pattern[str] | None = None) -> list[Result]:
    """Run every vector, or those whose id matches *only*, and return the results in the order of the text."""
    chosen = [vector for vector in vectors() if only is None or only.search(vector["test_id"])]
    if not any(vector["test_id"] in MESH for vector in chosen):
        return [run(vector, None) for vector in chosen]
    try:
        with front(settings) as started:
            return [run(vector, started) for vector in chosen]
    except MeshFailedError as error:
        why = f"the mesh did not start: {str(error).splitlines()[0]}"
        return [_result(vector, FAIL, (why,)) if vector["test_id"] in MESH else run(vector, None) for vector in chosen]


def run(vector: Vector, started: Front | None) -> Result:
    """Run one vector. What it raises is a failure with its type, not the end of the report."""
    name = vector["test_id"]
    if name in LEFT_OUT:
        return _result(vector, NOT_APPLICABLE, (LEFT_OUT[name],))
    expect = Expectations()
    try:
        if name in DOMAIN:
            DOMAIN[name](vector, expect)
        elif name in MESH and started is not None:
            MESH[name](vector, expect, started)
        else:
            expect.hold(False, "nothing runs this vector")
    except Exception as error:  # noqa: BLE001 - a vector that cannot be run has failed
        expect.hold(False, f"{type(error).__name__}: {error}")
    return _result(vector, FAIL if expect.broken else PASS, (*expect.broken, *expect.notes))


def _result(vector: Vector, outcome: str, notes: tuple[str, ...]) -> Result:
    return Result(
        vector["test_id"], vector["conformance_level"], vector["category"], vector["description"], outcome, notes
    )
