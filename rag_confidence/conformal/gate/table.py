"""The cells of a gate, and which of them a score of some group meets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._history import GroupName, check_aligned, check_group, check_groups
from rag_confidence._types import FloatArray, IntArray, Mask
from rag_confidence.conformal.gate.cells import Cell, Levels

SmallGroups: TypeAlias = Literal["abstain", "pool"]


@dataclass(frozen=True)
class Found:
    """The cell that a score meets.

    `unfit` says that the group has no thresholds of its own, `pooled` that those of all groups stand in.
    """

    cell: Cell
    unfit: bool = False
    pooled: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """Thresholds and flags of all groups of a table, and last those of unseen groups, as columns."""

    q0: FloatArray
    t1: FloatArray
    unfit: Mask
    infinite: Mask


def rows_by_place(places: np.ndarray[Any, np.dtype[np.intp]]) -> Iterator[tuple[int, IntArray]]:
    """Each place that occurs, and the rows (ascending) that have it, in one sort for all of them."""
    order = np.argsort(places, kind="stable")
    met, first = np.unique(places[order], return_index=True)
    if met.size:
        yield from zip(met.tolist(), np.split(order, first[1:]), strict=True)


@dataclass(frozen=True, eq=False)
class CellTable:
    """All rows together, and by group.

    Attributes
    ----------
    whole : Cell
        All rows.
    groups : tuple of Cell
        Empty for a gate without groups.
    small_groups : {"abstain", "pool"}
        What happens to groups that are unseen or have too few rows.
    """

    whole: Cell
    groups: tuple[Cell, ...]
    small_groups: SmallGroups

    @property
    def only(self) -> Cell:
        """The cell of a gate without groups."""
        if self.groups:
            raise ValueError(
                "`group` must be named for a gate with groups; got none. "
                "Ask thresholds(group) or guarantee_of(group)."
            )
        return self.whole

    def at(self, levels: Levels) -> CellTable:
        """The same rows at other levels."""
        whole, *groups = (
            Cell.of(cell.group, cell.scores0, cell.scores1, levels) for cell in (self.whole, *self.groups)
        )
        return CellTable(whole, tuple(groups), self.small_groups)

    def find(self, group: GroupName | None) -> Found:
        """The cell for one score of `group`."""
        if group is None and not self.groups:
            return Found(self.whole)
        self.check_asked(group)
        cell = self._by_group.get(group, self._unseen)  # type: ignore[arg-type]
        if not cell.is_infinite:
            return Found(cell)
        if self.small_groups == "pool":
            return Found(self.whole, pooled=True)
        return Found(cell, unfit=True)

    def knows(self, group: GroupName | None) -> bool:
        """Whether the group was met in calibration."""
        return group is None or group in self._by_group

    def check_asked(self, group: Any) -> None:
        """Refuse a missing group where there are groups, and a group where there are none."""
        if group is None and self.groups:
            raise ValueError(
                f"`group` must be given to a gate with {len(self.groups)} groups; got None. "
                "Name the group of the score."
            )
        if group is not None and not self.groups:
            shown = repr(group) if isinstance(group, (str, int)) else "groups"
            raise ValueError(
                f"`group` must be left out for a gate without groups; got {shown}. "
                "Fit the gate with groups=, or drop it."
            )
        if group is not None:
            check_group("group", group)

    def find_many(
        self, scores: ArrayLike, groups: Sequence[GroupName] | None
    ) -> tuple[list[GroupName], np.ndarray[Any, np.dtype[np.intp]], list[Found]]:
        """Checked groups, and for each row the place of what it meets in the list of all that can be met."""
        if groups is None or not self.groups:
            self.check_asked(None if groups is None else next(iter(groups), ""))
        check_aligned(scores=scores, groups=groups)
        names = self._places
        checked = check_groups("groups", () if groups is None else groups).tolist()
        places = np.array([names.get(group, len(names)) for group in checked], dtype=np.intp)
        return checked, places, self._all_found

    @cached_property
    def bars(self) -> Bars:
        """Thresholds and flags of all that can be met, at the places that `find_many` gives."""
        met = self._all_found
        return Bars(
            q0=np.array([one.cell.q0 for one in met]),
            t1=np.array([one.cell.t1 for one in met]),
            unfit=np.array([one.unfit for one in met]),
            infinite=np.array([one.cell.is_infinite for one in met]),
        )

    @cached_property
    def _places(self) -> dict[GroupName, int]:
        return {group: at for at, group in enumerate(self._by_group)}

    @cached_property
    def _all_found(self) -> list[Found]:
        unseen = Found(self.whole, pooled=True) if self.small_groups == "pool" else Found(self._unseen, True)
        return [*(self.find(group) for group in self._by_group), unseen]

    @cached_property
    def _by_group(self) -> dict[GroupName, Cell]:
        return {cell.group: cell for cell in self.groups if cell.group is not None}

    @cached_property
    def _unseen(self) -> Cell:
        nothing = self.whole.scores0[:0]
        return Cell(None, nothing, nothing, math.inf, -math.inf)
