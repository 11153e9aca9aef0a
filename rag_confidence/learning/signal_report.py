"""Findings from labels: which signals carry evidence, which point the wrong way, which add to the KPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_confidence.learning.evidence import DRIVERS, LEVEL, Addition, Separation, SignalEvidence
from rag_confidence.learning.findings import Finding, finding
from rag_confidence.learning.ranks import Difference, holm
from rag_confidence.learning.separation_report import COSINE
from rag_confidence.learning.wording import fraction, level, listed, p_value, percent, plain

# Signals of which less means better; of the others in the contract more does. For a signal that is not
# listed anywhere no direction is expected.
LESS_IS_GOOD = {"second_bar", "dirichlet_energy", "conditioned_energy", "contradiction"}
MORE_IS_GOOD = {*DRIVERS, "max_cosine", "mean_top3_cosine", "top_gap", "std_top10_cosine", "head_tail_gap"}
MORE_IS_GOOD |= {"lambda_2", "flip_angle", "contrast", "best_excess", "head_excess", "level_excess"}


@dataclass(frozen=True)
class _Tested:
    """A signal with enough labels of both classes for the tests."""

    name: str
    found: Separation
    beyond: Addition | None
    against: Difference | None

    @property
    def distance(self) -> float:
        """How far its AUROC is from one half."""
        return abs(self.found.auroc - 0.5)

    @property
    def inverted(self) -> bool:
        """Whether it tells the classes apart, the wrong way round."""
        expected = (self.name in MORE_IS_GOOD) - (self.name in LESS_IS_GOOD)
        return self.found.tells and (self.found.auroc - 0.5) * expected < 0


def about_evidence(signals: Sequence[SignalEvidence], weights: Mapping[str, float]) -> Iterator[Finding]:
    """What tells the classes apart, what does not, what is inverted, what adds to the KPI or beats it.

    `weights` are the mean weights of the drivers in the KPI. Nothing is said of signals that were not tested.
    """
    tested = sorted(
        (
            _Tested(s.name, s.separation, s.beyond_kpi, s.against_kpi)
            for s in signals
            if s.separation is not None and s.separation.p_adjusted is not None
        ),
        key=lambda one: (-one.distance, one.name),
    )
    if not tested:
        return
    for one in tested:
        if one.inverted:
            yield _inverted(one, weights.get(one.name, 0.0))
    good = [one for one in tested if one.found.tells and not one.inverted]
    silent = [one for one in tested if not one.found.tells]
    if not good:
        yield _nothing_tells(tested)
        return
    yield _telling(good, tested)
    if silent:
        yield _silent(silent, tested)
    yield from _beyond(tested)
    yield from _better_than_kpi(tested)


def _aurocs(tested: Sequence[_Tested]) -> dict[str, float]:
    return {one.name: one.found.auroc for one in tested}


def _shown(aurocs: Mapping[str, float]) -> str:
    return listed([f"{name} {fraction(value)}" for name, value in aurocs.items()])


def _sizes(tested: Sequence[_Tested]) -> str:
    """The rows of the signal that has most of them."""
    most = max((one.found for one in tested), key=lambda found: found.n0 + found.n1)
    return f"{most.n1} sufficient and {most.n0} insufficient retrievals"


def _interval(found: Separation) -> str:
    return f"AUROC {fraction(found.auroc)}, 95 % interval {fraction(found.low)} to {fraction(found.high)}"


def _inverted(one: _Tested, weight: float) -> Finding:
    found = one.found
    better = "lower" if found.auroc < 0.5 else "higher"
    against = f" Its weight of {plain(weight)} in the KPI works against you here." if weight else ""
    return finding(
        "signal_inverted",
        "warning",
        f"{one.name} points the wrong way here: sufficient retrievals more often have the {better} value "
        f"({_interval(found)}, adjusted {p_value(found.p_adjusted or 0.0)}, n = "
        f"{found.n0 + found.n1}).{against}",
        "Lower its weight in MetricPolicy, or let a ConfidenceModel weigh it." if weight else "",
        name=one.name,
        n0=found.n0,
        n1=found.n1,
        auroc=found.auroc,
        low=found.low,
        high=found.high,
        p_adjusted=found.p_adjusted,
        weight=weight,
    )


def _telling(good: Sequence[_Tested], tested: Sequence[_Tested]) -> Finding:
    aurocs = _aurocs(good)
    return finding(
        "signals_tell",
        "note",
        f"{len(good)} of {len(tested)} signals tell the classes apart beyond chance, the strongest first: "
        f"{_shown(aurocs)} (AUROC; below .5 less is better; Holm over {len(tested)} signals at "
        f"{level(LEVEL)}; {_sizes(tested)}).",
        n_signals=len(tested),
        aurocs=aurocs,
    )


def _nothing_tells(tested: Sequence[_Tested]) -> Finding:
    best = tested[0]
    return finding(
        "no_signal_tells",
        "problem",
        f"No signal tells the classes apart in the way it is meant to, beyond what chance explains among "
        f"{len(tested)} signals on {_sizes(tested)}. Farthest from one half is {best.name}: "
        f"{_interval(best.found)}.",
        "Check labels against records. If they are right, either there are too few of them for what little "
        "geometry sees, or it does not see this kind of failure and texts must be looked at.",
        n_signals=len(tested),
        best=best.name,
        auroc=best.found.auroc,
        low=best.found.low,
        high=best.found.high,
    )


def _silent(silent: Sequence[_Tested], tested: Sequence[_Tested]) -> Finding:
    aurocs = _aurocs(silent)
    widest = max((one.found.high - one.found.low) / 2 for one in silent)
    return finding(
        "signals_silent",
        "note",
        f"{len(silent)} of {len(tested)} signals cannot be told from chance here: {_shown(aurocs)} (AUROC, "
        f"each up to ± {fraction(widest)} at 95 %; {_sizes(tested)}). That is no proof that they carry "
        "nothing.",
        n_signals=len(tested),
        aurocs=aurocs,
        half_width=widest,
    )


def _beyond(tested: Sequence[_Tested]) -> Iterator[Finding]:
    asked = {one.name: one.beyond for one in tested if one.beyond is not None}
    if not asked:
        return
    n = max(beyond.n for beyond in asked.values())
    adding = {name: beyond.auroc for name, beyond in asked.items() if beyond.tells}
    won = dict(sorted(adding.items(), key=lambda pair: (-abs(pair[1] - 0.5), pair[0])))
    if not won:
        yield finding(
            "nothing_beyond_kpi",
            "note",
            "Among retrievals of nearly the same KPI no signal tells the classes apart beyond chance (Holm "
            f"over {len(asked)} signals, n = {n}): nothing is shown to add to the KPI.",
            n=n,
            n_signals=len(asked),
        )
        return
    yield finding(
        "signals_beyond_kpi",
        "advice",
        "The KPI leaves evidence unused. Of two retrievals of nearly the same KPI, the sufficient one has "
        f"the higher value in this share of pairs: {listed([_share(*pair) for pair in won.items()])} (50 % "
        f"would say nothing; Holm over {len(asked)} signals at {level(LEVEL)}, n = {n}).",
        "ConfidenceModel.fit can weigh them, on labels other than those that calibrate the gate.",
        n=n,
        n_signals=len(asked),
        pairs_won=won,
    )


def _share(name: str, value: float) -> str:
    return f"{name} {percent(round(10**6 * value), 10**6)}"


def _better_than_kpi(tested: Sequence[_Tested]) -> Iterator[Finding]:
    """Signals that beat the KPI, Holm over all but the best cosine, which has a finding of its own."""
    rivals = {one.name: one.against for one in tested if one.against is not None and one.name != COSINE}
    adjusted = holm([rival.p_value for rival in rivals.values()])
    better = {
        name: rival.value
        for (name, rival), p in zip(rivals.items(), adjusted, strict=True)
        if p < LEVEL and rival.value > 0.0
    }
    if not better:
        return
    gains = dict(sorted(better.items(), key=lambda pair: (-pair[1], pair[0])))
    yield finding(
        "signals_beat_kpi",
        "warning",
        "Single signals have a higher AUROC than the KPI: "
        f"{listed([f'{name} by {fraction(gain)}' for name, gain in gains.items()])} (DeLong, Holm over "
        f"{len(rivals)} signals at {level(LEVEL)}; {_sizes(tested)}).",
        "The best of several looks better on the labels that chose it than it is: confirm it on others.",
        n_signals=len(rivals),
        gains=gains,
    )
