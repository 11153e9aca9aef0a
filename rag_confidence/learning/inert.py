"""How often each threshold of a policy fires on observed retrievals, and whether it ever decides."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Mask, Signal
from rag_confidence.learning.log import Log
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.policy import MetricPolicy
from rag_confidence.product.verdict import (
    CODES,
    CONFIDENCE_BANDS,
    KPI_BANDS,
    SIGNAL_BANDS,
    VERDICT_OF,
    Situation,
    decide,
)

# A threshold that withholds or flags one retrieval in ten is felt and still lets most of them pass.
SHARE = 0.10
# With fewer retrievals a threshold that would fire on one in ten may stay silent by chance (.9^20 = .12).
LEAST_ROWS = 20
# What fires on 95 % or more tells at most one retrieval in twenty from the others.
NEARLY_ALL = 0.95
# A threshold with few decimals may fire on up to half as many again as asked for.
_NEAR = 1.5

_ANSWERS = np.array([str(VERDICT_OF[code]) for code in CODES])

Firing: TypeAlias = Literal["below", "at least"]


@dataclass(frozen=True)
class ThresholdUse:
    """One threshold on the retrievals that were observed.

    Attributes
    ----------
    name, reads : str
        Field of the policy, and what is compared with it: "kpi", a driver or "contradiction".
    value : float
        The threshold, in the units of the policy: 0..100, and 0..1 for `contradiction_at`.
    fires : {"below", "at least"}
        On values below it, or on values of at least it.
    n, fired : int
        Retrievals on which the value was assessed, and those on which the threshold fires.
    decided : int
        Retrievals whose verdict would be another one without this threshold.
    lowest, highest : float or None
        Observed range of the value, in the units of the threshold.
    for_tenth : float or None
        A threshold that would have fired on about one retrieval in ten; None where no value would, because
        too many values are equal.
    for_tenth_fires : int
        How many it would have fired on.
    """

    name: str
    reads: str
    value: float
    fires: Firing
    n: int
    fired: int
    decided: int
    lowest: float | None
    highest: float | None
    for_tenth: float | None
    for_tenth_fires: int

    @property
    def never(self) -> bool:
        """Whether it fires on none, of enough retrievals to say so."""
        return self.n >= LEAST_ROWS and self.fired == 0

    @property
    def always(self) -> bool:
        """Whether it fires on all, of enough retrievals to say so."""
        return self.n >= LEAST_ROWS and self.fired == self.n

    @property
    def nearly_always(self) -> bool:
        """Whether it fires on nearly all, but not on all, of enough retrievals to say so."""
        return self.n >= LEAST_ROWS and NEARLY_ALL * self.n <= self.fired < self.n

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class BandUse:
    """How often each word of one kind of band occurs, the best word first."""

    reads: str
    cuts: tuple[float, ...]
    words: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def unused(self) -> tuple[str, ...]:
        """Words that never occur, of enough retrievals to say so."""
        if sum(self.counts) < LEAST_ROWS:
            return ()
        return tuple(word for word, count in zip(self.words, self.counts, strict=True) if not count)


@dataclass(frozen=True)
class _Rule:
    """A threshold: its name, what it reads, its value, when it fires, and the policy without it."""

    name: str
    reads: str
    value: float
    fires: Firing
    relaxed: MetricPolicy


@dataclass(frozen=True, eq=False)
class _Observed:
    """What the verdict table reads, of the retrievals made under one policy."""

    drivers: Drivers
    situation: Situation

    def values(self, reads: str) -> FloatArray:
        """Column in the units of its threshold, nan where not assessed."""
        if reads == "kpi":
            return 100.0 * self.drivers.kpi
        if reads == "contradiction":
            return np.asarray(self.situation.contradiction)
        return 100.0 * self.drivers.of(Signal(reads))

    def without_contradiction(self) -> _Observed:
        """The same as if nobody had assessed contradiction."""
        blank = np.full_like(np.asarray(self.situation.contradiction), np.nan)
        return replace(self, situation=replace(self.situation, contradiction=blank))

    def verdicts(self, policy: MetricPolicy) -> np.ndarray:
        """What the policy would say, as strings."""
        return np.asarray(_ANSWERS[decide(self.drivers, self.situation, policy)])


def thresholds_of(log: Log, policy: MetricPolicy) -> tuple[ThresholdUse, ...]:
    """Every threshold of the verdict table, on the scored retrievals that were made under `policy`.

    A threshold decides on a retrieval if the policy's verdict changes when that threshold alone is taken
    away. One that fires without ever deciding is shadowed by another row of the table.
    """
    observed = _observed(log, policy)
    base = observed.verdicts(policy)
    found = [_use(rule, observed, base != observed.verdicts(rule.relaxed)) for rule in _rules(policy)]
    conflict = _Rule("contradiction_at", "contradiction", policy.contradiction_at, "at least", policy)
    return (*found, _use(conflict, observed, base != observed.without_contradiction().verdicts(policy)))


def bands_of(log: Log, policy: MetricPolicy) -> tuple[BandUse, ...]:
    """Every kind of band, on the same retrievals."""
    observed = _observed(log, policy)
    kinds = [("kpi", policy.kpi_cuts, KPI_BANDS), ("kpi", policy.confidence_cuts, CONFIDENCE_BANDS)]
    kinds += [(str(signal), policy.signal_cuts[signal], SIGNAL_BANDS[signal]) for signal in Signal]
    return tuple(_band_use(reads, cuts, words, observed.values(reads)) for reads, cuts, words in kinds)


def value_for_share(values: FloatArray, fires: Firing) -> tuple[float | None, int]:
    """Threshold of at most one decimal where possible that fires on about `SHARE` of `values`, and its count.

    It fires on at least that share and at most half as many again. None where no threshold does, because too
    many values are equal.
    """
    ordered = np.sort(values if fires == "below" else -values)
    wanted = math.ceil(SHARE * len(ordered))
    if not len(ordered):
        return None, 0
    for digits in range(1, 13):
        scaled = float(ordered[wanted - 1]) * 10**digits
        cut = ((math.floor(scaled) + 1) if fires == "below" else math.ceil(scaled)) / 10**digits
        count = int(np.count_nonzero(ordered < cut if fires == "below" else ordered <= cut))
        if wanted <= count <= _NEAR * wanted:
            return (cut if fires == "below" else -cut), count
    return None, 0


def _rules(policy: MetricPolicy) -> list[_Rule]:
    """The thresholds that a policy can switch off, in the order of the verdict table."""
    free = replace(policy, grounding_min=0.0)
    rules = [
        _Rule("grounding_min", "topical_grounding", policy.grounding_min, "below", free),
        _Rule("review_at", "kpi", policy.review_at, "below", replace(policy, review_at=0.0)),
        _Rule("answer_at", "kpi", policy.answer_at, "below", replace(policy, answer_at=policy.review_at)),
    ]
    for name, floor in asdict(policy.floors).items():
        free = replace(policy, floors=replace(policy.floors, **{name: 0.0}))
        rules.append(_Rule(f"floors.{name}", name, floor, "below", free))
    return rules


def _observed(log: Log, policy: MetricPolicy) -> _Observed:
    made = log.scored & (log.words["policy_fingerprint"] == policy.fingerprint)
    values = np.stack([_column(log, str(signal), made) for signal in Signal])
    drivers = Drivers(values, np.zeros((len(Signal) - 1, values.shape[1])), log.kpi[made])
    situation = Situation(
        no_passages=False,
        degenerate_query=False,
        contradiction=_column(log, "contradiction", made),
        n_loops=log.counts["evidence.contradiction_loops"][made],
    )
    return _Observed(drivers, situation)


def _column(log: Log, name: str, made: np.ndarray) -> FloatArray:
    column = log.signals.get(name)
    return np.full(int(np.count_nonzero(made)), np.nan) if column is None else column[made]


def _use(rule: _Rule, observed: _Observed, changed: Mask) -> ThresholdUse:
    column = observed.values(rule.reads)
    known = column[~np.isnan(column)]
    below = rule.fires == "below"
    for_tenth, count = value_for_share(known, rule.fires)
    return ThresholdUse(
        name=rule.name,
        reads=rule.reads,
        value=rule.value,
        fires=rule.fires,
        n=len(known),
        fired=int(np.count_nonzero(known < rule.value if below else known >= rule.value)),
        decided=int(np.count_nonzero(changed)),
        lowest=float(known.min()) if len(known) else None,
        highest=float(known.max()) if len(known) else None,
        for_tenth=for_tenth,
        for_tenth_fires=count,
    )


def _band_use(reads: str, cuts: tuple[float, ...], words: tuple[str, ...], column: FloatArray) -> BandUse:
    known = column[~np.isnan(column)]
    # The place of the first cut that a value reaches; the last word is for those that reach none.
    reached = [*(known >= cut for cut in cuts), np.ones(len(known), dtype=bool)]
    places: IntArray = np.argmax(reached, axis=0)
    counts = np.bincount(places, minlength=len(words)).tolist()
    return BandUse(reads, cuts, words, tuple(counts))
