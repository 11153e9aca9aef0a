"""Loops (H1) of the Vietoris-Rips filtration of the passages: evidence only, never part of a score.

A loop is a ring of passages whose neighbours are close and whose middle is empty. Among few points in many
dimensions most loops are noise, so they are judged by ratio or against rotated copies of the same points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_confidence._optional import require
from rag_confidence._types import FloatArray

MIN_POINTS = 4
MAX_POINTS = 50
MAX_POINTS_SEED = 512
REAL_RATIO = 1.25
RESOLUTION = 1e-6
_SALT = 0x100B5


@dataclass(frozen=True)
class Loops:
    """Loops of a set of points, longest life first.

    Parameters
    ----------
    bars : ndarray, shape (m, 2)
        Distance at which each loop closes (birth) and is filled (death), birth < death.
    """

    bars: FloatArray

    @property
    def lives(self) -> FloatArray:
        """Death minus birth (m,), descending."""
        return np.asarray(self.bars[:, 1] - self.bars[:, 0])

    @property
    def ratios(self) -> FloatArray:
        """Death over birth (m,), above 1; births count as at least `RESOLUTION`."""
        return np.asarray(self.bars[:, 1] / np.maximum(self.bars[:, 0], RESOLUTION))

    @property
    def longest_life(self) -> float:
        """Life of the longest loop; 0 without loops."""
        return float(self.lives.max(initial=0.0))

    def count_long(self, life: float = 0.10, among: int = 5) -> int:
        """Number of loops of at least this life among the longest few: the count of the seed scorer."""
        return int(np.count_nonzero(self.lives[:among] >= life))


@dataclass(frozen=True)
class RotationTest:
    """Loops of the passages against those of randomly rotated copies.

    Parameters
    ----------
    loops : Loops
        The observed loops.
    surrogate_longest : ndarray, shape (s,)
        Longest life in each surrogate.
    """

    loops: Loops
    surrogate_longest: FloatArray

    @property
    def p_value(self) -> float:
        """Share of the s + 1 sets whose longest loop is at least the observed one; at least 1 / (s + 1)."""
        as_long = self.surrogate_longest >= self.loops.longest_life - RESOLUTION
        return float((1 + np.count_nonzero(as_long)) / (1 + len(as_long)))

    @property
    def n_longer(self) -> int:
        """Number of observed loops that outlive every surrogate loop."""
        return int(np.count_nonzero(self.loops.lives - RESOLUTION > self.surrogate_longest.max(initial=0.0)))


def rips_loops(distances: FloatArray) -> Loops:
    """Loops of the Vietoris-Rips filtration of a set of points.

    Parameters
    ----------
    distances : ndarray, shape (n, n)
        Symmetric distances; the diagonal counts as 0.

    Returns
    -------
    Loops
        No loops for n < 4, without a call of ripser.

    Raises
    ------
    ImportError
        If ripser is not installed and n >= 4.

    Notes
    -----
    ripser works in float32, so loops of life at most `RESOLUTION` are rounding and dropped; distances are
    meant to be of order 1. Cost grows steeply with n (fractions of a millisecond at 10 points, many seconds
    at 300): callers keep to `MAX_POINTS`.

    References
    ----------
    U. Bauer (2021), Ripser: efficient computation of Vietoris-Rips persistence barcodes.

    Examples
    --------
    >>> import numpy as np
    >>> len(rips_loops(np.ones((3, 3))).bars)
    0
    """
    if len(distances) < MIN_POINTS:
        return Loops(np.empty((0, 2)))
    clean = np.array(distances, dtype=np.float64)
    # A diagonal that is not exactly 0 sends ripser down a path that drops zero edges.
    np.fill_diagonal(clean, 0.0)
    ripser = require("ripser", extra="topology").ripser
    bars = np.asarray(ripser(clean, maxdim=1, distance_matrix=True)["dgms"][1], dtype=np.float64)
    lives = bars[:, 1] - bars[:, 0]
    order = np.argsort(-lives, kind="stable")
    return Loops(bars[order[lives[order] > RESOLUTION]])


def ratio_loops(loops: Loops, ratio: float = REAL_RATIO) -> int:
    """Number of loops that are filled at more than ``ratio`` times the distance at which they close.

    Parameters
    ----------
    loops : Loops
        Loops of 4 to 50 points; beyond these the ratio has not been checked on data.
    ratio : float
        At least 1.

    Returns
    -------
    int
        At least 0. A rule of thumb, not a test: pure noise passes it more often as n grows.
    """
    return int(np.count_nonzero(loops.ratios > ratio))


def rotation_test(gram: FloatArray, *, seed: int, n_surrogates: int = 19) -> RotationTest:
    """Compare the loops of a set of points with those of randomly rotated copies.

    A surrogate has the same mean and the same covariance as the points, so it answers whether the loops
    need more than the spread of the points along their principal axes.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        Inner products of the points; cosines for unit passages.
    seed : int
        Seed of a generator of its own; the same seed gives the same surrogates whatever the order of points.
    n_surrogates : int
        19 make 1/20 the smallest p-value.

    Returns
    -------
    RotationTest
        p-value 1 for n < 4.

    Raises
    ------
    ImportError
        If ripser is not installed and n >= 4.

    Notes
    -----
    The centred points X become HX with H a Haar rotation that fixes the ones vector, so X'X is kept. Of the
    centred Gram matrix only the eigenvalues matter: if its spectrum is Lambda, a surrogate Gram matrix is
    F Lambda F' with F the last n - 1 columns of a random orthogonal matrix that starts with the ones vector.
    The p-value is exact (P(p <= k/20) <= k/20) when all rotations of the sample were equally likely, as for
    independent Gaussian points; unit length of the passages is not kept. Cost: n_surrogates + 1 calls of
    ripser and O(n_surrogates n^3).

    References
    ----------
    O. Langsrud (2005), Rotation tests; F. Mezzadri (2007), How to generate random matrices from the
    classical compact groups (why the signs of the triangular factor matter).
    """
    if len(gram) < MIN_POINTS:
        return RotationTest(Loops(np.empty((0, 2))), np.zeros(n_surrogates))
    spectrum = _centred_spectrum(gram)
    frames = _random_frames(len(gram), n_surrogates, np.random.default_rng([_SALT, seed]))
    surrogates = (frames * spectrum) @ np.swapaxes(frames, -1, -2)
    longest = [rips_loops(_distances(surrogate)).longest_life for surrogate in surrogates]
    return RotationTest(rips_loops(_distances(gram)), np.array(longest))


def _distances(gram: FloatArray) -> FloatArray:
    """Distances between points from their inner products: sqrt(2 - 2G) for unit points."""
    squares = np.diagonal(gram)
    return np.asarray(np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * gram, 0.0)))


def _centred_spectrum(gram: FloatArray) -> FloatArray:
    """Eigenvalues (n - 1,) of the centred Gram matrix without the zero that belongs to the ones vector."""
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    return np.asarray(np.maximum(np.linalg.eigvalsh(centred)[1:], 0.0))


def _random_frames(n: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Haar-distributed orthonormal bases (count, n, n - 1) of the complement of the ones vector."""
    start = rng.standard_normal((count, n, n))
    start[:, :, 0] = 1.0
    basis, triangle = np.linalg.qr(start)
    signs = np.where(np.diagonal(triangle, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return np.asarray((basis * signs[:, None, :])[:, :, 1:])
