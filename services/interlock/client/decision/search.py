"""A study of Optuna that agents advise: three lines, and nothing of the study waits for more than two deadlines (DEC-12).

``callback = OptunaCallback("search", trials=40, most=60)``,
``study = optuna.create_study(direction="minimize", sampler=callback.sampler)`` and
``study.optimize(objective, callbacks=[callback])``.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from interlock.client.decision.model import Signal
from interlock.client.decision.owner import CycleDecision, ExperimentClient

log = logging.getLogger("interlock.decision")

MOST_LOSSES = 64
GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it, without their whole parts, are spread evenly: which trials look at the whole space is not drawn."""
_FINISHED = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)

Samplers = Mapping[str, Callable[[int | None], BaseSampler]]
SAMPLERS: Samplers = {"random": lambda seed: RandomSampler(seed=seed), "tpe": lambda seed: TPESampler(seed=seed)}
"""Name → a sampler of a seed, in the order in which agents may switch."""


class NarrowedSampler(BaseSampler):
    """A sampler whose space can be narrowed around the best trial. A part of the trials still looks at the whole space."""

    def __init__(self, inner: BaseSampler) -> None:
        self.inner = inner
        self.kept = 1.0
        """Part of each range that is left."""
        self.diversity = 1.0
        """Part of the trials that look at the whole space."""

    @property
    def shrunk_percent(self) -> float:
        """How much of each range is gone."""
        return 100 * (1 - self.kept)

    def narrow(self, shrink_percent: float, diversity: float) -> None:
        """Narrow what is left by a part of it."""
        self.kept *= 1 - shrink_percent / 100
        self.diversity = diversity

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the space of joint sampling, narrowed."""
        found = self.inner.infer_relative_search_space(study, trial)
        return {name: self._narrowed(study, trial, name, one) for name, one in found.items()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Sample jointly."""
        return self.inner.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Sample one parameter from what is left of its range."""
        narrowed = self._narrowed(study, trial, param_name, param_distribution)
        return self.inner.sample_independent(study, trial, param_name, narrowed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Let the inner sampler prepare."""
        self.inner.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        """Let the inner sampler learn."""
        self.inner.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Draw a new seed."""
        self.inner.reseed_rng()

    def _narrowed(self, study: Study, trial: FrozenTrial, name: str, whole: BaseDistribution) -> BaseDistribution:
        """Return what is left of a range around the best trial's value; a choice stays whole."""
        if self.kept >= 1 or (trial.number * GOLDEN) % 1 < self.diversity:
            return whole
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        centre = study.best_trial.params.get(name) if complete else None
        if not isinstance(whole, FloatDistribution | IntDistribution) or not isinstance(centre, int | float):
            return whole
        low, high = _range(whole, float(centre), self.kept)
        if isinstance(whole, IntDistribution):
            step = whole.step
            first = whole.low + math.ceil((low - whole.low) / step) * step
            last = whole.low + math.floor((high - whole.low) / step) * step
            return IntDistribution(min(first, int(centre)), max(last, int(centre)), log=whole.log, step=step)
        if whole.step is not None:
            return whole
        return FloatDistribution(low, high, log=whole.log)


