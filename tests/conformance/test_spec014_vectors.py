"""Every test vector of SPEC-014 §2 as printed, and the command that reports on them."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from interlock.cli.conformance import commands, vectors
from interlock.cli.conformance.domain_vectors import Expectations
from interlock.cli.conformance.vectors import DOMAIN, MESH, PASS, run, run_all
from interlock.domain.budget import DEFAULT_DECREMENTS
from interlock.domain.conformance.requirements import checks, require
from interlock.domain.errors import Refused
from interlock.domain.policy.quality import QualityWeights
from interlock.domain.risk.composite import Calibration, Weights
from interlock.dpe.inference.models import BUNDLED
from interlock.runtime.settings.model import Settings

NAMES = [vector["test_id"] for vector in vectors.vectors()]
CALIBRATION = (Calibration(), QualityWeights(), DEFAULT_DECREMENTS)


@pytest.fixture(scope="module")
def results():
    """Every vector run once, through one mesh."""
    return {result.test_id: result for result in run_all(commands.load())}


@pytest.mark.models
@pytest.mark.timeout(300)
@pytest.mark.req("DPE-3", "DPE-6", "DPE-7", "DPE-14")
@pytest.mark.parametrize("name", NAMES)
def test_vector_passes_as_printed(results, name):
    """What the printed vector asserts holds, through a real mesh or the domain that it uses."""
    assert results[name].outcome == PASS, results[name].notes


def test_every_vector_of_the_text_is_accounted_for():
    """Eighteen vectors are printed; each is run, and none twice."""
    assert len(NAMES) == 18
    assert sorted([*DOMAIN, *MESH]) == sorted(NAMES)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("TV-020", lambda v: v["assertions"][1].update(value="HIGH")),
        ("TV-021", lambda v: v["input"].update(header="CRP-Safety-Policy: halt-on CRITICAL")),
        ("TV-022", lambda v: v["assertions"][1].update(contains="halt-on MEDIUM")),
        ("TV-023", lambda v: v["input"].update(child_policy="halt-on HIGH; require-grounding 0.80")),
        ("TV-050", lambda v: v["input"]["calls"][4].update(expected_budget_after=0.31)),
        ("TV-051", lambda v: v["input"].update(budget_before_call=0.9)),
    ],
)
def test_a_vector_with_another_expectation_fails(name, change):
    """A vector is really run: changed, it does not pass."""
    vector = json.loads(json.dumps(next(v for v in vectors.vectors() if v["test_id"] == name)))
    change(vector)

    assert run(vector, None).outcome == "fail"


def test_a_vector_that_raises_has_failed():
    """A vector that cannot be run is a failure with the error's type, and not the end of the report."""
    broken = {**next(v for v in vectors.vectors() if v["test_id"] == "TV-022"), "input": {}}

    result = run(broken, None)

    assert result.outcome == "fail"
    assert "KeyError" in result.notes[0]


def test_expectations_tell_what_was_not_met():
    """What holds leaves no trace; what does not is named."""
    expect = Expectations()
    expect.hold(True, "never said")
    expect.hold(False, "said")

    assert expect.broken == ["said"]


@pytest.mark.req("DPE-14", "DPE-15")
def test_what_is_normative_is_met_by_what_is_in_use():
    """Thresholds, orders, weights, tier caps and bands are those of the text."""
    found = checks(*CALIBRATION)

    assert [check.demand for check in found if not check.met] == []
    require(*CALIBRATION)


def test_other_quality_weights_are_refused_at_the_start():
    """Weights of the quality score that sum to 1.0 and are not the printed ones do not start a service."""
    other = QualityWeights(repetition=0.35, completeness=0.25)

    with pytest.raises(ValueError, match=r"18\.2"):
        require(CALIBRATION[0], other, CALIBRATION[2])


def test_another_weight_vector_of_the_composite_may_start():
    """The composite's weights are a calibration: any that keep sum and order pass (§16.3)."""
    require(Calibration(weights=Weights(0.4, 0.25, 0.25, 0.1)), *CALIBRATION[1:])


@pytest.fixture(scope="module")
def reported():
    """The command's output as JSON, with the vectors that need no mesh."""
    settings = commands.load()
    return commands.assembled(settings, run_all(settings, re.compile("TV-02|TV-05")))


