"""How well passages glue together: Dirichlet energies and the connectivity of the passage graph.

All functions take stacks of Gram matrices, so one call serves one query or a block of them.
"""

from __future__ import annotations

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.engine.relevance import diagonal

NO_EDGE = 1e-6
"""Mutual cosines up to this are rounding of float32 vectors: normalised, they would count as edges."""


def dirichlet_energy(gram: FloatArray) -> FloatArray:
    """Mean squared disagreement of unit passages over all pairs; 0 when they coincide.

    Parameters
    ----------
    gram : ndarray, shape (..., n, n)
        Mutual cosines with unit diagonal.

    Returns
    -------
    ndarray, shape (...)
        In [0, 1]; 0 for a single passage.

    Notes
    -----
    tr(X'LX) of the complete graph with identity restriction maps is the sum over pairs of
    :math:`|x_i - x_j|^2 = 2 - 2 G_{ij}`; it is divided by 4, its largest value, and by the number of
    pairs. It measures coherence and is blind to contradiction: a statement and its negation are
    close in most embeddings. Cost O(n^2).

    References
    ----------
    J. Hansen and R. Ghrist (2019), Toward a spectral theory of cellular sheaves, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> float(dirichlet_energy(np.eye(3)))
    0.5
    """
    n = gram.shape[-1]
    if n == 1:
        return np.zeros(gram.shape[:-2])
    mean_cosine = (np.add.reduce(gram, axis=(-2, -1)) - n) / (n * (n - 1))
    return np.asarray(np.minimum(np.maximum(0.5 - 0.5 * mean_cosine, 0.0), 1.0))


def conditioned_energy(cosines: FloatArray, gram: FloatArray) -> FloatArray:
    """Dirichlet energy of what the passages say beside the query: its direction is projected out.

    Parameters
    ----------
    cosines : ndarray, shape (..., n)
        Cosines to the query.
    gram : ndarray, shape (..., n, n)
        Mutual cosines with unit diagonal.

    Returns
    -------
    ndarray, shape (...)
        In [0, 1], at most `dirichlet_energy`; 0 for a single passage.

    Notes
    -----
    Mean over pairs of :math:`(2 - 2 G_{ij} - (c_i - c_j)^2) / 4`. Cost O(n^2).
    """
    return without_query(dirichlet_energy(gram), cosines)


def without_query(energy: FloatArray, cosines: FloatArray) -> FloatArray:
    """`conditioned_energy`, given the Dirichlet `energy` (...) of the same passages."""
    n = cosines.shape[-1]
    if n == 1:
        return energy
    centred = cosines - (np.add.reduce(cosines, axis=-1) / n)[..., None]
    along_query = 0.5 / (n - 1) * np.add.reduce(centred * centred, axis=-1)
    return np.asarray(np.maximum(energy - along_query, 0.0))


def algebraic_connectivity(gram: FloatArray) -> FloatArray:
    """Second smallest eigenvalue of the normalised Laplacian of the passage graph.

    High when every passage resembles the others about equally, 0 when the passages fall into groups
    that share nothing.

    Parameters
    ----------
    gram : ndarray, shape (..., n, n)
        Mutual cosines. Negative ones count as no edge, and so does the diagonal.

    Returns
    -------
    ndarray, shape (...)
        In [0, n / (n - 1)]; nan for a single passage, which has no second eigenvalue.

    Notes
    -----
    :math:`L = I - D^{-1/2} W D^{-1/2}` with :math:`W_{ij} = G_{ij}` where it exceeds `NO_EDGE` and 0
    elsewhere; a passage without any edge has a zero row, and one such passage is enough to give 0. The
    normalisation forgets how heavy the edges are: two passages give 2 whenever they have an edge at all.
    Cost O(n^3).

    References
    ----------
    F. R. K. Chung (1997), Spectral Graph Theory, section 1.2.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(algebraic_connectivity(np.full((4, 4), 0.5))), 6)
    1.333333
    """
    n = gram.shape[-1]
    if n == 1:
        return np.full(gram.shape[:-2], np.nan)
    stack = (gram * (gram > NO_EDGE)).reshape(-1, n, n)
    diagonal(stack)[...] = 0.0
    degree = np.add.reduce(stack, axis=-1)
    scale = 1.0 / np.sqrt(np.maximum(degree, NO_EDGE))
    stack *= -scale[:, :, None]
    stack *= scale[:, None, :]
    diagonal(stack)[...] = degree > 0.0
    second = np.minimum(np.maximum(np.linalg.eigvalsh(stack)[:, 1], 0.0), n / (n - 1))
    return np.asarray(second.reshape(gram.shape[:-2]))
