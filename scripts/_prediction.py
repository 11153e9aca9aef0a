"""What each driver predicts, measured by AUROC, and the default definitions against the seed's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from _data import FloatArray, Mask
from _floors import DRIVERS
from _scored import Retrievals, Scored
from _tables import Cell, Section, Table
from scipy.stats import rankdata

from rag_confidence import MetricPolicy, MetricsBatch, score_many

NEAR_CHANCE = 0.05
_WORDS = (
    (0.80, "strong"),
    (0.65, "moderate"),
    (0.5 + NEAR_CHANCE, "weak"),
    (0.5 - NEAR_CHANCE, "near chance"),
)
_QUANTILES = (0.05, 0.50, 0.95)


def auroc(scores: FloatArray, positive: Mask) -> float:
    """Chance that a positive outranks a negative, a tie counting one half; nan without either kind.

    `scores` and `positive` have shape (m,); scores that are nan were not assessed and are left out.
    """
    assessed = ~np.isnan(scores)
    ranks, truth = rankdata(scores[assessed]), positive[assessed]
    above, below = int(truth.sum()), int((~truth).sum())
    if above == 0 or below == 0:
        return float("nan")
    return float((ranks[truth].sum() - above * (above + 1) / 2) / (above * below))


def word(value: float) -> str:
    """A word for an AUROC."""
    for least, name in _WORDS:
        if value >= least:
            return name
    return "below chance"


def prediction(scored: Sequence[Scored], sample: int, seed: int) -> Section:
    """AUROC of every driver for sufficiency and for topic gaps; then the seed's definitions."""
    names = list(_scores(scored[0].own))
    sufficient = [_of_sufficient(s) for s in scored]
    on_topic = [_of_topic(s) for s in scored]
    labels = [s.data.label for s in scored]
    return Section(
        "What each driver predicts",
        [
            _summary(names, np.array(sufficient), np.array(on_topic)),
            _by_pair(
                "AUROC for sufficient@10",
                "Positive: the ten passages hold the evidence. Negative: they do not, though the corpus is "
                "the queries' own: near misses and ranking failures, never topic gaps.",
                names,
                labels,
                sufficient,
            ),
            _by_pair(
                "AUROC for the topic",
                "Positive: queries on their own corpus. Negative: the same queries on corpora on another "
                "subject.",
                names,
                labels,
                on_topic,
            ),
            _against_seed(scored, sample, seed),
        ],
    )


def _scores(found: Retrievals) -> dict[str, FloatArray]:
    batch = found.batch
    return {
        "max cosine": batch.signals["max_cosine"],
        "mean top 3": found.top3,
        "KPI": batch.kpi,
        "shape": found.shape,
        **{name: batch.drivers.of(signal) for name, signal in DRIVERS.items()},
    }


def _of_sufficient(scored: Scored) -> list[float]:
    known = scored.data.known
    return [auroc(values[known], scored.data.sufficient[known]) for values in _scores(scored.own).values()]


def _of_topic(scored: Scored) -> list[float]:
    columns = zip(*(_scores(found).values() for found in (scored.own, *scored.gaps)), strict=True)
    on_topic = np.repeat([True, *([False] * len(scored.gaps))], len(scored.fit))
    return [auroc(np.concatenate(column), on_topic) for column in columns]


def _summary(names: Sequence[str], sufficient: FloatArray, on_topic: FloatArray) -> Table:
    rows: list[list[Cell]] = []
    for name, first, second in zip(names, sufficient.T, on_topic.T, strict=True):
        rows.append([name, *_summarised(first), *_summarised(second)])
    return Table(
        "Each driver in two words",
        f"AUROC, mean over the {len(sufficient)} sets and embedders (least to most). Within {NEAR_CHANCE:g} "
        "of .5 is near chance: such a driver describes the retrieval but does not predict. KPI: under the "
        "fitted gate, which saw no label. Shape: the KPI without its gate. The standard error of one figure "
        "is .01 to .02 on all queries.",
        ["score", "sufficient@10", "", "that means", "on topic", "", "that means"],
        rows,
    )


def _summarised(values: FloatArray) -> list[Cell]:
    return [float(values.mean()), f"{values.min():.2f} to {values.max():.2f}", word(float(values.mean()))]


def _by_pair(
    title: str, note: str, names: Sequence[str], labels: Sequence[str], values: Sequence[Sequence[float]]
) -> Table:
    rows: list[list[Cell]] = [[label, *row] for label, row in zip(labels, values, strict=True)]
    return Table(
        title, note, ["set / embedder", *names], [*rows, ["mean", *np.mean(values, axis=0).tolist()]]
    )


def _against_seed(scored: Sequence[Scored], sample: int, seed: int) -> Table:
    """Both definitions on the same queries, a sample: the seed's kernels take one retrieval at a time."""
    found = [_compared(s, sample, seed) for s in scored]
    rows: list[list[Cell]] = []
    for name in found[0]:
        figures = np.array([one[name] for one in found])
        if np.isnan(figures).all():
            continue
        *percent, area = figures.mean(axis=0).tolist()
        rows.append([*name, *(f"{x:.1f}" for x in percent), area, word(area)])
    return Table(
        "Default definitions against MetricPolicy.seed()",
        f"The same queries, at most {sample} a set and embedder, perturb=False (so the seed has no "
        "robustness and counts 100 for it). Percentages: means over sets and embedders of each set's mean "
        "and quantiles, and the share of retrievals at exactly 100. AUROC for sufficient@10. The KPI of both "
        "under the same fitted gate, and the seed's under its own constants too.",
        ["signal", "definition", "mean", *(f"{q:.0%}" for q in _QUANTILES), "at 100", "AUROC", "that means"],
        rows,
    )


def _compared(scored: Scored, sample: int, seed: int) -> dict[tuple[str, str], list[float]]:
    judged = np.flatnonzero(scored.data.known)
    chosen = np.sort(np.random.default_rng(seed).permutation(judged)[:sample])
    queries, passages = scored.data.queries[chosen], scored.data.passages()[chosen]
    default = score_many(queries, passages, policy=scored.policy, perturb=False)
    by_seed = score_many(queries, passages, policy=MetricPolicy.seed(), perturb=False)
    columns = {("max cosine", "both"): default.signals["max_cosine"]}
    for name, signal in DRIVERS.items():
        columns[name, "default"] = default.drivers.of(signal)
        columns[name, "seed"] = by_seed.drivers.of(signal)
    columns["KPI", "default"] = default.kpi
    columns["KPI", "seed, fitted gate"] = _under_gate(by_seed, scored.policy)
    columns["KPI", "seed"] = by_seed.kpi
    sufficient = scored.data.sufficient[chosen]
    return {name: _figures(values, sufficient) for name, values in columns.items()}


def _under_gate(batch: MetricsBatch, policy: MetricPolicy) -> FloatArray:
    """The KPI of `batch` if its grounding gate were that of `policy`."""
    exponent = (policy.grounding_center - batch.signals[policy.match_signal]) / policy.grounding_scale
    return np.asarray(batch.kpi / (batch.topical_grounding / 100.0) / (1.0 + np.exp(exponent)))


def _figures(values: FloatArray, sufficient: Mask) -> list[float]:
    if np.isnan(values).all():
        return [float("nan")] * (len(_QUANTILES) + 3)
    percent = 100.0 * values
    spread = [
        np.nanmean(percent),
        *np.nanquantile(percent, _QUANTILES),
        100.0 * np.nanmean(percent >= 100.0 - 1e-9),
    ]
    return [*map(float, spread), auroc(values, sufficient)]
