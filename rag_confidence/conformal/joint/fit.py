"""One threshold for several checks on a call: at most alpha of good calls are above it in any of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_confidence._options import check_flag, check_text
from rag_confidence._types import FloatArray
from rag_confidence.conformal.history import History, check_collected
from rag_confidence.conformal.joint.check_rows import at_single, check_calls, check_names
from rag_confidence.conformal.joint.check_scale import blind_note, max_shares, scale_note
from rag_confidence.conformal.joint.fitted import JointGate, ranked
from rag_confidence.conformal.joint.guarantee import refuse_or_warn
from rag_confidence.conformal.joint.traffic import TrafficRanks, fit_traffic, refuse_reuse
from rag_confidence.conformal.quantile import Level, as_level, kth_smallest, least_rank
from rag_confidence.errors import SmallCalibrationWarning

__all__ = ["JointGate", "fit_joint_gate"]


def fit_joint_gate(
    scores: ArrayLike,
    alpha: Level = 0.10,
    *,
    reference: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    collected: Any = None,
    labeling_source: str | None = None,
    strict: bool = False,
) -> JointGate:
    """A gate whose finite threshold at most alpha of good calls exceed, by all K checks together.

    Parameters
    ----------
    scores : array_like, shape (n, K)
        Nonconformity of good calls, one column a check; higher is stranger. A check that failed to run
        counts as +inf, here as in use.
    alpha : float, str, Fraction or Decimal
        Level in (0, 1).
    reference : array_like, shape (m, K), optional
        The same checks on unlabelled traffic that is mostly good and holds none of the calibration calls,
        nor retries or relatives of them. Each score is then replaced by its rank in there, and the scales of
        the checks do not matter. Without it the largest raw score decides, and the check with the largest
        numbers decides most.
    names : sequence of str, optional
        Names of the checks; by default the columns of a data frame, else check_0, check_1 and so on.
    collected : date or str, or pair of those, optional
        Day, or first and last day, of the calibration calls.
    labeling_source : str, optional
        Who or what judged them good.
    strict : bool
        Raise where this would warn.

    Returns
    -------
    JointGate
        With too few calls, or too many with a failed check, its threshold is infinite: it abstains on every
        call, claims nothing, and says what is needed.

    Warns
    -----
    SmallCalibrationWarning
        If nothing can be certified.
    UserWarning
        If some checks hardly count: by their scale, or because their strangest scores are common in the
        traffic.

    Raises
    ------
    TypeError, ValueError
        For nan, -inf, no rows, unequal widths, repeated names, and levels outside (0, 1).
    RowsReused
        If the reference holds the calibration rows.
    CalibrationRefused
        With strict=True, for what is a warning otherwise.

    Notes
    -----
    The statistic of a call is the maximum over its checks, and the threshold its k-th smallest value among
    the calibration calls, k = ceil((n + 1)(1 - alpha)). One threshold on the maximum needs no correction for
    K, and gains most over alpha / K where the checks are correlated.

    P(the threshold is finite, and a good call is abstained on) <= alpha. Where checks can fail to run, the
    threshold may come out infinite; then every good call abstains, and such sets are not counted. Among the
    sets whose threshold is finite the rate can be as large as alpha / P(finite).

    The ranks come from other rows than the threshold: ranks among the calibration rows themselves abstain
    too often (13 % instead of 10 % at n = 20). Near-copies of those rows do so too, and are not found. The
    bound holds for any traffic of other calls, the power does not: what is common in the traffic is not
    strange, and traffic that was mostly bad stopped .10 of bad tool calls where good traffic stopped .31.
    O(K (m + n) log m). Not guaranteed: that bad calls are caught, and anything for a session of calls.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World, section 2.2, on the maximum as
    nonconformity score; Tippett (1931), The Methods of Statistics, for the smallest of K p-values.

    Examples
    --------
    >>> gate = fit_joint_gate([[i / 20, 1 - i / 20] for i in range(20)], 0.1, names=["schema", "logprob"])
    >>> gate.threshold, gate.predict_one([0.2, 0.97]).failed_checks
    (0.95, ('logprob',))
    """
    level, flag = as_level(alpha), check_flag("strict", strict)
    rows = check_calls("scores", scores)
    checks = check_names(names, scores)
    check_text("labeling_source", labeling_source)
    history = History(check_collected(collected), labeling_source)
    ranks = None if reference is None else _fit_ranks(rows, reference, checks)
    gate = _gate(rows, ranks, level, names=checks, history=history)
    if not gate.certified:
        refuse_or_warn(gate.guarantee.sentence, SmallCalibrationWarning, strict=flag)
    if gate.scale_note is not None:
        refuse_or_warn(gate.scale_note, UserWarning, strict=flag)
    return gate


def _gate(
    rows: FloatArray, ranks: TrafficRanks | None, level: Fraction, *, names: tuple[str, ...], history: History
) -> JointGate:
    values, rank = ranked(rows, ranks), least_rank(len(rows), level)
    threshold, shares = _threshold(values, rank), max_shares(values)
    note = scale_note(rows, names, shares) if ranks is None else blind_note(ranks, names, threshold)
    return JointGate(
        names=names,
        level=level,
        n=len(rows),
        n_failed=int(np.count_nonzero(np.isposinf(rows).any(axis=1))),
        threshold=threshold,
        threshold_single=_threshold(ranked(at_single(rows), ranks), rank),
        single=rows.dtype == np.float32,
        max_share=dict(zip(names, shares.tolist(), strict=True)),
        scale_note=note,
        ranks=ranks,
        history=history,
    )


def _fit_ranks(rows: FloatArray, reference: ArrayLike, checks: tuple[str, ...]) -> TrafficRanks:
    traffic = check_calls("reference", reference, checks)
    refuse_reuse(rows, traffic)
    return fit_traffic(traffic, checks)


def _threshold(ranks: FloatArray, rank: int) -> float:
    return kth_smallest(ranks.max(axis=1), rank if rank <= len(ranks) else math.inf)
