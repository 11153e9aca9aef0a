"""Bad input to a gate is one clear error in the one form, before anything is decided or changed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from refusals import Kinds, named, quiet, refuse

from rag_confidence._types import Provenance
from rag_confidence.conformal.gate.evaluation import evaluate_conformal_gate
from rag_confidence.conformal.gate.fit import apply_conformal_gate, fit_conformal_gate, predict_one
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.errors import OutOfRangeWarning

EITHER = (TypeError, ValueError)
SCORES = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
LABELS = [0] * 9 + [1] * 9


@pytest.fixture
def gate() -> ConformalGate:
    """A gate on fractions."""
    return fit_conformal_gate(SCORES, LABELS)


@pytest.fixture
def raw_gate() -> ConformalGate:
    """A gate on raw scores, here percentages."""
    return fit_conformal_gate([100 * s for s in SCORES], LABELS, score_kind="raw")


# --- fit


def with_score(odd: Any) -> list[Any]:
    return [*SCORES[:-1], odd]


BAD_FITS: list[tuple[str, Kinds, str, dict[str, Any]]] = [
    ("nan", ValueError, "^`scores` must be finite; got nan", {"scores": with_score(math.nan)}),
    ("inf", ValueError, "^`scores` must be finite; got inf", {"scores": with_score(math.inf)}),
    ("-inf", ValueError, "^`scores` must be finite; got -inf", {"scores": with_score(-math.inf)}),
    ("None", EITHER, "^`scores` must .*got ", {"scores": with_score(None)}),
    ("text", EITHER, "^`scores` must .*got ", {"scores": with_score("0.9")}),
    ("texts", EITHER, "^`scores` must .*got ", {"scores": [str(s) for s in SCORES]}),
    ("booleans", EITHER, "^`scores` must .*got bool", {"scores": [True] * 18}),
    ("complex", EITHER, "^`scores` must .*got complex", {"scores": with_score(0.9j)}),
    ("a table", ValueError, r"^`scores` must have shape \(n,\)", {"scores": np.array([SCORES]).T}),
    ("none", ValueError, "^`scores` must hold at least one score; got none", {"scores": [], "labels": []}),
    ("no array", EITHER, "^`scores` must ", {"scores": 0.5}),
    ("a 0-d array", EITHER, "^`scores` must ", {"scores": np.array(0.5)}),
    ("masked", ValueError, "^`scores` must .*mask", {"scores": np.ma.masked_less(SCORES, 0.06)}),
    (
        "percentages",
        ValueError,
        "^`scores` must be fractions.*percentages",
        {"scores": [100 * s for s in SCORES]},
    ),
    ("one percentage", ValueError, "^`scores` must be fractions.*got 95", {"scores": with_score(95)}),
    ("negative", ValueError, r"^`scores` must be fractions.*got -0\.1.*'raw'", {"scores": with_score(-0.1)}),
    ("logits", ValueError, r"^`scores` must be fractions.*'raw'", {"scores": [20 * s - 10 for s in SCORES]}),
    ("labels 2", ValueError, "^`labels` must be 0 or 1.*got 2", {"labels": [*LABELS[:-1], 2]}),
    ("labels nan", ValueError, "^`labels` must be 0 or 1.*got nan", {"labels": [*LABELS[:-1], math.nan]}),
    ("labels None", EITHER, "^`labels` must be 0 or 1.*got None", {"labels": [*LABELS[:-1], None]}),
    ("labels text", EITHER, "^`labels` must be 0 or 1.*got 'False'", {"labels": ["False"] * 18}),
    ("labels -1", ValueError, "^`labels` must be 0 or 1.*got -1", {"labels": [2 * y - 1 for y in LABELS]}),
    ("all 1", ValueError, "^`labels` must hold both classes; got 18 rows, all 1", {"labels": [1] * 18}),
    ("all 0", ValueError, "^`labels` must hold both classes; got 18 rows, all 0", {"labels": [0] * 18}),
    ("fewer labels", ValueError, "^`labels` must have one entry for each of the 18", {"labels": LABELS[:-1]}),
    ("alpha 0", ValueError, "^`alpha` must be strictly between", {"alpha": 0}),
    ("alpha 1", ValueError, "^`alpha` must be strictly between", {"alpha": 1.0}),
    ("alpha nan", ValueError, "^`alpha` must be strictly between", {"alpha": math.nan}),
    ("alpha in percent", ValueError, "^`alpha` must be strictly between 0 and 1; got 10", {"alpha": 10}),
    ("alpha None", TypeError, "^`alpha` must be a float", {"alpha": None}),
    ("alpha True", TypeError, "^`alpha` must be a float", {"alpha": True}),
    ("alpha list", TypeError, "^`alpha` must be a float", {"alpha": [0.1]}),
    ("alpha_reject", ValueError, "^`alpha_reject` must be strictly between", {"alpha_reject": 1}),
    ("delta", ValueError, "^`delta` must be strictly between", {"guarantee": "pac", "delta": 0}),
    ("delta unused", ValueError, "^`delta` must be strictly between", {"delta": 2}),
    ("guarantee", ValueError, "^`guarantee` must be one of 'marginal', 'pac'", {"guarantee": "PAC"}),
    ("on_conflict", ValueError, "^`on_conflict` must be one of", {"on_conflict": "answer"}),
    ("score_kind", ValueError, "^`score_kind` must be one of 'fraction', 'raw'", {"score_kind": "percent"}),
    ("strict", TypeError, "^`strict` must be True or False", {"strict": "yes"}),
    ("floor", ValueError, "^`auroc_floor` must be a number in", {"auroc_floor": 60}),
    ("floor nan", ValueError, "^`auroc_floor` must be a number in", {"auroc_floor": math.nan}),
    ("floor None", TypeError, "^`auroc_floor` must be a number in", {"auroc_floor": None}),
    ("provenance", EITHER, "^`provenance` must ", {"provenance": "policy"}),
    ("provenance keys", EITHER, "^`provenance` must ", {"provenance": {"polciy": "x"}}),
    ("provenance values", EITHER, "^`provenance[^`]*` must ", {"provenance": {"policy": 5}}),
    ("source", TypeError, "^`labeling_source` must be a string", {"labeling_source": 5}),
    ("collected", ValueError, "^`collected` must hold dates; got 'yesterday'", {"collected": "yesterday"}),
    ("collected swapped", ValueError, "^`collected` must run", {"collected": ("2026-02-01", "2026-01-01")}),
    ("collected three", ValueError, "^`collected` must be ", {"collected": ("2026-01-01",) * 3}),
    ("collected number", EITHER, "^`collected` must hold dates; got 20260101", {"collected": 20260101}),
    ("negatives word", ValueError, "^`negatives` must name kinds", {"negatives": {"hard": 9}}),
    ("negatives sum", ValueError, "^`negatives` must count the 9 ", {"negatives": {"near_miss": 8}}),
    ("negatives below 0", ValueError, "^`negatives` must ", {"negatives": {"near_miss": 10, "unknown": -1}}),
    ("negatives float", EITHER, "^`negatives[^`]*` must ", {"negatives": {"near_miss": 8.5, "unknown": 1}}),
    ("negatives nan", EITHER, "^`negatives[^`]*` must ", {"negatives": {"near_miss": math.nan}}),
    ("negatives None", EITHER, "^`negatives[^`]*` must ", {"negatives": {"near_miss": None}}),
    ("negatives few", ValueError, "^`negatives` must have one entry", {"negatives": ["near_miss"] * 9}),
    ("negatives text", TypeError, "^`negatives` must be one kind a row", {"negatives": "near_miss"}),
    ("negatives missing", ValueError, "^`negatives` must name kinds", {"negatives": [None] * 18}),
    ("negatives list", EITHER, "^`negatives` must ", {"negatives": [["near_miss"]] * 18}),
    ("groups few", ValueError, "^`groups` must have one entry", {"groups": ["a"]}),
    ("row_ids few", ValueError, "^`row_ids` must have one entry", {"row_ids": ["a"]}),
    ("clusters few", ValueError, "^`clusters` must have one entry", {"clusters": ["a"]}),
    ("clusters lists", EITHER, "^`clusters` must ", {"clusters": [[i] for i in range(18)]}),
    ("disjoint_from", EITHER, r"^`disjoint_from(\[0\])?` must ", {"disjoint_from": [5]}),
]


@pytest.mark.parametrize(
    ("kind", "pattern", "options"), [case[1:] for case in BAD_FITS], ids=[case[0] for case in BAD_FITS]
)
def test_a_bad_fit_is_refused(kind: Kinds, pattern: str, options: dict[str, Any]) -> None:
    """Each argument that is not what it must be is named, with what it must be, what came, and a cure."""
    arguments = {"scores": SCORES, "labels": LABELS, **options}
    refuse(kind, f"(?s){pattern}", lambda: fit_conformal_gate(**arguments))


@pytest.mark.parametrize(
    "options",
    [{"collected": "never"}, {"negatives": {"hard": 1}}, {"provenance": 5}, {"row_ids": [1, 1, 2, 3]}],
    ids=named,
)
def test_a_refused_fit_does_not_warn_first(options: dict[str, Any]) -> None:
    """Arguments are checked before a fit warns of anything, so an error comes alone."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refuse(EITHER, "^`", lambda: fit_conformal_gate([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], **options))
    assert not caught


def test_options_of_a_fit_are_keywords() -> None:
    """Only scores, labels and alpha may be given by place."""
    with pytest.raises(TypeError):
        fit_conformal_gate(SCORES, LABELS, 0.1, 0.2)  # type: ignore[misc]


@pytest.mark.parametrize(
    "collected",
    [
        "2026-01-31",
        date(2026, 1, 31),
        datetime(2026, 1, 31, 12),
        ("2026-01-31", date(2026, 1, 31)),
        "2026-01-31T10:00",
    ],
    ids=named,
)
def test_days_in_any_form(collected: Any) -> None:
    """A day may be a text or a date, alone or as first and last."""
    gate = fit_conformal_gate(SCORES, LABELS, collected=collected)
    assert gate.guarantee.collected == ("2026-01-31", "2026-01-31")


@pytest.mark.parametrize(
    "alpha", ["1/10", 0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.float32(0.1)]
)
def test_levels_in_any_form_give_the_same_gate(alpha: Any) -> None:
    """One tenth is one tenth in every form, and the level used is reported."""
    gate = fit_conformal_gate(SCORES, LABELS, alpha)
    assert gate.fingerprint == fit_conformal_gate(SCORES, LABELS).fingerprint
    assert gate.alpha == gate.alpha_reject == 0.1


# --- predict


BAD_SCORES: list[tuple[str, Kinds, str, Any]] = [
    ("nan", ValueError, "must be finite; got nan", math.nan),
    ("inf", ValueError, "must be finite; got inf", math.inf),
    ("-inf", ValueError, "must be finite; got -inf", -math.inf),
    ("numpy nan", ValueError, "must be finite; got nan", np.float32("nan")),
    ("None", EITHER, "must .*got .*None", None),
    ("text", EITHER, "must .*got .*(str|'0.9')", "0.9"),
    ("bool", EITHER, "must .*got ", True),
    ("numpy bool", EITHER, "must .*got ", np.True_),
    ("complex", EITHER, "must .*got ", 0.9j),
    ("list", EITHER, "must .*got ", [0.9]),
    ("Fraction", EITHER, "must .*got ", Fraction(9, 10)),
    ("percentage", ValueError, "must be fractions? in .*got 92.*percentage", 92),
    ("percentage float", ValueError, "must be fractions? in .*got 92.5.*percentage", 92.5),
    ("above one", ValueError, "must be fractions? in .*got 1.0001", 1.0001),
    ("negative", ValueError, "must be fractions? in .*got -0.2", -0.2),
    ("huge", ValueError, "must be fractions? in .*got ", 1e300),
    ("masked", EITHER, "must ", np.ma.masked),
]


@pytest.mark.parametrize(
    ("kind", "says", "odd"), [case[1:] for case in BAD_SCORES], ids=[case[0] for case in BAD_SCORES]
)
def test_a_bad_score_is_refused_everywhere(gate: ConformalGate, kind: Kinds, says: str, odd: Any) -> None:
    """One bad score is refused alone and among good ones, by every way to decide, and nothing is decided."""
    before = gate.to_dict()
    one = rf"(?s)^`score` {says}"
    many = rf"(?s)^`scores` {says}"
    refuse(kind, one, lambda: gate.predict_one(odd))
    refuse(kind, one, lambda: predict_one(odd, gate))
    mixed = [0.5, odd, 0.9]
    if isinstance(odd, bool | np.bool_):
        mixed = [odd, odd]
    calls: list[Callable[[], Any]] = [
        lambda: gate.predict(mixed),
        lambda: gate.p_values(mixed),
        lambda: apply_conformal_gate(mixed, gate),
        lambda: evaluate_conformal_gate(mixed, [0, 1, 1][: len(mixed)], gate),
        lambda: apply_conformal_gate(mixed, Thresholds(0.4, 0.5)),
    ]
    for call in calls:
        refuse(
            EITHER if isinstance(odd, list | np.bool_) else kind,
            many if odd is not None else "^`scores` must",
            call,
        )
    assert gate.to_dict() == before


@pytest.mark.parametrize(
    "scores",
    [[[0.5]], np.zeros((2, 2)), 0.5, "0.5", None, {0.5}, {0.5: 1}, np.array(0.5), object()],
    ids=named,
)
def test_a_batch_is_one_column(gate: ConformalGate, scores: Any) -> None:
    """What is not one column of scores is refused."""
    for call in (gate.predict, gate.p_values, lambda s: apply_conformal_gate(s, Thresholds(0.4, 0.5))):
        refuse(EITHER, "^`scores` must ", lambda c=call: c(scores))


def test_an_empty_batch_is_decided(gate: ConformalGate) -> None:
    """No scores give no decisions, with columns of length 0."""
    found = gate.predict([])
    assert len(found) == 0
    assert found.decision.tolist() == found.reason_code.tolist() == found.prediction_sets == list(found) == []
    assert found.accepted.shape == (0,)
    assert [p.tolist() for p in gate.p_values([])] == [[], []]


@pytest.mark.parametrize("bad", [3, -4], ids=named)
def test_predictions_have_their_rows_and_no_others(gate: ConformalGate, bad: int) -> None:
    """An index beyond the rows is an IndexError; negative ones count from the end."""
    found = gate.predict([0.1, 0.5, 0.9])
    assert found[-1] == found[2] == gate.predict_one(0.9)
    assert found[1:] == [found[1], found[2]]
    with pytest.raises(IndexError):
        found[bad]


def test_percentages_where_fractions_were_fitted(gate: ConformalGate) -> None:
    """A whole batch of percentages is refused, and the error says how to make fractions of them."""
    message = refuse(ValueError, "^`scores` must be fractions", lambda: gate.predict([92.0, 15.0, 50.0]))
    assert "divide by 100" in message


def test_fractions_where_percentages_were_fitted(raw_gate: ConformalGate) -> None:
    """The reverse says so too: fractions given to a gate on percentages are called fractions."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutOfRangeWarning)
        with pytest.raises((ValueError, OutOfRangeWarning), match="fractions"):
            raw_gate.predict([0.92, 0.15])
        with pytest.raises((ValueError, OutOfRangeWarning), match="fractions"):
            raw_gate.predict_one(0.92)


def test_percentages_given_to_a_raw_gate_on_fractions_are_out_of_range() -> None:
    """A raw gate that was fitted on fractions warns of percentages."""
    gate = fit_conformal_gate(SCORES, LABELS, score_kind="raw")
    with pytest.warns(OutOfRangeWarning):
        gate.predict([92.0])


# --- evaluate


def test_a_bad_evaluation_is_refused(gate: ConformalGate) -> None:
    """Labels and scores of an evaluation are held to the same rules as those of a fit."""
    cases: list[tuple[Kinds, str, Any, Any]] = [
        (ValueError, "^`labels` must have one entry for each of the 2", [0.1, 0.9], [0]),
        (ValueError, "^`labels` must be 0 or 1", [0.1, 0.9], [0, 2]),
        (EITHER, "^`labels` must be 0 or 1", [0.1, 0.9], [0, None]),
        (EITHER, "^`labels` must be 0 or 1", [0.1, 0.9], ["0", "1"]),
        (ValueError, "^`scores` must hold at least one score; got none", [], []),
        (ValueError, "^`scores` must be finite", [0.1, math.nan], [0, 1]),
        (EITHER, "^`scores` must ", 0.5, 1),
    ]
    for kind, pattern, scores, labels in cases:
        refuse(kind, pattern, lambda s=scores, y=labels: evaluate_conformal_gate(s, y, gate))


@pytest.mark.parametrize("labels", [[1, 1], [0, 0]], ids=named)
def test_an_evaluation_of_one_class_reports_what_it_can(gate: ConformalGate, labels: list[int]) -> None:
    """One class missing among held-out rows is no error: its rates are null, never zero."""
    found = evaluate_conformal_gate([0.1, 0.9], labels, gate).to_dict()
    absent, present = ("0", "1") if labels[0] else ("1", "0")
    assert found[f"n{absent}"] == 0
    assert found[f"coverage_{absent}"]["rate"] is None
    assert found[f"coverage_{present}"]["rate"] is not None


@pytest.mark.parametrize("odd", [None, 5, "gate", object(), {"q0": 0.4}, (0.4, 0.5)], ids=named)
def test_what_is_no_gate_is_refused(odd: Any) -> None:
    """Something that is no gate is refused by name in all three functions."""
    refuse(TypeError, "^`gate` must ", lambda: predict_one(0.5, odd))
    refuse(TypeError, "^`gate` must ", lambda: apply_conformal_gate([0.5], odd))
    refuse(TypeError, "^`gate` must ", lambda: evaluate_conformal_gate([0.5], [1], odd))


# --- loose thresholds


@pytest.mark.parametrize("value", [math.nan, None, "0.5", True, [0.5]], ids=named)
def test_loose_thresholds_are_numbers(value: Any) -> None:
    """Thresholds are numbers or infinite; nan is neither."""
    refuse(EITHER, "^`q0` must be a number", lambda: Thresholds(value, 0.5))
    refuse(EITHER, "^`q1` must be a number", lambda: Thresholds(0.5, value))


def test_loose_thresholds_have_a_level() -> None:
    """The level of loose thresholds is checked like any other."""
    refuse(ValueError, "^`alpha` must be strictly between", lambda: Thresholds(0.5, 0.5, 1.5))


def test_loose_thresholds_keep_a_label_in_either_form() -> None:
    """Label 1 is kept if 1 - s <= q1 or s >= 1 - q1: a score at its own threshold is never lost."""
    for score in (i / 100 for i in range(101)):
        loose = Thresholds(q0=score, q1=1 - score)
        assert loose.predict_one(score).prediction_set == (0, 1), score
        assert loose.predict([score]).prediction_sets == [(0, 1)], score


def test_loose_thresholds_meet_narrow_scores_in_their_precision() -> None:
    """A float32 score at a float64 threshold keeps its label 0, alone and in a batch alike."""
    for at in (i / 100 for i in range(101)):
        loose = Thresholds(q0=at, q1=math.inf)
        batch = loose.predict(np.array([at], dtype=np.float32))
        assert batch.prediction_sets == [(0, 1)], at
        assert loose.predict_one(np.float32(at)).prediction_set == (0, 1), at
        assert batch[0].prediction_set == (0, 1), at


def test_loose_thresholds_decide_like_the_gate_they_came_from(gate: ConformalGate) -> None:
    """q0 and q1 of a gate decide as the gate, but for rounding at a threshold; they claim nothing."""
    loose = Thresholds(gate.q0, gate.q1, gate.alpha)
    grid = np.linspace(0.0, 1.0, 1013)
    assert apply_conformal_gate(grid, loose).decision.tolist() == gate.predict(grid).decision.tolist()
    one = predict_one(0.9, loose)
    assert (one.p_value_0, one.p_value_1, one.guarantee.holds) == (None, None, False)
    refuse(EITHER, "^`groups?` must be left out", lambda: loose.predict_one(0.5, "a"))
    refuse(EITHER, "^`groups?` must be left out", lambda: loose.predict([0.5], ["a"]))


def test_infinite_loose_thresholds_abstain() -> None:
    """Infinite thresholds keep both labels everywhere."""
    found = Thresholds(math.inf, math.inf).predict([0.0, 0.5, 1.0])
    assert found.decision.tolist() == ["abstain"] * 3
    assert found.reason_code.tolist() == ["gate_infinite"] * 3
    assert found[1].margin_to_threshold is None


# --- pandas


@pytest.mark.needs_extra("test")
def test_series_are_paired_by_one_index_everywhere(gate: ConformalGate) -> None:
    """Columns with different indexes are refused in fit and in evaluate; with one index they work."""
    import pandas as pd

    table = pd.DataFrame({"s": SCORES, "y": LABELS}, index=range(100, 118))
    assert fit_conformal_gate(table["s"], table["y"]).fingerprint == gate.fingerprint
    assert evaluate_conformal_gate(table["s"], table["y"], gate).n == 18
    assert gate.predict(table["s"])[17] == gate.predict_one(0.95)
    other = table["y"].iloc[::-1]
    refuse(ValueError, "^`labels` must have the index", lambda: fit_conformal_gate(table["s"], other))
    refuse(
        ValueError, "^`labels` must have the index", lambda: evaluate_conformal_gate(table["s"], other, gate)
    )
    ids = table["y"].rename("id").reset_index()["index"]
    refuse(
        ValueError,
        "^`row_ids` must have the index",
        lambda: fit_conformal_gate(table["s"], table["y"], row_ids=ids),
    )


def test_a_mapping_is_a_provenance() -> None:
    """Provenance may be given as a mapping of its five names."""
    with quiet():
        gate = fit_conformal_gate(SCORES, LABELS, provenance={"policy": "p", "embedder": "e"})
    assert gate.provenance == Provenance(policy="p", embedder="e")


@pytest.mark.needs_extra("test")
@pytest.mark.parametrize("fit", [fit_conformal_gate, partial(fit_risk_gate, target_risk=0.5)])
def test_kinds_of_negatives_pair_by_index(fit: Any) -> None:
    """A column of kinds in another order than the scores is refused, never paired by position."""
    import pandas as pd

    table = pd.DataFrame({"s": [0.1] * 9 + [0.9] * 9, "y": [0] * 9 + [1] * 9, "k": ["near_miss"] * 18})
    with quiet():
        fit(table["s"], table["y"], negatives=table["k"])
    turned = table["k"].iloc[::-1]
    refuse(
        ValueError, "^`negatives` must have the index", lambda: fit(table["s"], table["y"], negatives=turned)
    )
