"""Session: one error budget for a planned number of calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from threading import Lock
from typing import Any

from rag_confidence._calls import ToolCallContext
from rag_confidence._types import Guarantee
from rag_confidence.conformal.gate.attempts import alpha_for_attempt
from rag_confidence.conformal.history import origin, percent
from rag_confidence.conformal.quantile import Level, as_level, check_count
from rag_confidence.errors import CalibrationRefused, SessionExhausted
from rag_confidence.guard.calibrator import Calibrator
from rag_confidence.guard.result import Decider, GuardResult
from rag_confidence.guard.scorers import Scorer
from rag_confidence.guard.thresholds import calls_needed

_NOT_CLAIMED = (
    "That the calls achieve together what they were made for: each is judged by itself, and nothing is said "
    "of the trajectory.",
    "Anything about calls beyond those that were planned.",
)
_OFTEN_FAILED = (
    "That good calls are rarely abstained on where scorers often fail: among those calibration sets that "
    "support the session the rate can be as large as alpha, divided by how often a set supports it."
)
_AVERAGE = "on average over calibration sets"
_NO_ERROR = "one that supports no such session counting as no error"


class Session:
    """Judges a planned number of calls, so that one error among all of them is as rare as alpha says.

    Each call is judged at the level alpha / calls, from the calibration calls of one calibrator. A call that
    is judged counts, whatever the decision is: the bound has to cover every call that might be an error.

    Parameters
    ----------
    calibrator : Calibrator
    calls : int
        How many calls are planned, fixed before the first one, and not by how often a scorer failed.
    alpha : float, str, Fraction or Decimal, optional
        Level of the whole session in (0, 1): of any good call being abstained on, or with beta rejected. By
        default that of the calibrator.
    beta : float, str, Fraction or Decimal, optional
        Level of any bad call being accepted; by default that of the calibrator. Needs bad calls.

    Attributes
    ----------
    calls : int
    guarantee : Guarantee
        What holds for all calls of the session together.

    Raises
    ------
    TypeError, ValueError
        For what is no `Calibrator`, for a plan that is no count, and for levels outside (0, 1).
    CalibrationRefused
        For more calls than the calibration calls support.

    Notes
    -----
    The union bound: P(any of the T calls is an error) is at most the sum of T levels alpha / T. It needs no
    independence, and calls may depend on what earlier ones returned as long as each by itself is exchangeable
    with the calibration calls. A level alpha / T has a finite threshold for n good calls only where
    T <= alpha (n + 1), or T <= alpha (n + 1) / (f + 1) where a scorer failed on f of them. So a scorer that
    fails now and then lets chance decide whether there is a session at all: what is bounded is the
    probability that there is one and a good call in it is abstained on.

    No published result bounds what a sequence of accepted calls does, and none is claimed here. A session may
    be shared by threads, though not by processes; it is a `Decider`, so that `wrap` takes it in place of a
    calibrator.

    Examples
    --------
    >>> from rag_confidence.guard import calibrate
    >>> calls = [(ToolCallContext("search", {"query": "x" * n}), True) for n in range(1, 100)]
    >>> session = Session(calibrate(lambda call: len(call.args["query"]), calls, 0.1), calls=5)
    >>> session.threshold, session.decide(calls[0][0]).accepted, session.remaining
    (98.0, True, 4)
    """

    def __init__(
        self, calibrator: Calibrator, calls: int, *, alpha: Level | None = None, beta: Level | None = None
    ) -> None:
        given: Any = calibrator
        if not isinstance(given, Calibrator):
            raise TypeError(
                f"`calibrator` must be a Calibrator; got {type(given).__name__}. Make one with calibrate()."
            )
        self._calls = check_count("calls", calls, 1)
        level = calibrator.level if alpha is None else as_level(alpha)
        bad_level = calibrator.beta_level if beta is None else as_level(beta, "beta")
        _refuse_plan(calibrator, self.calls, level, bad_level)
        each = alpha_for_attempt(level, 1, self.calls)
        bad_each = None if bad_level is None else alpha_for_attempt(bad_level, 1, self.calls)
        self._each = calibrator.at_level(each, bad_each)
        self.guarantee = _guarantee(self._each, self.calls, level, bad_level)
        self._spent = 0
        self._lock = Lock()

    @property
    def calls(self) -> int:
        """Calls that are planned."""
        return self._calls

    @property
    def spent(self) -> int:
        """Calls that were judged, or are about to be."""
        return self._spent

    @property
    def remaining(self) -> int:
        """Calls that may still be judged."""
        return self.calls - self._spent

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The checks."""
        return self._each.scorers

    @property
    def tool_names(self) -> frozenset[str] | None:
        """The tools that it may judge, any if None."""
        return self._each.tool_names

    @property
    def threshold(self) -> float:
        """ACCEPT up to here."""
        return self._each.threshold

    @property
    def fingerprint(self) -> str:
        """Of the calibrator at the level of one call."""
        return self._each.fingerprint

    def reserve(self) -> Decider:
        """Spend one call now, and judge it later: for a tool that runs before it is judged.

        Raises
        ------
        SessionExhausted
            Where none is left.
        """
        with self._lock:
            if self._spent >= self.calls:
                raise SessionExhausted(
                    f"`calls` must be at least the calls that are made; got a plan of {self.calls} and one "
                    "more call, which was neither judged nor run. Plan for more, or begin another session."
                )
            self._spent += 1
        return _Reserved(self._each, self.guarantee)

    def decide(self, context: ToolCallContext) -> GuardResult:
        """The decision on one call, which is spent.

        Raises
        ------
        SessionExhausted
            Where none is left.
        """
        return self.reserve().decide(context)

    async def adecide(self, context: ToolCallContext) -> GuardResult:
        """`decide` for scorers that are awaited."""
        return await self.reserve().adecide(context)

    def __reduce__(self) -> str:
        raise TypeError(
            "`session` must be shared; got a copy, whose calls would be spent twice. Pass the session itself."
        )

    def __repr__(self) -> str:
        return f"Session({self.remaining} of {self.calls} calls left, {self._each!r})"


