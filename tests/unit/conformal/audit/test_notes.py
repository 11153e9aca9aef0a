"""The sentences of an audit: when they are said, and the numbers in them."""

from __future__ import annotations

import numpy as np
import pytest

from rag_confidence.conformal.audit import notes as say
from rag_confidence.conformal.audit.reliability import equal_width, width_bins
from rag_confidence.conformal.distinct import Distinct, distinct
from rag_confidence.conformal.proportion import proportion_of


def table_of(scores: list[float], labels: list[int]) -> Distinct:
    return distinct(np.array(scores), np.array(labels, dtype=bool))


@pytest.mark.parametrize(
    ("n0", "n1", "words"),
    [
        (0, 12, ["All 12 rows are sufficient: without insufficient rows AUROC is undefined", "Only 12 suff"]),
        (70, 0, ["All 70 rows are insufficient: without sufficient rows AUROC is undefined"]),
        (1, 60, ["Only 1 insufficient row: ", "Only 1.6 % of the 61 rows are insufficient"]),
        (9, 9, ["Only 9 insufficient rows", "Only 9 sufficient rows"]),
        (2000, 60, ["Only 2.9 % of the 2060 rows are sufficient"]),
        (100, 100, []),
    ],
)
def test_labels(n0: int, n1: int, words: list[str]) -> None:
    """A missing, a small and a rare class are each named with their numbers."""
    said = say.about_labels(n0, n1)
    assert len(said) == len(words)
    assert all(part in sentence for part, sentence in zip(words, said, strict=True))


def test_few_rows_name_the_rate_they_allow() -> None:
    """Nine rows without an error allow a rate of 1 - .05^(1/9) = 0.28."""
    assert "true rate of 0.28 (95 % limit)" in say.about_labels(9, 100)[0]


def test_equal_and_crowded_scores() -> None:
    """One distinct score cannot rank; a narrow middle is read as ranks; a wide one says nothing."""
    assert say.about_spread(table_of([0.5] * 6, [1, 0] * 3)) == (
        "All 6 scores equal 0.5: they cannot rank or separate anything.",
    )
    narrow = [0.0, *np.linspace(0.78, 0.88, 300).tolist()]
    assert "middle 98 % of the scores lie between 0.7" in say.about_spread(table_of(narrow, [1] * 301))[0]
    assert say.about_spread(table_of([0.1, 0.9], [0, 1])) == ()


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((None, None, None), None),
        ((0.8, 0.7, 0.9), None),
        ((0.62, 0.58, 0.66), "AUROC is 0.620 with a 95 % interval from 0.580 to 0.660, and its lower end"),
        ((0.3, 0.2, 0.4), "Check the sign of the score"),
    ],
)
def test_separation(interval: tuple[float | None, float | None, float | None], words: str | None) -> None:
    """A lower end below the floor is said, and an AUROC below one half asks for the sign."""
    said = say.about_separation(*interval)
    assert said == () if words is None else words in said[0]


def test_bins_beyond_chance() -> None:
    """Bins are named only where their labels cannot be chance for all bins together."""
    sure = width_bins(equal_width(table_of([0.95] * 40 + [0.05] * 40, [1, 0] * 40), 10))
    over, under = say.about_bins(sure)
    assert over.startswith(
        "1 of 2 filled bins is overconfident beyond chance, most of all scores from 0.9 to 1"
    )
    assert under.startswith("1 of 2 filled bins is underconfident beyond chance")
    assert "mean score 0.950, but 0.500 of 40 rows" in over
    assert say.about_bins(width_bins(equal_width(table_of([0.95] * 3, [1, 1, 0]), 10))) == ()


def test_thresholds() -> None:
    """A threshold that accepts nothing, everything or too much insufficient evidence is named."""
    nothing = say.about_threshold(0.5, proportion_of(0, 9), proportion_of(0, 0), 0.1)
    assert nothing == ("No score reaches the threshold 0.5: nothing is accepted, and the risk is unknown.",)
    inert, risky = say.about_threshold(0.5, proportion_of(9, 9), proportion_of(3, 9), 0.1)
    assert inert == "All 9 scores reach the threshold 0.5: it rejects nothing."
    assert risky.startswith(
        "At the threshold 0.5, 3 of the 9 accepted rows are insufficient: selective risk 0.333"
    )
    assert say.about_threshold(0.5, proportion_of(5, 9), proportion_of(0, 5), 0.1) == ()


def test_a_target_that_no_cut_meets() -> None:
    """No acceptance at the target is said; any acceptance is not."""
    assert say.about_acceptance(0.0, 0.1) == (
        "No cut keeps the selective risk at or below 0.1 on these rows.",
    )
    assert say.about_acceptance(0.2, 0.1) == ()


def test_an_undefined_debiased_error() -> None:
    """Bins of one row each leave the debiased error undefined, and the cure is fewer bins."""
    assert "None of the 10 equal-mass bins holds two rows" in say.about_debiased(None, 10)[0]
    assert say.about_debiased(0.0, 10) == ()
