"""calibrate(): labelled calls and scorers in, a threshold with a guarantee out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal, Unpack

import numpy as np

from rag_confidence._calls import LabelingSource, ToolCallContext
from rag_confidence._history import GroupName
from rag_confidence._options import check_integer
from rag_confidence._types import FloatArray
from rag_confidence.conformal.joint.check_scale import max_shares, scale_note
from rag_confidence.conformal.joint.fitted import ranked
from rag_confidence.conformal.joint.traffic import TrafficRanks, fit_traffic, refuse_reuse
from rag_confidence.conformal.quantile import Level
from rag_confidence.guard.calibrator import Calibrator
from rag_confidence.guard.notes import Note, notes_of_age, notes_of_calls, tell
from rag_confidence.guard.reading import CalibrationData, Traffic
from rag_confidence.guard.request import Options, Request, Scorers, requested
from rag_confidence.guard.result import GuardResult
from rag_confidence.guard.saving import frozen_ascending
from rag_confidence.guard.scorers import as_scorers
from rag_confidence.guard.scoring import ScoreTable, ascore_calls, score_calls


def calibrate(
    scorer: Scorers,
    calibration_data: CalibrationData,
    alpha: Level,
    *,
    beta: Level | None = None,
    labeling_source: LabelingSource | str | None = None,
    collected: Any = None,
    reference: Traffic | None = None,
    group: GroupName | None = None,
    tool_names: Iterable[str] | Literal["any"] | None = None,
    max_age: timedelta | None = timedelta(days=90),
    now: datetime | None = None,
    strict: bool = False,
) -> Calibrator:
    """A threshold that good calls exceed in at most a share alpha.

    Parameters
    ----------
    scorer : callable or Scorer, or several of them
        From `ToolCallContext` to a number, higher for stranger calls. Several decide together: the largest
        score of a call counts, or with `reference` its largest rank.
    calibration_data : iterable of (ToolCallContext, outcome) or CallRecord
        Past calls with True where the call was good in hindsight, as booleans or 0 and 1. Records bring
        scores along: they are used where the same scorers made them, and else the calls are scored again.
        Records without an outcome are left out.
    alpha : float, str, Fraction or Decimal
        Level in (0, 1): at most this share of good calls is abstained on, or with `beta` rejected.
    beta : float, str, Fraction or Decimal, optional
        Level in (0, 1): at most this share of bad calls is accepted. Without it bad calls set no threshold,
        and `Calibrator.bad_rejection` says how many of them are stopped.
    labeling_source : LabelingSource or str, optional
        Who or what judged the calls, for entries that do not say so themselves.
    collected : date or str, or pair of those, optional
        Day, or first and last day, of the calls. By default those of the records, if all have one.
    reference : iterable of ToolCallContext or CallRecord, optional
        Unlabelled traffic, mostly good, without the calibration calls and their retries. Each score is then
        replaced by its rank in there, so that scales of different scorers do not matter.
    group : str or int, optional
        Name of the group of calls that these are; it enters the guarantee.
    tool_names : iterable of str or "any", optional
        Tools that the calibrator is for: calibration calls of others are refused, and later calls of others
        abstain. By default those among the calibration calls; "any" judges calls of every tool.
    max_age : timedelta or None
        Warn where the newest call is older; None for never.
    now : datetime, optional
        The present, by default that of the machine's clock. It is compared with the age of the calls only.
    strict : bool
        Raise CalibrationRefused where this would warn.

    Returns
    -------
    Calibrator
        With too few good calls, or too many on which a scorer failed, its threshold is infinite: it abstains
        on every call, claims nothing, and says what is missing.

    Warns
    -----
    SmallCalibrationWarning
        Where calls are missing for the level, for good or for bad calls.
    StaleCalibrationWarning
        Where the newest call is older than `max_age`.
    MixedScorersWarning
        Where records carry scores of other scorers.
    SelectedCallsWarning
        Where all calls with a recorded decision were accepted by a guard.
    TiedScoresWarning
        Where scores are so tied that no scored call is stopped.
    UserWarning
        Where scales or traffic make some scorers hardly count.

    Raises
    ------
    TypeError, ValueError
        For scorers that cannot be called or must be awaited, entries that are no calls, outcomes other than
        booleans, 0 and 1, no labelled calls, no good calls, no bad calls with `beta`, a record that comes
        twice, and levels outside (0, 1).
    RowsReused
        Where the reference holds the calibration calls.
    CalibrationRefused
        With strict=True, for what is a warning otherwise.

    Notes
    -----
    The threshold is the k-th smallest statistic of the n good calls, k = ceil((n + 1)(1 - alpha)), so that
    P(the threshold is finite, and a good call is abstained on) <= alpha for a good call that is exchangeable
    with them, however good the scorer is. With `beta` a call is accepted that is no stranger than this and
    less strange than the k-th largest of the bad calls, k = ceil((n_bad + 1)(1 - beta)); rejected where both
    are reversed; and abstained on otherwise. O(K n) scores and O(n log n).

    Not guaranteed: that few bad calls are accepted (without `beta`), that a decision is right with some
    probability, anything for several calls together, or for calls that have changed since.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World, section 2.2; Vovk (2012),
    Conditional validity of inductive conformal predictors, section 4.

    Examples
    --------
    >>> calls = [(ToolCallContext("search", {"query": "x" * n}), True) for n in range(1, 20)]
    >>> calibrator = calibrate(lambda call: len(call.args["query"]), calls, 0.1)
    >>> calibrator.threshold, calibrator.decide(ToolCallContext("search", {"query": "x" * 30})).decision.value
    (18.0, 'abstain')
    """
    request = requested(
        scorer,
        calibration_data,
        alpha,
        beta=beta,
        labeling_source=labeling_source,
        collected=collected,
        reference=reference,
        group=group,
        tool_names=tool_names,
        max_age=max_age,
        now=now,
        strict=strict,
    )
    request.refuse_async()
    table = score_calls(request.scorers, request.calls)
    traffic = None if request.traffic is None else score_calls(request.scorers, request.traffic)
    return _calibrated(request, table, traffic)


async def acalibrate(
    scorer: Scorers,
    calibration_data: CalibrationData,
    alpha: Level,
    *,
    concurrency: int = 8,
    **options: Unpack[Options],
) -> Calibrator:
    """`calibrate` for scorers that are awaited, such as a judge behind a network.

    Parameters
    ----------
    scorer, calibration_data, alpha, options
        As for `calibrate`.
    concurrency : int
        Calls that are scored at the same time.

    Returns
    -------
    Calibrator
        Its `decide` needs scorers that are not awaited; `adecide` takes both kinds.

    Raises
    ------
    TypeError, ValueError
        As `calibrate`, and for a concurrency below 1.
    """
    at_once = check_integer("concurrency", concurrency, 1)
    request = requested(scorer, calibration_data, alpha, **options)
    table = await ascore_calls(request.scorers, request.calls, at_once)
    traffic = None
    if request.traffic is not None:
        traffic = await ascore_calls(request.scorers, request.traffic, at_once)
    return _calibrated(request, table, traffic)


def calibrate_multi_check(
    scorers: Scorers, calibration_data: CalibrationData, alpha: Level, **options: Unpack[Options]
) -> Calibrator:
    """`calibrate` for at least two scorers: one threshold on the largest score of a call.

    Parameters
    ----------
    scorers, calibration_data, alpha, options
        As for `calibrate`.

    Returns
    -------
    Calibrator
        All its checks together abstain on at most a share alpha of good calls; `GuardResult.failed_checks`
        names those above the threshold.

    Raises
    ------
    TypeError, ValueError
        As `calibrate`, and for fewer than two scorers.
    """
    checked = as_scorers(scorers)
    if len(checked) < 2:
        raise ValueError(
            f"`scorers` must hold at least two scorers; got {len(checked)}. Use calibrate for a single one."
        )
    return calibrate(checked, calibration_data, alpha, **options)


def decide_multi_check(calibrator: Calibrator, context: ToolCallContext) -> GuardResult:
    """`calibrator.decide(context)` as a function, under the name that goes with `calibrate_multi_check`."""
    return calibrator.decide(context)


def _calibrated(request: Request, table: ScoreTable, traffic: ScoreTable | None) -> Calibrator:
    rows = table.rows
    ranks = None if traffic is None else _fit_ranks(request, rows, traffic)
    statistics, good = ranked(rows, ranks).max(axis=1), np.array(request.calls.good)
    notes = [
        *notes_of_calls(request.calls, table),
        *notes_of_age(request.calls, request.history, request.max_age, request.now),
    ]
    if ranks is None and len(request.scorers) > 1:
        notes += _notes_of_scales(rows[good], request.names)
    calibrator = Calibrator(
        scorers=request.scorers,
        level=request.level,
        beta_level=request.beta,
        good=frozen_ascending(statistics[good]),
        bad=frozen_ascending(statistics[~good]),
        ranks=ranks,
        tool_names=request.tool_names,
        group=request.group,
        history=request.history,
        n_unlabelled=request.calls.n_unlabelled,
        data_notes=tuple(note.text for note in notes),
    )
    tell([*notes, *calibrator.level_notes], strict=request.strict)
    return calibrator


def _notes_of_scales(good: FloatArray, names: tuple[str, ...]) -> list[Note]:
    scales = scale_note(good, names, max_shares(good))
    return [] if scales is None else [Note(scales, UserWarning)]


def _fit_ranks(request: Request, rows: FloatArray, traffic: ScoreTable) -> TrafficRanks:
    refuse_reuse(rows, traffic.rows)
    return fit_traffic(traffic.rows, request.names)
