"""What a fit of a model refuses, warns of and leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_logs import PRIOR, labelled
from refusals import refuse

from rag_confidence.errors import SmallCalibrationWarning, WeakSeparationWarning
from rag_confidence.learning.model import ConfidenceModel
from rag_confidence.learning.prior import Prior
from rag_confidence.learning.shipped_prior import DEFAULT_PRIOR

RECORDS, LABELS = labelled(60)
TEXT = ("signals.text_best", "signals.text_top3")
WITH_TEXT = PRIOR.beside(Prior.of(TEXT, np.zeros(2), np.eye(2)))


def fit(records: Any = RECORDS, labels: Any = LABELS, **more: Any) -> ConfidenceModel:
    """A fit under the prior of the tests."""
    return ConfidenceModel.fit(records, labels, **{"prior": PRIOR, **more})


def test_one_class_is_refused() -> None:
    """Nothing can be told apart; the message says which label is missing."""
    refuse(ValueError, "both classes; got 60 rows, all 1", lambda: fit(labels=np.ones(60)))


@pytest.mark.parametrize(
    ("more", "kind", "pattern"),
    [
        ({"labels": LABELS[:-1]}, ValueError, "one entry for each of the 60 rows"),
        ({"labels": ["yes"] * 60}, ValueError, "0 or 1"),
        ({"row_ids": ["a"] * 60}, ValueError, "differ from each other"),
        ({"row_ids": range(59)}, ValueError, "one entry for each"),
        ({"clusters": [None] * 60}, ValueError, "name every row"),
        ({"text_signal": "auto"}, ValueError, "'off', 'on'"),
        ({"text_signal": "on"}, ValueError, "text signals"),
        ({"prior": 1.0}, TypeError, "must be a Prior"),
        ({"seed": -1}, ValueError, "seed"),
        ({"records": RECORDS[0]}, TypeError, "metrics"),
        ({"records": 7}, TypeError, "metrics"),
    ],
)
def test_what_does_not_go_together_is_refused(
    more: dict[str, Any], kind: type[Exception], pattern: str
) -> None:
    """Every argument is checked, and the message names it."""
    refuse(kind, pattern, lambda: fit(**more))


def test_equal_signals_are_refused() -> None:
    """Sixty times the same retrieval teaches nothing."""
    refuse(ValueError, "signal that varies", lambda: fit(records=[RECORDS[0]] * 60))


@pytest.mark.parametrize(("n", "n0"), [(20, 7), (9, 3)])
def test_few_labels_of_a_class_warn_with_numbers(n: int, n0: int) -> None:
    """Fewer than ten of a class: the fit stands near its prior and says so."""
    records, labels = labelled(n)
    with pytest.warns(SmallCalibrationWarning, match=f"{n0} insufficient and {n - n0} sufficient"):
        fit(records, labels)


def test_rows_of_which_nothing_was_measured_are_left_out_and_counted() -> None:
    """No passages or a zero query: no signal, no lesson, and no row of the model."""
    records, labels = labelled(60)
    empty = [{**record, **dict.fromkeys(PRIOR.names)} for record in records[:4]]
    model = fit([*empty, *records], np.append(np.zeros(4), labels), row_ids=range(64))
    assert model.report.n_unscored == 4
    assert (model.report.n0, model.report.n1) == (20, 40)
    assert model.rows.ids is not None
    assert len(model.rows.ids) == 60
    assert model.coefficients == fit(records, labels).coefficients


def test_signals_that_are_missing_everywhere_are_named() -> None:
    """What was never assessed is unused, and the others are fitted as if it did not exist."""
    records, labels = labelled(60, flip_angle=None)
    model = fit(records, labels)
    assert model.unused == ("signals.flip_angle",)
    assert model.coefficients == fit(records, labels, prior=PRIOR.only(PRIOR.names[:3])).coefficients


def test_text_signals_are_read_on_request_alone() -> None:
    """Off by default, even where every record carries them; on, they are terms like others."""
    rng = np.random.default_rng(0)
    records, labels = labelled(60, text_best=rng.random(60), text_top3=rng.random(60))
    off = fit(records, labels, prior=WITH_TEXT)
    assert not set(TEXT) & {*off.names, *off.unused}
    on = fit(records, labels, prior=WITH_TEXT, text_signal="on")
    assert set(TEXT) <= set(on.names)
    assert off.coefficients == fit(records, labels).coefficients


def test_clusters_stay_together_and_can_forbid_cross_fitting() -> None:
    """All insufficient rows in one cluster cannot be held out: the report has counts alone."""
    clusters = [("bad" if not label else f"q{at}") for at, label in enumerate(LABELS.tolist())]
    assert fit(clusters=clusters).report.folds == 0
    assert fit(clusters=clusters).report.auroc is None
    assert fit(clusters=[at // 2 for at in range(60)]).report.folds == 5


def test_copies_of_rows_do_not_fool_the_report_when_clustered() -> None:
    """Noise with every row twice: without clusters it seems to predict, with them it does not."""
    rng = np.random.default_rng(5)
    wide = Prior.of(PRIOR.names, np.zeros(4), 1e4 * np.eye(4))
    half, _ = labelled(30, **{name.removeprefix("signals."): rng.random(30) for name in PRIOR.names})
    labels = np.tile(rng.permutation(np.arange(30) % 2), 2)
    twice = [*half, *half]
    loose = fit(twice, labels, prior=wide).report.auroc
    tied = fit(twice, labels, prior=wide, clusters=[*range(30), *range(30)]).report.auroc
    assert loose is not None
    assert tied is not None
    assert loose > tied + 0.05


def test_the_seed_changes_the_folds_alone() -> None:
    """Another seed, another report, the same line."""
    one, other = fit(seed=0), fit(seed=1)
    assert one.coefficients == other.coefficients
    assert one.report.brier != other.report.brier


def test_an_iterator_of_records_will_do() -> None:
    """A generator is read once."""
    assert fit(iter(RECORDS)).coefficients == fit().coefficients


def test_the_shipped_prior_is_the_default() -> None:
    """Its fingerprint is on the model."""
    model = ConfidenceModel.fit(RECORDS, LABELS)
    assert model.prior_fingerprint == DEFAULT_PRIOR.fingerprint
    assert set(model.names) | set(model.unused) <= set(DEFAULT_PRIOR.names)


def test_labels_with_the_wrong_sign_warn_with_numbers() -> None:
    """A KPI whose interval lies below one half: the usual cause is 1 for insufficient."""
    kpi = 0.5 * LABELS + 0.4 * np.random.default_rng(0).random(60)
    records, _ = labelled(60, kpi=kpi)
    pattern = r"AUROC 0\.000, 95 % interval 0\.000 to 0\.\d+, on 40 insufficient and 20 .* Check the sign"
    with pytest.warns(WeakSeparationWarning, match=pattern):
        fit(records, ~LABELS)


def test_a_kpi_that_may_be_chance_does_not_warn() -> None:
    """Below one half by less than the interval is no sign of swapped labels."""
    kpi = np.argsort(np.argsort(np.arange(60) - 6 * LABELS)) / 60
    records, labels = labelled(60, kpi=kpi)
    model = fit(records, labels)
    assert model.report.auroc_kpi is not None
    assert model.report.auroc_kpi < 0.5
