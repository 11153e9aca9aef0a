"""Leave-one-data-set-out: constants chosen on some sets, measured on the one that had no part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from _data import FloatArray, Mask

from weights.grid import Setting
from weights.pairs import Pair

BELOW = 0.01
NEAR = 0.001
"""Mean AUROC by which points of the grid may differ and still count as equals: noise is several times "
"that."""


@dataclass(frozen=True)
class Chosen:
    """What a choice found.

    Attributes
    ----------
    setting : Setting
    within : bool
        Whether it keeps the bound on the pairs it was chosen on; False where no point of the grid does.
    training : float
        Mean AUROC on these pairs.
    areas : ndarray
        AUROC on the pairs that it is measured on.
    equals : ndarray, shape (points,)
        Mean AUROC on these of every point that is as good on the training pairs, to `NEAR`, and keeps the
        bound there.
    """

    setting: Setting
    within: bool
    training: float
    areas: FloatArray
    equals: FloatArray


@dataclass(frozen=True)
class Table:
    """AUROC of each setting on each pair (settings, pairs), and of the best cosine (pairs,)."""

    settings: Sequence[Setting]
    areas: FloatArray
    cosine: FloatArray

    def choose(self, training: Mask, measured: Mask) -> Chosen:
        """The best mean on the training pairs under the bound; the first in the grid if several tie."""
        means = self.areas[:, training].mean(axis=1)
        worst = (self.areas - self.cosine)[:, training].min(axis=1)
        allowed = worst >= -BELOW
        # Without a point that keeps the bound, the one that misses it least.
        best = int(np.argmax(np.where(allowed, means, -np.inf) if allowed.any() else worst))
        measured_areas = self.areas[:, measured]
        near = means >= means[best] - NEAR
        return Chosen(
            setting=self.settings[best],
            within=bool(allowed.any()),
            training=float(means[best]),
            areas=measured_areas[best],
            equals=measured_areas[near & (worst >= min(-BELOW, worst[best]))].mean(axis=1),
        )


@dataclass(frozen=True)
class LeftOut:
    """The choice on the other sets, and what it is worth on this one."""

    name: str
    chosen: Chosen
    rows: Mask


def leave_one_out(table: Table, pairs: Sequence[Pair]) -> list[LeftOut]:
    """One choice for each set, all of its pairs being held out together."""
    names = np.array([pair.name for pair in pairs])
    return [
        LeftOut(name, table.choose(names != name, names == name), names == name)
        for name in dict.fromkeys(names.tolist())
    ]


def held_out(choices: Sequence[LeftOut], n_pairs: int) -> FloatArray:
    """AUROC of each pair under the constants that its set had no part in, shape (pairs,)."""
    found = np.full(n_pairs, np.nan)
    for one in choices:
        found[one.rows] = one.chosen.areas
    return found
