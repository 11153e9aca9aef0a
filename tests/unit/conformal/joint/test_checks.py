"""A threshold for each check: Bonferroni holds the joint bound, naive does not, and both say so."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pytest
import reference_joint as ref
from hypothesis import given
from hypothesis import strategies as st

from rag_confidence._types import Decision
from rag_confidence.conformal.joint.checks import PerCheckGate, fit_bonferroni_checks, fit_naive_checks
from rag_confidence.conformal.joint.fit import fit_joint_gate
from rag_confidence.errors import CalibrationRefused, SmallCalibrationWarning

INF = math.inf
Rows: TypeAlias = list[list[float]]
Fit: TypeAlias = Callable[..., PerCheckGate]
ENTRY = st.one_of(*[st.integers(-3, 5).map(float)] * 4, st.just(INF))
TABLE = st.lists(st.lists(ENTRY, min_size=2, max_size=2), min_size=1, max_size=14)
ALPHAS = st.sampled_from(["0.5", "0.3", "0.2", "1/3"])
BOTH = pytest.mark.parametrize("fit", [fit_naive_checks, fit_bonferroni_checks])


def quiet(fit: Fit, scores: Any, alpha: Any = 0.1, **options: Any) -> PerCheckGate:
    """A fit whose warnings are not the subject of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallCalibrationWarning)
        return fit(scores, alpha, **options)


def decisions(gate: PerCheckGate, rows: Rows) -> list[tuple[str, ...]]:
    """Per row the decision and the names of the failed checks."""
    return [(str(p.decision), *p.failed_checks) for p in gate.predict(rows)]


@given(TABLE, TABLE, ALPHAS)
def test_decides_as_loops_over_fractions_do(scores: Rows, rows: Rows, alpha: str) -> None:
    """Each check meets its own order statistic, at alpha or at exactly alpha / K."""
    level = Fraction(alpha)
    naive, split = quiet(fit_naive_checks, scores, alpha), quiet(fit_bonferroni_checks, scores, alpha)
    assert decisions(naive, rows) == ref.per_check_decisions(scores, [level, level], rows)
    assert decisions(split, rows) == ref.per_check_decisions(scores, [level / 2, level / 2], rows)


@given(TABLE, TABLE, st.booleans())
def test_raising_a_score_never_turns_abstain_into_accept(scores: Rows, rows: Rows, naive: bool) -> None:
    """Whatever the correction, a stranger call is never accepted where a milder one was not."""
    gate = quiet(fit_naive_checks if naive else fit_bonferroni_checks, scores, "0.3")
    raised = np.maximum(rows, np.resize(scores, np.shape(rows)))
    assert not (gate.predict(raised).accepted & gate.predict(rows).abstained).any()


@given(TABLE.filter(lambda calls: len(calls) > 1), ALPHAS)
def test_bonferroni_keeps_the_joint_bound(calls: Rows, alpha: str) -> None:
    """Of n + 1 exchangeable calls at most alpha (n + 1) abstain when each is left out in turn."""
    abstained, infinite = 0, False
    for at, call in enumerate(calls):
        gate = quiet(fit_bonferroni_checks, calls[:at] + calls[at + 1 :], alpha)
        infinite |= not gate.certified
        abstained += gate.predict_one(call).decision == Decision.ABSTAIN
    assert infinite or abstained <= Fraction(alpha) * len(calls)


def test_naive_breaks_the_joint_bound() -> None:
    """Checks that are strange on different calls abstain on K times alpha of them."""
    calls = np.zeros((20, 2))
    calls[:2, 0], calls[2:4, 1] = [1.0, 2.0], [1.0, 2.0]
    left_out = [
        fit_naive_checks(np.delete(calls, at, axis=0), 0.1).predict_one(calls[at]) for at in range(20)
    ]
    assert sum(p.decision == Decision.ABSTAIN for p in left_out) == 4


