"""Every finding of a diagnosis: a log that has it, with its numbers, and one next to it that does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieval_logs import BASE, Records, healthy, log_of

from rag_confidence import MetricPolicy, auroc, plan
from rag_confidence.conformal.binomial import clopper_pearson
from rag_confidence.conformal.separation import auroc_interval
from rag_confidence.learning.diagnose import diagnose
from rag_confidence.learning.diagnosis import Diagnosis
from rag_confidence.learning.findings import Finding
from rag_confidence.learning.log_report import SAME
from rag_confidence.learning.separation_report import rows_to_clear

N = 300
RECORDS, LABELS = healthy(N)
NO_SIGNALS = {name: None for name in BASE if name.startswith("signals.")}


def with_column(name: str, values: Any, records: Records = RECORDS) -> Records:
    """The healthy log with one key replaced, by one value or one for each record."""
    column = values if isinstance(values, list) else [values] * len(records)
    return [{**record, name: value} for record, value in zip(records, column, strict=True)]


def first(count: int, value: Any, name: str, records: Records = RECORDS) -> Records:
    """The healthy log with one key replaced in the first `count` records."""
    return [{**r, name: value} if i < count else r for i, r in enumerate(records)]


def column(name: str) -> np.ndarray[Any, Any]:
    """A column of the healthy log."""
    return np.array([record[name] for record in RECORDS])


def kpi_of(values: Any) -> Records:
    """The healthy log with another KPI."""
    return with_column("kpi", np.asarray(values, dtype=float).tolist())


HEALTHY = {True: diagnose(RECORDS, LABELS), False: diagnose(RECORDS)}


def diagnosed(records: Records, labels: Any) -> Diagnosis:
    """`diagnose`, once for the healthy log."""
    if records is RECORDS and (labels is None or labels is LABELS):
        return HEALTHY[labels is LABELS]
    return diagnose(records, labels)


def only(found: Diagnosis, code: str) -> Finding:
    """The one finding with this code."""
    (one,) = found.of(code)
    return one


def noise(seed: int = 1) -> np.ndarray[Any, Any]:
    """Numbers in [0, 1] that know nothing."""
    return np.random.default_rng(seed).random(N)


# Code -> a log that has the finding and one that just does not, each with labels or None.
Case = tuple[Records, Any]
CASES: dict[str, Callable[[], tuple[Case, Case]]] = {
    # Thresholds
    "threshold_never_fires": lambda: (
        (kpi_of(0.45 + 0.5 * column("kpi")), LABELS),
        (kpi_of(np.append(0.44, 0.45 + 0.5 * column("kpi")[1:])), LABELS),
    ),
    "threshold_always_fires": lambda: (
        (kpi_of(0.6 * column("kpi")), LABELS),
        (kpi_of(np.append(0.66, 0.6 * column("kpi")[1:])), LABELS),
    ),
    "threshold_nearly_always_fires": lambda: (
        (log_of(40, kpi=[0.7] * 2 + [0.5] * 38), None),
        (log_of(40, kpi=[0.7] * 3 + [0.5] * 37), None),
    ),
    "thresholds_never_decide": lambda: (
        (
            log_of(
                40, kpi=0.9, query_robustness=[0.5] * 5 + [0.9] * 35, support_cohesion=[0.5] * 5 + [0.9] * 35
            ),
            None,
        ),
        (log_of(40, kpi=0.9, query_robustness=[0.5] * 5 + [0.9] * 35, support_cohesion=0.9), None),
    ),
    "too_few_for_thresholds": lambda: ((RECORDS[:19], None), (RECORDS[:20], None)),
    "policy_unknown": lambda: ((first(1, "x", "policy_fingerprint"), None), (RECORDS, None)),
    "bands_unused": lambda: ((with_column("signals.query_robustness", 0.9), None), (RECORDS, None)),
    # Separation
    "kpi_separates": lambda: ((RECORDS, LABELS), (kpi_of(noise()), LABELS)),
    "kpi_does_not_separate": lambda: ((kpi_of(noise()), LABELS), (RECORDS, LABELS)),
    "kpi_inverted": lambda: ((RECORDS, ~LABELS), (RECORDS, LABELS)),
    "separation_open": lambda: (healthy(40, shift=0.5), (RECORDS, LABELS)),
    "separation_not_testable": lambda: ((RECORDS[:19], LABELS[:19]), (RECORDS[:20], LABELS[:20])),
    "kpi_like_cosine": lambda: (
        (kpi_of(0.5 + 0.4 * column("signals.max_cosine") + 0.02 * noise()), LABELS),
        (RECORDS, LABELS),
    ),
    "cosine_beats_kpi": lambda: (
        (with_column("signals.max_cosine", (0.3 + 0.4 * LABELS + 0.3 * noise()).tolist()), LABELS),
        (RECORDS, LABELS),
    ),
    "kpi_beats_cosine": lambda: ((RECORDS, LABELS), (kpi_of(noise()), LABELS)),
    # Signals, with labels
    "signal_inverted": lambda: (
        (with_column("signals.query_robustness", (0.9 - 0.5 * LABELS * noise()).tolist()), LABELS),
        (RECORDS, LABELS),
    ),
    "signals_tell": lambda: ((RECORDS, LABELS), (RECORDS, noise() < 0.5)),
    "no_signal_tells": lambda: ((RECORDS, noise() < 0.5), (RECORDS, LABELS)),
    "signals_silent": lambda: ((RECORDS, LABELS), (RECORDS, noise() < 0.5)),
    "signals_beyond_kpi": lambda: (
        (with_column("signals.top_gap", (0.4 * LABELS + noise()).tolist()), LABELS),
        (RECORDS, LABELS),
    ),
    "nothing_beyond_kpi": lambda: (
        (RECORDS, LABELS),
        (with_column("signals.top_gap", (0.4 * LABELS + noise()).tolist()), LABELS),
    ),
    "signals_beat_kpi": lambda: (
        (with_column("signals.top_gap", (0.8 * LABELS + noise()).tolist()), LABELS),
        (RECORDS, LABELS),
    ),
    # Signals, without labels
    "not_assessed": lambda: ((first(1, None, "signals.lambda_2"), None), (RECORDS, None)),
    "signals_constant": lambda: (
        (with_column("signals.lambda_2", 0.5), None),
        (first(1, 0.6, "signals.lambda_2", with_column("signals.lambda_2", 0.5)), None),
    ),
    "driver_at_bounds": lambda: (
        (first(N // 2, 1.0, "signals.answer_localization"), None),
        (first(N // 2 - 1, 1.0, "signals.answer_localization"), None),
    ),
    "signals_redundant": lambda: (
        (RECORDS, None),
        (with_column("signals.mean_top3_cosine", noise().tolist()), None),
    ),
    # The log
    **{
        code: lambda key=key: ((first(10, "other", key), None), (RECORDS, None))  # type: ignore[misc]
        for key, code, _ in SAME
    },
    "nothing_to_score": lambda: (
        ([*RECORDS, {**RECORDS[0], **NO_SIGNALS, "kpi": 0.0}], None),
        (RECORDS, None),
    ),
    "fewer_than_requested": lambda: (
        (first(1, 5, "k_requested"), None),
        (first(1, None, "k_requested"), None),
    ),
    "rows_dropped": lambda: ((first(2, 3, "evidence.n_dropped_rows"), None), (RECORDS, None)),
    "many_duplicates": lambda: (
        (first(31, 1, "effective_k"), None),
        (first(30, 2, "effective_k"), None),
    ),
    "one_verdict": lambda: (
        (with_column("verdict", "REVIEW"), None),
        (first(1, "ANSWER", "verdict", with_column("verdict", "REVIEW")), None),
    ),
    "nothing_answered": lambda: (
        (first(1, "ABSTAIN", "verdict", with_column("verdict", "REVIEW")), None),
        (first(1, "ANSWER", "verdict", with_column("verdict", "REVIEW")), None),
    ),
    "gate_without_threshold": lambda: (
        (first(1, "gate_infinite", "reason_code"), None),
        (first(1, "gate_ambiguous", "reason_code"), None),
    ),
    "lexical_vectors": lambda: ((first(1, "lexical", "evidence.embedding_backend"), None), (RECORDS, None)),
    "answered": lambda: ((RECORDS, LABELS), (RECORDS, None)),
    "kpi_tied": lambda: ((first(16, 0.5, "kpi"), None), (first(15, 0.5, "kpi"), None)),
    "kpi_saturated": lambda: (
        (kpi_of(np.where(np.arange(N) < 61, 1e-5 * noise(), column("kpi"))), None),
        (kpi_of(np.where(np.arange(N) < 60, 1e-5 * noise(), column("kpi"))), None),
    ),
    # Next steps
    "no_labels": lambda: ((RECORDS, None), (RECORDS, LABELS)),
    "one_class": lambda: ((RECORDS, LABELS | True), (RECORDS, LABELS)),
    "too_few_labels": lambda: ((RECORDS, np.arange(N) < 8), (RECORDS, np.arange(N) < 9)),
    "more_labels": lambda: ((RECORDS, np.arange(N) < 109), (RECORDS, np.arange(N) < 110)),
    "near_misses_missing": lambda: (
        (with_column("signals.max_cosine", (0.2 * noise() + 0.15 * LABELS).tolist()), LABELS),
        (RECORDS, LABELS),
    ),
    "topic_gaps_missing": lambda: (
        (
            with_column("signals.max_cosine", np.where(noise() < 0.1, 0.1, noise(2)).clip(0.1).tolist()),
            LABELS,
        ),
        (first(1, -0.9, "signals.max_cosine"), LABELS),
    ),
    "grounding_not_fitted": lambda: (
        (with_column("embedder", None, with_column("profile_fingerprint", None)), None),
        (with_column("embedder", None), None),
    ),
    "no_profile": lambda: ((first(1, None, "profile_fingerprint"), None), (RECORDS, None)),
    "short_candidate_lists": lambda: (
        (with_column("signals.head_tail_gap", None), None),
        (first(N - 1, None, "signals.head_tail_gap"), None),
    ),
    "mixed_candidates": lambda: (
        (first(1, None, "signals.head_tail_gap"), None),
        (first(1, None, "signals.head_tail_gap", first(1, 2, "k_returned")), None),
    ),
    "ready_for_gate": lambda: ((RECORDS, LABELS), (kpi_of(noise()), LABELS)),
}


@pytest.mark.parametrize("code", [*CASES])
def test_a_finding_is_there_when_it_should_be_and_only_then(code: str) -> None:
    """One log has it, the one next to it does not."""
    having, lacking = CASES[code]()
    assert diagnosed(*having).of(code)
    assert not diagnosed(*lacking).of(code)


def codes_in_the_source() -> set[str]:
    """Every code that the package can give."""
    folder = Path(diagnose.__code__.co_filename).parent
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))]
    return {code for text in texts for code in re.findall(r'finding\(\s*"(\w+)"', text)} | {
        s[1] for s in SAME
    }


def test_every_code_has_a_case() -> None:
    """A new finding comes with a log that has it and one that does not."""
    assert codes_in_the_source() == set(CASES)


def test_the_docs_list_every_code() -> None:
    """A reader finds each code in the table of docs/diagnose.md, and no code that does not exist."""
    page = (Path(__file__).parents[3] / "docs" / "diagnose.md").read_text(encoding="utf-8")
    table = page.partition("## All findings")[2]
    first_cells = "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", first_cells)) == codes_in_the_source()


def test_a_healthy_log_has_nothing_to_fix() -> None:
    """No problem and no warning where all is well and labels suffice; the only advice is to fit a gate."""
    found = HEALTHY[True]
    assert [one.code for one in found.findings if one.severity != "note"] == ["ready_for_gate"]


# Numbers


def test_the_numbers_of_an_inert_threshold() -> None:
    """Counts, observed range, the exact limit of the true rate, and the value for one in ten."""
    records = log_of(40, kpi=[0.5 + 0.01 * i for i in range(40)])
    one = next(f for f in diagnose(records).of("threshold_never_fires") if f.numbers["name"] == "review_at")
    assert one.numbers == {
        "name": "review_at",
        "value": 45.0,
        "n": 40,
        "fired": 0,
        "decided": 0,
        "lowest": 50.0,
        "highest": 89.0,
        "for_tenth": 53.1,
        "for_tenth_fires": 4,
    }
    # 1 - .05^(1/40)
    assert "fewer than 7.2 %" in one.sentence
    assert "53.1 would have fired on 4 of 40 (10 %)" in one.action


def test_a_threshold_that_always_fires_says_what_that_means() -> None:
    """Nothing can be answered; with the gate, everything is off topic."""
    low = log_of(40, kpi=[0.3 + 0.01 * i for i in range(30)] + [0.1] * 10, topical_grounding=0.4)
    found = {one.numbers["name"]: one for one in diagnose(low).of("threshold_always_fires")}
    assert set(found) == {"grounding_min", "answer_at"}
    assert "Every retrieval is called off topic." in found["grounding_min"].sentence
    assert "Nothing can be answered." in found["answer_at"].sentence
    assert found["grounding_min"].severity == "problem"


def test_a_floor_of_zero_was_switched_off_on_purpose() -> None:
    """It never fires, and that is no finding."""
    from dataclasses import replace

    policy = MetricPolicy()
    policy = replace(policy, floors=replace(policy.floors, query_robustness=0.0), grounding_min=0.0)
    records = with_column("policy_fingerprint", policy.fingerprint)
    names = {one.numbers["name"] for one in diagnose(records, policy=policy).of("threshold_never_fires")}
    assert not names & {"floors.query_robustness", "grounding_min"}


def test_the_numbers_of_separation_are_those_of_the_kpi() -> None:
    """AUROC and interval of the public functions, rounded to four digits."""
    numbers = only(HEALTHY[True], "kpi_separates").numbers
    area = auroc(column("kpi"), LABELS)
    assert area is not None
    low, high = auroc_interval(area, 150, 150)
    wanted = {"n0": 150, "n1": 150, "floor": 0.6} | {
        name: float(f"{value:.4g}") for name, value in (("auroc", area), ("low", low), ("high", high))
    }
    assert numbers == wanted


@pytest.mark.parametrize(("area", "n0", "n1"), [(0.65, 20, 20), (0.7, 10, 40), (0.62, 300, 200)])
def test_rows_to_clear_is_near_the_smallest_that_does(area: float, n0: int, n1: int) -> None:
    """From that many rows on the lower end clears the floor; with 4 % fewer it does not."""
    rows = rows_to_clear(area, n0, n1, 0.6)
    assert rows is not None

    def low(count: float) -> float:
        return auroc_interval(area, round(count * n0 / (n0 + n1)), round(count * n1 / (n0 + n1)))[0]

    assert low(1.02 * rows) >= 0.6 > low(0.96 * rows)


def test_no_number_of_rows_lifts_an_auroc_above_itself() -> None:
    """None at the floor, and where more than a million would be needed."""
    assert rows_to_clear(0.6, 20, 20, 0.6) is None
    assert rows_to_clear(0.6001, 20, 20, 0.6) is None


def test_the_comparison_with_the_cosine_states_both() -> None:
    """The two AUROCs, their difference on the same rows, and its n."""
    one = only(HEALTHY[True], "kpi_beats_cosine")
    kpi, cosine = (auroc(column(name), LABELS) for name in ("kpi", "signals.max_cosine"))
    assert kpi is not None
    assert cosine is not None
    assert one.numbers["auroc_kpi"] == float(f"{kpi:.4g}")
    assert one.numbers["auroc_cosine"] == float(f"{cosine:.4g}")
    assert one.numbers["value"] == float(f"{cosine - kpi:.4g}")
    assert one.numbers["low"] < one.numbers["value"] < one.numbers["high"] < 0
    assert f"AUROC {cosine:.3f}".replace("0.", ".") in one.sentence
    assert "n = 300" in one.sentence


def test_a_kpi_that_ranks_as_the_cosine_does_is_said_to() -> None:
    """Without any difference there is nothing to test, and the finding says that both are the same."""
    one = only(diagnose(kpi_of(0.5 + 0.4 * column("signals.max_cosine")), LABELS), "kpi_like_cosine")
    assert "rank the classes alike" in one.sentence
    assert one.numbers["auroc_kpi"] == one.numbers["auroc_cosine"]


def test_an_inverted_driver_names_its_weight() -> None:
    """What works against the KPI is said with the weight that the records used."""
    records = with_column("signals.query_robustness", (0.9 - 0.5 * LABELS * noise()).tolist())
    one = only(diagnose(records, LABELS), "signal_inverted")
    assert one.numbers["name"] == "query_robustness"
    assert one.numbers["weight"] == 0.15
    assert "Its weight of 0.15 in the KPI works against you here." in one.sentence
    less_is_good = with_column("signals.second_bar", (0.5 * LABELS + noise()).tolist())
    assert only(diagnose(less_is_good, LABELS), "signal_inverted").numbers["name"] == "second_bar"
    good = with_column("signals.second_bar", (1 - 0.5 * LABELS * noise()).tolist())
    assert not diagnose(good, LABELS).of("signal_inverted")


def test_redundant_signals_form_groups() -> None:
    """Chains are one group; falling is as redundant as rising; nan and few rows are not compared."""
    base = noise(3)
    columns = {"top_gap": base, "lambda_2": -base, "flip_angle": base + 0.01 * noise(4)}
    records = RECORDS
    for name, values in columns.items():
        records = with_column(f"signals.{name}", values.tolist(), records)
    groups = only(diagnose(records), "signals_redundant").numbers["groups"]
    assert sorted(map(sorted, groups)) == [
        ["flip_angle", "lambda_2", "top_gap"],
        ["max_cosine", "mean_top3_cosine"],
    ]
    assert not diagnose(RECORDS[:19]).of("signals_redundant")


def test_a_missing_driver_is_a_warning_and_a_missing_signal_a_note() -> None:
    """What the KPI is made of matters more."""
    assert only(diagnose(first(3, None, "signals.lambda_2")), "not_assessed").severity == "note"
    one = only(diagnose(first(3, None, "signals.support_cohesion")), "not_assessed")
    assert (one.severity, one.numbers["missing"]) == ("warning", {"support_cohesion": 3})


def test_mixtures_are_counted_and_pooling_is_warned_of() -> None:
    """Two embedders are a problem; two gates leave the numbers as they are."""
    one = only(diagnose(first(10, "e2", "embedder")), "mixed_embedders")
    assert one.numbers["counts"] == {"qwen3-embedding:0.6b": 290, "e2": 10}
    assert one.severity == "problem"
    assert only(diagnose(first(10, "g", "gate_fingerprint")), "mixed_gates").severity == "note"


def test_copies_are_counted_over_passages_and_lists() -> None:
    """31 lists of three with one distinct passage: 62 copies of 900, and 31 lists at most half distinct."""
    numbers = only(diagnose(first(31, 1, "effective_k")), "many_duplicates").numbers
    assert numbers == {"copies": 62, "passages": 900, "half_or_less": 31, "n": 300}


def test_answered_gives_both_rates_with_exact_intervals() -> None:
    """The share of each class that was answered, by Clopper-Pearson."""
    numbers = only(HEALTHY[True], "answered").numbers
    answered = column("verdict") == "ANSWER"
    for name, of in (("sufficient", LABELS), ("insufficient", ~LABELS)):
        count = int(answered[of].sum())
        low, high = clopper_pearson(count, 150)
        assert (numbers[name]["count"], numbers[name]["total"]) == (count, 150)
        assert numbers[name]["low"] == float(f"{low:.4g}")
        assert numbers[name]["high"] == float(f"{high:.4g}")


@pytest.mark.parametrize("alpha", [0.1, "0.05"])
def test_labels_to_collect_are_those_of_plan(alpha: Any) -> None:
    """Numbers for any decision, for a pac gate and for a stable rate, at the level asked for."""
    need = plan(alpha).insufficient
    numbers = only(diagnose(RECORDS, alpha=alpha), "no_labels").numbers
    for name in ("n_finite", "n_pac", "n_close"):
        assert numbers[name] == [getattr(need, name)] * 2
    few = only(diagnose(RECORDS, np.arange(N) >= 5, alpha=alpha), "too_few_labels")
    assert few.numbers == {
        "label": 0,
        "n": 5,
        "n_finite": need.n_finite,
        "n_close": need.n_close,
        "missing": need.n_close - 5,
    }
    assert f"Collect {need.n_close - 5} more insufficient labels" in few.action
    some = only(diagnose(RECORDS, np.arange(N) >= 20, alpha=alpha), "more_labels")
    assert some.numbers["missing"] == need.n_close - 20


def test_negatives_are_told_by_the_best_cosine() -> None:
    """Insufficient rows that look like the sufficient ones are counted from the lowest tenth of these on."""
    cosines = np.where(LABELS, 0.6 + 0.001 * np.arange(N), 0.1 + 0.001 * np.arange(N))
    cosines[[0, 2, 4]] = 0.7
    numbers = only(
        diagnose(with_column("signals.max_cosine", cosines.tolist()), LABELS), "near_misses_missing"
    ).numbers
    assert numbers == {"n0": 150, "n1": 150, "on_topic": 3, "strange": 147}


def test_a_fitted_gate_or_its_own_embedder_need_no_fit() -> None:
    """Neither the embedder that the default was made for nor another centre is warned of."""
    bare = with_column("profile_fingerprint", None)
    assert not diagnose(bare).of("grounding_not_fitted")
    fitted = MetricPolicy(grounding_center=0.3)
    other = with_column("policy_fingerprint", fitted.fingerprint, with_column("embedder", "minilm", bare))
    assert not diagnose(other, policy=fitted).of("grounding_not_fitted")
    stricter = MetricPolicy(answer_at=80)
    other = with_column("policy_fingerprint", stricter.fingerprint, other)
    one = only(diagnose(other, policy=stricter), "grounding_not_fitted")
    assert one.numbers == {"count": 300, "n": 300, "embedders": ["minilm"]}


def test_mixed_candidates_are_counted_among_lists_of_equal_length() -> None:
    """Other lengths are left out, and so are lists so long that they need no candidates."""
    records = first(40, None, "signals.head_tail_gap", first(10, 2, "k_returned"))
    one = only(diagnose(records), "mixed_candidates")
    assert one.numbers == {"count": 260, "n": 290}
    assert one.severity == "warning"
    assert not diagnose(records).of("short_candidate_lists")
    assert not diagnose(with_column("k_returned", 20, records)).of("mixed_candidates")
