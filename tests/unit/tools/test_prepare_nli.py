"""The rows that the NLI model is trained on: what may enter, and that the same data give the same rows."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import prepare_nli
from evaluate_nli import auroc, figures, macro_f1
from licensed_data import Data, NotAllowedError
from nli_distortions import Generator, Maker
from nli_texts import clean, window

SHIPPED_TIERS = {"A", "B", "C"}
SENTENCES = [
    "The company increased its revenue by 12.5% to $340 million in March 2019.",
    "Its founder, Maria Lopez, may have sold 3,000 shares before the merger was approved.",
    "The report was written by engineers in Berlin who had visited both plants.",
    "Nobody at the ministry has explained why the bridge over the Danube was closed.",
    "A second study, led by Peter Hansen, found lower levels of lead in the northern wells.",
]


@pytest.fixture
def described(tmp_path: Path) -> Data:
    """Three small sets: one to train on, one to measure on, one whose licence forbids training."""
    files = {}
    for name, use in (
        ("free/train.jsonl.gz", "train"),
        ("free/test.jsonl.gz", "measure"),
        ("nc/dev.jsonl.gz", "train"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps({"premise": "a", "hypothesis": "b", "label": "neutral"}).encode()))
        files[name] = {"use": use, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    sets = {
        "free": {"tier": "A", "licence": "MIT", "cite": "Someone 2020"},
        "nc": {"tier": "C", "licence": "CC BY-NC 4.0", "cite": "Other 2021"},
    }
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"sets": sets, "files": files}))
    return Data.described_by(manifest, tmp_path)


def test_a_file_that_may_be_trained_on_is_read_and_named(described):
    """What was read to train on is attributed; what was only measured on is not."""
    assert described.lines("free/train.jsonl.gz", train=True)
    assert described.lines("nc/dev.jsonl.gz", train=False)

    assert described.attribution() == ["free: Someone 2020; MIT"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("nc/dev.jsonl.gz", "tier C"), ("free/test.jsonl.gz", "to measure on"), ("free/other.jsonl.gz", "not in the")],
)
def test_what_may_not_be_trained_on_is_refused(described, name, why):
    """A licence that forbids it, a set kept to measure, a file that nobody described."""
    with pytest.raises(NotAllowedError, match=why):
        described.lines(name, train=True)


def test_a_file_with_another_hash_is_refused(described):
    """Data that changed since they were described are not read at all."""
    path = described.folder / "free/train.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}"))

    with pytest.raises(NotAllowedError, match="sha256"):
        described.lines("free/train.jsonl.gz", train=False)


def test_a_row_of_no_known_label_is_not_passed_over_in_silence(described):
    """A source whose labels are spelled in another way stops the run instead of giving nothing."""
    mix = prepare_nli.Mix(described, seed=1)

    with pytest.raises(ValueError, match="no row with a known label"):
        mix.lines(["free/train.jsonl.gz"], "free", ("premise", "hypothesis", "premise"))


@pytest.mark.parametrize("name", ["nli_data.json", "ner_data.json"])
def test_the_manifests_let_only_free_sets_be_trained_on(name):
    """No file to train on is of a tier without a licence for it, and each has a hash."""
    told = json.loads((ROOT / "scripts" / name).read_text(encoding="utf-8"))
    trained = {file.partition("/")[0] for file, entry in told["files"].items() if entry["use"] == "train"}

    assert trained
    assert {told["sets"][one]["tier"] for one in trained} == {"A"}
    assert {one["tier"] for one in told["sets"].values()} <= SHIPPED_TIERS
    assert not [one for one in trained if "-NC" in told["sets"][one]["licence"]]
    assert all(len(entry["sha256"]) == 64 for entry in told["files"].values())


def test_rows_hold_no_pair_twice_and_none_that_is_measured_on(described):
    """A pair of a held set, in whatever case, never enters the training rows."""
    mix = prepare_nli.Mix(described, seed=1)
    mix.held["test"] = [{"p": "Held Back", "h": "pair", "y": 0, "src": "t"}]
    mix.train = [
        {"p": "held back", "h": "Pair", "y": 0, "src": "x"},
        {"p": "one", "h": "two", "y": 1, "src": "x"},
        {"p": "One", "h": "two", "y": 0, "src": "x"},
        {"p": "", "h": "two", "y": 0, "src": "x"},
    ]

    assert mix.rows() == [{"p": "one", "h": "two", "y": 1, "src": "x"}]


def test_the_generator_makes_every_kind_and_repeats_itself():
    """The same documents and seed give the same rows; distortions are labelled as such."""
    documents = [[sentence.replace("12.5", f"{n}.5") for sentence in SENTENCES] for n in range(13, 43)]
    first = Generator(documents, per_kind=8, seed=3).run()

    assert first == Generator(documents, per_kind=8, seed=3).run()
    kinds = Counter(row["src"].partition(":")[2] for row in first)
    assert set(Maker(random.Random(1), {}).bends()) <= set(kinds)
    assert all(count <= 8 for kind, count in kinds.items() if kind not in {"SAME", "OTHER"})
    assert all(row["y"] == 0 for row in first if row["src"] == "synthetic:SAME")
    assert all(
        row["y"] in {2, 3} for row in first if row["src"].partition(":")[2] in {"NUMBER_CHANGED", "NEGATION_FLIP"}
    )
    assert all(row["h"].rstrip(".") not in row["p"] for row in first if row["y"] == 2)


def test_a_summary_that_was_edited_teaches_only_its_edited_sentences():
    """SummEdits: what stands unchanged in an inconsistent summary is not called unfaithful."""
    row = {
        "doc": "The council met on Monday. It approved the new budget by five votes.",
        "original_summary": "The council met on Monday. It approved the budget.",
        "summary": "The council met on Monday. It rejected the new budget.",
        "label": 0,
    }

    assert [(one["h"], one["y"]) for one in prepare_nli.summedits([row])] == [("It rejected the new budget.", 3)]


def test_a_window_is_the_part_of_the_document_that_the_claim_is_about():
    """The sentences that share its words are chosen, not the first ones."""
    document = ["Rain fell all week.", "The mayor opened the bridge.", "Shops were closed."]

    assert window(document, "Who opened the bridge? The mayor.") == "The mayor opened the bridge."


def test_tokenised_text_is_put_together_again():
    """Corpora with spaces around punctuation come out as people write."""
    assert clean("He did n't say `` yes '' -LRB- at all -RRB- .") == 'He didn\'t say " yes " (at all).'


def test_auroc_is_the_chance_that_a_positive_scores_higher():
    """Against the definition, ties counting half."""
    score, positive = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True])

    assert auroc(score, positive) == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    assert np.isnan(auroc(score, np.array([True] * 4)))


def test_figures_of_a_two_class_set_claim_no_three_classes():
    """A set that knows only "not entailment" has no accuracy over three labels."""
    given = np.array([[0.9, 0.05, 0.05], [0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])
    two = figures([{"y": 0}, {"y": 3}, {"y": 3}], given)
    three = figures([{"y": 0}, {"y": 2}, {"y": 1}], given)

    assert "accuracy" not in two
    assert two["balanced"] == 1.0
    assert three["accuracy"] == pytest.approx(2 / 3, abs=1e-3)
    assert macro_f1(np.array([0, 2, 0]), np.array([0, 2, 1])) == pytest.approx((2 / 3 + 1 + 0) / 3)