def test_the_level_is_divided_exactly() -> None:
    """alpha / K is a fraction: a tenth over three checks is 1/30, which 29 calls support and 28 do not."""
    gate = fit_bonferroni_checks(np.zeros((29, 3)), 0.1)
    assert (gate.level_each, gate.n_needed, gate.certified) == (Fraction(1, 30), 29, True)
    with pytest.warns(SmallCalibrationWarning, match="at least 29 good calls are needed, and there are 28"):
        assert not fit_bonferroni_checks(np.zeros((28, 3)), 0.1).certified
    assert fit_joint_gate(np.zeros((9, 3)), 0.1).certified


@BOTH
def test_an_infinite_threshold_abstains_on_all(fit: Fit) -> None:
    """Too few calls, or one check that fails too often, certify nothing, and strict=True refuses."""
    failing = np.zeros((40, 2))
    failing[:10, 1] = INF
    for scores, match in ((np.zeros((4, 2)), "there are 4"), (failing, "and 10 have")):
        gate = quiet(fit, scores)
        call = gate.predict_one([0.0, 1e9])
        assert (call.decision, call.failed_checks, call.threshold) == (Decision.ABSTAIN, (), INF)
        assert not gate.guarantee.holds
        with pytest.raises(CalibrationRefused, match=match):
            fit(scores, 0.1, strict=True)


@BOTH
def test_the_statistic_is_the_largest_excess(fit: Fit) -> None:
    """A per-check gate accepts up to an excess of zero over the thresholds, and failure is infinite."""
    gate = fit([[i / 64, 1 + i / 64] for i in range(40)], 0.1)
    rows = np.vstack([gate.thresholds, np.add(gate.thresholds, [0.5, -1.0]), [0.0, INF]])
    found = gate.predict(rows)
    assert found.statistics.tolist() == [0.0, 0.5, INF]
    assert found.accepted.tolist() == [True, False, False]
    assert found.threshold == 0.0
    assert found[1].failed_checks == ("check_0",)


@BOTH
def test_float32_scores_meet_thresholds_in_float32(fit: Fit) -> None:
    """A score is not stranger than the number it was rounded from."""
    wide, narrow = np.full((40, 2), 0.1), np.full((40, 2), 0.1, dtype=np.float32)
    for scores, row in ((wide, narrow[0]), (narrow, wide[0]), (-wide, -narrow[0]), (-narrow, -wide[0])):
        assert fit(scores, 0.1).predict_one(row).decision == Decision.ACCEPT


def test_the_guarantees_say_what_each_correction_is_worth() -> None:
    """Bonferroni claims alpha for the decision; naive claims nothing and names K alpha."""
    scores = np.random.default_rng([4, 0]).random((50, 3))
    split = fit_bonferroni_checks(scores, 0.1, collected="2026-06-01", labeling_source="tests").guarantee
    naive = fit_naive_checks(scores, 0.1).guarantee
    assert (split.kind, split.bound, split.n1) == ("joint", 0.1, 50)
    assert "3.33333 %" in split.sentence
    assert "one with an infinite threshold counting as no error" in split.sentence
    assert "judged good by tests, on 2026-06-01" in split.sentence
    assert (naive.kind, naive.holds, naive.bound) == ("none", False, None)
    assert "up to 30 %" in naive.sentence
    assert "up to 100 %" in fit_naive_checks(scores, 0.4).guarantee.sentence


@BOTH
@pytest.mark.parametrize(
    ("scores", "options", "error", "match"),
    [
        ([[math.nan]], {}, ValueError, "`scores` must not hold nan"),
        ([0.1], {}, ValueError, r"`scores` must have shape \(n, K\)"),
        ([[0.1, 0.2]], {"names": ["a", "a"]}, ValueError, "`names` must hold 2 different strings"),
        ([[0.1]], {"alpha": 1.0}, ValueError, "`alpha` must be strictly between 0 and 1"),
        ([[0.1]], {"strict": 2}, TypeError, "`strict` must be True or False"),
        ([[0.1]], {"labeling_source": 2}, TypeError, "`labeling_source` must be a string"),
    ],
)
def test_bad_input_is_refused(
    fit: Fit, scores: Any, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    """The same sentences as for the joint gate."""
    with pytest.raises(error, match=match):
        fit(scores, **options)
