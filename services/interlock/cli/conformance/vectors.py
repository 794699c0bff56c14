"""The test vectors of SPEC-014 §2, run as printed: their inputs, and their assertions about the outputs.

``vectors.json`` holds them verbatim. Vectors about headers, the engine, chains and tokens run through a real mesh over HTTP.
Vectors about policies and budgets run through the domain that the mesh itself uses. If the printed text is truncated or
names a path of another product, a note describes the substitute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from interlock.cli.conformance import domain_vectors, mesh_vectors
from interlock.cli.conformance.domain_vectors import Expectations, Vector
from interlock.cli.conformance.mesh_vectors import MeshUnderTest, front
from interlock.demo.mesh import MeshFailedError
from interlock.runtime.settings.model import Settings

PASS, FAIL = "pass", "fail"


@dataclass(frozen=True)
class VectorResult:
    """Result of one vector. ``notes`` has its failures, and the substitutes for parts that the text leaves open."""

    test_id: str
    level: str
    category: str
    description: str
    outcome: str
    notes: tuple[str, ...]


def vectors() -> list[Vector]:
    """Return the vectors as printed."""
    text = resources.files("interlock.cli.conformance").joinpath("vectors.json").read_text(encoding="utf-8")
    found: list[Vector] = json.loads(text)["vectors"]
    return found


DOMAIN: Mapping[str, Callable[[Vector, Expectations], None]] = {
    "TV-020": domain_vectors.policy_parses,
    "TV-021": domain_vectors.policy_is_rejected,
    "TV-022": domain_vectors.tightening_is_accepted,
    "TV-023": domain_vectors.relaxation_is_rejected,
    "TV-050": domain_vectors.budget_falls,
    "TV-051": domain_vectors.budget_halts,
}
MESH: Mapping[str, Callable[[Vector, Expectations, MeshUnderTest], None]] = {
    "TV-001": mesh_vectors.basic_headers,
    "TV-002": mesh_vectors.headers_stay,
    "TV-003": mesh_vectors.critical_halts,
    "TV-004": mesh_vectors.condition_holds,
    "TV-010": mesh_vectors.engine,
    "TV-011": mesh_vectors.engine,
    "TV-012": mesh_vectors.engine,
    "TV-013": mesh_vectors.engine,
    "TV-030": mesh_vectors.chain_holds,
    "TV-031": mesh_vectors.chain_breaks,
    "TV-040": mesh_vectors.token_resumes,
    "TV-041": mesh_vectors.token_expires,
}


def run_all(settings: Settings, only: re.Pattern[str] | None = None) -> list[VectorResult]:
    """Run every vector, or those whose id matches *only*, and return the results in the order of the specification."""
    chosen = [vector for vector in vectors() if only is None or only.search(vector["test_id"])]
    if not any(vector["test_id"] in MESH for vector in chosen):
        return [run(vector, None) for vector in chosen]
    try:
        with front(settings) as started:
            return [run(vector, started) for vector in chosen]
    except MeshFailedError as error:
        why = f"the mesh did not start: {str(error).splitlines()[0]}"
        return [_result(vector, FAIL, (why,)) if vector["test_id"] in MESH else run(vector, None) for vector in chosen]


def run(vector: Vector, started: MeshUnderTest | None) -> VectorResult:
    """Run one vector. An exception is a failure with its type, and does not end the report."""
    name = vector["test_id"]
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


def _result(vector: Vector, outcome: str, notes: tuple[str, ...]) -> VectorResult:
    return VectorResult(
        vector["test_id"], vector["conformance_level"], vector["category"], vector["description"], outcome, notes
    )
