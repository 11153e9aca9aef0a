"""What is known of coefficients before the first label: a normal distribution over named signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rag_confidence import _artefact
from rag_confidence._types import FloatArray
from rag_confidence.learning.logistic import Gaussian

SIGNALS = "signals."
TEXT_SIGNALS = ("signals.text_best", "signals.text_top3")
"""Signals that need the words of the query and of the passages."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Coefficients of standardised signals as they are in other deployments.

    Attributes
    ----------
    names : tuple of str
        Keys of the record, such as "signals.max_cosine".
    mean : ndarray, shape (p,)
        The direction of the label-free score, in log-odds a standard deviation of each signal.
    covariance : ndarray, shape (p, p)
        How deployments differ from it, and in which directions together.
    """

    names: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, names: Sequence[str], mean: FloatArray, covariance: FloatArray) -> Prior:
        """A checked prior that nobody can change.

        Raises
        ------
        ValueError
            For shapes that do not go together, names that are no signals or not distinct, and a covariance
            that is not symmetric and positive definite.
        """
        found = np.array(mean, dtype=np.float64), np.array(covariance, dtype=np.float64)
        _check(tuple(names), *found)
        for array in found:
            array.flags.writeable = False
        return cls(tuple(names), *found)

    def on(self, names: Sequence[str]) -> Gaussian:
        """The distribution of these coefficients alone, as `fit_logistic` takes it."""
        found = self.only(names)
        return Gaussian(found.mean, np.linalg.inv(found.covariance))

    def beside(self, other: Prior) -> Prior:
        """Both, independent of each other."""
        p, q = len(self.names), len(other.names)
        covariance = np.zeros((p + q, p + q))
        covariance[:p, :p], covariance[p:, p:] = self.covariance, other.covariance
        return Prior.of((*self.names, *other.names), np.concatenate([self.mean, other.mean]), covariance)

    def only(self, names: Sequence[str]) -> Prior:
        """That of these coefficients alone."""
        at = [self.names.index(name) for name in names]
        return Prior.of(tuple(names), self.mean[at], self.covariance[np.ix_(at, at)])

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of all of it."""
        return _artefact.digest(self.to_dict())[:16]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "names": [*self.names],
            "mean": _artefact.encode_floats(self.mean),
            "covariance": [_artefact.encode_floats(row) for row in self.covariance],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Prior:
        """The prior that `to_dict` wrote."""
        return cls.of(plain["names"], np.array(plain["mean"]), np.array(plain["covariance"]))


def _check(names: tuple[str, ...], mean: FloatArray, covariance: FloatArray) -> None:
    p = len(names)
    odd = [name for name in names if not str(name).startswith(SIGNALS)]
    if odd or len(set(names)) < p:
        raise ValueError(
            f"`names` must be distinct keys that begin with {SIGNALS!r}; got {[*names]}. "
            "Name signals of the record."
        )
    if mean.shape != (p,) or covariance.shape != (p, p):
        raise ValueError(
            f"`covariance` must have shape ({p}, {p}) and `mean` ({p},); got {covariance.shape} and "
            f"{mean.shape}. Give each named signal a row."
        )
    if not (np.isfinite(mean).all() and _is_covariance(covariance)):
        raise ValueError(
            "`covariance` must be symmetric and positive definite, and `mean` finite; got others. "
            "Learn the prior from more data sets, or add a small diagonal."
        )


def _is_covariance(matrix: FloatArray) -> bool:
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-12):
        return False
    return not len(matrix) or bool(np.linalg.eigvalsh(matrix)[0] > 0.0)
