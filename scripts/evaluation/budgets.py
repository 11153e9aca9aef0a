"""Scores that are learned, at several numbers of labels: draws, test rows, and means over the draws."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from _data import FloatArray, IntArray, Mask

from evaluation.bootstrap import replicates
from evaluation.metrics import all_of, brier
from evaluation.ours import Fit, Learner

_SALT = 0xB0D6
_EACH = 3


@dataclass(frozen=True)
class Told:
    """What every score says of all rows, for each draw of one number of labels.

    Attributes
    ----------
    tested : ndarray of bool, shape (S, n)
        The rows that were not learned from.
    scores : mapping of str to ndarray, shape (S, n) or (n,)
        By name; shape (n,) for scores that learned nothing.
    """

    tested: Mask
    scores: Mapping[str, FloatArray]


@dataclass(frozen=True)
class Measured:
    """Means over the draws of each metric, and of the bootstrap rounds, by score.

    Attributes
    ----------
    values : mapping of str to mapping of str to float
        Metric by score.
    spread : mapping of str to float
        Standard deviation over the draws of the AUROC, by score.
    rounds : mapping of str to mapping of str to ndarray, shape (rounds,)
        Bootstrap rounds by score and metric; empty when none were asked for.
    """

    values: dict[str, dict[str, float]]
    spread: dict[str, float]
    rounds: dict[str, dict[str, FloatArray]]


def is_possible(sufficient: Mask, budget: int) -> bool:
    """Whether as many rows are left to test on, and each class has rows on both sides."""
    rarer = min(np.count_nonzero(sufficient), np.count_nonzero(~sufficient))
    return len(sufficient) >= 2 * budget and rarer >= 2 * _EACH


def training_rows(sufficient: Mask, budget: int, *, seed: int, name: str) -> IntArray:
    """`budget` rows at random, each class in proportion, three of each at least; ascending."""
    rng = np.random.default_rng([_SALT, zlib.crc32(name.encode()), seed])
    share = round(budget * float(sufficient.mean()))
    ones = int(np.clip(share, _EACH, budget - _EACH))
    good = rng.permutation(np.flatnonzero(sufficient))[:ones]
    poor = rng.permutation(np.flatnonzero(~sufficient))[: budget - ones]
    return np.sort(np.concatenate([good, poor]))


def learn(
    fits: Mapping[str, Fit], sufficient: Mask, draws: list[IntArray], free: Mapping[str, FloatArray]
) -> Told:
    """Fit every learner on every draw; `free` holds scores that need no labels, to compare with."""
    tested = np.ones((len(draws), len(sufficient)), dtype=bool)
    for at, train in enumerate(draws):
        tested[at, train] = False
    told = {
        name: np.stack([fit(train, seed) for seed, train in enumerate(draws)]) for name, fit in fits.items()
    }
    return Told(tested, {**free, **told})


def measure(told: Told, sufficient: Mask, stratum: Mask, weights: FloatArray | None) -> Measured:
    """Metrics on the tested rows of a stratum, averaged over the draws; the rounds too, with `weights`."""
    values, spread, rounds = {}, {}, {}
    for name, scores in told.scores.items():
        each = [
            _of_draw(*draw, learned=scores.ndim == 2) for draw in _draws(told, scores, sufficient, stratum)
        ]
        values[name] = {key: float(np.mean([one[key] for one in each])) for key in each[0]}
        spread[name] = float(np.std([one["auroc"] for one in each]))
        if weights is not None:
            rounds[name] = _mean_rounds(told, scores, (sufficient, stratum, weights))
    return Measured(values, spread, rounds)


def learners_at(learners: tuple[Learner, ...], budget: int) -> list[Learner]:
    """Those that are measured at this number of labels."""
    return [learner for learner in learners if learner.budget in (None, budget)]


def _draws(
    told: Told, scores: FloatArray, sufficient: Mask, stratum: Mask
) -> Iterator[tuple[FloatArray, Mask]]:
    for at, tested in enumerate(told.tested):
        rows = tested & stratum
        yield (scores[at] if scores.ndim == 2 else scores)[rows], sufficient[rows]


def _of_draw(scores: FloatArray, sufficient: Mask, *, learned: bool) -> dict[str, float]:
    found = all_of(scores, sufficient)
    return {**found, "brier": brier(scores, sufficient)} if learned else found


def _mean_rounds(
    told: Told, scores: FloatArray, rows: tuple[Mask, Mask, FloatArray]
) -> dict[str, FloatArray]:
    """The metric of each bootstrap round, averaged over the draws."""
    sufficient, stratum, weights = rows
    total: dict[str, FloatArray] = {}
    for at, tested in enumerate(told.tested):
        here = tested & stratum
        one = (scores[at] if scores.ndim == 2 else scores)[here]
        for key, values in replicates(one, sufficient[here], weights[here]).items():
            total[key] = total.get(key, 0.0) + values / len(told.tested)
    return total