@pytest.mark.req("DPE-14", "DPE-17")
def test_the_report_has_what_the_specification_wants_published(reported):
    """Weights, factors, thresholds, floors, caps, models with hashes, method, decrements and bands are all there."""
    assert reported["weights"] == {"attribution": 0.35, "fidelity": 0.25, "entailment": 0.25, "specificity": 0.15}
    assert reported["quality_weights"]["completeness"] == 0.35
    assert reported["tier_caps"] == {"S": 0.85, "A": 0.70, "B": 0.50, "C": 0.30}
    assert len(reported["amplifiers"]) == 6
    assert reported["thresholds"]["risk.critical"] == 0.70
    assert reported["decrements"]["HIGH"] == "0.15"
    assert reported["budget_bands"]["depleted"] == "0.10"
    assert reported["attribution_method"] == "nli+values"
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", model["hash"]) for model in reported["models"])
    assert {model["slot"] for model in reported["models"]} >= {"nli", "embed", "ner"}
    assert reported["failed"] == []
    assert reported["level_claimed"] == "standard"
    assert [row["what"] for row in reported["requirements"] if row["level"] != "full" and not row["carried"]] == []
    assert reported["certification"] == {"basic": [], "standard": [], "full": []}


@pytest.mark.req("DPE-17", "DPE-18")
@pytest.mark.parametrize("slot", ["nli", "embed", "ner"])
def test_the_report_names_the_model_that_a_setting_puts_in_a_slot(tmp_path, slot):
    """What judges is in the report, and not what is bundled for the slot."""
    for file in (BUNDLED / slot).iterdir():
        (tmp_path / file.name).symlink_to(file)
    own = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8")) | {"name": "a model of our own"}
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").write_text(json.dumps(own), encoding="utf-8")

    models = commands.assembled(Settings(**{f"{slot}_model_dir": tmp_path}), ())["models"]

    assert [model["slot"] for model in models if model["name"] == "a model of our own"] == [slot]


def test_the_text_tells_every_vector_and_every_check(reported):
    """What a person reads names each vector with its outcome, and each normative check."""
    text = "\n".join(commands.lines(reported))

    for vector in reported["vectors"]:
        assert f"{vector['test_id']}  {vector['outcome']}" in text
    for check in reported["checks"]:
        assert check["demand"] in text
    assert text.endswith("everything passed or does not apply")


@pytest.mark.parametrize("option", ["--json", "--text"])
def test_the_command_prints_what_it_found(option):
    """The command prints one JSON document, or lines for people, and ends with 0 when nothing failed."""
    shown = CliRunner().invoke(commands.app, ["report", option, "--only", "TV-02|TV-05"])

    assert shown.exit_code == 0, shown.output[-2000:]
    if option == "--json":
        assert [vector["test_id"] for vector in json.loads(shown.output)["vectors"]] == [
            "TV-020", "TV-021", "TV-022", "TV-023", "TV-050", "TV-051",
        ]  # fmt: skip
    else:
        assert "TV-020  pass" in shown.output
        assert "NOT THE WHOLE SUITE" in shown.output


def test_text_asked_for_goes_before_the_format_and_not_with_json():
    """``--text`` is text whatever ``-o`` says; two formats asked for by name are refused."""
    shown = CliRunner().invoke(commands.app, ["report", "--text", "-o", "json", "--only", "TV-05"])

    assert shown.output.startswith("Interlock ")
    with pytest.raises(Refused, match="USAGE"):
        CliRunner().invoke(commands.app, ["report", "--text", "--json"], catch_exceptions=False)


def test_the_command_refuses_a_pattern_that_is_none():
    """A pattern that cannot be read is refused by name, before anything runs."""
    with pytest.raises(Refused, match="USAGE"):
        CliRunner().invoke(commands.app, ["report", "--only", "TV-("], catch_exceptions=False)


def test_a_failed_vector_is_named_and_gives_exit_code_1():
    """A vector that fails is named in the report, and the command ends with 1."""
    vector = next(vector for vector in vectors.vectors() if vector["test_id"] == "TV-022")
    failed = run({**vector, "input": {}}, None)
    found = commands.assembled(commands.load(), [failed])

    assert commands.exit_code(found) == 1
    assert "FAILED: TV-022" in "\n".join(commands.lines(found))
