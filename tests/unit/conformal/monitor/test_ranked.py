"""Ranks in blocks are ranks by counting, and smoothed ranks are exactly uniform and independent."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import reference_monitors as ref
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence.conformal.monitor import ranked
from rag_confidence.conformal.monitor.ranked import RankedScores, SmoothedRanks

coarse = st.lists(st.integers(-3, 3).map(float), max_size=60)
finite = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60)


@pytest.fixture(params=[2, 3, 8, 8000])
def block_length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks short enough to be split, and the usual ones."""
    monkeypatch.setattr(ranked, "_LONGEST", request.param)
    return int(request.param)


def check_against_counting(start: list[float], added: list[float]) -> None:
    """Every insertion counts what a loop counts, and the scores stay in order."""
    scores, seen = RankedScores(start), list(start)
    for score in added:
        seen.append(score)
        expected = (sum(other > score for other in seen), sum(other == score for other in seen))
        assert scores.add(score) == expected
    assert list(scores) == sorted(seen)
    assert len(scores) == len(seen)


@pytest.mark.parametrize("longest", [2, 3, 8, 8000])
@given(st.data())
def test_ranks_are_those_of_counting(longest: int, data: st.DataObject) -> None:
    """Whatever the scores, the ties and the length of the blocks: above and equal are right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked, "_LONGEST", longest)
        check_against_counting(data.draw(coarse | finite), data.draw(coarse | finite))


def test_ties_may_span_blocks(block_length: int) -> None:
    """One value in several blocks is counted in all of them."""
    check_against_counting([0.5] * 40, [0.5] * 40 + [0.4, 0.6, 0.5, 0.4, 0.6, 0.5])


def test_scores_in_any_order_fill_the_blocks(block_length: int) -> None:
    """Ascending, descending and shuffled insertions give the same ranks as counting."""
    rising = [float(number) for number in range(60)]
    shuffled = np.random.default_rng(0).permutation(rising).tolist()
    for order in (rising, rising[::-1], shuffled):
        check_against_counting([], order)


def test_blocks_stay_short() -> None:
    """No block is longer than its limit, so an insertion stays cheap."""
    scores = RankedScores(range(20_000))
    for score in np.random.default_rng(0).random(30_000).tolist():
        scores.add(score)
    assert max(map(len, scores._blocks)) <= ranked._LONGEST


# --- smoothed ranks


def chance(above: int, equal: int, n: int, at_most: Fraction) -> Fraction:
    """P((above + U equal) / n <= at_most) for U uniform."""
    return min(max((at_most * n - above) / equal, Fraction(0)), Fraction(1))


@pytest.mark.parametrize("bag", [(1, 2, 3, 4), (1, 1, 2, 3), (1, 1, 1, 2), (5, 5, 5, 5), (1, 1, 2, 2)])
def test_ranks_of_exchangeable_scores_are_uniform_and_independent(bag: tuple[int, ...]) -> None:
    """Over all orders of a bag, the joint distribution of the last three ranks is a product of uniforms."""
    grid = [Fraction(1, 7), Fraction(1, 2), Fraction(5, 6)]
    orders = list(permutations(bag))
    for a, b, c in permutations(grid):
        total = Fraction(0)
        for order in orders:
            scores, parts = RankedScores(order[:1]), []
            for n, (score, level) in enumerate(zip(order[1:], (a, b, c), strict=True), 2):
                parts.append(chance(*scores.add(float(score)), n, level))
            total += math.prod(parts, start=Fraction(1))
        assert total / len(orders) == a * b * c


@given(coarse, coarse, st.integers(0, 2**63))
def test_smoothed_ranks_are_the_formula(reference: list[float], scores: list[float], seed: int) -> None:
    """(above + U equal) / n with the draws of the seed."""
    ranks = SmoothedRanks(np.array(reference), seed)
    found = [ranks.take(score) for score in scores]
    assert found == ref.smoothed_ranks(reference, scores, ref.ties_of(seed, len(scores)))
    assert all(0.0 < rank <= 1.0 for rank in found)


def test_seeds_break_ties_differently() -> None:
    """Another seed draws other numbers, and the same seed the same."""
    firsts = [SmoothedRanks(np.zeros(5), seed).take(0.0) for seed in (0, 1, 2, 0)]
    assert len(set(firsts)) == 3
    assert firsts[0] == firsts[3]


@given(coarse, coarse)
def test_ranks_read_back_continue_with_the_same_draws(before: list[float], after: list[float]) -> None:
    """Through JSON text and back, the next ranks are those of ranks that never stopped."""
    ranks = SmoothedRanks(np.array(before), 7)
    for score in before:
        ranks.take(score)
    restored = SmoothedRanks.from_dict(json.loads(json.dumps(ranks.to_dict())))
    assert [restored.take(score) for score in after] == [ranks.take(score) for score in after]


# --- precision


@pytest.mark.parametrize("narrow", [np.float16, np.float32])
def test_scores_are_compared_in_the_coarsest_precision(narrow: type[np.floating]) -> None:
    """A narrow score that was the same number as a wide one ties with it, whichever came first."""
    wide_first = SmoothedRanks(np.array([0.1, 0.2, 0.3]), 0)
    [tenth] = wide_first.comparable("scores", np.array([0.1], dtype=narrow)).tolist()
    assert wide_first._scores.add(tenth) == (2, 2)
    narrow_first = SmoothedRanks(np.array([0.1, 0.2, 0.3], dtype=narrow), 0)
    [tenth] = narrow_first.comparable("scores", np.array([0.1])).tolist()
    assert narrow_first._scores.add(tenth) == (2, 2)


def test_the_precision_is_remembered() -> None:
    """Ranks read back compare in the precision that they had."""
    ranks = SmoothedRanks.from_dict(SmoothedRanks(np.array([0.1], dtype=np.float32), 0).to_dict())
    [tenth] = ranks.comparable("scores", np.array([0.1])).tolist()
    assert ranks._scores.add(tenth) == (0, 2)


def test_a_score_beyond_the_coarsest_precision_is_refused() -> None:
    """A number that rounding would make infinite is an error, and changes nothing."""
    ranks = SmoothedRanks(np.array([1e300, 2e300]), 0)
    before = ranks.to_dict()
    message = "^`reference` must be finite in float32, the coarsest precision met; got 1e\\+300"
    refuse(ValueError, message, lambda: ranks.comparable("scores", np.array([1.0], dtype=np.float32)))
    assert ranks.to_dict() == before
    narrow = SmoothedRanks(np.array([1.0], dtype=np.float32), 0)
    refuse(
        ValueError,
        "^`scores` must be finite in float32",
        lambda: narrow.comparable("scores", np.array([1e300])),
    )


def test_draws_depend_on_nothing_global() -> None:
    """The global generator is neither used nor moved."""
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    SmoothedRanks(np.zeros(3), 0).take(0.0)
    assert Counter(np.random.get_state()[1].tolist()) == Counter(state)  # noqa: NPY002
