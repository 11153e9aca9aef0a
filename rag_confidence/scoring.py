"""score() and score_many(): the straight line from arrays to a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from rag_confidence._assess import assess
from rag_confidence._assess_one import assess_one
from rag_confidence._history import GroupName
from rag_confidence._inputs import check_retrieval, check_retrievals
from rag_confidence._predictions import Gate, Model
from rag_confidence._settings import Asked, Settings
from rag_confidence._types import Backend, IntArray, InvalidRows, LoopTest
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.relevance import DUPLICATE_COSINE
from rag_confidence.product.batch import MetricsBatch
from rag_confidence.product.metrics import RagConfidenceMetrics
from rag_confidence.product.policy import DEFAULT_POLICY, MetricPolicy

Calibrator = Callable[[float], float]
Contradiction = Callable[[list[str]], Any]


def score(
    query_embedding: ArrayLike,
    passage_embeddings: ArrayLike,
    texts: Sequence[str] | None = None,
    parents: Sequence[int | None] | None = None,
    policy: MetricPolicy | None = None,
    calibrator: Calibrator | None = None,
    perturb: bool = True,
    *,
    profile: CorpusProfile | None = None,
    model: Model | None = None,
    gate: Gate | None = None,
    group: GroupName | None = None,
    candidates: ArrayLike | None = None,
    query_text: str | None = None,
    contradiction: Contradiction | None = None,
    embedder: str | None = None,
    embedding_backend: Backend = "precomputed",
    k_requested: int | None = None,
    invalid_rows: InvalidRows = "raise",
    duplicate_cosine: float = DUPLICATE_COSINE,
    loops: LoopTest = "off",
    seed: int = 0,
) -> RagConfidenceMetrics:
    """Assessment of one retrieval: how far to trust it, and whether to answer.

    No label and no model call is needed: the numbers come from the vectors that the retriever has
    already computed. The KPI is a score, not a probability.

    Parameters
    ----------
    query_embedding : array_like, shape (d,)
        The question. A zero vector gives ABSTAIN.
    passage_embeddings : array_like, shape (n, d)
        One row a retrieved passage, any positive scale. No rows give ABSTAIN.
    texts : sequence of str, optional
        Text of each passage, for `support`, `narrate(snippets=True)` and `contradiction`.
    parents : sequence of int or None, optional
        Parent of each passage when they form a tree (None for its root, parents first). Omit for a
        flat list.
    policy : MetricPolicy, optional
        Weights, scales and thresholds.
    calibrator : callable, optional
        Maps the KPI in [0, 1] to a probability, reported as `p_sufficient`; never changes the KPI.
    perturb : bool
        Whether to sample the movement under small rotations of the query. Evidence only.
    profile : CorpusProfile, optional
        What cosines look like in this corpus when nothing is special. With it the KPI and its drivers are
        measured against that background instead of against constants.
    model : ConfidenceModel, optional
        Learned from labels; its probability is reported as `p_sufficient`, with what each signal adds to
        it. Never changes the KPI.
    gate : ConformalGate or RiskGate, optional
        Takes the final decision, with a guarantee: on the KPI, or on what `model` says when it was fitted on
        that model's output. ACCEPT gives ANSWER (ESCALATE if the policy
        saw a conflict), ABSTAIN gives REVIEW (ESCALATE likewise), REJECT gives ABSTAIN. Without a score
        there is no decision, and the verdict is ABSTAIN.
    group : str or int, optional
        Group of the question, for a gate with groups.
    candidates : array_like, shape (m,), optional
        Cosines of the whole retrieved list, the served passages first; used for the spread.
    query_text : str, optional
        The question in words, shown by `narrate`.
    contradiction : callable, optional
        Takes the texts and returns a score in [0, 1], or one for each pair of shape (n, n). Without
        it the record says that contradiction was not assessed: embeddings cannot see it.
    embedder : str, optional
        Name of the embedding model, kept in the record.
    embedding_backend : {"precomputed", "lexical"}
        Lexical vectors have no absolute scale: grounding is not assessed, and the verdict is REVIEW
        at most.
    k_requested : int, optional
        Passages that were asked for; a shortfall is noted.
    invalid_rows : {"raise", "drop"}
        What to do with passages that are nan, infinite or zero.
    duplicate_cosine : float
        Passages above this mutual cosine count once.
    loops : {"off", "ratio", "surrogate"}
        Test of Vietoris-Rips loops, with the extra `topology`. Evidence only.
    seed : int
        Of the probe and the surrogates; the same seed gives the same result.

    Returns
    -------
    RagConfidenceMetrics

    Raises
    ------
    TypeError, ValueError
        For input that has no defined result, naming the argument.
    CalibrationMismatch
        For a gate or a model that was fitted under another policy, profile or embedder, for a gate fitted on
        percentages, and for vectors that are not of the profile's embedder.

    Notes
    -----
    Shape is measured on the 512 passages of highest cosine. Cost O(n^2 d + n^3).

    Examples
    --------
    >>> m = score([1.0, 0.0, 0.0], [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3]])
    >>> m.verdict.value, round(m.topical_grounding)
    ('ANSWER', 100)
    """
    settings = Settings(
        policy=DEFAULT_POLICY if policy is None else policy,
        calibrator=calibrator,
        perturb=perturb,
        contradiction=contradiction,
        profile=profile,
        model=model,
        gate=gate,
        embedder=embedder,
        embedding_backend=embedding_backend,
        invalid_rows=invalid_rows,
        duplicate_cosine=duplicate_cosine,
        loops=loops,
        seed=seed,
    )
    settings.check_group(group)
    batch = check_retrieval(query_embedding, passage_embeddings, settings.invalid_rows)
    asked = Asked.of_one(batch, texts, parents, candidates, query_text, k_requested, group)
    return assess_one(batch, asked, settings)


def score_many(
    query_embeddings: ArrayLike,
    passage_embeddings: ArrayLike | Sequence[ArrayLike],
    texts: Sequence[Sequence[str] | None] | None = None,
    parents: Sequence[Sequence[int | None] | None] | None = None,
    policy: MetricPolicy | None = None,
    calibrator: Calibrator | None = None,
    perturb: bool = True,
    *,
    profile: CorpusProfile | None = None,
    model: Model | None = None,
    gate: Gate | None = None,
    group: GroupName | Sequence[GroupName] | None = None,
    candidates: ArrayLike | Sequence[ArrayLike | None] | None = None,
    query_text: Sequence[str | None] | None = None,
    contradiction: Contradiction | None = None,
    embedder: str | None = None,
    embedding_backend: Backend = "precomputed",
    k_requested: int | Sequence[int | None] | IntArray | None = None,
    invalid_rows: InvalidRows = "raise",
    duplicate_cosine: float = DUPLICATE_COSINE,
    loops: LoopTest = "off",
    seed: int = 0,
) -> MetricsBatch:
    """Assessments of many retrievals, as if by a loop of `score`, from kernels that run in lock-step.

    Parameters
    ----------
    query_embeddings : array_like, shape (Q, d)
    passage_embeddings : array_like, shape (Q, k, d), or sequence of Q arrays of shape (k_i, d)
    texts, parents, candidates, query_text : sequence of length Q, optional
        What `score` takes, one entry a query; None where a query has none.
    k_requested : int or sequence of int, optional
    group : str, int or sequence of them, optional

    The other parameters are those of `score`, and hold for every query.

    Returns
    -------
    MetricsBatch
        Columns; ``batch[i]`` equals ``score`` of query i to rounding.

    Raises
    ------
    TypeError, ValueError
        As `score`; nothing is returned for the others when one query is refused.

    Examples
    --------
    >>> batch = score_many([[1.0, 0.0], [0.0, 1.0]], [[[0.9, 0.1]], [[1.0, 0.0]]])
    >>> batch.verdict.tolist()
    ['ANSWER', 'ABSTAIN']
    """
    settings = Settings(
        policy=DEFAULT_POLICY if policy is None else policy,
        calibrator=calibrator,
        perturb=perturb,
        contradiction=contradiction,
        profile=profile,
        model=model,
        gate=gate,
        embedder=embedder,
        embedding_backend=embedding_backend,
        invalid_rows=invalid_rows,
        duplicate_cosine=duplicate_cosine,
        loops=loops,
        seed=seed,
    )
    settings.check_group(group)
    batch = check_retrievals(query_embeddings, passage_embeddings, settings.invalid_rows)
    asked = Asked.of_many(batch, texts, parents, candidates, query_text, k_requested, group)
    return assess(batch, asked, settings)
