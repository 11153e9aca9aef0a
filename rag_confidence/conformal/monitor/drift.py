"""A drift monitor: every new score joins the reference, and a test martingale bets on its rank."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._history import check_scores, real_vector
from rag_confidence._options import check_choice, check_integer
from rag_confidence._types import FloatArray, Provenance
from rag_confidence.conformal.monitor.betting import Capital, as_rate, grow, open_capital, restored_capital
from rag_confidence.conformal.monitor.rank_bets import BETS, Change, bet_factors, leading_change
from rag_confidence.conformal.monitor.ranked import SmoothedRanks
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.quantile import Level
from rag_confidence.conformal.reading import read_level

KIND = "drift_monitor"


@dataclass(frozen=True)
class DriftState:
    """What a drift monitor knows after the scores that it has seen.

    Attributes
    ----------
    n_seen, n_reference : int
        Scores monitored, and scores that it was opened with.
    p_value : float or None
        Smoothed rank of the last score from above, in (0, 1]: small when it was unusually high. Uniform, and
        independent of all others, as long as the scores are exchangeable. None before the first score.
    log_martingale, log_max : float
        Natural logarithm of the evidence against "the scores are exchangeable" now, and of the largest so
        far.
    alarm : bool
        Whether the evidence has ever reached 1 / false_alarm_rate; it stays True.
    alarm_at : int or None
        The monitored score, counted from 1, that rang the alarm.
    change : {"higher", "lower", "wider", "narrower"} or None
        What the bets that had gained most when the alarm rang were on. A description; nothing is claimed.
    false_alarm_rate : float
    """

    n_seen: int
    n_reference: int
    p_value: float | None
    log_martingale: float
    log_max: float
    alarm: bool
    alarm_at: int | None
    change: Change | None
    false_alarm_rate: float

    @property
    def sentence(self) -> str:
        """All of it in one readable sentence."""
        if self.alarm:
            return (
                f"Alarm: at score {self.alarm_at} of {self.n_seen} the evidence reached the alarm that rings "
                f"in at most {100 * self.false_alarm_rate:.4g} % of runs of exchangeable scores "
                f"(independent, and spread as before); the scores seem to have become {self.change}."
            )
        return (
            f"No drift seen in {self.n_seen} scores: the evidence peaked at {math.exp(self.log_max):.3g}, "
            f"and the alarm rings at {1.0 / self.false_alarm_rate:.4g}."
        )


class DriftMonitor:
    """Watches a stream of scores and rings when they stop being exchangeable.

    Each score is ranked among all scores so far, the reference included, and joins them. A test martingale
    bets that ranks will be high, low, extreme or central, from every score on. The alarm stays on.

    Parameters
    ----------
    reference : array_like, shape (m,), optional
        Scores of unselected earlier traffic; none is allowed. More of them show a change earlier.
    false_alarm_rate : float, str, Fraction or Decimal, keyword-only
        Largest probability, in (0, 1), that the alarm ever rings although the scores are exchangeable.
    seed : int, keyword-only
        Of the draws that break ties: the same for everyone who does not set it.
    provenance : Provenance or mapping, optional
        How the scores are made (`MetricsBatch.provenance`); kept and saved, for whoever reads it back.

    Raises
    ------
    TypeError, ValueError
        For scores that are not finite numbers, and for a rate outside (0, 1).

    Notes
    -----
    Score n has the p-value (#{above} + U #{equal, itself included}) / n with U uniform. If all scores are
    exchangeable these are independent and uniform, ties or none, so the martingale of `betting.grow` reaches
    1 / false_alarm_rate with at most that probability, for a run of any length. The bets are likelihood
    ratios N(z; mean, spread^2) / N(z; 0, 1) of the normal scores z of the p-values: shifts by 0.4 and 1, and
    spreads of 0.6, 0.8, 1.25 and 1.6. This is about ranks: the scores may have any distribution.

    The probability is over the scores and over the draws that break ties. Monitors of one seed share these
    draws, and where all scores are equal the seed alone decides. So give each monitor a seed of its own.

    What is watched is the distribution of the scores passed. A change of the mix of questions alone also
    rings, and a change of P(label | score) does not. Scores of one session that resemble each other are not
    exchangeable and ring without any change: pass one a session. A slow change is absorbed by the reference
    and may never ring.

    A score costs tens of microseconds, and all are kept, eight bytes each. Calls may come from several
    threads; each is taken as a whole.

    References
    ----------
    Vovk, Nouretdinov and Gammerman (2003), Testing exchangeability on-line; Vovk, Gammerman and Shafer
    (2005), section 7.1; Vovk et al. (2021), Retrain or not retrain; Ville (1939).

    Examples
    --------
    >>> monitor = DriftMonitor(reference=[i / 200 for i in range(200)], false_alarm_rate=0.01)
    >>> monitor.update(0.4).alarm
    False
    >>> state = monitor.update_many([0.97] * 20)
    >>> state.alarm, state.change
    (True, 'higher')
    """

    def __init__(
        self,
        reference: ArrayLike = (),
        *,
        false_alarm_rate: Level = 0.01,
        seed: int = 0,
        provenance: Provenance | Mapping[str, str | None] | None = None,
    ) -> None:
        self._rate = as_rate(false_alarm_rate)
        self._ranks = SmoothedRanks(_any_scores("reference", reference), check_integer("seed", seed, 0))
        self._n_reference = len(self._ranks)
        self.provenance = check_provenance(provenance)
        self._capital = open_capital(len(BETS), self._rate)
        self._p_value: float | None = None
        self._change: Change | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        state = self.state
        return f"DriftMonitor({state.n_seen} seen after {state.n_reference}, alarm={state.alarm})"

    @property
    def state(self) -> DriftState:
        """What is known so far."""
        with self._lock:
            return self._state()

    @property
    def alarm(self) -> bool:
        """Whether the alarm has ever rung."""
        return self._capital.alarm_at is not None

    def update(self, score: float) -> DriftState:
        """Take one score, a finite number; return the state after it.

        Raises
        ------
        TypeError, ValueError
            For anything else; the monitor is then as it was.
        """
        return self._take("score", _one_score(score))

    def update_many(self, scores: ArrayLike) -> DriftState:
        """Take scores (n,) in the order in which they came, none included; return the state after the last.

        Raises
        ------
        TypeError, ValueError
            For scores that are not finite numbers; none of them is then taken.
        """
        return self._take("scores", _any_scores("scores", scores))

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON: a monitor read back goes on as if it had never stopped."""
        return _artefact.wrap(KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> DriftMonitor:
        """The monitor that `to_dict` wrote.

        Raises
        ------
        ArtefactError
            For anything else, also for one that was changed.
        """
        return cls._restored("document", _artefact.unwrap("document", KIND, document))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file, all of it or nothing."""
        _artefact.write(path, KIND, self._payload())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DriftMonitor:
        """The monitor in a file that `save` wrote.

        Raises
        ------
        ArtefactError
            For another file, also for one that was changed.
        """
        return cls._restored("path", _artefact.read(path, KIND))

    def _take(self, name: str, values: FloatArray) -> DriftState:
        with self._lock:
            for score in self._ranks.comparable(name, values).tolist():
                self._step(score)
            return self._state()

    def _step(self, score: float) -> None:
        self._p_value = self._ranks.take(score)
        rang = self._capital.alarm_at is not None
        self._capital = grow(self._capital, bet_factors(self._p_value))
        if not rang and self._capital.alarm_at is not None:
            self._change = leading_change(self._capital.stakes)

    def _state(self) -> DriftState:
        capital = self._capital
        return DriftState(
            n_seen=capital.steps,
            n_reference=self._n_reference,
            p_value=self._p_value,
            log_martingale=capital.log_total,
            log_max=capital.log_peak,
            alarm=capital.alarm_at is not None,
            alarm_at=capital.alarm_at,
            change=self._change,
            false_alarm_rate=float(self._rate),
        )

    def _payload(self) -> dict[str, Any]:
        with self._lock:
            return {
                "false_alarm_rate": str(self._rate),
                "n_reference": self._n_reference,
                "provenance": None if self.provenance is None else self.provenance.to_dict(),
                "ranks": self._ranks.to_dict(),
                "bets": [[*bet] for bet in BETS],
                "capital": self._capital.to_dict(),
                "p_value": self._p_value,
                "change": self._change,
            }

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> DriftMonitor:
        return _artefact.restored(name, KIND, payload=payload, build=cls._built, written=cls._payload)

    @classmethod
    def _built(cls, payload: Mapping[str, Any]) -> DriftMonitor:
        rate = read_level("false_alarm_rate", payload["false_alarm_rate"])
        monitor = cls(false_alarm_rate=rate, provenance=payload["provenance"])
        monitor._n_reference = check_integer("n_reference", payload["n_reference"], 0)
        monitor._ranks = SmoothedRanks.from_dict(payload["ranks"])
        monitor._capital = restored_capital(payload, [[*bet] for bet in BETS], rate)
        if len(monitor._ranks) != monitor._n_reference + monitor._capital.steps:
            raise ValueError("its counts do not add up")
        monitor._p_value, monitor._change = payload["p_value"], payload["change"]
        _check_last(monitor._p_value, monitor._change, monitor._capital)
        return monitor


def _check_last(p_value: Any, change: Any, capital: Capital) -> None:
    """Refuse a p-value without a score, a change without an alarm, and the reverse."""
    if (p_value is None) is not (capital.steps == 0) or (change is None) is not (capital.alarm_at is None):
        raise ValueError("a p-value or a change that belongs to no score")
    if p_value is not None and not (isinstance(p_value, float) and 0.0 < p_value <= 1.0):
        raise ValueError("a p-value outside (0, 1]")
    if change is not None:
        check_choice("change", change, get_args(Change))


def _any_scores(name: str, scores: ArrayLike) -> FloatArray:
    """Checked scores, possibly none: a monitor may open without a reference, and a batch may be empty."""
    values = real_vector(name, scores)
    return check_scores(name, values) if values.size else values


def _one_score(score: Any) -> FloatArray:
    if type(score) is float and math.isfinite(score):
        return np.array((score,))
    if isinstance(score, (list, tuple, np.ndarray)):
        raise TypeError(
            f"`score` must be one number; got {type(score).__name__}. Pass several to update_many."
        )
    return check_scores("score", [score])
