"""How many labels a level needs, before any is collected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.conformal.gate.attempts import alpha_for_attempt
from rag_confidence.conformal.gate.cells import Levels
from rag_confidence.conformal.quantile import Level, as_level, check_count

_MOST_ROWS = 10**7
_LONGEST_PERIOD = 10**4


@dataclass(frozen=True)
class ClassPlan:
    """Rows of one class that a level needs.

    Attributes
    ----------
    label : int
        0 for insufficient, 1 for sufficient rows.
    alpha : float
        The level that its threshold must support.
    n_finite : int
        Fewest rows with a finite threshold of a marginal gate; with fewer the class is never excluded.
    n_pac : int
        Fewest rows with a finite threshold of a pac gate.
    n_close : int
        Rows from which the error rate of a marginal gate exceeds alpha + tolerance for at most a share
        delta of calibration sets.
    """

    label: int
    alpha: float
    n_finite: int
    n_pac: int
    n_close: int


@dataclass(frozen=True)
class CalibrationPlan:
    """What `plan` answers.

    Attributes
    ----------
    insufficient, sufficient : ClassPlan
        For the false ACCEPT and the false REJECT.
    delta, tolerance : float
        As asked; delta divided by the attempts.
    attempts : int
        Tries at one question that share alpha.
    rows : dict or None
        Rows to label in all for "finite", "pac" and "close", when a share `prevalence` of them is
        sufficient: as many as give both classes their rows on average.
    accepted_without_error : int or None
        Fewest accepted rows, none of them insufficient, that certify `target_risk` with the whole of delta.
    sentence : str
        The same in words.
    """

    insufficient: ClassPlan
    sufficient: ClassPlan
    delta: float
    tolerance: float
    attempts: int
    rows: dict[str, int] | None
    accepted_without_error: int | None
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def plan(
    alpha: Level = 0.10,
    delta: Level = 0.05,
    *,
    alpha_reject: Level | None = None,
    tolerance: Level = 0.05,
    prevalence: Level | None = None,
    target_risk: Level | None = None,
    attempts: int = 1,
) -> CalibrationPlan:
    """How many labelled rows of each class a gate needs.

    Parameters
    ----------
    alpha : float, str, Fraction or Decimal
        Level of a false ACCEPT.
    delta : float, str, Fraction or Decimal
        Share of calibration sets that may turn out unlucky.
    alpha_reject : float, str, Fraction or Decimal, optional
        Level of a false REJECT; by default `alpha`.
    tolerance : float, str, Fraction or Decimal
        How far above its level the error rate of one calibration set may lie.
    prevalence : float, str, Fraction or Decimal, optional
        Expected share of sufficient rows, to say how many rows to label in all.
    target_risk : float, str, Fraction or Decimal, optional
        Of `fit_risk_gate`, to say how many accepted rows it needs at least.
    attempts : int
        Tries at one question that are to stay within alpha together; levels and delta are divided by it.

    Returns
    -------
    CalibrationPlan

    Raises
    ------
    TypeError, ValueError
        For levels outside (0, 1).

    Notes
    -----
    A marginal gate has a finite threshold from n = ceil(1 / alpha) - 1 on, a pac gate from
    (1 - alpha)^n <= delta on. The error rate of one calibration set is at most Beta(n - k + 1, k)
    distributed. More rows buy steadier rates and more decisions, never a weaker assumption.

    Examples
    --------
    >>> found = plan(alpha=0.1, delta=0.05)
    >>> found.insufficient.n_finite, found.insufficient.n_pac, found.insufficient.n_close
    (9, 29, 110)
    """
    count = check_count("attempts", attempts, 1)
    session, slack = as_level(delta, "delta"), as_level(tolerance, "tolerance")
    chance = session / count
    accept = alpha_for_attempt(as_level(alpha), 1, count)
    reject = accept if alpha_reject is None else as_level(alpha_reject, "alpha_reject") / count
    classes = [_class_plan(0, accept, chance, slack), _class_plan(1, reject, chance, slack)]
    share = None if prevalence is None else as_level(prevalence, "prevalence")
    risk = None if target_risk is None else as_level(target_risk, "target_risk")
    rows = None if share is None else _rows(classes[0], classes[1], share)
    clean = None if risk is None else Levels(risk, risk, session).least_n(risk)
    return CalibrationPlan(
        insufficient=classes[0],
        sufficient=classes[1],
        delta=float(chance),
        tolerance=float(slack),
        attempts=count,
        rows=rows,
        accepted_without_error=clean,
        sentence=_sentence(classes, chance, slack, rows, clean),
    )


def _class_plan(label: int, level: Fraction, chance: Fraction, slack: Fraction) -> ClassPlan:
    return ClassPlan(
        label=label,
        alpha=float(level),
        n_finite=Levels(level, level, None).least_n(level),
        n_pac=Levels(level, level, chance).least_n(level),
        n_close=_close(level, chance, slack),
    )


def _close(level: Fraction, chance: Fraction, slack: Fraction) -> int:
    """Smallest n from which on the rate of one calibration set stays below level + slack.

    The chance of exceeding it moves in saw teeth: it is highest where n + 1 reaches a multiple of 1 / level,
    and falls until the next one. From Hoeffding's number of rows on it is surely small enough. Before that
    the tops of the teeth rise and then fall, so those looked at, ever further apart, enclose the last one
    that is too high.
    """
    if level + slack >= 1:
        return _tooth(1, level)
    enough = math.log(1 / chance) / (2 * float(slack) ** 2)
    if enough > _MOST_ROWS:
        raise ValueError(
            f"`tolerance` must be reachable with {_MOST_ROWS} rows; got {float(slack):g}. Ask for more slack."
        )
    most = math.ceil((enough + 1) * level) + 1
    left = np.unique(np.geomspace(1, most, 100 + int(100 * math.log(most))).astype(np.int64))
    high = np.flatnonzero(~_stay(_teeth(left, level), left, level + slack, chance))
    if not len(high):
        return _tooth(1, level)
    last = _last(int(left[high[-1]]), most, lambda j: bool(_stay(_tooth(j, level), j, level + slack, chance)))
    # Where 1 / level is no whole number the teeth are uneven, with a period of its numerator.
    window = last + np.arange(1, min(4 * level.numerator, _LONGEST_PERIOD))
    high = window[~_stay(_teeth(window, level), window, level + slack, chance)]
    last = int(high[-1]) if len(high) else last
    start, end = _tooth(last, level), _tooth(last + 1, level)
    return _last(start, end, lambda n: bool(_stay(n, last, level + slack, chance))) + 1


def _last(low: int, high: int, stays: Callable[[int], bool]) -> int:
    """The last number from `low`, which does not stay, to `high`, which does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if stays(middle) else (middle, high)
    return low


