"""Forman curvature of the edges between passages: evidence only, never part of a score."""

from __future__ import annotations

import numpy as np

from rag_confidence._types import FloatArray, IntArray

MIN_LENGTH = 1e-6


def forman_curvature(lengths: FloatArray) -> FloatArray:
    """Weighted Forman curvature of every edge of a complete graph.

    Very negative on edges that are long compared with the other edges at their ends, that is on bridges
    between groups of passages; 6 - 2 n where all lengths are alike.

    Parameters
    ----------
    lengths : ndarray, shape (..., n, n)
        Symmetric edge weights > 0, such as distances between passages; the diagonal is not read. Lengths
        below `MIN_LENGTH` count as `MIN_LENGTH`, so that duplicates give finite numbers: leave them out
        first, since they dominate the curvature of every edge at their ends.

    Returns
    -------
    ndarray, shape (..., n, n)
        Symmetric, at most 2; NaN on the diagonal, where there is no edge.

    Notes
    -----
    With unit vertex weights the published sum over the neighbours of an edge e = (u, v) collapses to
    F(e) = 4 - sqrt(d_e) (R_u + R_v), R_u = sum over x of 1 / sqrt(d_ux). It does not change when all lengths
    are scaled. Triangles are not filled, so this says nothing about coherence. Cost O(n^2).

    References
    ----------
    R. P. Sreejith, K. Mohanraj, J. Jost, E. Saucan and A. Samal (2016), Forman curvature for complex
    networks: the curvature of an edge with weights.

    Examples
    --------
    >>> import numpy as np
    >>> float(forman_curvature(np.ones((5, 5)))[0, 1])
    -4.0
    """
    off_diagonal = ~np.eye(lengths.shape[-1], dtype=bool)
    roots = np.sqrt(np.maximum(lengths, MIN_LENGTH))
    pull = np.where(off_diagonal, 1.0 / roots, 0.0).sum(axis=-1)
    curvature = 4.0 - roots * (pull[..., :, None] + pull[..., None, :])
    return np.where(off_diagonal, curvature, np.nan)


def tree_curvature(parents: IntArray) -> FloatArray:
    """Forman curvature of every edge of an unweighted tree.

    Negative where two well-branched nodes meet, positive at the ends of short branches.

    Parameters
    ----------
    parents : ndarray of int, shape (n,)
        Index of each node's parent, -1 for the root.

    Returns
    -------
    ndarray, shape (n - 1,)
        At most 2 (a tree of one edge); edges (node, parent) in the order of their nodes, none for one node.

    Notes
    -----
    F(u, v) = 4 - deg u - deg v, the weighted formula with all weights 1. Cost O(n).

    References
    ----------
    R. P. Sreejith, K. Mohanraj, J. Jost, E. Saucan and A. Samal (2016), Forman curvature for complex
    networks: the curvature of an edge without weights.

    Examples
    --------
    >>> import numpy as np
    >>> tree_curvature(np.array([-1, 0, 0, 1])).tolist()
    [0.0, 1.0, 1.0]
    """
    children = np.flatnonzero(parents >= 0)
    above = parents[children]
    degrees = np.bincount(np.concatenate([children, above]), minlength=len(parents))
    return np.asarray(4.0 - degrees[children] - degrees[above])
