"""The pairs that were written for the NLI model: their form, what is held out, and what claims alone tell (docs/models.md)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from nli_told import blocks_of, files_of, leaning, rows

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

LEASE = """S: The lease runs until June. / Repairs are paid by the owner.
F: The owner bears the cost of repairs.
C role: The tenant pays for repairs.
N: The lease is renewed by itself.
T: The lease goes on by itself. / Repairs are paid by the tenant. | C F F
"""


@pytest.mark.req("DPE-4")
def test_a_block_has_its_claims_under_both_sources():
    """A line of a source ends at its mark, and a twin gives the same claims other labels."""
    (block,) = blocks_of(LEASE)

    assert block.source.splitlines() == ["The lease runs until June.", "Repairs are paid by the owner."]
    assert [(label, kind) for label, kind, _ in block.claims] == [(0, "faithful"), (2, "role"), (1, "open")]
    assert block.under_twin == (2, 0, 0)


@pytest.mark.req("DPE-4")
@pytest.mark.parametrize(
    ("bent", "told"),
    [("C role:", "line 3"), ("| C F F", "3 claims and 2 labels"), ("S: The lease runs", "line 1")],
)
def test_what_is_not_in_the_form_is_refused(bent, told):
    """With the line, so that one may find it."""
    broken = {"C role:": "X role:", "| C F F": "| C F", "S: The lease runs": "The lease runs"}[bent]

    with pytest.raises(ValueError, match=told):
        list(blocks_of(LEASE.replace(bent, broken)))


@pytest.mark.req("DPE-4")
def test_no_source_is_trained_on_and_held_out():
    """Neither itself nor its twin, nor beside another."""
    blocks = files_of(SCRIPTS / "nli_told")
    held = {row["p"].splitlines()[0] for row in rows(blocks, held=True)}
    trained = list(rows(blocks, held=False))

    assert len(blocks) > 4000 and len(held) > 400
    assert not any(line in held for row in trained for line in row["p"].splitlines() if len(line) > 40)
    assert {row["y"] for row in trained} == {0, 1, 2}


@pytest.mark.req("DPE-4")
def test_what_claims_alone_tell_is_found():
    """A word that stands in claims of one label alone leans; one that stands under both does not."""
    said = [{"p": "", "h": f"The {n} always holds", "y": 0} for n in range(200)]
    said += [{"p": "", "h": f"The {n} never holds", "y": 2} for n in range(200)]
    even = [{"p": "", "h": f"The {n} holds", "y": 2 * (n % 2)} for n in range(400)]

    lean, plain = leaning(said), leaning(even)
    assert min(lean[:200]) > 0.5 > -0.5 > max(lean[200:])
    assert max(map(abs, plain)) < 0.3
