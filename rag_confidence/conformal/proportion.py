"""An observed proportion with its exact binomial interval, for independent rows, as a record."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rag_confidence.conformal.binomial import clopper_pearson


@dataclass(frozen=True)
class Proportion:
    """`count` of `total` rows, as a rate with an interval.

    Attributes
    ----------
    count, total : int
        Rows that show the event, and rows that could.
    rate : float or None
        count / total in [0, 1]; None for a total of 0, where nothing was observed.
    low, high : float
        Clopper-Pearson 95 % interval of the rate behind it, for independent rows of an event fixed before
        they were seen; too narrow where a query has several rows. 0 and 1 for a total of 0.
    """

    count: int
    total: int
    rate: float | None
    low: float
    high: float

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain values, ready for JSON."""
        return asdict(self)


def proportion_of(count: int, total: int) -> Proportion:
    """The record for `count` of `total` rows, 0 <= count <= total."""
    low, high = clopper_pearson(count, total)
    return Proportion(count, total, count / total if total else None, low, high)
