"""Slow, independent references for the conformal kernel and gate, written from the definitions alone.

Nothing here imports the package. Levels, counts and p-values are integers and Fractions; a threshold is found
by sorting, a prediction set by comparing two p-values with their levels, and never by a threshold, so that
the two ways of writing split conformal prediction check each other.

References: Vovk, Gammerman, Shafer (2022), Algorithmic Learning in a Random World, sections 2.2 and 4.6
(conformal p-values, label-conditional prediction sets); Vovk (2012), Machine Learning 92, proposition 2b
(sets that hold with a given probability over the calibration draw); Newcombe (2006), Statistics in Medicine
25, method 5.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

Level = float | str | Fraction | Decimal

ACCEPT, REJECT, ABSTAIN = "accept", "reject", "abstain"

LARGEST_DENOMINATOR = 10**6
ROUNDING = Fraction(1, 10**15)
# The 97.5 % point of the standard normal distribution.
Z95 = 1.959963984540054


# --- levels and ranks ------------------------------------------------------------------------------------


def level(alpha: Level) -> Fraction:
    """The exact level that is meant: texts and exact numbers as given, a float by the simplest fraction."""
    if not isinstance(alpha, float):
        return Fraction(alpha)
    simple = Fraction(alpha).limit_denominator(LARGEST_DENOMINATOR)
    if 0 < simple < 1 and abs(simple - Fraction(alpha)) <= ROUNDING:
        return simple
    return Fraction(repr(float(alpha)))


def rank(n: int, alpha: Level) -> float:
    """The smallest k with k >= (n + 1)(1 - alpha), by counting up; infinity if there is none up to n."""
    wanted = (n + 1) * (1 - level(alpha))
    return next((k for k in range(1, n + 1) if k >= wanted), math.inf)


def binomial_tail(n: int, p: Fraction, k: int) -> Fraction:
    """P(Binomial(n, p) >= k), one term at a time."""
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1)), Fraction(0))


def pac_rank(n: int, alpha: Level, delta: Level) -> float:
    """The smallest k with P(Binomial(n, 1 - alpha) >= k) <= delta; infinity if there is none up to n."""
    inside, allowed = 1 - level(alpha), level(delta)
    tail, found = Fraction(0), math.inf
    for k in range(n, 0, -1):
        tail += math.comb(n, k) * inside**k * (1 - inside) ** (n - k)
        if tail > allowed:
            break
        found = k
    return found


def smallest_supported(alpha: Level) -> int:
    """The smallest n whose rank is finite, by trying."""
    n = 1
    while rank(n, alpha) == math.inf:
        n += 1
    return n


def smallest_pac(alpha: Level, delta: Level) -> int:
    """The smallest n whose pac rank is finite, by trying."""
    n = 1
    while (1 - level(alpha)) ** n > level(delta):
        n += 1
    return n


def order_statistic(values: Iterable[Any], k: float) -> float:
    """The k-th smallest value; infinity beyond the last."""
    ordered = sorted(Fraction(float(v)) for v in values)
    return math.inf if k > len(ordered) else float(ordered[int(k) - 1])


# --- numbers of two precisions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A score with its precision: `single` if it is a float32."""

    value: float
    single: bool = False


def numbers(values: Sequence[Any], single: bool) -> list[Number]:
    """Scores of one dtype."""
    return [Number(float(v), single) for v in values]


