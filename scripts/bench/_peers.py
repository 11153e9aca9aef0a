"""Other conformal libraries doing the work of the gate, and where the labels that they keep differ.

None of them is needed to use or to test this package: each is imported when it is asked for.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]

INSTALL = 'pip install "mapie==1.6.*" "crepes==0.9.*" "conformguard==0.2.*"'
_SLACK = 1e-8


@dataclass(frozen=True)
class Rows:
    """Labelled scores."""

    scores: Scores
    labels: Mask


@dataclass(frozen=True)
class Asked:
    """Calibration rows, the level, and new scores to decide."""

    rows: Rows
    level: Fraction
    new: Scores


@dataclass(frozen=True)
class Peer:
    """A library that can keep or exclude both labels.

    Attributes
    ----------
    name : str
        As on the package index.
    history : callable
        (rows) -> the same in the form that it takes.
    calibrate : callable
        (history, level) -> what it has learned of both labels.
    sets : callable
        (learned, new scores (m,)) -> which labels are kept, bool (m, 2).
    rank : callable
        (n, level) -> the rank up to which it keeps a label whose calibration scores are n.
    cause : str
        Why that is not always the conformal rank.
    most : int
        Calibration rows beyond which it is not timed.
    """

    name: str
    history: Callable[[Rows], Any]
    calibrate: Callable[[Any, Fraction], Any]
    sets: Callable[[Any, Scores], Mask]
    rank: Callable[[int, Fraction], int]
    cause: str
    most: int = 10**9

    @property
    def version(self) -> str | None:
        """The version that is installed, if one is."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return None


class Given:
    """A classifier that was handed the probabilities which it predicts."""

    classes_ = np.array([0, 1])

    def fit(self, rows: Scores, labels: Any) -> Given:
        """Nothing to learn."""
        return self

    def predict(self, rows: Scores) -> NDArray[np.int_]:
        """The more probable label."""
        return (rows[:, 0] > 0.5).astype(int)

    def predict_proba(self, rows: Scores) -> Scores:
        """Probabilities of both labels."""
        return np.column_stack([1.0 - rows[:, 0], rows[:, 0]])


def mapie_history(rows: Rows) -> Any:
    """MAPIE keeps one threshold for all labels, so each label gets a classifier and rows of its own."""
    classes = (rows.scores[~rows.labels], rows.scores[rows.labels])
    return [(scores[:, None], np.full(len(scores), label)) for label, scores in enumerate(classes)]


def mapie_calibrate(history: Any, level: Fraction) -> Any:
    """Two classifiers; their thresholds are found with the first sets."""
    from mapie.classification import SplitConformalClassifier

    learned = []
    for scores, labels in history:
        one = SplitConformalClassifier(Given(), confidence_level=float(1 - level), conformity_score="lac")
        with warnings.catch_warnings():
            # It expects to see every label.
            warnings.simplefilter("ignore", UserWarning)
            learned.append(one.conformalize(scores, labels))
    return learned


def mapie_sets(learned: Any, new: Scores) -> Mask:
    """Label 0 from the first classifier and label 1 from the second."""
    kept = [one.predict_set(new[:, None])[1][:, label, 0] for label, one in enumerate(learned)]
    return np.column_stack(kept)


def crepes_history(rows: Rows) -> Any:
    """How strange each row is for its label, and the label as Mondrian category."""
    return np.where(rows.labels, 1.0 - rows.scores, rows.scores), rows.labels.astype(int)


def crepes_calibrate(history: Any, level: Fraction) -> Any:
    """One classifier, which leaves all work to the prediction."""
    from crepes import ConformalClassifier

    strangeness, labels = history
    return ConformalClassifier().fit(strangeness, bins=labels), float(1 - level)


def crepes_sets(learned: Any, new: Scores) -> Mask:
    """p-values that are not smoothed by chance, of each label in its own category."""
    classifier, confidence = learned
    kept = [
        classifier.predict_set(
            strangeness, bins=np.full(len(new), label), confidence=confidence, smoothing=False
        )
        for label, strangeness in enumerate((new, 1.0 - new))
    ]
    return np.column_stack(kept).astype(bool)


def conformguard_history(rows: Rows) -> Any:
    """Calls and outcomes: once with label 0 as the good outcome, once with label 1."""
    from conformguard import ToolCallContext

    calls = [ToolCallContext(tool_name="search", args={"score": score}) for score in rows.scores.tolist()]
    return [list(zip(calls, (rows.labels == label).tolist(), strict=True)) for label in (0, 1)]


def conformguard_calibrate(history: Any, level: Fraction) -> Any:
    """It bounds errors on good calls alone, so two calibrators."""
    from conformguard import calibrate

    scorers = (lambda call: call.args["score"], lambda call: -call.args["score"])
    return [calibrate(scorer, calls, float(level)) for scorer, calls in zip(scorers, history, strict=True)]


def conformguard_sets(learned: Any, new: Scores) -> Mask:
    """One call at a time."""
    from conformguard import ToolCallContext, decide

    calls = [ToolCallContext(tool_name="search", args={"score": score}) for score in new.tolist()]
    return np.array([[decide(one, call).accepted for one in learned] for call in calls])


def rounded_up(n: int, level: Fraction) -> int:
    """The rank in floats."""
    return math.ceil((n + 1) * (1.0 - float(level)))


def kept_by_p(n: int, level: Fraction) -> int:
    """The rank up to which p >= 1 - confidence, in floats."""
    p_values = np.arange(1, n + 2) / (n + 1)
    excluded = int(np.argmax(p_values >= 1.0 - float(1 - level)))
    return n + 1 - excluded


FLOATS = "rank from floats"
PEERS = (
    Peer("mapie", mapie_history, mapie_calibrate, mapie_sets, rounded_up, FLOATS),
    Peer("crepes", crepes_history, crepes_calibrate, crepes_sets, kept_by_p, "keeps p = alpha"),
    Peer(
        "conformguard",
        conformguard_history,
        conformguard_calibrate,
        conformguard_sets,
        rounded_up,
        FLOATS,
        most=10**5,
    ),
)


def difference(peer: Peer, theirs: Mask, ours: Mask, asked: Asked) -> str:
    """Whether a library keeps the labels that the gate keeps, and if not, why."""
    if np.array_equal(theirs, ours):
        return "same"
    scores, labels = asked.rows.scores, asked.rows.labels
    ranked = [np.sort(scores[~labels]), np.sort(-scores[labels])]
    ranks = [peer.rank(len(one), asked.level) for one in ranked]
    for slack, cause in ((0.0, peer.cause), (_SLACK, f"{peer.cause}, slack {_SLACK:g}")):
        bars = [one[rank - 1] + slack for one, rank in zip(ranked, ranks, strict=True)]
        if np.array_equal(theirs, np.column_stack([asked.new <= bars[0], -asked.new <= bars[1]])):
            more = int((theirs & ~ours).sum())
            return f"{more} labels more: {cause} ({' and '.join(map(str, ranks))})"
    return f"{int((theirs != ours).sum())} labels differ, unexplained"
