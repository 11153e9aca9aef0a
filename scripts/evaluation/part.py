"""Measure one part: every score on every stratum of its rows, then the learned ones at every budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from _data import FloatArray, Mask

from evaluation.arrays import packed
from evaluation.baselines import BASELINES, Predictor, View
from evaluation.bootstrap import draws, replicates
from evaluation.budgets import Told, is_possible, learn, learners_at, measure, training_rows
from evaluation.collection import read_collection, read_queries
from evaluation.metrics import all_of, brier, cross_fitted
from evaluation.ours import Fit, Learner, best_label_free, label_free, learned
from evaluation.plan import BUDGETS, MAIN_BUDGET, MAIN_K, Effort, Part
from evaluation.samples import view_of
from evaluation.strata import Draw, enough

HELD_OUT, EVALUATED = "held out", "evaluated, without labels"
_DIGITS = 6


def measured(part: Part, effort: Effort, prior: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All numbers of a part as plain values; strata with too few rows of a class are only counted.

    `prior` is what models start from, as plain values; None for the shipped one.
    """
    data = read_collection(part.place, part.embedder)
    foreign = [read_queries(place, part.embedder) for place in part.strangers]
    draw = Draw(part.k, effort.limit, effort.seed)
    rows = part.family.rows(data, foreign, draw)
    members = {
        name: kept for name, kept in rows.strata.items() if enough(rows.sufficient[kept], len(rows.corpus))
    }
    view, held_out = view_of(data, rows, draw, effort)
    return {
        "set": data.name,
        "embedder": part.embedder,
        "k": part.k,
        "family": part.family.name,
        "profile_queries": HELD_OUT if held_out else EVALUATED,
        "left_out": {
            name: _counts(rows.sufficient[kept]) for name, kept in rows.strata.items() if name not in members
        },
        "strata": _strata(_Job(part, effort, prior), view, members) if members else {},
    }


@dataclass(frozen=True)
class _Job:
    part: Part
    effort: Effort
    prior: Mapping[str, Any] | None


def _strata(job: _Job, view: View, members: Mapping[str, Mask]) -> dict[str, Any]:
    rows = view.rows
    free = {one.name: one.of(view) for one in _predictors(view)}
    drawn = draws(job.part.place.name, rows.n_units, rounds=job.effort.rounds, seed=job.effort.seed)
    weights, told = drawn[rows.unit], _Labels(job, view, free)
    found: dict[str, Any] = {}
    for name, kept in members.items():
        whole = found.get("natural") if kept.all() else None
        found[name] = whole or _stratum(told, (rows.sufficient, kept, weights))
    return found


def _predictors(view: View) -> list[Predictor]:
    more = view.rows.cosines.shape[1] > view.k
    return [one for one in (*BASELINES, *label_free()) if more or not one.deeper]


class _Labels:
    """The learned scores of a part, fitted when a stratum first asks for them and kept for the next."""

    def __init__(self, job: _Job, view: View, free: Mapping[str, FloatArray]) -> None:
        self.part, self.effort, self.view, self.free = job.part, job.effort, view, free
        self.learners, self.sufficient = learned(job.prior), view.rows.sufficient
        self.fits: dict[str, Fit] = {}
        self.told: dict[int, Told] = {}

    def budgets(self) -> list[int]:
        """Numbers of labels that leave enough rows to test on."""
        return [budget for budget in BUDGETS if is_possible(self.sufficient, budget)]

    def at(self, budget: int) -> Told:
        """What every learner says after each draw of so many labels, beside the scores to compare with."""
        if budget not in self.told:
            seeds = range(self.effort.draws)
            chosen = [
                training_rows(self.sufficient, budget, seed=seed, name=self.part.place.name) for seed in seeds
            ]
            here = {one.name: self._fit(one) for one in learners_at(self.learners, budget)}
            named = self.free if budget == MAIN_BUDGET else ("max", best_label_free([*self.free]))
            beside = {name: self.free[name] for name in named}
            self.told[budget] = learn(here, self.sufficient, chosen, beside)
        return self.told[budget]

    def _fit(self, learner: Learner) -> Fit:
        if learner.name not in self.fits:
            self.fits[learner.name] = learner.of(self.view, self.sufficient)
        return self.fits[learner.name]


def _stratum(labels: _Labels, rows: tuple[Mask, Mask, FloatArray]) -> dict[str, Any]:
    sufficient, members, weights = rows
    here = sufficient[members]
    rounds = weights[:, : labels.effort.learned_rounds] if labels.part.k == MAIN_K else None
    budgets = {}
    for budget in labels.budgets():
        found = measure(labels.at(budget), sufficient, members, rounds)
        budgets[str(budget)] = {
            "values": {one: _plain(values) for one, values in found.values.items()},
            "spread": _plain(found.spread),
            "rounds": {one: packed(values) for one, values in found.rounds.items()},
        }
    return {
        **_counts(here),
        "values": {
            one: _free_values(scores[members], here, labels.effort.seed)
            for one, scores in labels.free.items()
        },
        "rounds": {
            one: packed(replicates(scores[members], here, weights[members]))
            for one, scores in labels.free.items()
        },
        "budgets": budgets,
    }


def _free_values(scores: FloatArray, sufficient: Mask, seed: int) -> dict[str, float | None]:
    told = cross_fitted(scores, sufficient, seed)
    return _plain({**all_of(scores, sufficient), "brier": brier(told, sufficient)})


def _counts(sufficient: Mask) -> dict[str, int]:
    return {"n": len(sufficient), "n_sufficient": int(np.count_nonzero(sufficient))}


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: round(value, _DIGITS) if math.isfinite(value) else None for name, value in values.items()}
