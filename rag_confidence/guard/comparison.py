"""One threshold for several checks, or one for each: how many good calls pass, and how many bad ones fail."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray, Mask
from rag_confidence.conformal.joint.check_rows import check_calls, check_names
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.guard.coverage import accepted, check_size, splits, threshold_of

METHODS = ("joint", "bonferroni", "naive")
HEADER = ("method", "target", "good accepted", "keeps the target", "bad stopped", "more bad than bonferroni")
# Two-sided 99 % of a normal distribution: means of dozens of trials.
_ERRORS = 2.576

_Accepts = Callable[[FloatArray], Mask]


@dataclass(frozen=True)
class Mean:
    """A mean over trials.

    Attributes
    ----------
    value, error : float
        The mean, and its standard error; nan error for a single trial.
    """

    value: float
    error: float

    @property
    def low(self) -> float:
        """Lower end of a 99 % interval."""
        return self.value - _ERRORS * self.error

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value + _ERRORS * self.error


@dataclass(frozen=True)
class MethodRates:
    """What one way to set thresholds does.

    Attributes
    ----------
    name : {"joint", "bonferroni", "naive"}
    good_accepted : Mean
        Share of held-out good calls that pass all checks.
    keeps_target : bool
        Whether the interval of that share reaches 1 - alpha.
    bad_stopped : Mean or None
        Share of the bad calls that fail some check; None without bad calls.
    gain : Mean or None
        That share less the one of Bonferroni in the same trials.
    """

    name: str
    good_accepted: Mean
    keeps_target: bool
    bad_stopped: Mean | None
    gain: Mean | None


@dataclass(frozen=True)
class CheckComparison:
    """What `compare_checks` found.

    Attributes
    ----------
    alpha : float
    names : tuple of str
        The checks.
    n, n_test, n_bad, trials, seed : int
    methods : tuple of MethodRates
        "joint", "bonferroni", "naive".
    """

    alpha: float
    names: tuple[str, ...]
    n: int
    n_test: int
    n_bad: int
    trials: int
    seed: int
    methods: tuple[MethodRates, ...]

    def of(self, name: str) -> MethodRates:
        """The rates of one method."""
        return next(method for method in self.methods if method.name == name)

    def rows(self) -> list[tuple[str, ...]]:
        """The cells under `HEADER`, a line for each method."""
        return [_cells(method, 1.0 - self.alpha) for method in self.methods]

    def table(self) -> str:
        """A Markdown table."""
        lines = (HEADER, ("---",) * len(HEADER), *self.rows())
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "alpha": self.alpha,
            "checks": [*self.names],
            "calibration_size": self.n,
            "test_size": self.n_test,
            "bad_size": self.n_bad,
            "trials": self.trials,
            "seed": self.seed,
            "methods": {method.name: _plain(method) for method in self.methods},
        }


def compare_checks(
    good: ArrayLike,
    alpha: Level,
    *,
    calibration_size: int,
    bad: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    trials: int = 100,
    seed: int = 0,
) -> CheckComparison:
    """The joint threshold of `calibrate` beside Bonferroni and naive thresholds, on the same random splits.

    Parameters
    ----------
    good : array_like, shape (N, K)
        Scores of good calls, a column a check, on comparable scales; higher is stranger, +inf for a check
        that failed.
    alpha : float, str, Fraction or Decimal
        Level in (0, 1).
    calibration_size : int
        Calls that set the thresholds in each trial, fewer than N; the others are held out.
    bad : array_like, shape (m, K), optional
        Scores of bad calls.
    names : sequence of str, optional
        Names of the checks.
    trials : int, default 100
    seed : int, default 0

    Returns
    -------
    CheckComparison

    Raises
    ------
    TypeError, ValueError
        For scores with nan or -inf, a pool that is too small, and options out of range.

    Notes
    -----
    Joint: one threshold on the largest score. Bonferroni: one a check, at alpha / K. Naive: one a check, at
    alpha, which promises nothing for all of them together. Where a threshold is infinite a method accepts
    nothing, and this counts as such here. That good calls are accepted alone says little: of two methods that
    keep the target, the one that stops more bad calls is better. O(R N K).

    References
    ----------
    Dunn (1961), Multiple comparisons among means, for Bonferroni's correction.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = compare_checks(rng.normal(size=(600, 3)), 0.1, calibration_size=300, bad=[[3, 0, 0]] * 9)
    >>> [method.keeps_target for method in found.methods]
    [True, True, False]
    """
    pool = check_calls("good", good).astype(np.float64)
    checks = check_names(names, good)
    others = None if bad is None else check_calls("bad", bad, checks).astype(np.float64)
    level, n = as_level(alpha), check_size(calibration_size, len(pool))
    count, start = check_integer("trials", trials, 1), check_integer("seed", seed, 0)
    kept: dict[str, list[float]] = {name: [] for name in METHODS}
    stopped: dict[str, list[float]] = {name: [] for name in METHODS}
    for first, rest in splits(len(pool), n, count, start):
        for name, accepts in _methods(pool[first], level).items():
            kept[name].append(float(accepts(pool[rest]).mean()))
            if others is not None:
                stopped[name].append(float((~accepts(others)).mean()))
    return CheckComparison(
        alpha=float(level),
        names=checks,
        n=n,
        n_test=len(pool) - n,
        n_bad=0 if others is None else len(others),
        trials=count,
        seed=start,
        methods=tuple(
            _rates(name, kept[name], stopped[name], stopped["bonferroni"], 1.0 - float(level))
            for name in METHODS
        ),
    )


def _methods(rows: FloatArray, level: Any) -> dict[str, _Accepts]:
    joint = threshold_of(rows.max(axis=1), level)
    each = {
        name: np.array([threshold_of(column, at) for column in rows.T])
        for name, at in (("bonferroni", level / rows.shape[1]), ("naive", level))
    }

    def below_one(new: FloatArray) -> Mask:
        return accepted(new.max(axis=1), joint)

    def below_each(thresholds: FloatArray) -> _Accepts:
        certified = bool(np.isfinite(thresholds).all())
        return lambda new: np.asarray((new <= thresholds).all(axis=1) & certified)

    return {"joint": below_one, **{name: below_each(thresholds) for name, thresholds in each.items()}}


def _rates(
    name: str, kept: list[float], stopped: list[float], usual: list[float], target: float
) -> MethodRates:
    good = _mean(kept)
    return MethodRates(
        name=name,
        good_accepted=good,
        keeps_target=not good.high < target,
        bad_stopped=_mean(stopped) if stopped else None,
        gain=_mean([mine - theirs for mine, theirs in zip(stopped, usual, strict=True)]) if stopped else None,
    )


def _mean(values: list[float]) -> Mean:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Mean(float(np.mean(values)), error)


def _cells(method: MethodRates, target: float) -> tuple[str, ...]:
    bad = "-" if method.bad_stopped is None else f"{method.bad_stopped.value:.3f}"
    gain = "-"
    if method.gain is not None and method.name != "bonferroni":
        gain = f"{method.gain.value:+.3f} ± {method.gain.error:.3f}"
    good = f"{method.good_accepted.value:.4f} ± {method.good_accepted.error:.4f}"
    return (method.name, f"{target:.3f}", good, "yes" if method.keeps_target else "no", bad, gain)


def _plain(method: MethodRates) -> dict[str, Any]:
    def numbers(mean: Mean | None) -> dict[str, float | None] | None:
        if mean is None:
            return None
        return {"mean": mean.value, "standard_error": None if math.isnan(mean.error) else mean.error}

    return {
        "good_accepted": numbers(method.good_accepted),
        "keeps_target": method.keeps_target,
        "bad_stopped": numbers(method.bad_stopped),
        "more_bad_than_bonferroni": numbers(method.gain),
    }