class OptunaCallback:
    """Runs a decision cycle after each trial, and does what is decided. It never raises into the study."""

    def __init__(
        self,
        name: str,
        *,
        trials: int,
        most: int = 0,
        at: str = "",
        api_key: str = "",
        ca: Path | str | None = None,
        profile: str = "ml",
        definition: Mapping[str, Any] | None = None,
        metric: str = "loss",
        samplers: Samplers = SAMPLERS,
        seed: int | None = None,
        on_decision: Callable[[FrozenTrial, CycleDecision], None] | None = None,
    ) -> None:
        """*trials*: after so many the study ends, unless agents extend it, to *most* at the most. *samplers*: the first one begins.

        The service and the key come from INTERLOCK_DECISION_AT and OPENAI_API_KEY where they are absent.
        """
        self.experiment = ExperimentClient(name, at=at, api_key=api_key, ca=ca, profile=profile, definition=definition)
        self.planned, self.most = trials, max(most, trials)
        self.decisions: list[CycleDecision] = []
        self._metric, self._samplers, self._seed, self._told = metric, samplers, seed, on_decision
        self._name = next(iter(samplers))
        self.sampler = NarrowedSampler(samplers[self._name](seed))
        """The sampler that decisions steer: the study must be made with it."""
        self._emitted: list[Signal] = []
        self._lock = threading.Lock()

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Run a cycle, as Optuna calls it after a trial."""
        try:
            with self._lock:
                self._cycle(study, trial)
        except Exception:
            # Whatever is wrong with the advice, the search goes on.
            log.exception("no decision after trial %d", trial.number)

    def _cycle(self, study: Study, trial: FrozenTrial) -> None:
        emitted, self._emitted = self._emitted, []
        decision = self.experiment.decide(self.state(study, trial), emitted, source="mutator")
        self.decisions.append(decision)
        self._do(study, decision)
        if len(study.get_trials(deepcopy=False, states=_FINISHED)) >= self.planned:
            study.stop()
        if self._told:
            self._told(trial, decision)

    def state(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        """Return the snapshot that agents see; ``interlock.client.decision.reference.agents`` reads it."""
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        sign = 1 if study.direction is StudyDirection.MINIMIZE else -1
        losses = [sign * one.value for one in done if one.value is not None and math.isfinite(one.value)]
        last: dict[str, Any] = {"trial": trial.number, "state": trial.state.name}
        if trial.value is not None and math.isfinite(trial.value):
            last["value"] = sign * trial.value
        used = len(study.get_trials(deepcopy=False, states=_FINISHED))
        return {
            "trial_active": False, "budget": {"limit": self.most, "used": used}, "planned": self.planned,
            "metric": self._metric, "losses": losses[-MOST_LOSSES:], "last": last,
            "search": {
                "sampler": self._name, "samplers": [*self._samplers],
                "shrunk_percent": round(self.sampler.shrunk_percent, 3),
            },
        }  # fmt: skip

    def _do(self, study: Study, decision: CycleDecision) -> None:
        """Do what was decided. Parameters of an action are data of an agent: what makes no sense here is left undone."""
        told = decision.parameters
        if decision.outcome == "STOP_EXPERIMENT":
            study.stop()
        elif decision.outcome == "EXTEND_TRIALS" and isinstance(told.get("trials"), int):
            self.planned = min(self.most, self.planned + max(0, told["trials"]))
        elif decision.outcome == "SWITCH_HPO":
            self._switch(told.get("sampler"))
        elif decision.outcome == "MUTATE_SEARCH":
            shrink, diversity = (told.get(name) for name in ("shrink_percent", "diversity"))
            if isinstance(shrink, int | float) and isinstance(diversity, int | float) and 0 < shrink < 100:
                self.sampler.narrow(shrink, diversity)
                payload = {"shrink_percent": shrink, "diversity": diversity}
                self._emitted.append(Signal(type="mutation_applied", payload=payload, confidence=1.0))

    def _switch(self, named: Any) -> None:
        """Take the sampler that is named; where none is, as in the rules that speak for a silent agent, the next one."""
        names = [*self._samplers]
        following = names[min(names.index(self._name) + 1, len(names) - 1)]
        self._name = named if named in self._samplers else following
        self.sampler.inner = self._samplers[self._name](self._seed)


def _range(whole: FloatDistribution | IntDistribution, centre: float, kept: float) -> tuple[float, float]:
    """Return the bounds of a part of a range around a value, within the range."""
    if whole.log:
        low, high = math.log(whole.low), math.log(whole.high)
        half = (high - low) * kept / 2
        bounds = math.exp(max(low, math.log(centre) - half)), math.exp(min(high, math.log(centre) + half))
    else:
        half = (whole.high - whole.low) * kept / 2
        bounds = max(whole.low, centre - half), min(whole.high, centre + half)
    return max(whole.low, bounds[0]), min(whole.high, bounds[1])
