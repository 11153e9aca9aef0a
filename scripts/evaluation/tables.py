"""The tables of the pages, made from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from _tables import Cell as Entry
from _tables import Table

from evaluation.baselines import BASELINES
from evaluation.bootstrap import Interval
from evaluation.metrics import METRICS
from evaluation.ours import label_free, learned
from evaluation.plan import MAIN_BUDGET, MAIN_K
from evaluation.results import FREE, Cell, Results, difference, differences, mean, measured_by, scores_of
from evaluation.targets import Target, targets

COLUMNS: Mapping[str, str] = {one.name: one.label for one in METRICS} | {"brier": "Brier"}
LABELS: Mapping[str, str] = {one.name: one.label for one in (*BASELINES, *label_free(), *learned(None))}
_LADDER = (
    ("the retrieved vectors", "max"),
    ("the retrieved vectors", "plain"),
    ("a sample of the corpus", "profile"),
    ("unlabelled queries", "profile_queries"),
    ("the lists served for them", "profile_lists"),
    ("the cosines of a deeper list", "full"),
)


def label_of(score: str) -> str:
    """Name of a score for readers."""
    return LABELS.get(score, score)


def scores_table(cells: Sequence[Cell], title: str, note: str = "") -> Table:
    """Every score with the mean of every metric, and its difference to the maximum cosine."""
    apart = differences(cells, scores_of(cells), "max")
    rows = [
        [label_of(score), *(mean(cells, score, metric) for metric in COLUMNS), *_difference(apart.get(score))]
        for score in scores_of(cells)
    ]
    header = ["score", *COLUMNS.values(), "AUROC minus max cosine", "p (Holm)"]
    return Table(title, note or _over(cells), header, _shown(rows))


def ladder_table(results: Results, stratum: str) -> Table:
    """What each further thing that a deployment can give is worth."""
    free = results.at(k=MAIN_K, stratum=stratum)
    steps = [(have, free, score) for have, score in _LADDER]
    steps += [
        (f"{budget} labels", results.at(k=MAIN_K, stratum=stratum, labels=budget), "model")
        for budget in results.budgets()
    ]
    texts = results.at(k=MAIN_K, stratum=stratum, labels=MAIN_BUDGET)
    steps.append((f"{MAIN_BUDGET} labels and the texts", texts, "model_text"))
    rows = []
    for have, cells, score in steps:
        there = measured_by(cells, score)
        if there:
            apart = "" if score == "max" else interval_text(difference(there, score, "max"))
            rows.append([have, label_of(score), len(there), mean(there, score, "auroc"), apart])
    return Table(
        "What to use with what you have",
        "Each line has all of the lines above it too. Mean AUROC over pairs; the last column compares with "
        "the best cosine on the same rows, with a paired 95 % interval.",
        ["you have", "use", "pairs", "AUROC", "minus max cosine"],
        _shown(rows),
    )


def against_sorted(results: Results, k: int, stratum: str) -> Table | None:
    """Every score against logistic regression on sorted scores at the main budget, on the same rows."""
    cells = measured_by(results.at(k=k, stratum=stratum, labels=MAIN_BUDGET), "sorted")
    if not cells:
        return None
    area, risk = (differences(cells, scores_of(cells), "sorted", name) for name in ("auroc", "aurc"))
    rows = [[label_of(score), *_difference(area[score]), *_difference(risk[score])] for score in area]
    return Table(
        f"Against logistic regression on sorted scores with {MAIN_BUDGET} labels",
        f"{_over(cells)} Scores on the rows that the regression did not learn from.",
        ["score", "AUROC", "p (Holm)", "AURC", "p (Holm)"],
        _shown(rows),
    )


def budgets_table(results: Results, k: int, stratum: str, metric: str = "auroc") -> Table | None:
    """Mean over pairs of each learned score by the number of labels."""
    budgets = [b for b in results.budgets() if results.at(k=k, stratum=stratum, labels=b)]
    if not budgets:
        return None
    by_budget = {b: results.at(k=k, stratum=stratum, labels=b) for b in budgets}
    names = _always(by_budget.values(), scores_of(results.at(k=k, stratum=stratum, labels=budgets[0])))
    names += [name for b in budgets for name in scores_of(by_budget[b]) if name == "model_text"]
    rows = [
        [label_of(name), *(mean(by_budget[b], name, metric) for b in budgets)]
        for name in dict.fromkeys(names)
    ]
    pairs = ["pairs", *(str(len(by_budget[b])) for b in budgets)]
    return Table(
        f"{COLUMNS[metric]} by number of labels",
        "Means over pairs and draws, on the rows that were not learned from. Fewer pairs are large enough "
        "for more labels, so compare within a column.",
        ["score", *(str(b) for b in budgets)],
        [*_shown(rows), pairs],
    )


def pairs_table(cells: Sequence[Cell], scores: Sequence[str]) -> Table:
    """AUROC of every score on every pair."""
    rows: list[list[Entry]] = [
        [cell.pair, cell.n, f"{cell.n_sufficient / cell.n:.2f}", *(cell.value(s, "auroc") for s in scores)]
        for cell in cells
    ]
    last: list[Entry] = ["mean", "", "", *(mean(cells, score, "auroc") for score in scores)]
    header = ["set / embedder", "rows", "sufficient", *map(label_of, scores)]
    return Table(
        "AUROC on every pair", "Share of sufficient rows beside their number.", header, _shown([*rows, last])
    )


def strata_table(results: Results, scores: Sequence[str]) -> Table:
    """AUROC of some scores by the kind of negatives."""
    rows = []
    for stratum in results.strata():
        cells = results.at(k=MAIN_K, stratum=stratum)
        rows.append([stratum, len(cells), *(mean(cells, score, "auroc") for score in scores)])
    return Table(
        "By the kind of negatives",
        f"Mean AUROC over the pairs that have at least 25 rows of each class, k = {MAIN_K}.",
        ["negatives", "pairs", *map(label_of, scores)],
        _shown(rows),
    )


def ks_table(results: Results, stratum: str, scores: Sequence[str]) -> Table:
    """AUROC of some scores by the number of served passages."""
    rows = [
        [f"k = {k}", *(mean(results.at(k=k, stratum=stratum), score, "auroc") for score in scores)]
        for k in results.ks()
        if results.at(k=k, stratum=stratum)
    ]
    note = "Sufficient means that the k passages hold the evidence, so the labels differ from row to row."
    return Table("By the number of passages", note, ["", *map(label_of, scores)], _shown(rows))


def targets_table(results: Results) -> Table:
    """What was aimed at, and whether it was reached."""
    return Table(
        "Targets",
        f"Natural negatives, k = {MAIN_K}, means over the pairs.",
        ["target", "aim", "found", "reached"],
        [[one.what, one.aim, one.found, _verdict(one)] for one in targets(results)],
    )


def interval_text(one: Interval) -> str:
    """A difference with its interval."""
    if one.low != one.low:
        return "" if one.difference != one.difference else f"{one.difference:+.3f}"
    return f"{one.difference:+.3f} ({one.low:+.3f} to {one.high:+.3f})"


def free_scores(results: Results, stratum: str, k: int = MAIN_K) -> list[str]:
    """Names of the label-free scores measured there."""
    return scores_of(results.at(k=k, stratum=stratum, labels=FREE))


def _difference(found: tuple[Interval, float] | None) -> list[str]:
    if found is None:
        return ["", ""]
    return [interval_text(found[0]), "" if found[1] != found[1] else f"{found[1]:.3f}"]


def _verdict(target: Target) -> str:
    return {None: "not measured", True: "yes", False: "no"}[target.reached]


def _over(cells: Sequence[Cell]) -> str:
    return f"Means over {len(cells)} pairs of set and embedder."


def _always(groups: Iterable[Sequence[Cell]], names: Sequence[str]) -> list[str]:
    there = [set(scores_of(cells)) for cells in groups]
    return [name for name in names if all(name in one for one in there)]


def _shown(rows: Sequence[Sequence[Entry]]) -> list[list[Entry]]:
    """Empty cells for what was not measured."""
    return [["" if isinstance(entry, float) and entry != entry else entry for entry in row] for row in rows]
