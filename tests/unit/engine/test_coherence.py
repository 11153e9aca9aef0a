"""How the best passages resemble each other and the rest, against plain loops over vectors."""

from __future__ import annotations

import numpy as np
import pytest
import reference_contrast as slow
from hypothesis import given
from strategies import Array, Retrieval, retrievals

from rag_confidence.engine.coherence import HEAD, LISTED, coherence, coherence_of_list

BELOW_SIX = {"head_coherence", "best_pair", "best_nearest", "best_partial"}
ALL = BELOW_SIX | {"tail_coherence", "companionship"}


def columns(r: Retrieval) -> tuple[Array, Array]:
    """Cosines (1, n) and Gram matrix (1, n, n) in the order of cosine, as the kernel gets them."""
    cosines, gram = r.canonical()
    return cosines[None], np.clip(gram, -1.0, 1.0)[None]


def ranked(r: Retrieval) -> Array:
    """The passages in that order."""
    return np.asarray(r.passages[np.argsort(-r.cosines, kind="stable")])


def test_everything_is_what_loops_over_the_vectors_find() -> None:
    """For 1 to 20 passages in general position, projections included."""
    rng = np.random.default_rng(5)
    for n in range(1, 21):
        r = Retrieval(rng.standard_normal(7), rng.standard_normal((n, 7)) + 0.5)
        found = coherence(*columns(r))
        expected = slow.coherence(r.query, ranked(r))
        assert found.keys() == expected.keys() == (set() if n == 1 else BELOW_SIX if n < 6 else ALL)
        for name, value in expected.items():
            assert found[name] == pytest.approx([value], abs=1e-9), (n, name)


@given(retrievals(min_n=2, max_n=20))
def test_lists_and_arrays_agree(r: Retrieval) -> None:
    """The plain version of one list has the same keys and numbers, copies and antipodes included."""
    cosines, gram = columns(r)
    found = coherence(cosines, gram)
    listed = coherence_of_list(cosines[0, :LISTED].tolist(), gram[0, :HEAD, :LISTED].tolist())
    assert found.keys() == listed.keys()
    for name, column in found.items():
        assert column.shape == (1,)
        assert listed[name] == pytest.approx(float(column[0]), abs=1e-12), name


@given(retrievals(min_n=2, max_n=14))
def test_every_number_is_in_range(r: Retrieval) -> None:
    """Cosines in [-1, 1] and companionship in [0, 1], whatever the vectors."""
    for name, column in coherence(*columns(r)).items():
        low = 0.0 if name == "companionship" else -1.0
        assert low <= float(column[0]) <= 1.0, name


def test_rows_of_a_block_do_not_mix() -> None:
    """Each retrieval of a block has the numbers that it has alone."""
    rng = np.random.default_rng(2)
    single = [columns(Retrieval(rng.standard_normal(5), rng.standard_normal((8, 5)))) for _ in range(6)]
    block = coherence(*(np.concatenate(part) for part in zip(*single, strict=True)))
    for at, one in enumerate(single):
        for name, column in coherence(*one).items():
            assert block[name][at] == pytest.approx(float(column[0]), abs=1e-14)


def test_what_follows_rank_ten_is_not_looked_at() -> None:
    """Twenty passages have the numbers of the ten best of them."""
    rng = np.random.default_rng(3)
    cosines, gram = columns(Retrieval(rng.standard_normal(6), rng.standard_normal((20, 6))))
    long, short = coherence(cosines, gram), coherence(cosines[:, :10], gram[:, :10, :10])
    assert long.keys() == short.keys()
    assert all(long[name] == pytest.approx(short[name], abs=1e-14) for name in long)


def block(head: float, tail: float, n: int = 8) -> tuple[Array, Array]:
    """Three passages that share `head` among them, and others that share `tail` with everything."""
    gram = np.full((n, n), tail)
    gram[:3, :3] = head
    np.fill_diagonal(gram, 1.0)
    return np.linspace(0.7, 0.5, n)[None], gram[None]


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [(0.8, 0.6, 0.5), (0.6, 0.8, 0.0), (1.0, 0.3, 1.0), (0.5, 0.5, 0.0), (1.0, 1.0, 0.0), (0.5, -1.0, 0.75)],
)
def test_companionship_is_what_is_above_the_tail(head: float, tail: float, expected: float) -> None:
    """(G - t)/(1 - t), cut off at 0 and 1; 0 where even the tail copies the head."""
    assert coherence(*block(head, tail))["companionship"] == pytest.approx([expected])


def test_the_query_is_no_resemblance() -> None:
    """Passages that share the query alone have partial cosine 0; so have copies of it."""
    apart = np.column_stack([np.full(4, 0.6), 0.8 * np.eye(4)])
    r = Retrieval(np.eye(5)[0], apart)
    assert coherence(*columns(r))["best_partial"] == pytest.approx([0.0], abs=1e-12)
    assert coherence(*columns(r))["best_pair"] == pytest.approx([0.36])
    copy = Retrieval(np.eye(5)[0], np.vstack([np.eye(5)[0], apart]))
    assert coherence(*columns(copy))["best_partial"] == pytest.approx([0.0], abs=1e-12)
