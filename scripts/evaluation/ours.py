"""The one place that calls the scores of this package: its KPIs, its profile, its learned model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from _data import FloatArray, IntArray, Mask

from evaluation.baselines import Predictor, View
from evaluation.logistic import USUAL_RIDGE, fit, fit_chosen
from rag_confidence import (
    ConfidenceModel,
    CorpusProfile,
    MetricPolicy,
    MetricsBatch,
    SmallCalibrationWarning,
    WeakSeparationWarning,
    score_many,
)
from rag_confidence.learning.prior import Prior
from rag_confidence.learning.prior_fit import learn_prior
from rag_confidence.learning.shipped_prior import DEFAULT_PRIOR, LABEL_FREE
from rag_confidence.learning.table import table_of

Fit = Callable[[IntArray, int], FloatArray]
"""From rows to learn from and a seed to probabilities of all rows, shape (n,)."""

Seen = Literal["corpus", "queries", "lists"]
"""What a profile is fitted on: corpus vectors, also queries, also the lists served for these."""

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


def profile_kpi(view: View, *, seen: Seen, candidates: bool) -> FloatArray:
    """The KPI with a profile of the corpus, and what else is given."""
    return profiled(view, seen=seen, candidates=candidates).kpi


def profiled(view: View, *, seen: Seen, candidates: bool, texts: bool = False) -> MetricsBatch:
    """All rows of a view assessed with a profile that has `seen` so much."""
    at = ("batch", seen, candidates, texts)
    if at not in view.kept:
        found = view.rows.found[:, : view.k].tolist()
        view.kept[at] = score_many(
            view.rows.queries,
            view.passages,
            texts=[[view.rows.passages[row] for row in rows] for rows in found] if texts else None,
            query_text=view.rows.questions if texts else None,
            profile=_profile(view, seen),
            candidates=view.candidates if candidates else None,
            perturb=False,
        )
    return cast(MetricsBatch, view.kept[at])


def _profile(view: View, seen: Seen) -> CorpusProfile:
    at = ("profile", seen)
    if at not in view.kept:
        view.kept[at] = CorpusProfile.fit(
            view.rows.corpus[view.sample],
            None if seen == "corpus" else view.query_sample,
            query_passages=view.query_passages if seen == "lists" else None,
            texts=[view.rows.passages[row] for row in view.sample.tolist()],
        )
    return cast(CorpusProfile, view.kept[at])


def sorted_scores(view: View, sufficient: Mask) -> Fit:
    """Logistic regression on the k cosines in descending order, with the usual ridge of 1."""

    def learn(train: IntArray, seed: int) -> FloatArray:
        return fit(view.cosines[train], sufficient[train], USUAL_RIDGE)(view.cosines)

    return learn


def sorted_scores_chosen(view: View, sufficient: Mask) -> Fit:
    """The same with the ridge of least log-loss in a cross-validation inside the training rows."""

    def learn(train: IntArray, seed: int) -> FloatArray:
        return fit_chosen(view.cosines[train], sufficient[train], seed)(view.cosines)

    return learn


def model(view: View, sufficient: Mask, *, prior: Prior | None, texts: bool = False) -> Fit:
    """The package's own model on its own signals."""
    batch = profiled(view, seen="lists", candidates=True, texts=texts)
    records = list(batch)

    def learn(train: IntArray, seed: int) -> FloatArray:
        with warnings.catch_warnings():
            # Few labels, and scores that hardly separate, are the point here.
            warnings.simplefilter("ignore", SmallCalibrationWarning)
            warnings.simplefilter("ignore", WeakSeparationWarning)
            found = ConfidenceModel.fit(
                [records[at] for at in train],
                sufficient[train].astype(int),
                text_signal="on" if texts else "off",
                prior=prior,
                seed=seed,
            )
        return np.asarray(found.predict(batch))

    return learn


def signals_of(view: View) -> FloatArray:
    """What the model reads of each row, shape (n, p), texts included; nan where not assessed."""
    batch = profiled(view, seen="lists", candidates=True, texts=True)
    return table_of(batch, DEFAULT_PRIOR.names).values


def learned_prior(histories: Sequence[tuple[FloatArray, FloatArray]]) -> dict[str, Any]:
    """A prior from signals and labels of several deployments, as plain values."""
    return learn_prior(DEFAULT_PRIOR.names, histories, LABEL_FREE).to_dict()


def label_free() -> tuple[Predictor, ...]:
    """Our scores that need no label, with the seed's."""
    return _LABEL_FREE


def learned(prior: Mapping[str, Any] | None) -> tuple[Learner, ...]:
    """The scores that need labels; models start from this prior, or from the shipped one."""
    start = None if prior is None else Prior.from_dict(prior)
    return (
        Learner("sorted", "logistic on sorted scores", sorted_scores),
        Learner("sorted_cv", "the same, ridge by cross-validation", sorted_scores_chosen),
        Learner("model", "ConfidenceModel", partial(model, prior=start)),
        Learner(
            "model_text",
            "ConfidenceModel with texts",
            partial(model, prior=start, texts=True),
            budget=TEXT_BUDGET,
        ),
    )


def best_label_free(names: list[str]) -> str:
    """The label-free score of ours that was given most."""
    return next(
        name for name in ("full", "profile_lists", "profile_queries", "profile", "plain") if name in names
    )


_LABEL_FREE = (
    Predictor("seed", "KPI of the seed", seed_kpi),
    Predictor("plain", "KPI, no profile", plain_kpi),
    Predictor("profile", "KPI, profile", partial(profile_kpi, seen="corpus", candidates=False)),
    Predictor(
        "profile_queries", "KPI, profile + queries", partial(profile_kpi, seen="queries", candidates=False)
    ),
    Predictor(
        "profile_lists",
        "KPI, profile + served lists",
        partial(profile_kpi, seen="lists", candidates=False),
    ),
    Predictor(
        "full",
        "KPI, profile + served lists + candidates",
        partial(profile_kpi, seen="lists", candidates=True),
        deeper=True,
    ),
)
