"""A monitor of labelled outcomes: evidence that a bad event happens more often than a target allows."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

from numpy.typing import ArrayLike

from rag_confidence import _artefact
from rag_confidence._history import check_labels
from rag_confidence._options import check_integer, check_text
from rag_confidence._types import Provenance
from rag_confidence.conformal.monitor.betting import as_rate, grow, open_capital, restored_capital
from rag_confidence.conformal.monitor.risk_interval import risk_interval
from rag_confidence.conformal.provenance import check_provenance
from rag_confidence.conformal.quantile import Level, as_level
from rag_confidence.conformal.reading import read_level

KIND = "risk_monitor"
# Each bet expects the odds of the bad event to be this many times those of the target.
ODDS_RATIOS = (1.25, 1.6, 2.5, 6.0, 40.0)


@dataclass(frozen=True)
class RiskState:
    """What a risk monitor knows after the outcomes that it has seen.

    Attributes
    ----------
    n_seen, n_bad : int
        Outcomes so far, and how many of them were the bad event.
    log_evidence, log_max : float
        Natural logarithm of the evidence against "the risk, given what came before, is at most the target"
        now, and of the largest so far.
    alarm : bool
        Whether the evidence has ever reached 1 / false_alarm_rate; it stays True.
    alarm_at : int or None
        The outcome, counted from 1, that rang the alarm.
    target, false_alarm_rate : float
    event : str or None
        The bad event in words.
    """

    n_seen: int
    n_bad: int
    log_evidence: float
    log_max: float
    alarm: bool
    alarm_at: int | None
    target: float
    false_alarm_rate: float
    event: str | None

    @property
    def rate(self) -> float | None:
        """Share of bad events so far; None before the first outcome."""
        return self.n_bad / self.n_seen if self.n_seen else None

    @cached_property
    def risk_interval(self) -> tuple[float, float]:
        """(low, high) for the average risk so far, valid at all times at once: see `risk_interval`."""
        return risk_interval(self.n_bad, self.n_seen, error_rate=self.false_alarm_rate)

    @property
    def sentence(self) -> str:
        """All of it in one readable sentence."""
        counted = f"{self.n_bad} of {self.n_seen} outcomes were bad"
        counted += f" ({self.event})" if self.event else ""
        if self.alarm:
            return (
                f"Alarm: {counted}. At outcome {self.alarm_at} the evidence reached the alarm, which rings "
                f"in at most {100 * self.false_alarm_rate:.4g} % of runs whose risk, given what came before, "
                f"never exceeds {self.target:.3g}."
            )
        return (
            f"No alarm: {counted}, the evidence against a risk of at most {self.target:.3g} peaked at "
            f"{math.exp(self.log_max):.3g}, and the alarm rings at {1.0 / self.false_alarm_rate:.4g}."
        )


class RiskMonitor:
    """Watches labelled outcomes and rings when a bad event is more frequent than a target allows.

    Two uses. Selective risk: one outcome for each accepted and labelled answer, bad when it was insufficient.
    False sufficiency: one outcome for each row labelled insufficient, bad when the gate accepted it. The
    alarm stays on.

    Parameters
    ----------
    target : float, str, Fraction or Decimal
        Largest risk that is allowed, in (0, 1).
    false_alarm_rate : float, str, Fraction or Decimal, keyword-only
        Largest probability, in (0, 1), that the alarm ever rings although the risk, given all earlier
        outcomes, never exceeds the target.
    event : str, optional, keyword-only
        The bad event in words, for the sentence.
    provenance : Provenance or mapping, optional
        How the watched decisions are made; kept and saved, for whoever reads it back.

    Raises
    ------
    TypeError, ValueError
        For a target or a rate outside (0, 1).

    Notes
    -----
    Null hypothesis: given all earlier outcomes, the next is bad with probability at most `target`; the risk
    may move about below it. A bet on an odds ratio r pays r / (1 - t + t r) on a bad event and
    1 / (1 - t + t r) otherwise, t the target: of mean at most 1 under the null, so the mixture over ratios
    1.25 to 40 and over starting points (`betting.grow`) reaches 1 / false_alarm_rate with at most that
    probability, for a stream of any length. O(1) a call, whatever the length.

    The null is about the risk given all earlier outcomes: several rows of one query or session break it even
    where the overall risk is at the target. Pass one a session. Whether and when an outcome gets its label
    must not depend on how it turned out: complaints alone are no sample.

    A marginal gate holds its level on average over calibration sets. For the one that you have, the false
    sufficiency rate is a draw from Beta(n0 + 1 - k, k), above alpha for up to almost half of calibration
    sets (39 % at 9 rows, 48 % at 1000; fewer just below a multiple of 1 / alpha, and with ties), and a
    monitor of target alpha rightly rings when it is above. Set the target to a quantile of that Beta
    distribution, or fit the gate with ``guarantee="pac"``.

    Calls may come from several threads; each is taken as a whole.

    References
    ----------
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting; Ville (1939).

    Examples
    --------
    >>> monitor = RiskMonitor(0.10, false_alarm_rate=0.05, event="insufficient answer accepted")
    >>> monitor.update(False).alarm
    False
    >>> monitor.update_many([True, False] * 15).alarm_at
    10
    """

    def __init__(
        self,
        target: Level,
        *,
        false_alarm_rate: Level = 0.05,
        event: str | None = None,
        provenance: Provenance | Mapping[str, str | None] | None = None,
    ) -> None:
        self._target = as_level(target, "target")
        self._rate = as_rate(false_alarm_rate)
        check_text("event", event)
        self._event = event
        self.provenance = check_provenance(provenance)
        self._lock = Lock()
        self._capital = open_capital(len(ODDS_RATIOS), self._rate)
        self._n_bad = 0
        self._payoffs = outcome_factors(float(self._target))

    def __repr__(self) -> str:
        state = self.state
        return f"RiskMonitor({state.n_bad} of {state.n_seen} bad, target={self._target}, alarm={state.alarm})"

    @property
    def state(self) -> RiskState:
        """What is known so far."""
        with self._lock:
            return self._state()

    @property
    def alarm(self) -> bool:
        """Whether the alarm has ever rung."""
        return self._capital.alarm_at is not None

    def update(self, bad: bool) -> RiskState:
        """Take one outcome, True or 1 for the bad event; return the state after it.

        Raises
        ------
        TypeError, ValueError
            For anything but a boolean, 0 or 1; the monitor is then as it was.
        """
        return self._take(check_labels("bad", [bad]).tolist())

    def update_many(self, bad: ArrayLike) -> RiskState:
        """Take outcomes (n,) in the order in which they came, none included; return the state after the last.

        Raises
        ------
        TypeError, ValueError
            For anything but booleans, 0 and 1; none of them is then taken.
        """
        return self._take(check_labels("bad", bad).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON: a monitor read back goes on as if it had never stopped."""
        return _artefact.wrap(KIND, self._payload())

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> RiskMonitor:
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
    def load(cls, path: str | os.PathLike[str]) -> RiskMonitor:
        """The monitor in a file that `save` wrote.

        Raises
        ------
        ArtefactError
            For another file, also for one that was changed.
        """
        return cls._restored("path", _artefact.read(path, KIND))

    def _take(self, outcomes: list[bool]) -> RiskState:
        with self._lock:
            for bad in outcomes:
                self._capital = grow(self._capital, self._payoffs[bad])
                self._n_bad += bad
            return self._state()

    def _state(self) -> RiskState:
        capital = self._capital
        return RiskState(
            n_seen=capital.steps,
            n_bad=self._n_bad,
            log_evidence=capital.log_total,
            log_max=capital.log_peak,
            alarm=capital.alarm_at is not None,
            alarm_at=capital.alarm_at,
            target=float(self._target),
            false_alarm_rate=float(self._rate),
            event=self._event,
        )

    def _payload(self) -> dict[str, Any]:
        with self._lock:
            return {
                "target": str(self._target),
                "false_alarm_rate": str(self._rate),
                "event": self._event,
                "provenance": None if self.provenance is None else self.provenance.to_dict(),
                "n_bad": self._n_bad,
                "bets": [*ODDS_RATIOS],
                "capital": self._capital.to_dict(),
            }

    @classmethod
    def _restored(cls, name: str, payload: Mapping[str, Any]) -> RiskMonitor:
        return _artefact.restored(name, KIND, payload=payload, build=cls._built, written=cls._payload)

    @classmethod
    def _built(cls, payload: Mapping[str, Any]) -> RiskMonitor:
        rate = read_level("false_alarm_rate", payload["false_alarm_rate"])
        monitor = cls(
            read_level("target", payload["target"]),
            false_alarm_rate=rate,
            event=payload["event"],
            provenance=payload["provenance"],
        )
        monitor._n_bad = check_integer("n_bad", payload["n_bad"], 0)
        monitor._capital = restored_capital(payload, [*ODDS_RATIOS], rate)
        if monitor._n_bad > monitor._capital.steps:
            raise ValueError("its counts do not add up")
        return monitor


def outcome_factors(target: float) -> tuple[list[float], list[float]]:
    """What each bet pays on a good outcome, and on a bad one."""
    good = [1.0 / (1.0 - target + target * ratio) for ratio in ODDS_RATIOS]
    return good, [ratio * factor for ratio, factor in zip(ODDS_RATIOS, good, strict=True)]
