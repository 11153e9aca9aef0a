"""The one place that calls the scores of this package: its KPIs, its profile, its learned model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from _data import FloatArray, IntArray, Mask

import rag_confidence
from evaluation.baselines import Predictor, View
from evaluation.logistic import fit_chosen
from rag_confidence import MetricPolicy, MetricsBatch, score_many

Fit = Callable[[IntArray, int], FloatArray]
"""From rows to learn from and a seed to probabilities of all rows, shape (n,)."""

TEXT_BUDGET = 200


@dataclass(frozen=True)
class Learner:
    """A score that is learned from labelled rows.

    Attributes
    ----------
    name, label : str
    of : callable
        From a view and labels (n,) to a `Fit`: what can be prepared once is prepared here.
    budget : int or None
        The one number of labels it is measured at; None for every one.
    """

    name: str
    label: str
    of: Callable[[View, Mask], Fit]
    budget: int | None = None


def seed_kpi(view: View) -> FloatArray:
    """The KPI of the source scorer's formulas and constants, without its sampled probe."""
    return score_many(view.rows.queries, view.passages, policy=MetricPolicy.seed(), perturb=False).kpi


def plain_kpi(view: View) -> FloatArray:
    """The KPI of the default policy: nothing known of the corpus."""
    return score_many(view.rows.queries, view.passages, perturb=False).kpi


def profile_kpi(view: View, *, queries: bool, candidates: bool) -> FloatArray:
    """The KPI with a profile of the corpus, and what else is given."""
    return profiled(view, queries=queries, candidates=candidates).kpi


def profiled(view: View, *, queries: bool, candidates: bool, texts: bool = False) -> MetricsBatch:
    """All rows of a view assessed with a profile of their corpus."""
    sampled = [view.rows.passages[row] for row in view.sample.tolist()] if texts else None
    profile = rag_confidence.CorpusProfile.fit(
        view.rows.corpus[view.sample], view.query_sample if queries else None, texts=sampled
    )
    found = view.rows.found[:, : view.k].tolist()
    return score_many(
        view.rows.queries,
        view.passages,
        texts=[[view.rows.passages[at] for at in row] for row in found] if texts else None,
        query_text=view.questions if texts else None,
        profile=profile,
        candidates=view.candidates if candidates else None,
        perturb=False,
    )


def sorted_scores(view: View, sufficient: Mask) -> Fit:
    """Ridge logistic regression on the k cosines in descending order: the strongest published baseline."""

    def learn(train: IntArray, seed: int) -> FloatArray:
        return fit_chosen(view.cosines[train], sufficient[train], seed)(view.cosines)

    return learn


def model(view: View, sufficient: Mask, *, texts: bool = False) -> Fit:
    """The package's own model on its own signals."""
    batch = profiled(view, queries=True, candidates=True, texts=texts)
    records = list(batch)

    def learn(train: IntArray, seed: int) -> FloatArray:
        found = rag_confidence.ConfidenceModel.fit(
            [records[at] for at in train],
            sufficient[train].astype(int),
            text_signal="on" if texts else "off",
            seed=seed,
        )
        return np.asarray(found.predict(batch))

    return learn


def label_free() -> tuple[Predictor, ...]:
    """Our scores that need no label, those that this version of the package has."""
    found = (
        Predictor("seed", "KPI of the seed", seed_kpi),
        Predictor("plain", "KPI, no profile", plain_kpi),
    )
    return (*found, *_WITH_PROFILE) if hasattr(rag_confidence, "CorpusProfile") else found


def learned() -> tuple[Learner, ...]:
    """The scores that need labels."""
    baseline = (Learner("sorted", "logistic on sorted scores", sorted_scores),)
    return (*baseline, *_MODELS) if hasattr(rag_confidence, "ConfidenceModel") else baseline


def best_label_free(names: list[str]) -> str:
    """The label-free score of ours that was given most."""
    return next(name for name in ("full", "profile_queries", "profile", "plain") if name in names)


_WITH_PROFILE = (
    Predictor("profile", "KPI, profile", partial(profile_kpi, queries=False, candidates=False)),
    Predictor(
        "profile_queries", "KPI, profile + queries", partial(profile_kpi, queries=True, candidates=False)
    ),
    Predictor(
        "profile_candidates",
        "KPI, profile + candidates",
        partial(profile_kpi, queries=False, candidates=True),
        deeper=True,
    ),
    Predictor(
        "full",
        "KPI, profile + queries + candidates",
        partial(profile_kpi, queries=True, candidates=True),
        deeper=True,
    ),
)
_MODELS = (
    Learner("model", "ConfidenceModel", model),
    Learner("model_text", "ConfidenceModel with texts", partial(model, texts=True), budget=TEXT_BUDGET),
)
