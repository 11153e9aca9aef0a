"""Every method on many splits, and what the numbers say together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache

import numpy as np
from _methods import LEVEL, Method, Rates, rates
from numpy.typing import NDArray

from rag_confidence.conformal.bands import covered_pmf
from rag_confidence.conformal.validation.report import ClassCounts, ClassCoverage, class_coverage
from rag_confidence.synthetic import KINDS, LabelledScores, accepted_above

Split = tuple[LabelledScores, LabelledScores]

COLUMNS = tuple(field.name for field in fields(Rates))
SUFFICIENT = sum(kind.share * kind.sufficient for kind in KINDS)


@dataclass(frozen=True)
class Run:
    """One method over all seeds.

    Attributes
    ----------
    columns : dict of ndarray, shape (seeds,)
        The `Rates` of each seed.
    cuts : ndarray, shape (seeds,)
        Score above which it accepted.
    expected : float
        Share of seeds in which the false-sufficiency rate of a sound gate stays within alpha on the test
        rows; nan for methods that are no gate.
    counts : tuple of list
        Counts of each class, for the test of its coverage; empty for methods that are no gate.
    """

    method: Method
    columns: dict[str, NDArray[np.float64]]
    cuts: NDArray[np.float64]
    expected: float
    counts: tuple[list[ClassCounts], list[ClassCounts]]

    def cell(self, name: str) -> str:
        """Mean of a column, and its 5 % and 95 % quantiles over seeds."""
        return spread(self.columns[name])

    def mean(self, name: str) -> float:
        """Mean of a column over the seeds that have it."""
        return mean_of(self.columns[name])

    def coverage(self, label: int, level: float) -> ClassCoverage:
        """The coverage of one class against its exact distribution."""
        delta = self.method.delta
        return class_coverage(
            label, self.counts[label], alpha=LEVEL, delta=delta, level=level, continuous=False
        )

    def true_rates(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Exact error rates on `rag_benchmark` of each seed's threshold.

        The false-sufficiency rate, and the selective risk: nan where nothing is accepted.
        """
        above = np.array([accepted_above(float(cut)) for cut in self.cuts])
        wrong, right = above[:, 0] * (1.0 - SUFFICIENT), above[:, 1] * SUFFICIENT
        accepted = wrong + right
        return above[:, 0], np.divide(wrong, accepted, out=np.full(len(wrong), np.nan), where=accepted > 0.0)

    def truly_held(self) -> float:
        """Share of seeds in which the bound holds over all future rows."""
        fsr, risk = self.true_rates()
        error = np.nan_to_num(risk) if self.method.bounds_risk else fsr
        return float(np.mean(error <= self.method.level))


def run(methods: Sequence[Method], splits: Iterator[Split]) -> list[Run]:
    """All methods on the same splits."""
    found: list[list[tuple[Rates, float, float, tuple[ClassCounts, ClassCounts] | None]]]
    found = [[] for _ in methods]
    for known, new in splits:
        for seen, method in zip(found, methods, strict=True):
            decided = method.fit(known)(new.scores)
            counts, expected = None, float("nan")
            if method.is_gate:
                kept = (decided.label0_kept, decided.label1_kept)
                counts = (_count(known, new, kept[0], False), _count(known, new, kept[1], True))
                expected = chance_held(counts[0].n, method.rank(counts[0].n), counts[0].n_test)
            seen.append((rates(method, decided, new.labels), decided.cut, expected, counts))
    return [_collected(method, seen) for method, seen in zip(methods, found, strict=True)]


def _collected(method: Method, seen: Sequence[tuple[Rates, float, float, object]]) -> Run:
    table = [asdict(one[0]) for one in seen]
    counted = [one[3] for one in seen if one[3] is not None]
    return Run(
        method,
        {name: np.array([row[name] for row in table]) for name in COLUMNS},
        np.array([one[1] for one in seen]),
        float(np.mean([one[2] for one in seen])),
        ([c[0] for c in counted], [c[1] for c in counted]),  # type: ignore[index]
    )


def _count(known: LabelledScores, new: LabelledScores, kept: NDArray[np.bool_], label: bool) -> ClassCounts:
    rows = new.labels == label
    return ClassCounts(
        n=int(np.count_nonzero(known.labels == label)),
        n_test=int(np.count_nonzero(rows)),
        covered=int(np.count_nonzero(kept & rows)),
        accepted=0,
        repeated=0,
    )


@lru_cache(maxsize=4096)
def chance_held(n: int, rank: float, n_test: int) -> float:
    """Probability that a sound gate loses at most alpha of the insufficient test rows."""
    least_covered = n_test - LEVEL.numerator * n_test // LEVEL.denominator
    return float(covered_pmf(n, rank, n_test)[least_covered:].sum())


def mean_of(values: NDArray[np.float64]) -> float:
    """Mean of what is not nan; nan for nothing."""
    seen = values[~np.isnan(values)]
    return float(seen.mean()) if seen.size else float("nan")


def spread(values: NDArray[np.float64]) -> str:
    """Mean and the 5 % and 95 % quantiles; a dash for nothing."""
    seen = values[~np.isnan(values)]
    if not seen.size:
        return "-"
    low, high = np.quantile(seen, [0.05, 0.95])
    return f"{seen.mean():.3f} ({low:.3f} to {high:.3f})"
