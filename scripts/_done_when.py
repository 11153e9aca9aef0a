"""Does a gate fitted without labels keep what is sufficient and withhold what is off the subject?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from _data import EMBEDDERS, SETS, FloatArray, Mask
from _scored import Retrievals, Scored, random_half
from _tables import Cell, Check, Section, Table

from rag_confidence import MetricPolicy

KEEP_AT_LEAST = 0.80
WITHHOLD_AT_LEAST = 0.90
SPLITS = 20
COSTS = (1.0, 2.0, 5.0)
_SCALES = np.geomspace(0.002, 0.3, 30)


@dataclass(frozen=True)
class Best:
    """The largest share of gaps that any gate withholds while it keeps 80 % of the sufficient queries."""

    withheld: float
    center: float
    scale: float


def done_when(scored: Sequence[Scored]) -> Section:
    """The target, a line for each set and embedder; then every single corpus; then other choices."""
    best = [_best(s, s.gaps) for s in scored]
    return Section(
        "Sufficient retrievals are kept, topic gaps withheld",
        [
            _main_table(scored, best),
            _corpus_table(scored),
            *_failure_table(scored),
            _choices_table(scored, best),
        ],
        [*_checks(scored, best), _agreement(scored)],
    )


def kept_by(found: Retrievals, policy: MetricPolicy) -> Mask:
    """What `found.kept` would be under another gate: the two rows of the verdict table that abstain."""
    match = found.batch.signals[policy.match_signal]
    grounding = 1.0 / (1.0 + np.exp((policy.grounding_center - match) / policy.grounding_scale))
    enough = 100.0 * grounding * found.shape >= policy.review_at
    return np.asarray(enough & (100.0 * grounding >= policy.grounding_min))


def _shares(
    scored: Scored, gaps: Sequence[Retrievals], test: Mask, kept: Callable[[Retrievals], Mask]
) -> tuple[float, float]:
    """Share of sufficient queries kept, and of gap queries withheld, among the queries `test`."""
    withheld = [~kept(found)[test] for found in gaps]
    return float(kept(scored.own)[test & scored.sufficient].mean()), float(np.mean(withheld))


def _headline(scored: Scored) -> tuple[float, float]:
    return _shares(scored, scored.gaps, ~scored.fit, lambda found: found.kept)


def _meets(kept: float, withheld: float) -> bool:
    return kept >= KEEP_AT_LEAST and withheld >= WITHHOLD_AT_LEAST


def _best(scored: Scored, gaps: Sequence[Retrievals]) -> Best:
    """Searched on the tested half itself, with its labels: no fit can do better there."""
    test = ~scored.fit
    found = []
    for top, scale in product((1, 3), _SCALES):
        policy = replace(scored.policy, grounding_top=top)
        cut_of = [_highest_center(g, policy, float(scale))[test] for g in gaps]
        own = np.sort(_highest_center(scored.own, policy, float(scale))[test & scored.sufficient])
        center = float(own[int((1.0 - KEEP_AT_LEAST) * len(own))])
        found.append(Best(float(np.mean([cut < center for cut in cut_of])), center, float(scale)))
    return max(found, key=lambda one: one.withheld)


def _highest_center(found: Retrievals, policy: MetricPolicy, scale: float) -> FloatArray:
    """Centre up to which each retrieval is kept: grounding must reach its minimum and review_at / shape."""
    least = np.maximum(policy.grounding_min / 100.0, policy.review_at / 100.0 / np.maximum(found.shape, 1e-9))
    odds = np.log(
        least / np.maximum(1.0 - least, 1e-300), where=least < 1.0, out=np.full(least.shape, np.inf)
    )
    return np.asarray(found.batch.signals[policy.match_signal] - scale * odds)


def _main_table(scored: Sequence[Scored], best: Sequence[Best]) -> Table:
    rows: list[list[Cell]] = []
    for s, limit in zip(scored, best, strict=True):
        kept, withheld = _headline(s)
        answered = float((s.own.batch.verdict == "ANSWER")[~s.fit & s.sufficient].mean())
        gate = f"{s.policy.grounding_top} / {s.policy.grounding_center:.3f} / {s.policy.grounding_scale:.3f}"
        count = int((~s.fit & s.sufficient).sum())
        word = "PASS" if _meets(kept, withheld) else "FAIL"
        plain = _by_max_cosine(s)
        rows.append([s.data.label, gate, count, kept, answered, withheld, limit.withheld, plain, word])
    return Table(
        "Kept and withheld, per set and embedder",
        "The gate is fitted on a random half of the queries and tested on the other. Kept: sufficient@10 "
        f"queries that get ANSWER or REVIEW (target {KEEP_AT_LEAST:.2f}), and those that get ANSWER. "
        "Withheld: all tested queries against the corpora on another subject, pooled, that get ABSTAIN "
        f"(target {WITHHOLD_AT_LEAST:.2f}). Top: how many cosines the gate averages, chosen by the fit. "
        "Limit: the most that any top, centre and scale withhold while they "
        f"keep {KEEP_AT_LEAST:.2f}, searched on the tested half with its labels. "
        "Max cosine: the same limit for a plain cut on the best cosine.",
        [
            "set / embedder",
            "top / centre / scale",
            "sufficient",
            "kept",
            "ANSWER",
            "withheld",
            "limit",
            "max cosine",
            "target",
        ],
        rows,
    )


def _corpus_table(scored: Sequence[Scored]) -> Table:
    rows = [[s.data.label, *(_corpus_cell(s, name) for name in SETS)] for s in scored]
    return Table(
        "Withheld, for each of the 60 pairs of queries and another corpus",
        "Share of the tested queries (rows) that get ABSTAIN against each corpus (columns). An asterisk "
        "marks a corpus on a related subject (general Wikipedia; biomedicine): not a topic gap, since it may "
        f"well hold passages on the question. An exclamation mark: below {WITHHOLD_AT_LEAST:.2f}.",
        ["queries", *SETS],
        rows,
    )


def _corpus_cell(scored: Scored, name: str) -> str:
    if name not in scored.elsewhere:
        return "-"
    found = scored.elsewhere[name]
    withheld = float((~found.kept)[~scored.fit].mean())
    return (
        f"{withheld:.3f}"
        + ("" if found.other_subject else " *")
        + (" !" if withheld < WITHHOLD_AT_LEAST else "")
    )


def _failure_table(scored: Sequence[Scored]) -> list[Table]:
    """Single corpora that let too much through, and whether any gate could have done better."""
    rows: list[list[Cell]] = []
    for s in scored:
        for name, found in s.elsewhere.items():
            kept, withheld = _shares(s, [found], ~s.fit, lambda one: one.kept)
            if withheld >= WITHHOLD_AT_LEAST:
                continue
            limit = _best(s, [found]).withheld
            blame = "signal" if limit < WITHHOLD_AT_LEAST else "fit"
            subject = "another" if found.other_subject else "related *"
            rows.append([s.data.label, name, subject, kept, withheld, limit, blame])
    if not rows:
        return []
    return [
        Table(
            "What fails",
            f"Single corpora of which less than {WITHHOLD_AT_LEAST:.2f} is withheld. Limit as above, but for "
            "this corpus alone. Blame: the signal, if no gate reaches the target; else the fit.",
            ["queries", "corpus", "subject", "kept", "withheld", "limit", "blame"],
            rows,
        )
    ]


def _choices_table(scored: Sequence[Scored], best: Sequence[Best]) -> Table:
    splits = [_passing(scored, _refitted(scored, seed=seed), seed) for seed in range(1, SPLITS + 1)]
    total = len(scored)
    everywhere = [_shares(s, [*s.elsewhere.values()], ~s.fit, lambda found: found.kept) for s in scored]
    single = [min(float((~g.kept)[~s.fit].mean()) for g in s.gaps) for s in scored]
    rows: list[list[Cell]] = [
        ["the table above", str(sum(_meets(*_headline(s)) for s in scored))],
        [
            f"{SPLITS} other random halves: mean (least to most)",
            f"{np.mean(splits):.1f} ({min(splits)} to {max(splits)})",
        ],
        [
            "each corpus on another subject by itself, not pooled",
            str(sum(_meets(_headline(s)[0], low) for s, low in zip(scored, single, strict=True))),
        ],
        ["related subjects counted as gaps, same fit", str(sum(_meets(*both) for both in everywhere))],
        ["no fit: the default centre and scale", str(_passing(scored, [MetricPolicy()] * total, None))],
    ]
    for top in (3, 1):
        policies = _refitted(scored, top=top)
        rows.append(
            [f"fit_grounding with grounding_top = {top} for all", str(_passing(scored, policies, None))]
        )
    rows += [
        [
            f"fit_grounding(off_topic_cost={cost:g}) instead of 3",
            str(_passing(scored, _refitted(scored, cost=cost), None)),
        ]
        for cost in COSTS
    ]
    rows.append(
        [
            "limit: the best gate for each, with labels",
            str(sum(b.withheld >= WITHHOLD_AT_LEAST for b in best)),
        ]
    )
    return Table(
        f"How many of the {total} reach both targets under other choices",
        "Same retrievals; only the choice named in the first column differs.",
        ["choice", f"of {total}"],
        rows,
    )


def _refitted(
    scored: Sequence[Scored], *, seed: int | None = None, cost: float = 3.0, top: int | None = None
) -> list[MetricPolicy]:
    """The gates of another half, another cost, or with the number of cosines given instead of chosen."""
    policies = []
    for s in scored:
        fit = s.fit if seed is None else random_half(len(s.fit), seed)
        off_topic = np.concatenate([found.cosines[fit] for found in s.gaps])
        on_topic = s.own.cosines[fit]
        if top is not None:
            on_topic, off_topic = (-np.sort(-rows)[:, :top].mean(axis=1) for rows in (on_topic, off_topic))
        start = MetricPolicy(grounding_top=top or 3)
        policies.append(start.fit_grounding(on_topic, off_topic, off_topic_cost=cost))
    return policies


def _passing(scored: Sequence[Scored], policies: Sequence[MetricPolicy], seed: int | None) -> int:
    passed = 0
    for s, policy in zip(scored, policies, strict=True):
        fit = s.fit if seed is None else random_half(len(s.fit), seed)
        passed += _meets(*_shares(s, s.gaps, ~fit, partial(kept_by, policy=policy)))
    return passed


def _checks(scored: Sequence[Scored], best: Sequence[Best]) -> list[Check]:
    checks = []
    for s, limit in zip(scored, best, strict=True):
        kept, withheld = _headline(s)
        detail = f"kept {kept:.3f}, withheld {withheld:.3f}"
        if not _meets(kept, withheld):
            out_of_reach = limit.withheld < WITHHOLD_AT_LEAST
            detail += f"; at best {limit.withheld:.3f} withheld with {KEEP_AT_LEAST:.2f} kept, at centre "
            detail += f"{limit.center:.3f} and scale {limit.scale:.3f}: "
            detail += "no gate can do it" if out_of_reach else "another fit could"
            detail += f"; a cut on the maximum cosine alone withholds {_by_max_cosine(s):.3f}"
        checks.append(Check(s.data.label, _meets(kept, withheld), detail))
    return checks


def _by_max_cosine(scored: Scored) -> float:
    """Share of gaps below the cut on the best cosine that keeps 80 % of the sufficient queries."""
    test = ~scored.fit
    own = np.sort(scored.own.batch.signals["max_cosine"][test & scored.sufficient])
    cut = own[int((1.0 - KEEP_AT_LEAST) * len(own))]
    return float(np.mean([found.batch.signals["max_cosine"][test] < cut for found in scored.gaps]))


def _agreement(scored: Sequence[Scored]) -> Check:
    """The formula behind the limits and the other choices decides as the package does."""
    differ = sum(
        int((kept_by(found, s.policy) != found.kept).sum())
        for s in scored
        for found in (s.own, *s.elsewhere.values())
    )
    total = sum(len(s.fit) * (1 + len(s.elsewhere)) for s in scored)
    return Check(
        "the verdicts follow from grounding and KPI alone", differ == 0, f"{differ} of {total} differ"
    )


def embedder_order(scored: Sequence[Scored]) -> list[Scored]:
    """By set, then by embedder: the order of the tables."""
    return sorted(scored, key=lambda s: (SETS.index(s.data.name), EMBEDDERS.index(s.data.embedder)))
