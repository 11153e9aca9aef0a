"""Fitting a risk gate: what it certifies, when it warns, and how it refuses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import Kinds, quiet, refuse

from rag_confidence._types import Provenance
from rag_confidence.conformal.binomial import binomial_tail_at_most
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.conformal.risk.fitted import RiskGate
from rag_confidence.errors import (
    CalibrationRefused,
    RowsReused,
    SmallCalibrationWarning,
    WeakSeparationWarning,
)

SCORES = [i / 200 for i in range(200)]
LABELS = [int(i >= 100) for i in range(200)]


def fit(scores: Any = SCORES, labels: Any = LABELS, target_risk: Any = 0.1, **options: Any) -> RiskGate:
    """A gate on two hundred rows of which the upper half is sufficient."""
    return fit_risk_gate(scores, labels, target_risk, **options)


def test_a_separating_score_certifies_a_little_more_than_the_good_half() -> None:
    """104 rows with 4 errors pass at 10 % and delta 10 %; the numbers of the gate say so."""
    gate = fit()
    assert (gate.accepted, gate.errors, gate.certified_rank) == (104, 4, 104)
    assert (gate.n, gate.n0, gate.n1) == (200, 100, 100)
    assert gate.threshold == 95 / 200
    assert gate.empirical_risk == 4 / 104
    assert gate.acceptance == 0.52
    assert binomial_tail_at_most(4, 104, 0.1) <= 0.1
    assert gate.notes == ()


@pytest.mark.parametrize("method", ["sequence", "bonferroni"])
def test_the_upper_limit_lies_between_the_rate_and_the_target(method: Any) -> None:
    """The exact limit of the accepted rows is above their rate and never above the target."""
    gate = fit(method=method)
    assert gate.risk_upper is not None
    assert gate.empirical_risk is not None
    assert gate.empirical_risk < gate.risk_upper <= 0.1


def test_the_limit_of_bonferroni_is_at_its_own_level() -> None:
    """At the limit, so few errors have exactly the probability of the level of that rank."""
    gate = fit(method="bonferroni")
    passed = gate.certificate.passed
    assert passed is not None
    assert passed.level < gate.chance
    tail = binomial_tail_at_most(passed.errors, passed.accepted, gate.risk_upper or 0.0)
    assert tail == pytest.approx(float(passed.level), rel=1e-9)


@given(st.sampled_from([0.05, "0.05", Fraction(1, 20)]), st.sampled_from([0.1, "1/10", Fraction(1, 10)]))
def test_levels_are_what_they_are_written_as(target: Any, delta: Any) -> None:
    """Floats, strings and fractions of one value give one gate."""
    gate = fit(target_risk=target, delta=delta)
    assert (gate.target, gate.chance) == (Fraction(1, 20), Fraction(1, 10))
    assert gate.fingerprint == fit(target_risk=0.05).fingerprint


def test_all_rows_sufficient_accepts_everything() -> None:
    """A history without an error certifies every score; there is no AUROC then."""
    gate = fit(labels=[1] * 200)
    assert gate.threshold == -math.inf
    assert gate.accepted == 200
    assert gate.auroc is None
    assert gate.auroc_interval is None


def test_fewer_rows_than_a_clean_certificate_needs_warn_in_numbers() -> None:
    """21 rows at 10 % and delta 10 %: nothing is certified, and 22 are needed."""
    with pytest.warns(SmallCalibrationWarning, match="21 rows where 22 without an error"):
        gate = fit(SCORES[-21:], LABELS[-21:])
    assert not gate.certified
    assert gate.threshold == math.inf
    assert gate.labels_needed == 22
    assert (gate.accepted, gate.empirical_risk, gate.risk_upper, gate.certified_rank) == (0, None, None, None)
    assert len(gate.notes) == 1


@pytest.mark.parametrize("method", ["sequence", "bonferroni"])
@pytest.mark.parametrize("n", [22, 60, 200, 1000])
def test_no_certificate_has_fewer_rows_than_are_needed(method: Any, n: int) -> None:
    """`labels_needed` is a least number: whatever the labels, no fewer rows are ever accepted."""
    scores = np.arange(n) / n
    for sufficient in range(0, n + 1, max(1, n // 50)):
        with quiet():
            found = fit(scores, np.arange(n) >= n - sufficient, method=method)
        assert not found.certified or found.accepted >= found.labels_needed == 22
    assert fit(scores, [1] * n, method=method).certified


def test_errors_on_top_warn_in_numbers() -> None:
    """The trial that ended the sequence is named with its errors and what is allowed."""
    with pytest.warns(WeakSeparationWarning, match=r"of the 38 rows of highest score 38 are insufficient"):
        gate = fit(labels=LABELS[::-1])
    assert not gate.certified
    assert "where 1 are allowed (AUROC of all rows 0.000)" in gate.notes[0]


@pytest.mark.parametrize(("rows", "kind"), [(21, "too few labels"), (200, "too many errors")])
def test_strict_refuses_what_would_warn(rows: int, kind: str) -> None:
    """With strict=True nothing certified is an error with the same numbers."""
    with pytest.raises(CalibrationRefused, match=kind):
        fit(SCORES[:rows], [0] * (rows - 1) + [1], strict=True)


def test_a_certified_gate_does_not_warn() -> None:
    """Strict or not, a certificate is silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(strict=True).certified


