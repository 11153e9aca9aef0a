"""Loops of the passages: closed forms, planted circles, and noise that must not pass for evidence."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

from rag_confidence.engine.loops import (
    Loops,
    RotationTest,
    _random_frames,
    ratio_loops,
    rips_loops,
    rotation_test,
)

needs_ripser = pytest.mark.needs_extra("topology")

FLOAT32 = 1e-6


def unit(points):
    """Rows of length 1."""
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def gram(points):
    """Inner products, as symmetric as a product of one matrix with itself."""
    return points @ points.T


def distances(points):
    """Euclidean distances."""
    return np.linalg.norm(points[:, None] - points, axis=2)


def cone(n, radius=0.6, dimension=3, noise=0.0, seed=0):
    """n unit vectors on a circle of this radius about the first axis."""
    points = np.zeros((n, dimension))
    angles = 2 * np.pi * np.arange(n) / n
    points[:, 0] = math.sqrt(1 - radius**2)
    points[:, 1], points[:, 2] = radius * np.cos(angles), radius * np.sin(angles)
    return unit(points + noise * np.random.default_rng(seed).normal(size=points.shape))


@needs_ripser
def test_square_closed_form():
    """A square of half diagonal r closes at r sqrt 2 and is filled at 2 r: the loop of the seed's fixture."""
    square = np.array([[0.8, 0.6, 0], [0.8, 0, 0.6], [0.8, -0.6, 0], [0.8, 0, -0.6]])
    loops = rips_loops(distances(square))
    np.testing.assert_allclose(loops.bars, [[0.6 * math.sqrt(2), 1.2]], atol=FLOAT32)
    assert loops.longest_life == pytest.approx(0.351472, abs=2e-6)
    assert loops.ratios[0] == pytest.approx(math.sqrt(2), abs=FLOAT32)
    assert loops.count_long() == ratio_loops(loops) == 1


@needs_ripser
@pytest.mark.parametrize("n", [4, 5, 6, 7, 9, 12, 20])
def test_polygon_closed_form(n):
    """A regular n-gon closes at its side and is filled by the chord over a third of the circle."""
    loops = rips_loops(distances(cone(n)))
    side, chord = (1.2 * math.sin(math.pi * k / n) for k in (1, math.ceil(n / 3)))
    np.testing.assert_allclose(loops.bars, [[side, chord]], atol=2 * FLOAT32)


@needs_ripser
def test_two_circles_are_two_loops():
    """Circles far apart in planes of their own are counted one by one, longest life first."""
    points = np.zeros((18, 6))
    points[:9, :3] = cone(9, 0.5)
    points[9:, 3:] = cone(9, 0.6)
    loops = rips_loops(distances(points))
    assert ratio_loops(loops) == loops.count_long() == len(loops.bars) == 2
    assert loops.lives[0] > loops.lives[1]


@needs_ripser
def test_a_cluster_has_no_real_loop():
    """Paraphrases scattered around one direction in 384 dimensions have no loop that counts."""
    rng = np.random.default_rng(0)
    points = unit(np.eye(384)[0] + 0.02 * rng.normal(size=(10, 384)))
    loops = rips_loops(distances(points))
    assert ratio_loops(loops) == loops.count_long() == 0


@needs_ripser
@pytest.mark.parametrize("points", [np.ones((6, 3)), np.eye(6), np.eye(2)[[0, 0, 0, 1, 1, 1]]])
def test_degenerate_sets_have_no_loop(points):
    """Equal points, a regular simplex and two stacks of duplicates leave nothing but rounding."""
    noise = 1e-9 * np.random.default_rng(1).normal(size=points.shape)
    for rows in (points, points + noise):
        assert rips_loops(distances(rows)).longest_life == 0.0
    test = rotation_test(gram(unit(points)), seed=0)
    assert test.p_value == 1.0
    assert test.n_longer == 0


def test_three_points_have_no_loop_and_need_no_ripser(monkeypatch):
    """Below four points nothing is computed."""
    monkeypatch.setitem(sys.modules, "ripser", None)
    for n in range(4):
        assert rips_loops(np.ones((n, n))).bars.shape == (0, 2)
        assert rotation_test(np.eye(n), seed=0).p_value == 1.0


def test_missing_ripser_names_the_extra(monkeypatch):
    """Without ripser four points raise one install sentence."""
    monkeypatch.setitem(sys.modules, "ripser", None)
    with pytest.raises(ImportError, match=r"rag-confidence\[topology\]"):
        rips_loops(np.ones((4, 4)))


@needs_ripser
def test_a_noisy_diagonal_is_ignored():
    """Rounding on the diagonal, which makes ripser drop the zero edges of duplicates, changes nothing."""
    clean = distances(np.repeat(cone(4), 2, axis=0))
    noisy = clean + 1e-8 * np.diag(np.arange(8.0))
    before = noisy.copy()
    np.testing.assert_array_equal(rips_loops(noisy).bars, rips_loops(clean).bars)
    np.testing.assert_array_equal(noisy, before)


@needs_ripser
def test_order_of_passages_does_not_matter():
    """Loops and the rotation test read the set of passages, not their order."""
    rng = np.random.default_rng(2)
    points = unit(rng.normal(size=(12, 5)))
    shuffled = points[rng.permutation(12)]
    np.testing.assert_allclose(
        rips_loops(distances(points)).bars, rips_loops(distances(shuffled)).bars, atol=FLOAT32
    )
    first, second = rotation_test(gram(points), seed=5), rotation_test(gram(shuffled), seed=5)
    np.testing.assert_allclose(first.loops.bars, second.loops.bars, atol=FLOAT32)
    np.testing.assert_allclose(first.surrogate_longest, second.surrogate_longest, atol=1e-5)


