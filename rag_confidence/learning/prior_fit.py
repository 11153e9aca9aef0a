"""A prior learned from several labelled deployments: their common direction and how they differ from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence.learning.logistic import Gaussian, LogisticFit, fit_logistic
from rag_confidence.learning.prior import TEXT_SIGNALS, Prior
from rag_confidence.learning.scaling import standardised

# Each deployment counts as this many rows, however many it has.
ROWS = 400.0
STEPS = 15
_START = 0.05
# Four or five deployments say little on how coefficients vary together: one more with none of it.
_UNCORRELATED = 1.0
# Nothing is known so well that labels could not change it.
_FLOOR = 1e-4

History = tuple[FloatArray, FloatArray]


def learn_prior(
    names: Sequence[str],
    histories: Sequence[History],
    direction: Mapping[str, float],
    *,
    apart: Sequence[str] = TEXT_SIGNALS,
    steps: int = STEPS,
) -> Prior:
    """The distribution of coefficients over deployments.

    Parameters
    ----------
    names : sequence of str, length p
        Keys of signals.
    histories : sequence of (values, labels)
        Of each deployment, signals (n, p) with nan where not assessed, and labels (n,) as 0.0 and 1.0.
    direction : mapping of str to float
        Weights of the label-free score on standardised signals; those not named are 0. The mean of the
        prior is a multiple of it.
    apart : sequence of str
        Signals that models may do without: the others are learned as if these did not exist, and these
        beside all others, then held independent of them.
    steps : int
        EM steps.

    Returns
    -------
    Prior

    Raises
    ------
    ValueError
        For fewer than two deployments, and a direction without any of the signals.

    Notes
    -----
    Each deployment t has coefficients :math:`w_t \\sim N(a w_0, S)`. An EM step fits every w_t under the
    current prior (Laplace approximation with covariance V_t), then sets a by generalised least squares and
    S to the mean of :math:`(w_t - a w_0)(w_t - a w_0)' + V_t`, shrunk towards its diagonal. The mean is
    held to the label-free direction because a free one, learned from few deployments, ranks a new one
    worse. Deployments that share queries are no independent evidence on S.

    References
    ----------
    T. Heskes (2000), Empirical Bayes for learning to learn; R. Raina, A. Y. Ng and D. Koller (2006),
    Constructing informative priors using transfer learning.
    """
    toward = np.array([float(direction.get(name, 0.0)) for name in names])
    if len(histories) < 2 or not toward.any():
        raise ValueError(
            f"`histories` must be of two deployments or more, with signals of the label-free score; got "
            f"{len(histories)} and {int(np.count_nonzero(toward))} such signals. Label another deployment."
        )
    tasks = [(standardised(values).design, labels) for values, labels in histories]
    always = np.array([name not in apart for name in names])
    whole = Prior.of(names, *_learn(tasks, toward, steps))
    if always.all():
        return whole
    kept = [(design[:, always], labels) for design, labels in tasks]
    first = Prior.of([name for name in names if name not in apart], *_learn(kept, toward[always], steps))
    return first.beside(whole.only([name for name in names if name in apart])).only(names)


def _learn(tasks: Sequence[History], toward: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance along this direction."""
    mean: FloatArray = toward
    covariance: FloatArray = _START * np.eye(len(toward))
    for _ in range(steps):
        precision = np.linalg.inv(covariance)
        fits = [_fit(task, Gaussian(mean, precision)) for task in tasks]
        found = np.array([fit.coefficients for fit in fits])
        pull = precision @ toward
        mean = toward * float((found @ pull).mean() / (toward @ pull))
        covariance = _spread(found - mean, fits)
    return mean, covariance


def _fit(task: History, prior: Gaussian) -> LogisticFit:
    design, labels = task
    return fit_logistic(design, labels, prior, weights=np.full(len(labels), ROWS / len(labels)))


def _spread(away: FloatArray, fits: Sequence[LogisticFit]) -> FloatArray:
    count = len(fits)
    within = sum(np.linalg.inv(fit.hessian)[1:, 1:] for fit in fits)
    spread = (away.T @ away + within) / count
    apart = np.diag(np.diag(spread))
    shrunk = (count * spread + _UNCORRELATED * apart) / (count + _UNCORRELATED) + _FLOOR * np.eye(len(apart))
    return np.asarray(0.5 * (shrunk + shrunk.T))
