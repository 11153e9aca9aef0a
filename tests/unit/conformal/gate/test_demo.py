"""The demonstration: right numbers, and no claim that one draw cannot carry."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom

from rag_confidence.conformal.gate.demo import run_demo
from rag_confidence.errors import SmallCalibrationWarning
from rag_confidence.synthetic import KINDS, accepted_above, rag_benchmark


def test_rates_are_those_of_sorted_lists() -> None:
    """Every rate of every method equals a count over the second thousand rows of the benchmark."""
    report, rows = run_demo(seed=3, alpha="0.1"), rag_benchmark(3)
    known, new = rows.take(slice(1000)), rows.take(slice(1000, None))
    low, high = np.sort(known.scores[~known.labels]), np.sort(known.scores[known.labels])
    k0, k1 = (math.ceil((len(part) + 1) * 9 / 10) for part in (low, high))
    assert (report.q0, report.t1) == (low[k0 - 1], high[-k1])
    assert (report.n0, report.n1) == (len(low), len(high))
    cuts = [(0.6, 0.6), (0.7, 0.7), (0.8, 0.8), (report.q0, report.t1)]
    for method, (q0, t1) in zip(report.methods, cuts, strict=True):
        accept = (new.scores > q0) & (new.scores >= t1)
        reject = (new.scores <= q0) & (new.scores < t1)
        assert method.false_sufficiency_rate == pytest.approx(accept[~new.labels].mean(), abs=1e-12)
        assert method.sufficient_accepted == pytest.approx(accept[new.labels].mean(), abs=1e-12)
        assert method.selective_risk == pytest.approx((~new.labels)[accept].mean(), abs=1e-12)
        assert method.acceptance_rate == accept.mean()
        assert method.rejection_rate == pytest.approx(reject.mean(), abs=1e-12)
        assert method.abstention_rate == pytest.approx(1 - accept.mean() - reject.mean(), abs=1e-12)
        assert method.true_false_sufficiency_rate == accepted_above(max(q0, t1))[0]
    assert report.gate.coverage_0 == pytest.approx((new.scores[~new.labels] <= report.q0).mean(), abs=1e-12)
    assert report.gate.coverage_1 == pytest.approx((new.scores[new.labels] >= report.t1).mean(), abs=1e-12)
    assert report.methods[0].coverage_0 is None


def test_the_band_is_beta_binomial() -> None:
    """The band holds the share of lost labels with 95 %, for these numbers of rows."""
    report = run_demo(seed=3, alpha="0.1")
    rank = math.ceil((report.n0 + 1) * 9 / 10)
    law = betabinom(report.test_n0, report.n0 - rank + 1, rank)
    low, high = (round(end * report.test_n0) for end in report.fsr_band)
    assert law.cdf(low - 1) <= 0.025 <= law.cdf(low)
    assert law.sf(high) <= 0.025 <= law.sf(high - 1)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from(["0.2", "0.1", "0.05"]))
def test_the_sentence_says_where_the_rate_lies(seed: int, alpha: str) -> None:
    """Within, above or below the band, as the numbers are; nothing is said to have held."""
    report = run_demo(seed, alpha)
    rate, (low, high) = report.gate.false_sufficiency_rate, report.fsr_band
    place = "within" if low <= rate <= high else "above" if rate > high else "below"
    assert f"{rate:.4f}, {place} the exact 95% band [{low:.4f}, {high:.4f}]" in report.sentence
    assert "held" not in str(report)


def test_about_one_draw_in_twenty_lies_outside_its_band() -> None:
    """Over 60 seeds the sentence says "within" as often as a band of 95 % should."""
    within = sum("within the exact" in run_demo(seed).sentence for seed in range(60))
    assert within >= 52


def test_fixed_thresholds_are_far_above_the_gate() -> None:
    """The true rates: .33, .24 and .15 for the fixed thresholds, near .10 for the gate."""
    report = run_demo()
    true = [method.true_false_sufficiency_rate for method in report.methods]
    assert true[:3] == pytest.approx([0.33, 0.24, 0.15], abs=0.005)
    assert true[3] == pytest.approx(0.1, abs=0.03)
    assert sum(kind.share for kind in KINDS if kind.name == "lexical_trap") == 0.15


def test_the_record_survives_json() -> None:
    """Plain values with the same numbers, all of them finite."""
    record = run_demo(seed=1).to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert [method["name"] for method in record["methods"]] == [
        "fixed 0.60",
        "fixed 0.70",
        "fixed 0.80",
        "conformal gate",
    ]
    assert record["methods"][3]["coverage_0"] > 0.85


def test_the_table_has_a_line_for_each_method() -> None:
    """A header, a rule and four lines of equal length; printed, the report holds table and sentence."""
    report = run_demo()
    lines = report.table().splitlines()
    assert len(lines) == 6
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split()[:2] == ["method", "FSR"]
    assert report.table() in str(report)
    assert " ".join(report.sentence.split()[:9]) in str(report)
    assert "alpha 0.1" in str(report)


def test_one_seed_gives_one_report() -> None:
    """The same arguments repeat every number; another seed does not."""
    assert run_demo(5) == run_demo(5)
    assert run_demo(5).methods != run_demo(6).methods


def test_a_level_that_the_rows_do_not_support_is_said_to_be_so() -> None:
    """At alpha = .001 the gate accepts nothing, warns, and names the rows that it would need."""
    with pytest.warns(SmallCalibrationWarning):
        report = run_demo(seed=1, alpha="0.001")
    assert report.gate.acceptance_rate == 0.0
    assert report.gate.selective_risk is None
    assert "(999 would): the gate accepts nothing" in report.sentence
    assert (report.to_dict()["q0"], report.to_dict()["t1"]) == (None, None)
    assert report.table().count(" - ") == 1


def test_errors_name_the_argument() -> None:
    """A negative seed and a level outside (0, 1) are refused by name."""
    with pytest.raises(ValueError, match="`seed` must be an integer of at least 0; got -1"):
        run_demo(seed=-1)
    with pytest.raises(ValueError, match=r"`alpha` must be strictly between 0 and 1; got 2\.0"):
        run_demo(alpha=2.0)
