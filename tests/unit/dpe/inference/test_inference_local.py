"""The embedded runtime: real models, and tiny ones that misbehave (DPE-17; reliability.md A-39, A-40)."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.local import LocalInference
from interlock.dpe.inference.models import manifest
from interlock.dpe.inference.port import CONTRADICTION, ENTAILMENT, NEUTRAL
from tests.support.dpe import own_classifier, own_model, pipeline

pytestmark = pytest.mark.models
LABELS = ("entailment", "neutral", "contradiction")
FACT = "Revenue increased by 15% in Q3 2025."


def local(folder) -> LocalInference:
    return LocalInference(nli=manifest("nli", folder), embed=manifest("embed"), ner=manifest("ner"), threads=1)


@pytest.mark.req("DPE-2")
async def test_vectors_have_length_one():
    """Rows are unit vectors of 384 numbers, in the order asked, doubles included."""
    rows = await pipeline().inference.embed([FACT, "Bread is cheap.", FACT, ""])

    assert rows.shape == (4, 384)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (rows[0] == rows[2]).all()
    assert rows[0] @ rows[1] < 0.5


@pytest.mark.req("DPE-4")
async def test_nli_tells_three_cases_apart():
    """Each row sums to 1.0, and a changed number is a contradiction."""
    rows = await pipeline().inference.nli([(FACT, FACT), (FACT, "Revenue increased by 25% in Q3 2025.")])

    assert rows.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert rows[0][ENTAILMENT] > 0.7
    assert rows[1][CONTRADICTION] > 0.7


@pytest.mark.req("DPE-4")
async def test_a_score_depends_on_its_own_text_alone():
    """The neighbours in a call change nothing, nor does what was asked before: a verdict can be repeated."""
    engine = pipeline().inference
    pairs = [(FACT, "Revenue rose."), ("Bread is cheap. " * 9, "Milk is white."), (FACT, "Costs fell by 3%.")]
    alone = [(await engine.nli([pair]))[0] for pair in pairs]

    assert (await engine.nli(pairs) == np.stack(alone)).all()
    assert (await engine.nli(pairs[::-1]) == np.stack(alone[::-1])).all()
    fresh = LocalInference(nli=manifest("nli"), embed=manifest("embed"), ner=manifest("ner"), threads=1)
    texts = ["one text", "another, longer text of several words", "x"]
    assert (await fresh.embed(texts) == np.concatenate([await engine.embed([text]) for text in texts])).all()
    fresh.close()


@pytest.mark.req("DPE-2")
async def test_a_long_text_is_read_to_its_end():
    """Words far beyond the model's length move the vector: nothing is cut off unseen."""
    long = "The tower is tall. " * 150
    one, other = await pipeline().inference.embed([long, long + "Bread is cheap. " * 60])

    assert one @ other < 0.99


@pytest.mark.req("DPE-4")
async def test_a_pair_that_does_not_fit_is_refused():
    """Never cut to fit."""
    with pytest.raises(Refused) as refused:
        await pipeline().inference.nli([("word " * 300, "claim")])

    assert (refused.value.kind, refused.value.reason) == (Kind.EXHAUSTED, "CLAIM_TOO_LONG")


async def test_nothing_asked_is_nothing_answered():
    """Empty questions have empty answers of the right width."""
    assert (await pipeline().inference.embed([])).shape == (0, 384)
    assert (await pipeline().inference.nli([])).shape == (0, 3)


@pytest.mark.req("DPE-17")
async def test_the_manifest_says_which_label_is_which(tmp_path):
    """A model with its own order of labels is read by it."""
    engine = local(own_model(tmp_path / "m", [5.0, 0.0, 1.0], ["CONTRADICTION", "entailment", "neutral"]))
    row = (await engine.nli([("a", "b")]))[0]
    engine.close()

    assert row[CONTRADICTION] > row[NEUTRAL] > row[ENTAILMENT]


@pytest.mark.parametrize(
    ("logits", "shape"),
    [
        ([math.nan, 0.0, 0.0], (1, 3)),
        ([math.inf, 0.0, 0.0], (1, 3)),
        ([-math.inf, 0.0, 0.0], (1, 3)),
        ([0.0, 0.0], (1, 2)),
        ([0.0] * 6, (2, 3)),
        ([0.0] * 3, (3,)),
    ],
)
async def test_what_is_no_result_is_refused(tmp_path, logits, shape):
    """A-39, A-40: NaN, infinity and wrong shapes never become a score."""
    engine = local(own_model(tmp_path / "m", logits, LABELS, shape=shape))
    with pytest.raises(Refused) as refused:
        await engine.nli([("a", "b")])
    engine.close()

    assert (refused.value.kind, refused.value.reason) == (Kind.UNAVAILABLE, "MODEL_OUTPUT_INVALID")
    assert refused.value.metadata["slot"] == "nli"


@pytest.mark.parametrize(
    ("scores", "shape"),
    [
        ([0.0] * 11 + [math.nan], (1, 4, 3)),
        ([0.0] * 11 + [math.inf], (1, 4, 3)),
        ([0.0] * 11 + [3e38], (1, 4, 3)),
        ([0.0] * 9, (1, 3, 3)),
        ([0.0] * 15, (1, 5, 3)),
        ([0.0] * 8, (1, 4, 2)),
        ([0.0] * 24, (2, 4, 3)),
        ([0.0] * 12, (4, 3)),
    ],
    ids=["nan", "inf", "beyond any score", "a token too few", "a token too many", "two labels", "two rows", "flat"],
)
@pytest.mark.req("DPE-18")
async def test_what_is_no_labelling_is_refused(tmp_path, scores, shape):
    """A-39, A-40: the classifier's nonsense never becomes a name, nor the absence of one."""
    ner = manifest("ner", own_classifier(tmp_path / "m", scores, shape))
    engine = LocalInference(nli=manifest("nli"), embed=manifest("embed"), ner=ner, threads=1)
    with pytest.raises(Refused) as refused:
        await engine.names(["two words"])
    engine.close()

    assert (refused.value.kind, refused.value.reason) == (Kind.UNAVAILABLE, "MODEL_OUTPUT_INVALID")
    assert refused.value.metadata["slot"] == "ner"


def test_a_file_that_is_no_model_is_refused(tmp_path):
    """Right hash, wrong content: the service does not start."""
    folder = own_model(tmp_path / "m", [0.0], LABELS, shape=(1,))
    (folder / "model.onnx").write_bytes(b"no model")
    import hashlib
    import json

    raw = json.loads((folder / "manifest.json").read_text())
    raw["files"]["model.onnx"]["sha256"] = hashlib.sha256(b"no model").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(raw))

    with pytest.raises(Refused, match="MODEL_UNUSABLE"):
        local(folder)


async def test_the_event_loop_goes_on_while_models_run():
    """Arithmetic is done beside the loop: a task that only sleeps is not held up until the end."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    ticking = asyncio.create_task(tick())
    await pipeline().inference.nli([(FACT, f"Sentence number {n} is here.") for n in range(40)])
    ticking.cancel()

    assert turns > 40


async def test_work_ends_with_its_caller():
    """A cancelled question leaves the workers free: what follows is answered."""
    engine = pipeline().inference
    asking = asyncio.create_task(engine.nli([(FACT, f"Cancelled sentence number {n}.") for n in range(3000)]))
    await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    async with asyncio.timeout(10):
        await engine.nli([(FACT, FACT)])