def _tooth(left: int, level: Fraction) -> int:
    """The fewest rows that leave `left` order statistics from the rank on."""
    return math.ceil(left / level) - 1


def _teeth(left: IntArray, level: Fraction) -> FloatArray:
    """`_tooth` of many; the numbers of a long fraction exceed those of numpy."""
    return np.array([-(-j * level.denominator // level.numerator) - 1.0 for j in left.tolist()])


def _stay(n: FloatArray | int, left: IntArray | int, rate: Fraction, chance: Fraction) -> Mask:
    """Whether the error rate of a calibration set, Beta(left, n - left + 1), exceeds `rate` rarely enough."""
    from scipy.special import betaincc

    rows = np.asarray(n, dtype=np.float64)
    return np.asarray(betaincc(left, rows - left + 1, float(rate)) <= float(chance))


def _rows(insufficient: ClassPlan, sufficient: ClassPlan, share: Fraction) -> dict[str, int]:
    found = {}
    for name in ("finite", "pac", "close"):
        need0, need1 = getattr(insufficient, f"n_{name}"), getattr(sufficient, f"n_{name}")
        found[name] = max(math.ceil(need0 / (1 - share)), math.ceil(need1 / share))
    return found


def _sentence(
    classes: list[ClassPlan],
    chance: Fraction,
    slack: Fraction,
    rows: dict[str, int] | None,
    clean: int | None,
) -> str:
    words = ("insufficient", "sufficient")
    alike = classes[0].alpha == classes[1].alpha
    parts = [
        f"At level {one.alpha:g} {'each' if alike else f'the {words[one.label]}'} class needs {one.n_finite} "
        f"rows for any decision, {one.n_pac} for a pac gate at delta {float(chance):g}, and {one.n_close} "
        f"for a rate that stays below {one.alpha + float(slack):g} with probability {1 - float(chance):g}."
        for one in (classes[:1] if alike else classes)
    ]
    if rows is not None:
        parts.append(f"Label about {rows['finite']}, {rows['pac']} or {rows['close']} rows in all.")
    if clean is not None:
        parts.append(f"The risk gate needs at least {clean} accepted rows, more with every error among them.")
    return " ".join(parts)
