"""ConfidenceModel: P(sufficient) from named signals, learned from few labels and a strong prior."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._predictions import ModelPrediction
from rag_confidence._types import FloatArray, Provenance
from rag_confidence.conformal.rows import Rows
from rag_confidence.learning import terms as line
from rag_confidence.learning.crossfit import ModelReport
from rag_confidence.learning.model_file import KIND, payload_of, read_payload
from rag_confidence.learning.model_fit import Fitted, fit_model
from rag_confidence.learning.model_page import model_page
from rag_confidence.learning.prior import Prior
from rag_confidence.learning.reading import Metrics, check_one
from rag_confidence.learning.table import check_same_making, stacked, table_of
from rag_confidence.learning.terms import INTERCEPT, Term

Names: TypeAlias = Sequence[Hashable] | ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceModel:
    """A learned P(sufficient): a logistic line on named signals, made by `fit`; print it to read it.

    Hand it to ``score(..., model=model)``. A gate on its predictions must be calibrated on other rows:
    ``fit_conformal_gate(..., provenance=model.provenance, disjoint_from=[model])`` refuses its own.

    Attributes
    ----------
    intercept : float
        Log-odds of a retrieval whose signals are all average.
    terms : tuple of Term
        The signals that it reads.
    unused : tuple of str
        Signals that it could have read, but that were not assessed or did not vary over the training rows.
    prior_fingerprint : str
        Hash of the prior that it was pulled towards.
    report : ModelReport
        What cross-fitting says of it: honest numbers, unlike any computed on its own training rows.
    rows : Rows
        The rows that it was trained on, with its own predictions as their scores, and how their signals were
        made.
    """

    intercept: float
    terms: tuple[Term, ...]
    unused: tuple[str, ...]
    prior_fingerprint: str
    report: ModelReport
    rows: Rows

    @classmethod
    def fit(
        cls,
        metrics: Metrics,
        labels: ArrayLike,
        *,
        row_ids: Names | None = None,
        clusters: Names | None = None,
        text_signal: Literal["off", "on"] = "off",
        prior: Prior | None = None,
        seed: int = 0,
    ) -> ConfidenceModel:
        """Learn from labelled retrievals; a few dozen are enough to be no worse than the label-free KPI.

        Parameters
        ----------
        metrics : MetricsBatch, sequence of RagConfidenceMetrics, or sequence of dict
            All scored with one policy, profile and embedder; dicts are `to_dict()` records.
        labels : array_like, shape (n,)
            1 (sufficient) or 0 (insufficient); both must occur.
        row_ids : sequence, shape (n,), optional
            Identity of each row, so that a gate can refuse to calibrate on it.
        clusters : sequence, shape (n,), optional
            What must stay together in cross-fitting: a question asked twice, a document, a user.
        text_signal : {"off", "on"}
            Whether to read the text signals, which need `query_text`, `texts` and a profile fitted with
            `texts`. In other languages or without shared words they say little.
        prior : Prior, optional
            What is known of the coefficients; by default that of the five public data sets.
        seed : int
            Of the folds of cross-fitting.

        Returns
        -------
        ConfidenceModel

        Raises
        ------
        TypeError, ValueError
            For inputs that are not retrievals or labels, that do not go together or were not made in one
            way, for a class without rows, and for a text signal that was not assessed on any row.

        Warns
        -----
        SmallCalibrationWarning
            With fewer than ten rows of a class.
        WeakSeparationWarning
            With ten rows of each class and the 95 % interval of the KPI's AUROC below one half.

        Notes
        -----
        Signals are centred and scaled by the training rows; not assessed counts as average. The
        coefficients maximise the likelihood under a normal prior whose mean is the direction of the
        label-free score and whose covariance is how they differ between data sets, so that few labels move
        them along the directions in which deployments do differ, and many move them freely. Nothing is
        promised on questions unlike the training rows. Cost O(n p^2) a Newton step, six fits.

        References
        ----------
        R. Raina, A. Y. Ng and D. Koller (2006), Constructing informative priors using transfer learning.

        Examples
        --------
        >>> from rag_confidence import score_many
        >>> rng, labels = np.random.default_rng(0), np.arange(60) % 2
        >>> queries, passages = rng.normal(size=(60, 16)), rng.normal(size=(60, 8, 16))
        >>> passages[:, 0] += labels[:, None] * queries
        >>> ConfidenceModel.fit(score_many(queries, passages), labels).report.auroc > 0.9
        True
        """
        found = fit_model(
            metrics,
            labels,
            row_ids=row_ids,
            clusters=clusters,
            text_signal=text_signal,
            prior=prior,
            seed=seed,
        )
        return cls._of(found)

    @classmethod
    def _of(cls, found: Fitted) -> ConfidenceModel:
        return cls(**vars(found))

    def __repr__(self) -> str:
        return (
            f"ConfidenceModel({len(self.terms)} signals, {self.report.n0} insufficient and {self.report.n1} "
            f"sufficient rows, fingerprint={self.fingerprint!r})"
        )

    def __str__(self) -> str:
        return model_page(self.intercept, self.terms, self.unused, self.report)

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of all that it is."""
        return _artefact.digest(self._payload())[:16]

    @cached_property
    def provenance(self) -> Provenance | None:
        """How its predictions are made; hand it to `fit_conformal_gate`."""
        made = self.rows.provenance
        return None if made is None else replace(made, model=self.fingerprint)

    @property
    def names(self) -> tuple[str, ...]:
        """Keys of the signals that it reads."""
        return tuple(term.name for term in self.terms)

    @property
    def coefficients(self) -> dict[str, float]:
        """Log-odds a unit of each signal."""
        return {term.name: term.coefficient for term in self.terms}

    @property
    def standardised(self) -> dict[str, float]:
        """Log-odds a standard deviation of each signal: what they are compared by."""
        return {term.name: term.standardised for term in self.terms}

    def predict(self, metrics: Metrics) -> FloatArray:
        """P(sufficient) of each retrieval, shape (Q,), to twelve decimals; nan where nothing was measured.

        Raises `CalibrationMismatch` for retrievals that were scored in another way than the training rows.
        """
        return self._probabilities(self._values(metrics))

    def predict_columns(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """`predict` for columns (Q,) named as in the record; a signal without a column is not assessed."""
        return self._probabilities(stacked(columns, self.names))

    def predict_one(self, signals: Mapping[str, float | None]) -> ModelPrediction:
        """The prediction for one retrieval, its parts, and the signals that are out of range.

        `signals` maps keys of the record to numbers; None, nan and missing keys are not assessed. A whole
        `to_dict()` record will do, but how it was made is not checked here.
        """
        check_one(signals)
        return line.predict_terms(self.intercept, self.terms, signals)

    def contributions(self, metrics: Metrics) -> dict[str, FloatArray]:
        """What each signal adds to the log-odds of each retrieval: columns (Q,), with one "intercept".

        Added up in their order they are the log-odds exactly. A signal that is average, or was not
        assessed, adds 0.
        """
        parts = line.contributions(self.intercept, self.terms, self._values(metrics))
        return dict(zip((INTERCEPT, *self.names), parts.T, strict=True))

    def out_of_range(self, metrics: Metrics) -> list[tuple[str, ...]]:
        """Signals of each retrieval that lie beyond the training range by more than half of its width."""
        beyond = line.beyond_usual(self.terms, self._values(metrics))
        return [tuple(np.array(self.names, dtype=object)[row]) for row in beyond]

    def n_missing(self, metrics: Metrics) -> np.ndarray[Any, np.dtype[np.int64]]:
        """How many of its signals were not assessed, of each retrieval, shape (Q,)."""
        return np.asarray(np.isnan(self._values(metrics)).sum(axis=1), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values for JSON, with versions and a digest."""
        return _artefact.wrap(KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ConfidenceModel:
        """The model that `to_dict` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("document", _artefact.unwrap("document", KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a JSON file."""
        _artefact.write(path, KIND, self._payload())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConfidenceModel:
        """The model that `save` wrote, to the last bit; ArtefactError for anything else."""
        return cls._restored("path", _artefact.read(path, KIND))

    def _values(self, metrics: Metrics) -> FloatArray:
        table = table_of(metrics, self.names)
        if self.rows.provenance is not None:
            check_same_making(table.provenance, self.rows.provenance)
        return table.values

    def _probabilities(self, values: FloatArray) -> FloatArray:
        found = line.probabilities(line.contributions(self.intercept, self.terms, values))
        # A retrieval of which nothing was measured is not an average one.
        found[np.isnan(values).all(axis=1)] = np.nan
        return found

    def _payload(self) -> dict[str, Any]:
        return payload_of(Fitted(**{name: getattr(self, name) for name in Fitted.__dataclass_fields__}))

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> ConfidenceModel:
        return _artefact.restored(name, KIND, payload=payload, build=cls._built, written=cls._payload)

    @classmethod
    def _built(cls, payload: Mapping[str, Any]) -> ConfidenceModel:
        return cls._of(read_payload(payload))
