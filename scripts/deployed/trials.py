"""Gates fitted on one random half of the queries of a world and counted on the other, many times."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from _data import FloatArray, IntArray, Mask

from deployed.worlds import SUFFICIENT, World
from rag_confidence import fit_conformal_gate, fit_risk_gate
from rag_confidence._predictions import Gate
from rag_confidence.conformal.bands import Trial, count_band
from rag_confidence.conformal.quantile import conformal_rank
from rag_confidence.conformal.validation.trials import MeanTest, mean_test

ALPHA, TARGET, DELTA = Fraction(1, 10), Fraction(1, 5), Fraction(1, 10)
LEVEL = 0.95
_SALT = 0xE2E

Score = Callable[[World], FloatArray]
Fit = Callable[[FloatArray, Mask], Gate]


@dataclass(frozen=True)
class Study:
    """Which insufficient rows calibrate, which are tested, by which score, and what is fitted.

    Rows of several kinds calibrate in equal numbers.
    """

    calibrated_on: tuple[str, ...]
    tested_on: str
    score: Score
    fit: Fit


@dataclass(frozen=True)
class Count:
    """One trial: calibration and test rows of both classes, and what became of the test rows.

    `wrong` and `right` are the accepted test rows; `wrong_of_all` and `right_of_all` those of the
    calibration rows as well.
    """

    n0: int
    n1: int
    tested0: int
    tested1: int
    lost0: int
    lost1: int
    wrong: int
    right: int
    wrong_of_all: int
    right_of_all: int
    rejected: int


@dataclass(frozen=True)
class Tally:
    """The trials of one study."""

    counts: Sequence[Count] = field(repr=False)

    def column(self, name: str) -> IntArray:
        """One number of every trial, shape (trials,)."""
        return np.array([getattr(count, name) for count in self.counts])

    def total(self, *names: str) -> int:
        """Sum of some numbers over all trials."""
        return int(sum(self.column(name).sum() for name in names))

    @property
    def fsr(self) -> float:
        """Share of the insufficient test rows that were accepted."""
        return _share(self.total("wrong"), self.total("tested0"))

    @property
    def kept(self) -> float:
        """Share of the sufficient test rows that were accepted."""
        return _share(self.total("right"), self.total("tested1"))

    @property
    def accepted(self) -> float:
        """Share of all test rows that were accepted."""
        return _share(self.total("wrong", "right"), self.total("tested0", "tested1"))

    @property
    def rejected(self) -> float:
        """Share of all test rows that were rejected."""
        return _share(self.total("rejected"), self.total("tested0", "tested1"))

    @property
    def risk(self) -> float:
        """Share of the accepted rows that are insufficient; nan where none was accepted."""
        return _share(self.total("wrong"), self.total("wrong", "right"))

    @property
    def some_accepted(self) -> float:
        """Share of trials that accepted anything."""
        return float(np.mean(self.column("wrong") + self.column("right") > 0))

    @property
    def over_target(self) -> int:
        """Trials whose threshold accepts more than `TARGET` insufficient rows among all rows.

        Of these the calibration rows are a random part, which is what the certificate is about; the test
        rows alone err against the calibration rows, because what is not in one half is in the other.
        """
        wrong, right = self.column("wrong_of_all"), self.column("right_of_all")
        over = wrong * (TARGET.denominator - TARGET.numerator) > right * TARGET.numerator
        return int(np.count_nonzero(over))

    @cached_property
    def coverage(self) -> tuple[MeanTest, MeanTest]:
        """The mean coverage of each class against its exact distribution over these trials."""
        return _mean_test(self, 0), _mean_test(self, 1)

    def one_draw(self) -> tuple[float, float]:
        """Exact band of the share of insufficient rows whose label one trial of middle size loses."""
        n, tested = int(np.median(self.column("n0"))), int(np.median(self.column("tested0")))
        low, high = count_band(Trial(n, conformal_rank(n, ALPHA), tested), LEVEL)
        return 1.0 - high / tested, 1.0 - low / tested


def class_gate(scores: FloatArray, labels: Mask) -> Gate:
    """The class-conditional gate at `ALPHA`."""
    return fit_conformal_gate(scores, labels, alpha=ALPHA)


def risk_gate(scores: FloatArray, labels: Mask) -> Gate:
    """The risk gate at `TARGET` and `DELTA`."""
    return fit_risk_gate(scores, labels, TARGET, DELTA)


def tallies(world: World, studies: Sequence[Study], repeats: int) -> list[Tally]:
    """All studies on the same random halves."""
    trials = [list(_trial(world, studies, repeat)) for repeat in range(repeats)]
    return [Tally(counts) for counts in zip(*trials, strict=True)]


def _trial(world: World, studies: Sequence[Study], repeat: int) -> Iterator[Count]:
    order = np.random.default_rng([_SALT, repeat]).permutation(len(world.kind))
    half, rest = order[: len(order) // 2], order[len(order) // 2 :]
    for study in studies:
        known = _rows(world, half, study.calibrated_on)
        yield _count(world, known, _rows(world, rest, (study.tested_on,)), study)


def _rows(world: World, among: IntArray, kinds: Sequence[str]) -> IntArray:
    """The sufficient rows, and those of each kind: as many of each as there are of the rarest."""
    of_kind = [among[world.kind[among] == kind] for kind in kinds]
    least = min(map(len, of_kind))
    return np.concatenate([among[world.kind[among] == SUFFICIENT], *(rows[:least] for rows in of_kind)])


def _count(world: World, known: IntArray, new: IntArray, study: Study) -> Count:
    scores, sufficient = study.score(world), world.sufficient
    with warnings.catch_warnings():
        # The tables show what too few labels and weak scores do.
        warnings.simplefilter("ignore")
        gate = study.fit(scores[known], sufficient[known])
    found, good = gate.predict(scores[new]), sufficient[new]
    known_accepted = gate.predict(scores[known]).accepted
    wrong, right = (int(np.count_nonzero(found.accepted & rows)) for rows in (~good, good))
    return Count(
        n0=int(np.count_nonzero(~sufficient[known])),
        n1=int(np.count_nonzero(sufficient[known])),
        tested0=int(np.count_nonzero(~good)),
        tested1=int(np.count_nonzero(good)),
        lost0=_lost(found.label0_kept, ~good),
        lost1=_lost(found.label1_kept, good),
        wrong=wrong,
        right=right,
        wrong_of_all=wrong + int(np.count_nonzero(known_accepted & ~sufficient[known])),
        right_of_all=right + int(np.count_nonzero(known_accepted & sufficient[known])),
        rejected=int(np.count_nonzero(found.rejected)),
    )


def _lost(kept: Mask | None, rows: Mask) -> int:
    """Rows whose label is not in the set; a risk gate has no sets."""
    return 0 if kept is None else int(np.count_nonzero(rows & ~kept))


def _mean_test(tally: Tally, label: int) -> MeanTest:
    sizes, tested = tally.column(f"n{label}"), tally.column(f"tested{label}")
    trials = [
        Trial(n, conformal_rank(n, ALPHA), new)
        for n, new in zip(sizes.tolist(), tested.tolist(), strict=True)
    ]
    return mean_test(tested - tally.column(f"lost{label}"), trials, LEVEL)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