def narrowed(value: float) -> float:
    """The float32 nearest to `value`; beyond the range of float32 an infinity of the same sign."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def compared(a: Number, b: Number) -> tuple[float, float]:
    """Both values as they are compared: rounded to float32 if either of them is one."""
    if a.single or b.single:
        return narrowed(a.value), narrowed(b.value)
    return a.value, b.value


def at_least(a: Number, b: Number) -> bool:
    """Whether a >= b in the coarser of the two precisions."""
    left, right = compared(a, b)
    return left >= right


# --- the gate --------------------------------------------------------------------------------------------


def p_value_0(score: Number, class0: Sequence[Number]) -> Fraction:
    """Share of class-0 scores, the new one counted in, that are at least as high: high is strange for 0."""
    return Fraction(1 + sum(at_least(c, score) for c in class0), len(class0) + 1)


def p_value_1(score: Number, class1: Sequence[Number]) -> Fraction:
    """Share of class-1 scores, the new one counted in, that are at most as high: low is strange for 1."""
    return Fraction(1 + sum(at_least(score, c) for c in class1), len(class1) + 1)


@dataclass(frozen=True)
class Gate:
    """What a gate needs: the scores of each class and a level for each error."""

    class0: list[Number]
    class1: list[Number]
    alpha: Fraction
    alpha_reject: Fraction
    on_conflict: str = ABSTAIN

    def p_values(self, score: Number) -> tuple[Fraction, Fraction]:
        """Conformal p-values of label 0 and of label 1."""
        return p_value_0(score, self.class0), p_value_1(score, self.class1)

    def prediction_set(self, score: Number) -> tuple[int, ...]:
        """The labels whose p-value exceeds their level."""
        p0, p1 = self.p_values(score)
        return tuple(label for label, kept in ((0, p0 > self.alpha), (1, p1 > self.alpha_reject)) if kept)

    def decide(self, score: Number) -> str:
        """The decision on one score."""
        return decision(self.prediction_set(score), self.on_conflict)

    @property
    def q0(self) -> float:
        """The k0-th smallest class-0 score."""
        return order_statistic((s.value for s in self.class0), rank(len(self.class0), self.alpha))

    @property
    def t1(self) -> float:
        """The k1-th largest class-1 score."""
        k = rank(len(self.class1), self.alpha_reject)
        return -order_statistic((-s.value for s in self.class1), k)


def gate(
    scores: Sequence[Any],
    labels: Sequence[Any],
    alpha: Level = "0.1",
    *,
    alpha_reject: Level | None = None,
    on_conflict: str = ABSTAIN,
    single: bool = False,
) -> Gate:
    """A gate on labelled scores of one dtype."""
    rows = list(zip(numbers(scores, single), labels, strict=True))
    class0 = [s for s, y in rows if y == 0]
    class1 = [s for s, y in rows if y == 1]
    second = alpha if alpha_reject is None else alpha_reject
    return Gate(class0, class1, level(alpha), level(second), on_conflict)


def decision(kept: tuple[int, ...], on_conflict: str = ABSTAIN) -> str:
    """{1} accepts, {0} rejects, {0, 1} abstains, and the empty set does what was asked for."""
    return {(1,): ACCEPT, (0,): REJECT, (0, 1): ABSTAIN, (): on_conflict}[kept]


def pac_thresholds(
    scores: Sequence[Any], labels: Sequence[Any], alpha: Level, delta: Level
) -> tuple[float, float]:
    """(q0, t1) by the pac ranks, each class at delta."""
    class0 = [float(s) for s, y in zip(scores, labels, strict=True) if y == 0]
    class1 = [-float(s) for s, y in zip(scores, labels, strict=True) if y == 1]
    q0 = order_statistic(class0, pac_rank(len(class0), alpha, delta))
    return q0, -order_statistic(class1, pac_rank(len(class1), alpha, delta))


# --- separation ------------------------------------------------------------------------------------------


def auroc(scores: Sequence[Any], labels: Sequence[Any]) -> float:
    """Share of (class 1, class 0) pairs in the right order, ties counting one half."""
    rows = [(Fraction(float(s)), y) for s, y in zip(scores, labels, strict=True)]
    pairs = [(a > b) + Fraction(a == b, 2) for a, y in rows if y == 1 for b, z in rows if z == 0]
    return float(sum(pairs, Fraction(0)) / len(pairs))


def auroc_interval(area: float, n0: int, n1: int, z: float = Z95) -> tuple[float, float]:
    """Newcombe's method 5: the areas t with |area - t| <= z sqrt(V(t)), by bisection."""
    mean_size = Fraction(n0 + n1, 2) - 1

    def spread(t: float) -> float:
        bracket = 1 + float(mean_size) * ((1 - t) / (2 - t) + t / (1 + t))
        return z * math.sqrt(t * (1 - t) * bracket / (n0 * n1))

    low = _boundary(0.0, area, lambda t: area - t > spread(t))
    high = _boundary(1.0, area, lambda t: t - area > spread(t))
    return low, high


def _boundary(outside: float, inside: float, is_outside: Any) -> float:
    """Where the far side of an interval begins, between a point outside and one inside."""
    for _ in range(200):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if is_outside(middle) else (outside, middle)
    return (outside + inside) / 2


# --- what an evaluation reports --------------------------------------------------------------------------


def rates(decisions: Sequence[str], sets: Sequence[tuple[int, ...]], labels: Sequence[int]) -> dict[str, Any]:
    """Shares of the held-out rows by their names in the vocabulary; None where nothing is counted."""
    rows = list(zip(decisions, sets, labels, strict=True))
    accepted = [y for d, _, y in rows if d == ACCEPT]
    of_class = {y: [(d, kept) for d, kept, z in rows if z == y] for y in (0, 1)}
    return {
        "false_sufficiency_rate": _share(d == ACCEPT for d, _ in of_class[0]),
        "false_rejection_rate": _share(d == REJECT for d, _ in of_class[1]),
        "coverage_0": _share(0 in kept for _, kept in of_class[0]),
        "coverage_1": _share(1 in kept for _, kept in of_class[1]),
        "acceptance_rate": _share(d == ACCEPT for d in decisions),
        "rejection_rate": _share(d == REJECT for d in decisions),
        "abstention_rate": _share(d == ABSTAIN for d in decisions),
        "conflict_rate": _share(kept == () for kept in sets),
        "selective_risk": _share(y == 0 for y in accepted),
    }


def _share(events: Iterable[bool]) -> float | None:
    counted = list(events)
    return sum(counted) / len(counted) if counted else None
