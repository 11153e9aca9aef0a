"""How the best passages of a list resemble each other, and the rest of it."""

from __future__ import annotations

import math

import numpy as np

from rag_confidence._types import FloatArray

HEAD = 3
TAIL = slice(5, 10)
LISTED = 10
"""The three best passages are the head, ranks 6 to 10 the tail; what follows is not looked at."""

_LEAST = 1e-12


def coherence(cosines: FloatArray, gram: FloatArray) -> dict[str, FloatArray]:
    """Mutual cosines around the best passages.

    Parameters
    ----------
    cosines : ndarray, shape (Q, n)
        Cosines to the query, descending, of distinct passages.
    gram : ndarray, shape (Q, n, n)
        Mutual cosines in the same order.

    Returns
    -------
    dict of str to ndarray, shape (Q,)
        - ``head_coherence``: mean mutual cosine of the three best;
        - ``tail_coherence``: mean cosine between these and ranks 6 to 10; not assessed below six passages;
        - ``companionship``: how far the second and the third best resemble the best beyond what the tail
          resembles the head, in [0, 1]; mean of (G - t)/(1 - t), clipped at 0, with t the tail coherence;
        - ``best_pair``: cosine of the two best; ``best_nearest``: largest cosine of the best to another one;
        - ``best_partial``: mean cosine of the best to the others with the query projected out of both.

        Empty for n = 1, where nothing can be compared.

    Notes
    -----
    Cost O(1) a query once the Gram matrix is there. Resemblance is not agreement: texts that contradict each
    other resemble each other. Of passages that are tied in cosine the served order says which comes first.
    """
    n = cosines.shape[1]
    if n == 1:
        return {}
    to_best = gram[:, 0, 1:LISTED]
    pairs = [gram[:, i, j] for i, j in ((0, 1), (0, 2), (1, 2)) if j < n]
    found = {
        "head_coherence": sum(pairs[1:], pairs[0]) / len(pairs),
        "best_pair": to_best[:, 0],
        "best_nearest": to_best.max(axis=1),
        "best_partial": _partial(cosines[:, :LISTED], to_best),
    }
    if n <= TAIL.start:
        return found
    tail = gram[:, :HEAD, TAIL].mean(axis=(1, 2))
    above = (to_best[:, : HEAD - 1] - tail[:, None]) / np.maximum(1.0 - tail, _LEAST)[:, None]
    return found | {"tail_coherence": tail, "companionship": np.clip(above, 0.0, 1.0).mean(axis=1)}


def _partial(cosines: FloatArray, to_best: FloatArray) -> FloatArray:
    """Mean partial cosine (Q,) of the best passage with the others given the query; 0 for copies of it."""
    best, others = cosines[:, :1], cosines[:, 1:]
    room = np.maximum((1.0 - best * best) * (1.0 - others * others), 0.0)
    shared = np.clip((to_best - best * others) / np.sqrt(np.maximum(room, _LEAST)), -1.0, 1.0)
    return np.asarray(np.where(room > _LEAST, shared, 0.0).mean(axis=1))


def coherence_of_list(cosines: list[float], head: list[list[float]]) -> dict[str, float]:
    """`coherence` of one list in plain Python.

    `cosines` are the best at most ten, two at least; `head` holds the rows of the three best in the Gram
    matrix, as many columns wide.
    """
    to_best = head[0][1:]
    pairs = [head[0][1], *(row[at] for row, at in ((head[0], 2), (head[1], 2)) if at < len(row))]
    found = {
        "head_coherence": sum(pairs) / len(pairs),
        "best_pair": to_best[0],
        "best_nearest": max(to_best),
        "best_partial": _partial_of_list(cosines, to_best),
    }
    rest = [value for row in head for value in row[TAIL]]
    if not rest:
        return found
    tail = sum(rest) / len(rest)
    above = [(value - tail) / max(1.0 - tail, _LEAST) for value in to_best[: HEAD - 1]]
    companions = sum(min(max(value, 0.0), 1.0) for value in above) / len(above)
    return found | {"tail_coherence": tail, "companionship": companions}


def _partial_of_list(cosines: list[float], to_best: list[float]) -> float:
    best, total = cosines[0], 0.0
    for other, mutual in zip(cosines[1:], to_best, strict=True):
        room = (1.0 - best * best) * (1.0 - other * other)
        if room > _LEAST:
            total += min(max((mutual - best * other) / math.sqrt(room), -1.0), 1.0)
    return total / len(to_best)
