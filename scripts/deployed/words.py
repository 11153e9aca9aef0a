"""What the numbers say, in sentences that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from deployed.results import Result, of_stratum
from deployed.trials import ALPHA, DELTA, LEVEL, TARGET, Tally
from deployed.worlds import GAP, STRATA, World
from rag_confidence.conformal.binomial import binomial_tail_at_most

USEFUL = 0.2
"""A gate that accepts fewer of the sufficient retrievals is called of little use."""

CURES = """\
- **Label the negatives that you meet**, near misses above all, and calibrate on a random part of the traffic.
  No bound survives another mix ([what is guaranteed](../guarantee_scope.md)).
- **Where the acceptance is too low**, the score does not separate: 50 to 200 labels for a
  [ConfidenceModel](../model.md), or a score that reads the texts. Another gate on the same score only moves
  the error. A larger alpha, chosen before looking, is honest too.
- **Where nearly every row is sufficient**, the risk gate is the better question: it accepts all as long as
  the share of bad rows is below the target.
- **Where the classes separate almost completely**, rows strange for both labels abstain:
  `on_conflict="accept"` gives them back.
"""


def verdict(results: Sequence[Result], tried: Sequence[World]) -> Iterator[str]:
    """What holds, what it is worth, and what does not work."""
    yield _holds(results)
    yield from _price(results)
    yield from _bought(results)
    yield _useless(results)
    same = sum(world.same_in_score for world in tried)
    yield (
        "**One way from log to service.** `score_many(profile=, gate=)` decided as the gate on the "
        "stored KPI "
        f"in {same} of {len(tried)} corpora."
    )


def _holds(results: Sequence[Result]) -> str:
    tests = [test for one in results for gate in one.gates for test in gate.coverage]
    low = sum(2.0 * test.p_low < (1.0 - LEVEL) / len(tests) for test in tests)
    worst = max(gate.fsr for one in results for gate in one.gates)
    risky = [gate for one in results for gate in one.risk_gates]
    over = sum(_over_by_chance(gate) < (1.0 - LEVEL) / len(risky) for gate in risky)
    return (
        f"**The bounds hold where calibration and test are alike.** Of {len(tests)} exact tests of coverage "
        f"(both classes, KPI and best cosine) {low} find it too low, with {1.0 - LEVEL:.0%} false alarms in "
        f"all; the largest mean false-sufficiency rate is {worst:.3f} at alpha {float(ALPHA):.2f}. That is a "
        "promise on the average over calibration sets, and a single one may well exceed it. Of "
        f"{len(risky)} risk gates {over} are over their target in more than a share {float(DELTA):g} of "
        "halves by more than chance."
    )


def _over_by_chance(gate: Tally) -> float:
    """Chance of as many halves over the target if each is with probability delta."""
    halves = len(gate.counts)
    return binomial_tail_at_most(halves - gate.over_target, halves, float(1 - DELTA))


def _price(results: Sequence[Result]) -> Iterator[str]:
    gaps, both = {}, {}
    for stratum in STRATA:
        wrong = [one.wrong for one in of_stratum(results, stratum) if one.wrong]
        if wrong:
            gaps[stratum] = [one.gaps.fsr for one in wrong]
            both[stratum] = float(np.mean([one.both.fsr for one in wrong]))
    if gaps:
        rates = ", ".join(
            f"{np.mean(fsr):.2f} on {stratum} ({min(fsr):.2f} to {max(fsr):.2f})"
            for stratum, fsr in gaps.items()
        )
        yield (
            f"**A gate calibrated on topic gaps alone breaks its bound**: its rate is {rates}, instead of "
            f"{float(ALPHA):.2f}. With topic gaps as one half of the negatives it is still "
            f"{', '.join(f'{rate:.2f}' for rate in both.values())}: the pool keeps the bound, and the "
            "easy half "
            "pays for the hard one."
        )


def _bought(results: Sequence[Result]) -> Iterator[str]:
    for stratum in STRATA:
        found = of_stratum(results, stratum)
        if found:
            kpi, cosine = (np.array([one.gates[score].kept for one in found]) for score in (0, 1))
            better, worse = np.count_nonzero(kpi > cosine + 0.01), np.count_nonzero(kpi < cosine - 0.01)
            yield (
                f"**{stratum.capitalize()}**: the gate accepts {kpi.mean():.2f} of the sufficient retrievals "
                f"on the KPI and {cosine.mean():.2f} on the best cosine ({kpi.mean() / cosine.mean():.2f} "
                f"times); by more than .01 better on {better} of {len(found)} sets and embedders, worse on "
                f"{worse}.{_loss(stratum, found)}"
            )


def _loss(stratum: str, found: Sequence[Result]) -> str:
    areas = np.array([one.areas for one in found])
    if stratum != GAP or areas[:, 0].mean() >= areas[:, 1].mean():
        return ""
    return (
        " For questions on another subject the best cosine is the better score, and the KPI costs a little."
    )


def _useless(results: Sequence[Result]) -> str:
    weak = [one for one in results if one.gates[0].kept < USEFUL]
    none = [one for one in results if not one.risk_gates[0].some_accepted]
    named = "; ".join(
        f"{stratum}: {', '.join(one.label for one in of_stratum(weak, stratum))}"
        for stratum in STRATA
        if of_stratum(weak, stratum)
    )
    return (
        f"**Where it is of little use.** Fewer than {USEFUL:.0%} of the sufficient retrievals are "
        "accepted in "
        f"{len(weak)} of {len(results)} cases{f' ({named})' if named else ''}. The risk gate certifies "
        "nothing "
        f"in any half in {len(none)} of them: no threshold keeps the share of bad answers below "
        f"{float(TARGET):g}."
    )
