"""The experiment of ``interlock demo --decide``: a support vector machine for handwritten digits, and the same search without agents.

The digits come with scikit-learn (UCI, Alpaydin and Kaynak 1998; CC BY 4.0).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import optuna
from optuna.trial import FrozenTrial, Trial
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

ROWS, FOLDS = 500, 3
"""Rows that the search sees; the others are held back for the accuracy that is told at the end."""
TRIALS, MOST = 40, 50
SEEDS = (0, 1, 2, 3, 4)
FAILING = 5
"""One trial fails, as trials do."""
SAMPLERS = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Digits:
    """The data, and what a trial does with it."""

    def __init__(self) -> None:
        pixels, self.labels = load_digits(return_X_y=True)
        self.pixels = pixels / 16.0
        self.folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)

    def loss(self, trial: Trial) -> float:
        """Return the part of wrong digits in a cross-validation."""
        if trial.number == FAILING:
            raise RuntimeError("this trial is made to fail")
        machine = _machine(
            {
                "C": trial.suggest_float("C", 1e-4, 1e4, log=True),
                "gamma": trial.suggest_float("gamma", 1e-6, 1e2, log=True),
            }
        )
        right = cross_val_score(machine, self.pixels[:ROWS], self.labels[:ROWS], cv=self.folds)
        return 1.0 - float(right.mean())

    def held_back(self, best: FrozenTrial) -> float:
        """Return the accuracy of the best trial on rows that no trial saw."""
        fitted = _machine(best.params).fit(self.pixels[:ROWS], self.labels[:ROWS])
        return float(fitted.score(self.pixels[ROWS:], self.labels[ROWS:]))


def optimize(study: optuna.Study, digits: Digits, **more: Any) -> dict[str, Any]:
    """Run a search, and return what it reached."""
    study.optimize(digits.loss, catch=(RuntimeError,), **more)
    best = study.best_trial
    return {
        "trials": len(study.trials), "searched": round(1 - study.best_value, 4), "held_back": round(digits.held_back(best), 4)
    }  # fmt: skip


def _machine(parameters: dict[str, float]) -> SVC:
    return SVC(C=parameters["C"], gamma=parameters["gamma"])


def main() -> None:
    """Search without agents, with the sampler that is named, once for each seed; one line of JSON each."""
    digits, sampler = Digits(), SAMPLERS[sys.argv[1]]
    for seed in SEEDS:
        study = optuna.create_study(direction="minimize", sampler=sampler(seed=seed))
        sys.stdout.write(json.dumps({"seed": seed, **optimize(study, digits, n_trials=TRIALS)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