@needs_ripser
def test_rotating_the_embedding_changes_nothing():
    """An orthogonal change of coordinates leaves loops and p-value alone."""
    rng = np.random.default_rng(3)
    points = unit(rng.normal(size=(10, 6)))
    turned = points @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    first, second = rotation_test(gram(points), seed=1), rotation_test(gram(turned), seed=1)
    np.testing.assert_allclose(first.surrogate_longest, second.surrogate_longest, atol=1e-5)
    assert first.p_value == second.p_value


@needs_ripser
def test_a_planted_circle_gets_the_smallest_p_value():
    """A ring of twelve passages with small noise in 64 dimensions outlives all nineteen surrogates."""
    points = cone(12, dimension=64, noise=0.005)
    test = rotation_test(gram(points), seed=0)
    assert test.p_value == pytest.approx(1 / 20)
    assert test.n_longer == 1
    assert test.surrogate_longest.shape == (19,)


@needs_ripser
def test_p_values_of_noise_are_uniform():
    """On Gaussian points the test is exact: counts of p <= k/20 stay in their binomial 1e-4 bands."""
    from scipy.stats import binom

    runs = 300
    rng = np.random.default_rng(11)
    p_values = np.array(
        [rotation_test(gram(rng.normal(size=(14, 20))), seed=run).p_value for run in range(runs)]
    )
    for k in (1, 2, 5, 10, 15):
        low, high = binom.ppf([1e-4, 1 - 1e-4], runs, k / 20)
        assert low <= np.count_nonzero(p_values <= k / 20 + 1e-9) <= high


@needs_ripser
def test_the_seed_decides():
    """The same seed repeats the surrogates, another one draws others."""
    points = gram(unit(np.random.default_rng(4).normal(size=(10, 8))))
    first, again, other = (rotation_test(points, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.surrogate_longest, again.surrogate_longest)
    assert (first.surrogate_longest != other.surrogate_longest).any()


def test_frames_are_orthonormal_and_orthogonal_to_ones():
    """Surrogates keep the mean and the covariance: F'F = I and F'1 = 0."""
    frames = _random_frames(6, 50, np.random.default_rng(0))
    np.testing.assert_allclose(
        np.swapaxes(frames, 1, 2) @ frames, np.broadcast_to(np.eye(5), (50, 5, 5)), atol=1e-12
    )
    np.testing.assert_allclose(frames.sum(axis=1), 0.0, atol=1e-12)


def test_frames_have_no_preferred_sign():
    """Entries average 0 within 5 standard errors; without the sign fix the QR of LAPACK is biased."""
    frames = _random_frames(4, 4000, np.random.default_rng(1))
    assert (np.abs(frames.mean(axis=0)) < 5 / math.sqrt(4 * 4000)).all()


def test_p_value_counts_surrogates_at_least_as_long():
    """p = (1 + #{surrogate >= observed}) / (1 + s), ties count against the loop."""
    loops = Loops(np.array([[0.5, 0.8], [0.6, 0.8], [0.7, 0.75]]))
    test = RotationTest(loops, surrogate_longest=np.array([0.1, 0.3, 0.4, 0.0]))
    assert test.p_value == 3 / 5
    assert test.n_longer == 0
    short = RotationTest(loops, surrogate_longest=np.full(19, 0.1))
    assert short.p_value == 1 / 20
    assert short.n_longer == 2


def test_ratio_and_long_loops_are_counted_strictly_as_documented():
    """Ratio strictly above the bound; life at least the bound, among the longest five only."""
    bars = np.array([[0.4, 0.9], [0.9, 1.1], [0.5, 0.6]] + [[0.5, 0.6]] * 4)
    loops = Loops(bars)
    assert ratio_loops(loops) == 1
    assert ratio_loops(loops, ratio=1.1) == 7
    assert loops.count_long(life=0.09) == 5
    assert loops.count_long(life=0.09, among=7) == 7
    assert loops.count_long(life=0.15) == 2
    assert Loops(np.empty((0, 2))).longest_life == 0.0


@needs_ripser
def test_no_warning_leaks():
    """ripser's own import and its n < d call raise no warning, in a fresh process where all are errors."""
    code = (
        "import numpy as np; from rag_confidence.engine.loops import rotation_test, rips_loops;"
        "x = np.random.default_rng(0).normal(size=(8, 30)); rips_loops(np.ones((5, 5)));"
        "rotation_test(x @ x.T, seed=0)"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@needs_ripser
def test_warning_filters_are_left_alone():
    """The call changes no warning filter of the process."""
    rips_loops(np.ones((5, 5)))
    before = list(warnings.filters)
    rips_loops(np.ones((5, 5)))
    assert list(warnings.filters) == before


def test_counts_are_plain_python_numbers():
    """What ends up in JSON is int and float, not a NumPy scalar."""
    loops = Loops(np.array([[0.5, 1.0]]))
    test = RotationTest(loops, np.zeros(19))
    json.dumps([ratio_loops(loops), loops.count_long(), loops.longest_life, test.p_value, test.n_longer])
