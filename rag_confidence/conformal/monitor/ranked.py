"""Sequential smoothed ranks: scores kept in order, so that the rank of one more is cheap and uniform."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rag_confidence._artefact import decode_ascending
from rag_confidence._options import check_choice
from rag_confidence._types import FloatArray

_SALT = 0x0D81F7
_LONGEST = 8000
_PRECISIONS = ("float16", "float32", "float64")


class RankedScores:
    """A growing multiset of finite scores.

    Blocks of at most 8000 ascending scores: an insertion moves part of one block and counts the blocks
    below it, where a single array would move half of all scores. Eight bytes a score.
    """

    def __init__(self, scores: Iterable[float] = ()) -> None:
        ordered = array("d", sorted(scores))
        step = _LONGEST // 2
        self._blocks = [ordered[at : at + step] for at in range(0, len(ordered), step)] or [ordered]
        self._lowest = [block[0] for block in self._blocks if block]
        self._count = len(ordered)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[float]:
        return (score for block in self._blocks for score in block)

    def add(self, score: float) -> tuple[int, int]:
        """Insert a score; return how many are above it, and how many equal it, itself included."""
        # The last block that starts at or below the score also holds the end of its ties.
        at = max(bisect_right(self._lowest, score) - 1, 0)
        block = self._blocks[at]
        place = bisect_right(block, score)
        up_to = self._before(at) + place
        tied = place > 0 and block[place - 1] == score
        equal = up_to - self._below(score) if tied else 0
        block.insert(place, score)
        self._count += 1
        self._tidy(at)
        return self._count - up_to - 1, equal + 1

    def _below(self, score: float) -> int:
        at = max(bisect_left(self._lowest, score) - 1, 0)
        return self._before(at) + bisect_left(self._blocks[at], score)

    def _before(self, at: int) -> int:
        return sum(map(len, self._blocks[:at]))

    def _tidy(self, at: int) -> None:
        """Keep the lowest scores right after an insertion into a block, and split it when it is long."""
        block = self._blocks[at]
        self._lowest[at : at + 1] = [block[0]]
        if len(block) > _LONGEST:
            half = len(block) // 2
            self._blocks[at : at + 1] = [block[:half], block[half:]]
            self._lowest[at : at + 1] = [block[0], block[half]]


class SmoothedRanks:
    """Ranks new scores among all scores so far, ties broken at random.

    Parameters
    ----------
    scores : ndarray of finite floats, shape (m,)
        Scores to begin with; m may be 0.
    seed : int
        Of the draws that break ties.

    Notes
    -----
    Scores are compared in the coarsest precision met so far. Rounding is monotone, so ranks only gain ties;
    without it 0.1 as float32 would lie above every 0.1 of a float64 reference.
    """

    def __init__(self, scores: FloatArray, seed: int) -> None:
        self._precision = scores.dtype
        self._scores = RankedScores(scores.tolist())
        # The bit generator by name: a saved state must mean the same in every NumPy.
        self._random = np.random.Generator(np.random.PCG64([_SALT, seed]))

    def __len__(self) -> int:
        return len(self._scores)

    def take(self, score: float) -> float:
        """The smoothed rank from above, in (0, 1], of a score among all so far; the score joins them.

        If the scores are exchangeable these are independent and uniform on (0, 1), whatever the ties.
        """
        above, equal = self._scores.add(score)
        # Generator.random() may be 0 and is never 1; a rank may be 1 and must not be 0.
        return (above + (1.0 - self._random.random()) * equal) / len(self._scores)

    def comparable(self, name: str, values: FloatArray) -> FloatArray:
        """The values in the coarsest precision met so far, to which the scores held are rounded as well.

        Raises
        ------
        ValueError
            Where rounding makes a value infinite; nothing is then changed.
        """
        if values.dtype == self._precision:
            return values
        coarsest = min(values.dtype, self._precision, key=lambda dtype: dtype.itemsize)
        rounded = _rounded(name, values, coarsest)
        if coarsest != self._precision:
            held = np.fromiter(self._scores, np.float64, len(self))
            self._scores = RankedScores(_rounded("reference", held, coarsest).tolist())
            self._precision = coarsest
        return rounded

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, the state of the generator included."""
        state: Any = self._random.bit_generator.state
        return {
            "precision": self._precision.name,
            "scores": list(self._scores),
            # As text: other readers of JSON round integers of 128 bits.
            "generator": {name: str(number) for name, number in state["state"].items()},
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> SmoothedRanks:
        """The ranks that `to_dict` wrote, their next draw included."""
        check_choice("precision", plain["precision"], _PRECISIONS)
        scores = decode_ascending(plain["scores"])
        rounded = _rounded("scores", scores, np.dtype(plain["precision"]))
        if (rounded.astype(np.float64) != scores).any():
            raise ValueError("scores that are not in their precision")
        ranks = cls(rounded, 0)
        bits = np.random.PCG64()
        state: Any = {name: int(plain["generator"][name]) for name in ("state", "inc")}
        if not all(0 <= number < 2**128 for number in state.values()) or state["inc"] % 2 == 0:
            raise ValueError("a generator that has no such state")
        bits.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
        ranks._random = np.random.Generator(bits)
        return ranks


def _rounded(name: str, values: FloatArray, precision: np.dtype[np.floating[Any]]) -> FloatArray:
    with np.errstate(over="ignore"):
        rounded = values.astype(precision)
    if not np.isfinite(rounded).all():
        odd = values[~np.isfinite(rounded)][0]
        raise ValueError(
            f"`{name}` must be finite in {precision.name}, the coarsest precision met; got {odd}. "
            "Pass all scores in one precision."
        )
    return np.asarray(rounded)
