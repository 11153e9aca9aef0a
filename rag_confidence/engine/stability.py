"""How far the query can turn before the retrieval changes.

The flip angle is exact and needs no sampling. The probe turns the query by a fixed angle in a few
random directions: it says how much cosines move under *small rotations of the embedding*, which is not
the same as under a paraphrase.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rag_confidence._types import FloatArray

PROBE_ANGLE = math.radians(5.0)
"""Rotation of the query in the sampled probe, in radians."""

_PARALLEL = 1e-10
_SALT = 0x5C07E

N_PROBES = 8
"""Antithetic: half of the probes are the mirror images of the other half."""


def flip_angle(cosines: FloatArray, gram: FloatArray) -> FloatArray:
    """Smallest rotation of the query that changes its top passage.

    Parameters
    ----------
    cosines : ndarray, shape (Q, n)
        Cosines of distinct passages, in descending order.
    gram : ndarray, shape (Q, n, n)
        Their mutual cosines.

    Returns
    -------
    ndarray, shape (Q,)
        Radians in [0, pi / 2]; 0 when the best two are tied, nan for a single passage.

    Notes
    -----
    :math:`\\arcsin \\min_b (c_a - c_b) / |p_a - p_b|`, a the top passage: the angle between the query
    and the nearest hyperplane on which another passage draws level. Cost O(n).

    Examples
    --------
    >>> import numpy as np
    >>> c, g = np.array([[1.0, 0.0]]), np.eye(2)[None]
    >>> round(float(np.degrees(flip_angle(c, g)[0])), 6)
    45.0
    """
    if cosines.shape[1] == 1:
        return np.full(len(cosines), np.nan)
    ratio = (cosines[:, :1] - cosines[:, 1:]) / np.sqrt(2.0 - 2.0 * gram[:, 0, 1:])
    return np.asarray(np.arcsin(np.minimum(ratio.min(axis=1), 1.0)))


def movement_bound(cosines: FloatArray, dimension: int, angle: float = PROBE_ANGLE) -> FloatArray:
    """Upper bound on the mean movement of the barcode when the query turns by `angle` at random.

    Parameters
    ----------
    cosines : ndarray, shape (Q, n)
        Cosines to the query.
    dimension : int
        Length d of the vectors, at least 2.
    angle : float
        Rotation in radians.

    Returns
    -------
    ndarray, shape (Q,)
        In cosine units, at least 0. Never above the chord 2 sin(angle / 2), which holds for every
        rotation and not only on average.

    Notes
    -----
    :math:`\\frac{\\sin\\theta}{\\sqrt{d-1}} \\max_i \\sqrt{1 - c_i^2} \\sqrt{2 \\ln 2n} +
    (1 - \\cos\\theta) \\max_i |c_i|`: the tangent direction is uniform on a sphere of dimension d - 2,
    hence sub-Gaussian with variance 1 / (d - 1). Bottleneck distance is at most the largest change of
    a cosine.

    References
    ----------
    D. Cohen-Steiner, H. Edelsbrunner and J. Harer (2007), Stability of persistence diagrams, main
    theorem.
    """
    squares = cosines * cosines
    across, largest = np.sqrt(1.0 - squares.min(axis=1)), np.sqrt(squares.max(axis=1))
    spread = math.sqrt(2.0 * math.log(2 * cosines.shape[1]) / (dimension - 1))
    mean = math.sin(angle) * spread * across + (1.0 - math.cos(angle)) * largest
    return np.asarray(np.minimum(mean, 2.0 * math.sin(0.5 * angle)))


@lru_cache(maxsize=8)
def probe_directions(dimension: int, seed: int) -> FloatArray:
    """Gaussian directions of the probe and a spare, shape (N_PROBES / 2 + 1, d), read-only.

    The generator is local and salted: with a plain seed, vectors that a caller drew from the same seed
    would be the directions of the probe.
    """
    rng = np.random.default_rng([_SALT, seed])
    directions = rng.standard_normal((N_PROBES // 2 + 1, dimension))
    directions.flags.writeable = False
    return directions


def probe_cosines(block: FloatArray, cosines: FloatArray, directions: FloatArray) -> FloatArray:
    """Cosines of all passages to each of the turned queries.

    Parameters
    ----------
    block : ndarray, shape (Q, k + 1, d)
        Query and passages, as `relevance.stack` makes them, d at least 2.
    cosines : ndarray, shape (Q, k)
        Cosines to the query, in the same order.
    directions : ndarray, shape (h + 1, d)
        From `probe_directions`; made tangent to each query here. The last one stands in for one that
        is parallel to the query, as when a caller drew the query from the same seed.

    Returns
    -------
    ndarray, shape (Q, 2 h, k)
        The mirror image of probe i is probe i + h.

    Notes
    -----
    :math:`q' = q \\cos\\theta \\pm t \\sin\\theta` with t a unit tangent, so one product of the block
    with the directions is all that is needed. Cost O(h k d) a query.
    """
    along = np.matmul(block, directions.T)
    along /= np.sqrt(np.einsum("qkd,qkd->qk", block, block))[:, :, None]
    query = along[:, 0, :, None]
    squares = np.einsum("hd,hd->h", directions, directions)[:, None]
    across = squares - query * query
    tangent = along[:, 1:].swapaxes(1, 2) - query * cosines[:, None, :]
    parallel = across < _PARALLEL * squares
    if parallel.any():
        tangent = np.where(parallel, tangent[:, -1:], tangent)
        across = np.where(parallel, across[:, -1:], across)
    turn = math.sin(PROBE_ANGLE) * (tangent[:, :-1] / np.sqrt(across[:, :-1]))
    level = math.cos(PROBE_ANGLE) * cosines[:, None, :]
    return np.concatenate([level + turn, level - turn], axis=1)


def mean_largest_change(cosines: FloatArray, probed: FloatArray) -> FloatArray:
    """Mean over the probes of the largest change of any cosine, shape (Q,); bounds the bottleneck."""
    return np.asarray(np.abs(probed - cosines[:, None, :]).max(axis=2).mean(axis=1))