def test_warnings_point_at_the_caller() -> None:
    """The line that is shown is the one that called the fit."""
    with pytest.warns(SmallCalibrationWarning) as caught:
        fit_risk_gate(SCORES[:5], LABELS[:5], 0.1)
    assert caught[0].filename == __file__


def test_rows_that_trained_the_score_are_refused() -> None:
    """A gate on rows of another fit raises, by id and by telling scores."""
    first = fit(row_ids=range(200))
    with pytest.raises(RowsReused, match="shares 1 rows"):
        fit(row_ids=range(199, 399), disjoint_from=[first])
    odd = [score / math.pi for score in SCORES]
    with pytest.raises(RowsReused, match="shares 199 rows"):
        fit(odd, disjoint_from=[fit(odd)])
    assert fit(row_ids=range(200, 400), disjoint_from=[first]).certified


def test_what_is_known_of_the_history_is_kept() -> None:
    """Dates, labelling source, kinds of negatives and provenance travel with the gate."""
    gate = fit(
        negatives={"near_miss": 60, "topic_gap": 40},
        collected=("2026-01-01", "2026-02-01"),
        labeling_source="human",
        provenance={"policy": "p", "embedder": "e"},
    )
    assert gate.history.negatives == (("topic_gap", 40), ("near_miss", 60))
    assert gate.history.collected == ("2026-01-01", "2026-02-01")
    assert gate.history.labeling_source == "human"
    assert gate.provenance == Provenance(policy="p", embedder="e")


def test_the_hash_of_the_data_follows_scores_and_labels() -> None:
    """Another label is another data set, another order of rows is not."""
    other = [*LABELS[:-1], 0]
    assert fit().data_hash != fit(labels=other).data_hash
    assert fit().data_hash == fit(SCORES[::-1], LABELS[::-1]).data_hash


BAD: list[tuple[Kinds, str, dict[str, Any]]] = [
    (ValueError, "^`scores` must be finite; got nan", {"scores": [*SCORES[:-1], math.nan]}),
    (ValueError, "^`scores` must be finite; got inf", {"scores": [*SCORES[:-1], math.inf]}),
    (TypeError, "^`scores` must hold real numbers", {"scores": [str(s) for s in SCORES]}),
    (ValueError, "^`scores` must hold at least one", {"scores": [], "labels": []}),
    (ValueError, "look like percentages", {"scores": [100 * s for s in SCORES]}),
    (ValueError, "^`scores` must be fractions", {"scores": [s - 0.1 for s in SCORES]}),
    (ValueError, "^`labels` must be 0 or 1", {"labels": [*LABELS[:-1], 2]}),
    (ValueError, "^`labels` must be 0 or 1", {"labels": ["yes"] * 200}),
    (ValueError, "^`labels` must have one entry", {"labels": LABELS[:-1]}),
    (ValueError, "^`target_risk` must be strictly between", {"target_risk": 0}),
    (ValueError, "^`target_risk` must be strictly between", {"target_risk": 1.0}),
    (TypeError, "^`target_risk` must be", {"target_risk": None}),
    (ValueError, "^`delta` must be strictly between", {"delta": "1"}),
    (ValueError, "^`method` must be one of 'sequence', 'bonferroni'", {"method": "holm"}),
    (ValueError, "^`score_kind` must be one of", {"score_kind": "percent"}),
    (TypeError, "^`strict` must be True or False", {"strict": "yes"}),
    (TypeError, "^`labeling_source` must be a string", {"labeling_source": 3}),
    (ValueError, "^`row_ids` must differ", {"row_ids": [1] * 200}),
    (ValueError, "^`row_ids` must have one entry", {"row_ids": [1]}),
    (ValueError, "^`collected` must hold dates", {"collected": "yesterday"}),
    (ValueError, "^`negatives` must count", {"negatives": {"near_miss": 1}}),
    (TypeError, "^`provenance` must be", {"provenance": "p"}),
]


@pytest.mark.parametrize(("kind", "pattern", "options"), BAD)
def test_bad_input_is_one_clear_error(kind: Kinds, pattern: str, options: dict[str, Any]) -> None:
    """Each refusal names its argument, what it must be, what came and what to do."""
    refuse(kind, pattern, lambda: fit(**options))


@pytest.mark.parametrize("warm", [lambda: fit(labels=LABELS[::-1]), lambda: fit(SCORES[:9], LABELS[:9])])
def test_bad_input_is_refused_before_anything_is_said_of_the_rows(warm: Callable[[], RiskGate]) -> None:
    """A wrong date is an error even where the fit would also warn."""
    with quiet():
        assert not warm().certified
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refuse(ValueError, "^`collected`", lambda: fit(labels=LABELS[::-1], collected="soon"))


def test_raw_scores_of_any_scale_give_the_same_gate() -> None:
    """Percentages and logits with score_kind="raw" certify the same rows as fractions."""
    wanted = fit()
    for scores in (np.array(SCORES) * 100, np.log(np.array(SCORES) + 0.01)):
        gate = fit(scores, score_kind="raw")
        assert (gate.accepted, gate.errors) == (wanted.accepted, wanted.errors)
