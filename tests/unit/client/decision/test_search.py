"""Optuna's samplers, narrowed, and a study whose decision service is away (DEC-12)."""

from __future__ import annotations

import optuna
import pytest

from interlock.client.decision import OptunaCallback
from interlock.client.decision.owner import CycleDecision
from interlock.client.decision.search import NarrowedSampler

pytestmark = pytest.mark.req("DEC-12")

NOWHERE = "127.0.0.1:1"

optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -10, 10)
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    depth = trial.suggest_int("depth", 1, 101, step=4)
    return (x - 2) ** 2 + abs(rate - 0.1) + depth / 100 + (trial.suggest_categorical("kind", ["a", "b"]) == "b")


def study_of(sampler) -> optuna.Study:
    return optuna.create_study(direction="minimize", sampler=sampler)


@pytest.mark.parametrize("inner", [optuna.samplers.RandomSampler, optuna.samplers.TPESampler])
def test_a_narrowed_search_stays_near_the_best_trial_but_for_its_part_of_diversity(inner):
    """Of a range of 20, narrowed by 90 %, one unit on each side of the best is left; a fifth of the trials looks everywhere."""
    sampler = NarrowedSampler(inner(seed=3))
    study = study_of(sampler)
    study.optimize(objective, n_trials=20)
    sampler.narrow(90, 0.2)
    near = 0
    for _ in range(40):
        centre = study.best_trial.params
        study.optimize(objective, n_trials=1)
        params = study.trials[-1].params
        near += abs(params["x"] - centre["x"]) <= 1 and abs(params["depth"] - centre["depth"]) <= 5

    assert sampler.shrunk_percent == pytest.approx(90)
    assert 30 <= near <= 40
    assert all((trial.params["depth"] - 1) % 4 == 0 for trial in study.trials)


def test_a_search_without_a_best_trial_or_narrowing_is_the_inner_one():
    """The same seed, the same trials."""
    plain, wrapped = (
        study_of(optuna.samplers.RandomSampler(seed=5)),
        study_of(NarrowedSampler(optuna.samplers.RandomSampler(seed=5))),
    )
    for study in (plain, wrapped):
        study.optimize(objective, n_trials=5)

    assert [one.params for one in plain.trials] == [one.params for one in wrapped.trials]


def test_a_study_ends_as_planned_while_nobody_decides():
    """Each cycle is CONTINUE and says why; no trial is lost and nothing is raised."""
    callback = OptunaCallback("away", trials=6, at=NOWHERE, api_key="k")
    study = study_of(callback.sampler)
    study.optimize(objective, callbacks=[callback])

    assert len(study.trials) == 6
    assert {one.outcome for one in callback.decisions} == {"CONTINUE"}
    assert {one.fault for one in callback.decisions} == {"UNAVAILABLE"}


@pytest.fixture
def callback():
    made = OptunaCallback("away", trials=6, most=8, at=NOWHERE, api_key="k")
    yield made
    made.experiment.close()


def test_a_decision_is_done_within_the_bounds_of_the_search(callback):
    """A sampler is switched, the search narrowed and told of, the end moved to the most; unknown samplers are the next one."""
    study = study_of(callback.sampler)
    for outcome, parameters in (
        ("SWITCH_HPO", {}),
        ("MUTATE_SEARCH", {"shrink_percent": 50, "diversity": 0.3}),
        ("EXTEND_TRIALS", {"trials": 1_000}),
    ):
        callback._do(study, CycleDecision(outcome, "", parameters))

    assert isinstance(callback.sampler.inner, optuna.samplers.TPESampler)
    assert callback.sampler.shrunk_percent == pytest.approx(50)
    assert [one.type for one in callback._emitted] == ["mutation_applied"]
    assert callback.planned == 8


@pytest.mark.parametrize(
    ("outcome", "parameters"),
    [
        ("MUTATE_SEARCH", {"shrink_percent": 100, "diversity": 0.3}),
        ("MUTATE_SEARCH", {"shrink_percent": "all"}),
        ("EXTEND_TRIALS", {"trials": "many"}),
        ("EXTEND_TRIALS", {"trials": -5}),
        ("LAUNCH", {"command": "rm -rf /"}),
    ],
)
def test_parameters_that_make_no_sense_here_are_left_undone(callback, outcome, parameters):
    """They are data of an agent, and nothing of them is executed."""
    callback._do(study_of(callback.sampler), CycleDecision(outcome, "", parameters))

    assert (callback.planned, callback.sampler.kept) == (6, 1.0)


def test_the_snapshot_says_what_agents_read(callback):
    """A failed trial has no value, and a maximised value is a loss with its sign turned."""
    study = optuna.create_study(direction="maximize", sampler=callback.sampler)
    study.add_trial(optuna.create_trial(value=0.25))
    study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.FAIL))
    state = callback.state(study, study.trials[-1])

    assert state["losses"] == [-0.25]
    assert state["last"] == {"trial": 1, "state": "FAIL"}
    assert state["budget"] == {"limit": 8, "used": 2}
