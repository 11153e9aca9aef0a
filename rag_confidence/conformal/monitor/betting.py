"""Capital against a null hypothesis: many bets, each made again from every step on, and one alarm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from rag_confidence._artefact import decode_float, encode_float
from rag_confidence.conformal.quantile import Level, as_level

# Stakes are kept in units of e^log_unit, which follows the capital before they could overflow or vanish.
_SMALL, _LARGE = 1e-100, 1e100
_LEAST_RATE = Fraction(1, 10**300)
# What another platform may make of the same logarithms.
_ROUNDING = 1e-9


class Capital(NamedTuple):
    """What a mixture of bets, opened with a capital of 1, has become.

    Attributes
    ----------
    log_limit : float
        log(1 / false alarm rate): the alarm rings when the capital reaches it.
    stakes : tuple of float
        Money on each bet, in units of exp(log_unit); zero before the first step.
    log_unit : float
    steps : int
        Steps so far.
    log_total, log_peak : float
        Logarithm of the capital now, and of the largest so far (at least 0).
    alarm_at : int or None
        Step at which the capital first reached the limit.
    """

    log_limit: float
    stakes: tuple[float, ...]
    log_unit: float = 0.0
    steps: int = 0
    log_total: float = 0.0
    log_peak: float = 0.0
    alarm_at: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        numbers = {"log_unit", "log_total", "log_peak", "log_limit"}
        plain = self._asdict() | {name: encode_float(getattr(self, name)) for name in numbers}
        return plain | {"stakes": list(self.stakes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Capital:
        """The capital that `to_dict` wrote."""
        return cls(
            log_limit=decode_float(plain["log_limit"]),
            stakes=tuple(float(stake) for stake in plain["stakes"]),
            log_unit=decode_float(plain["log_unit"]),
            steps=int(plain["steps"]),
            log_total=decode_float(plain["log_total"]),
            log_peak=decode_float(plain["log_peak"]),
            alarm_at=None if plain["alarm_at"] is None else int(plain["alarm_at"]),
        )


def as_rate(false_alarm_rate: Level) -> Fraction:
    """The exact false-alarm rate in (0, 1) that a user means, of a size that a float can hold."""
    rate = as_level(false_alarm_rate, "false_alarm_rate", Fraction(0))
    if rate < _LEAST_RATE:
        raise ValueError(
            f"`false_alarm_rate` must be at least 1e-300; got {false_alarm_rate}. Use a larger one."
        )
    return rate


def open_capital(bets: int, false_alarm_rate: Fraction) -> Capital:
    """A capital of 1 that will be spread over this many bets."""
    return Capital(-math.log(false_alarm_rate), (0.0,) * bets)


def reserve(steps: int) -> float:
    """Share of the opening capital not yet on any bet after this many steps: 1 / log2(steps + 2).

    It falls slowly: whatever the step at which things change, the bets that start there hold a share of
    about 1 / (steps log^2 steps), which costs some log(steps) of evidence and never more.
    """
    return 1.0 / math.log2(steps + 2)


def grow(capital: Capital, factors: Sequence[float]) -> Capital:
    """The capital after one step in which each bet pays its factor on what is staked on it.

    Parameters
    ----------
    capital : Capital
    factors : sequence of float, one for each bet
        Nonnegative, and of expectation at most 1 under the null hypothesis given the past.

    Returns
    -------
    Capital

    Notes
    -----
    Before the factors pay, a share reserve(n - 1) - reserve(n) of the opening capital moves from the
    reserve to the bets in equal parts. So the capital is

        M_n = reserve(n) + sum over s <= n and bets b of w_s / B * f_b(s) f_b(s + 1) ... f_b(n),

    a mixture over bets and over their starting steps with weights that sum to 1. Each term is a test
    (super)martingale, hence so is M, and P(M ever reaches 1/a) <= a (Ville 1939), for a run of any length.
    The Shiryaev-Roberts sum, with weight 1 on every start, has no such bound. O(B) a step.

    References
    ----------
    Ville (1939), Etude critique de la notion de collectif; Shafer, Shen, Vereshchagin and Vovk (2011),
    Test martingales, Bayes factors and p-values; Vovk et al. (2021), Retrain or not retrain.
    """
    steps, unit = capital.steps + 1, math.exp(-capital.log_unit)
    left = reserve(steps)
    fresh = (reserve(steps - 1) - left) * unit / len(factors)
    stakes = tuple([(stake + fresh) * factor for stake, factor in zip(capital.stakes, factors, strict=True)])
    total, log_unit = sum(stakes) + left * unit, capital.log_unit
    if _SMALL < total < _LARGE:
        log_total = log_unit + math.log(total)
    else:
        log_total = _log_sum(log_unit, sum(stakes), left)
        stakes, log_unit = _in_unit(stakes, log_unit - log_total), log_total
    rings = capital.alarm_at is None and log_total >= capital.log_limit
    return Capital(
        capital.log_limit,
        stakes,
        log_unit,
        steps,
        log_total,
        max(capital.log_peak, log_total),
        steps if rings else capital.alarm_at,
    )


def _log_sum(log_unit: float, staked: float, left: float) -> float:
    """log(staked e^log_unit + left), where either may dwarf the other."""
    if staked == 0.0:
        return math.log(left)
    larger, smaller = sorted((log_unit + math.log(staked), math.log(left)), reverse=True)
    return larger + math.log1p(math.exp(smaller - larger))


def _in_unit(stakes: tuple[float, ...], shift: float) -> tuple[float, ...]:
    """Stakes times e^shift; the result is at most about 1, the two parts need not be."""
    return tuple([math.exp(math.log(stake) + shift) if stake else 0.0 for stake in stakes])


def restored_capital(payload: Mapping[str, Any], bets: list[Any], false_alarm_rate: Fraction) -> Capital:
    """The capital in the payload of a monitor that made these bets; an impossible one is refused."""
    capital = Capital.from_dict(payload["capital"])
    if payload["bets"] != bets or len(capital.stakes) != len(bets):
        raise ValueError("it bets otherwise than this release")
    opened = open_capital(len(bets), false_alarm_rate)
    if not math.isclose(capital.log_limit, opened.log_limit, rel_tol=_ROUNDING):
        raise ValueError("its limit is not that of its rate")
    if capital.steps < 1:
        if capital != opened._replace(log_limit=capital.log_limit):
            raise ValueError("it has gained before its first step")
    elif not _is_possible(capital):
        raise ValueError("its capital is not the sum of its stakes")
    return capital


def _is_possible(capital: Capital) -> bool:
    """Whether a capital can have grown: its total follows from the stakes, and the alarm from the peak."""
    numbers = (*capital.stakes, capital.log_unit, capital.log_total, capital.log_peak, capital.log_limit)
    if not all(map(math.isfinite, numbers)) or min(capital.stakes) < 0.0:
        return False
    total = _log_sum(capital.log_unit, sum(capital.stakes), reserve(capital.steps))
    rang = capital.log_peak >= capital.log_limit
    return (
        math.isclose(total, capital.log_total, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        and capital.log_peak >= max(capital.log_total, 0.0)
        and rang is (capital.alarm_at is not None)
        and (capital.alarm_at is None or 1 <= capital.alarm_at <= capital.steps)
    )