@dataclass(frozen=True, eq=False)
class _Reserved:
    """The decider of one call that has been paid for."""

    calibrator: Calibrator
    guarantee: Guarantee

    @cached_property
    def fingerprint(self) -> str:
        return self.calibrator.fingerprint

    @cached_property
    def threshold(self) -> float:
        return self.calibrator.threshold

    def decide(self, context: ToolCallContext) -> GuardResult:
        return self._of_session(self.calibrator.decide(context))

    async def adecide(self, context: ToolCallContext) -> GuardResult:
        return self._of_session(await self.calibrator.adecide(context))

    def _of_session(self, result: GuardResult) -> GuardResult:
        # A call that no calibration applies to has no guarantee in a session either.
        return result if result.guarantee is None else result.changed(guarantee=self.guarantee)


def _refuse_plan(calibrator: Calibrator, calls: int, level: Fraction, beta: Fraction | None) -> None:
    _refuse_calls(calls, "good", calibrator.n_good, calibrator.n_failed, level)
    # A beta without any bad calls is refused by name.
    if beta is not None and calibrator.n_bad:
        _refuse_calls(calls, "bad", calibrator.n_bad, 0, beta)


def _refuse_calls(calls: int, kind: str, n: int, failed: int, level: Fraction) -> None:
    most = int(level * (n + 1) / (failed + 1))
    if calls <= most:
        return
    of_them = f", on {failed} of which a scorer failed," if failed else ""
    raise CalibrationRefused(
        f"`calls` must be at most {most} with {n} {kind} calibration calls{of_them} at {percent(level)}; got "
        f"{calls}. Plan for fewer calls, or calibrate on at least {calls_needed(level / calls, failed)} "
        f"{kind} calls."
    )


def _guarantee(each: Calibrator, calls: int, level: Fraction, beta: Fraction | None) -> Guarantee:
    one = each.guarantee
    good_error = "abstained on" if beta is None else "rejected"
    claim = f"any good one is {good_error} with probability {percent(level)} at most"
    if beta is not None:
        claim = f"any bad one is accepted with probability {percent(beta)} at most, and {claim}"
    bad = "" if beta is None else f"{each.n_bad} bad and "
    # With beta a call on which a scorer failed is neither accepted nor rejected, and so no error.
    average = _AVERAGE if beta is not None else f"{_AVERAGE}, {_NO_ERROR}"
    failing = () if beta is not None else (_OFTEN_FAILED,)
    group = "" if each.group is None else f" of the group {each.group!r}"
    sentence = (
        f"If each of the {calls} calls{group} planned for this session is, by itself, like the {bad}"
        f"{each.n_good} good ones that the thresholds rest on (exchangeable; judged {origin(each.history)}), "
        f"then among all of them {claim}, {average}. "
        "Nothing is said of what the calls achieve together."
    )
    event = "a bad call is ACCEPTED" if beta is not None else "a good call is not ACCEPTED"
    return replace(
        one,
        kind="session",
        event=f"among {calls} calls, {event}",
        bound=float(level if beta is None else beta),
        conditioning=f"for all {calls} planned calls together, {average}",
        alpha=float(level if beta is None else beta),
        alpha_reject=None if beta is None else float(level),
        not_claimed=(*_NOT_CLAIMED, *failing, *filter(_of_any_size, one.not_claimed)),
        sentence=sentence,
    )


def _of_any_size(text: str) -> bool:
    """Whether what is not claimed for one call is left as it is for several."""
    return "several calls" not in text and "scorers often fail" not in text
