"""Rules of means, paired differences and targets over the cells of a run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluation.arrays import packed
from evaluation.results import Cell, Results, difference, differences, mean
from evaluation.tables import budgets_table, pairs_table, scores_table
from evaluation.targets import targets


def cell(name: str, values: dict[str, float], labels: int = 0, rounds: int = 200) -> Cell:
    """A cell whose metrics all equal the value of a score, and whose rounds scatter around it alike."""
    scatter = 0.01 * np.random.default_rng(0).standard_normal(rounds)
    metrics = ("auroc", "aurc", "acceptance")
    return Cell(
        set=name,
        embedder="tiny",
        k=10,
        stratum="natural",
        labels=labels,
        n=100,
        n_sufficient=40,
        values={score: dict.fromkeys((*metrics, "brier"), value) for score, value in values.items()},
        spread={},
        rounds={score: packed(dict.fromkeys(metrics, value + scatter)) for score, value in values.items()},
    )


def test_a_mean_is_over_the_pairs_that_have_it() -> None:
    """What was not measured is left out, and nothing at all is nan."""
    cells = [cell("a", {"max": 0.6, "full": 0.8}), cell("b", {"max": 0.7})]
    assert mean(cells, "max", "auroc") == pytest.approx(0.65)
    assert mean(cells, "full", "auroc") == pytest.approx(0.8)
    assert math.isnan(mean(cells, "model", "auroc"))


def test_a_difference_is_paired() -> None:
    """Scores that scatter together differ by exactly their gap, on the pairs that have both."""
    cells = [cell("a", {"max": 0.6, "full": 0.8}), cell("b", {"max": 0.7})]
    found = difference(cells, "full", "max")
    assert (found.difference, found.low, found.high) == pytest.approx((0.2, 0.2, 0.2), abs=1e-6)
    assert found.p == pytest.approx(2 / 201)


def test_differences_are_adjusted_over_the_scores() -> None:
    """The reference is not compared with itself, and two comparisons double the least p."""
    found = differences([cell("a", {"max": 0.6, "x": 0.8, "y": 0.9})], ["max", "x", "y"], "max")
    assert set(found) == {"x", "y"}
    assert found["x"][1] == pytest.approx(4 / 201)


def run(**scores: float) -> Results:
    """Two pairs without labels, and the learned scores at three budgets."""
    free = {"max": 0.70, "seed": 0.66, "plain": 0.68, "full": 0.74} | scores
    learned = {"max": 0.70, "full": 0.74, "sorted": 0.73, "model": 0.76, "model_text": 0.80}
    falling = {**learned, "sorted": 0.73, "model": 0.70}
    cells = [cell(name, free) for name in ("a", "b")]
    cells += [cell(name, learned, labels) for name in ("a", "b") for labels in (25, 100)]
    return Results((*cells, *(cell(name, falling, 200) for name in ("a", "b"))))


def test_targets_are_read_off_the_means() -> None:
    """Each is held against its own number; reached and missed ones both occur."""
    found = {one.what: one for one in targets(run())}
    assert found["label-free KPI, mean AUROC"].reached
    assert found["label-free KPI above the seed's KPI"].found == "on 2 of 2"
    assert found["ConfidenceModel with 25 labels against the label-free KPI"].found == "+0.020"
    assert not found["ConfidenceModel, 200 labels, mean AUROC"].reached
    ratio = next(one for what, one in found.items() if "acceptance" in what)
    assert (ratio.found, ratio.reached) == ("1.06", False)
    assert next(one for what, one in found.items() if "AURC" in what).reached


def test_a_score_below_the_seed_is_counted() -> None:
    """Above the seed on every pair means strictly above."""
    found = {one.what: one for one in targets(run(seed=0.74))}
    assert found["label-free KPI above the seed's KPI"].found == "on 0 of 2"
    assert not found["label-free KPI above the seed's KPI"].reached


def test_what_was_not_measured_is_no_failure() -> None:
    """Without a model its targets are neither reached nor missed."""
    found = targets(Results((cell("a", {"max": 0.7, "seed": 0.6, "plain": 0.7}),)))
    assert {one.reached for one in found if one.what.startswith("ConfidenceModel")} == {None}


def test_tables_hold_the_numbers() -> None:
    """A row a score, its mean and its difference to the maximum cosine; a row a pair, and their mean."""
    cells = run().at(k=10, stratum="natural")
    text = scores_table(cells, "Title").markdown()
    assert "+0.040 (+0.040 to +0.040)" in text
    assert "| max cosine" in text
    assert pairs_table(cells, ["max", "full"]).rows[-1][-1] == pytest.approx(0.74)


def test_budgets_stand_beside_each_other() -> None:
    """One column a number of labels, with how many pairs it rests on."""
    table = budgets_table(run(), 10, "natural")
    assert table is not None
    assert table.header == ["score", "25", "100", "200"]
    assert table.rows[-1] == ["pairs", "2", "2", "2"]
