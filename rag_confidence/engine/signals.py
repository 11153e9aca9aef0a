"""The table of numbers that the engine measures, one column each; one retrieval is a table of one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_confidence._types import FloatArray, IntArray

SHAPE_LIMIT = 512
"""Shape is measured on at most this many passages, the best by cosine."""

MOST_MATCHED = 512
"""Movement of larger trees is reported by its bound: matching their bars would take seconds."""

N_LEADERS = 3
"""Passages named as support."""


SIGNAL_NAMES = (
    "max_cosine",
    "mean_top3_cosine",
    "top_gap",
    "std_top10_cosine",
    "std_top20_cosine",
    "head_tail_gap",
    "head_coherence",
    "tail_coherence",
    "companionship",
    "best_pair",
    "best_nearest",
    "best_partial",
    "contrast",
    "saturated_contrast",
    "best_excess",
    "head_excess",
    "level_excess",
    "background_mean",
    "background_std",
    "background_tail",
    "typicality",
    "text_best",
    "text_top3",
    "second_bar",
    "persistence_margin",
    "dominance",
    "fragmentation",
    "n_components",
    "concentration",
    "lambda_2",
    "dirichlet_energy",
    "conditioned_energy",
    "flip_angle",
    "stability_move",
    "focus_depth",
    "n_nodes",
    "effective_k",
    "n_shape",
    "n_loops",
    "n_minor_loops",
    "loop_life",
    "loop_ratio",
    "loop_p_value",
)
_ROW = {name: row for row, name in enumerate(SIGNAL_NAMES)}


@dataclass(frozen=True, eq=False)
class Signals:
    """A table of named columns, one entry a query; nan means *not assessed*. Nothing is a verdict.

    ``signals["lambda_2"]`` is a column of shape (Q,), float64:

    - ``max_cosine``, ``mean_top3_cosine``: in [-1, 1], of the distinct passages;
    - ``top_gap``: best cosine minus the second; ``std_top10_cosine``: standard deviation of the ten best;
      ``std_top20_cosine``: of the twenty best; ``head_tail_gap``: mean of ranks 1 to 3 minus mean of ranks
      11 to 20;
    - ``head_coherence``, ``tail_coherence``, ``companionship``, ``best_pair``, ``best_nearest``,
      ``best_partial``: see `coherence`;
    - ``contrast``, ``saturated_contrast``, ``best_excess``, ``head_excess``, ``level_excess``,
      ``background_mean``, ``background_std``, ``background_tail``, ``typicality``: against a corpus profile,
      see `contrast`;
    - ``text_best``, ``text_top3``: share of the question's rare words in the passages, see `profile.words`;
    - ``second_bar``, ``persistence_margin``, ``dominance``, ``fragmentation``, ``n_components``: see
      `Barcode`;
    - ``concentration``: 1 minus the normalised entropy of the positive cosines;
    - ``lambda_2``, ``dirichlet_energy``, ``conditioned_energy``: see `sheaf`;
    - ``flip_angle`` in degrees, ``stability_move`` in cosines: see `stability`;
    - ``focus_depth``: depth of the focus over the height of a tree; flat lists have none;
    - ``n_nodes``: vertices of the filtration; ``effective_k``: distinct passages; ``n_shape``: passages
      whose shape was measured;
    - ``n_loops``, ``n_minor_loops``, ``loop_life``, ``loop_ratio``, ``loop_p_value``: see `loops`.

    Attributes
    ----------
    table : ndarray, shape (len(SIGNAL_NAMES), Q)
    """

    table: FloatArray

    @classmethod
    def of(cls, count: int, values: Mapping[str, FloatArray | float]) -> Signals:
        """Signals of `count` retrievals of which only `values` were measured."""
        table = np.full((len(SIGNAL_NAMES), count), np.nan)
        for name, value in values.items():
            table[_ROW[name]] = value
        return cls(table)

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def __getitem__(self, name: str) -> FloatArray:
        return np.asarray(self.table[_ROW[name]])

    def take(self, rows: IntArray | list[int]) -> Signals:
        """A copy restricted to the queries `rows`."""
        return Signals(self.table[:, rows])

    def with_values(self, values: Mapping[str, FloatArray | float]) -> Signals:
        """A copy in which the named columns hold `values`."""
        table = self.table.copy()
        for name, value in values.items():
            table[_ROW[name]] = value
        return Signals(table)


def scatter(target: Signals, rows: IntArray | list[int], source: Signals) -> None:
    """Write `source` into the queries `rows` of `target`, which nobody else holds."""
    target.table[:, rows] = source.table


@dataclass(frozen=True, eq=False)
class Measured:
    """Signals of a block, and which passages lead each of its lists.

    Attributes
    ----------
    signals : Signals
    leaders : ndarray of int, shape (Q, m)
        Served positions of the best distinct passages, at most `N_LEADERS`; -1 pads short lists.
    leader_cosines : ndarray, shape (Q, m)
        Their cosines; nan pads.
    """

    signals: Signals
    leaders: IntArray
    leader_cosines: FloatArray
