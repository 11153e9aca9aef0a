"""The public function: inputs, invariants, the page, and real data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuse
from retrieval_logs import BASE, PASSAGES, QUERY, healthy, log_of

from rag_confidence import MetricPolicy, score, score_many
from rag_confidence.learning.diagnose import diagnose
from rag_confidence.learning.findings import SEVERITIES, by_severity, finding

RECORDS, LABELS = healthy(120)
FOUND = diagnose(RECORDS, LABELS)

# Inputs


@pytest.mark.parametrize(
    ("metrics", "labels", "kind", "message"),
    [
        ([], None, ValueError, "`metrics` must hold at least one retrieval"),
        ([BASE, 1], None, TypeError, r"`metrics\[1\]`"),
        (BASE, None, TypeError, "`metrics` must be a MetricsBatch"),
        ([{"kpi": 0.5}], None, ValueError, "`signals"),
        (log_of(3, max_cosine=[0.1, 0.2, float("inf")]), None, ValueError, r"metrics\[2\]"),
        (RECORDS, LABELS[1:], ValueError, "`labels` must have one entry for each of the 120 rows"),
        (RECORDS, [0.5] * 120, ValueError, "`labels` must be 0 or 1"),
        (RECORDS, [float("nan")] * 120, ValueError, "`labels` must be 0 or 1"),
        (RECORDS, ["no"] * 120, ValueError, "`labels` must be 0 or 1"),
        (RECORDS, 1, TypeError, "`labels` must be an array or a list"),
    ],
)
def test_bad_input_is_refused(metrics: Any, labels: Any, kind: type[Exception], message: str) -> None:
    """Each refusal names the argument, what it must be and what came."""
    refuse(kind, message, lambda: diagnose(metrics, labels))


def test_a_policy_must_be_one_that_scored() -> None:
    """Another policy's thresholds say nothing about these records."""
    refuse(ValueError, "one that scored", lambda: diagnose(RECORDS, policy=MetricPolicy(answer_at=70)))
    refuse(TypeError, "`policy` must be a MetricPolicy", lambda: diagnose(RECORDS, policy="default"))  # type: ignore[arg-type]
    refuse(ValueError, "`alpha`", lambda: diagnose(RECORDS, alpha=2.0))


def test_every_form_of_a_log_gives_the_same_diagnosis() -> None:
    """A batch, its metrics, its records and those read back from JSONL."""
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((40, 8))
    batch = score_many(queries, queries[:, None] + rng.standard_normal((40, 4, 8)), embedder="e")
    lines = [json.dumps(record) for record in batch.to_dicts()]
    labels = rng.random(40) < 0.5
    forms: list[Any] = [batch, [*batch], batch.to_dicts(), [json.loads(line) for line in lines]]
    first, *others = [diagnose(form, labels).to_dict() for form in forms]
    assert all(other == first for other in others)


def test_a_batch_knows_its_policy_and_records_do_not() -> None:
    """Thresholds of a policy of one's own are checked for a batch, or where the policy is handed in."""
    own = MetricPolicy(answer_at=70)
    batch = score_many([QUERY] * 20, [PASSAGES] * 20, policy=own)
    assert {use.name: use.value for use in diagnose(batch).thresholds}["answer_at"] == 70.0
    found = diagnose(batch.to_dicts())
    assert found.thresholds == ()
    assert found.of("policy_unknown")[0].numbers == {"count": 20, "n": 20}
    assert diagnose(batch.to_dicts(), policy=own).to_dict() == diagnose(batch).to_dict()


@pytest.mark.needs_extra("test")
def test_labels_may_be_booleans_numbers_or_a_column() -> None:
    """What the other functions take as labels."""
    import pandas

    for form in (LABELS, LABELS.astype(int), LABELS.tolist(), pandas.Series(LABELS)):
        assert diagnose(RECORDS, form).to_dict() == FOUND.to_dict()


@pytest.mark.parametrize("labels", [None, [True]])
def test_one_retrieval_is_a_log(labels: Any) -> None:
    """Nothing is claimed from it, and nothing fails."""
    found = diagnose([score(QUERY, PASSAGES)], labels)
    assert found.of("too_few_for_thresholds")
    assert found.kpi.separation is None
    assert str(found)


@pytest.mark.parametrize("labels", [None, [0, 1, 0, 1]])
def test_a_log_without_anything_scored_is_a_problem(labels: Any) -> None:
    """Empty retrievals have no evidence; the diagnosis says so instead of failing."""
    found = diagnose([score(QUERY, [])] * 4, labels)
    assert found.findings[0].code == "nothing_to_score"
    assert found.findings[0].severity == "problem"
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert str(found)


def test_the_seed_policy_is_recognised() -> None:
    """Its fingerprint is known, and its thresholds are those of the default."""
    batch = score_many([QUERY] * 20, [PASSAGES] * 20, policy=MetricPolicy.seed())
    found = diagnose(batch.to_dicts())
    assert found.thresholds
    assert not found.of("policy_unknown")


# Invariants


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_the_order_of_the_records_is_irrelevant(seed: int) -> None:
    """The same retrievals in any order give the same page and the same numbers, to the last digit."""
    order = np.random.default_rng(seed).permutation(120)
    found = diagnose([RECORDS[i] for i in order], LABELS[order])
    assert str(found) == str(FOUND)
    assert found.to_dict() == FOUND.to_dict()
    assert found.signals == FOUND.signals


def test_p_values_never_stand_without_their_n() -> None:
    """Every sentence with a p-value or an interval says on how many retrievals."""
    for seed in range(4):
        for one in diagnose(*healthy(90, seed, shift=0.5)).findings:
            if " p = " in one.sentence or " p < " in one.sentence or "AUROC" in one.sentence:
                assert "n = " in one.sentence or "insufficient retrievals" in one.sentence, one.sentence


def test_the_record_is_json_and_rounded() -> None:
    """Plain values of at most four digits, nothing that JSON cannot hold."""
    plain = FOUND.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["kpi"]["separation"]["auroc"] == float(f"{FOUND.kpi.separation.auroc:.4g}")  # type: ignore[union-attr]
    assert (plain["n"], plain["n0"], plain["n1"]) == (120, 60, 60)


def test_findings_are_filtered_by_code() -> None:
    """`of` keeps the order of the findings."""
    assert [one.code for one in FOUND.of("answered", "kpi_separates")] == ["answered", "kpi_separates"]
    assert FOUND.of("nothing like it") == ()


def test_the_most_severe_come_first() -> None:
    """Sorting is stable within a severity."""
    codes = [finding(code, severity, "s") for code, severity in zip("abcd", SEVERITIES[::-1], strict=True)]
    assert [one.code for one in by_severity([*codes, finding("e", "problem", "s")])] == list("decba")


def test_new_signals_are_diagnosed_without_being_known() -> None:
    """Keys that a later version adds are looked at like the others."""
    rng = np.random.default_rng(0)
    records = [
        {**record, "signals.zz_new_excess": float(value)}
        for record, value in zip(RECORDS, LABELS + 0.1 * rng.random(120), strict=True)
    ]
    found = diagnose(records, LABELS)
    assert found.signals[-1].name == "zz_new_excess"
    assert next(iter(found.of("signals_tell")[0].numbers["aurocs"])) == "zz_new_excess"
    assert not found.of("signal_inverted")


def test_a_missing_key_is_not_assessed() -> None:
    """Records of an earlier version lack keys; the rest is read."""
    records = [{k: v for k, v in r.items() if k != "signals.flip_angle"} for r in RECORDS[:60]] + RECORDS[60:]
    numbers = diagnose(records, LABELS).of("not_assessed")[0].numbers
    assert numbers["missing"] == {"flip_angle": 60}


# The page


def test_the_page_opens_with_what_matters_and_fits() -> None:
    """Sections in the order of severity, then the tables; no line beyond 110 characters."""
    lines = str(diagnose(log_of(30, kpi=0.9), [0, 1] * 15)).splitlines()
    titles = ["Problems: fix these first", "Warnings", "What to do next", "Good to know"]
    tables = ["Signals, strongest first", "Thresholds of the policy"]
    assert lines[0] == "Diagnosis of 30 retrievals with labels, 15 sufficient and 15 insufficient"
    assert [line for line in lines if line in titles + tables] == titles + tables
    assert max(map(len, lines)) <= 110
    assert "\u00a0" not in "".join(lines)


def test_every_finding_is_on_the_page() -> None:
    """With its code, its sentence and its action, line breaks aside."""
    page = " ".join(str(FOUND).split())
    for one in FOUND.findings:
        assert f"- {one.code}: {one.sentence}" in page
        assert one.action in page


def test_the_representation_counts_findings() -> None:
    """One line; `print` shows the page."""
    assert repr(FOUND).startswith("Diagnosis(120 retrievals, ")
    assert "\n" not in repr(FOUND)


def test_the_tables_show_the_numbers() -> None:
    """The KPI first, then the strongest signal; a threshold with its count."""
    lines = str(FOUND).splitlines()
    at = lines.index("Signals, strongest first")
    assert lines[at + 2].split()[:2] == ["kpi", "120"]
    distances = [abs(s.separation.auroc - 0.5) for s in FOUND.signals if s.separation]
    strongest = FOUND.signals[int(np.argmax(distances))]
    assert lines[at + 3].split()[0] == strongest.name
    use = next(use for use in FOUND.thresholds if use.name == "answer_at")
    row = next(line for line in lines if line.startswith("  answer_at"))
    assert f"{use.fired} of 120" in row


# Real data


def real(data_dir: Path, name: str, embedder: str, n: int) -> tuple[Any, np.ndarray[Any, Any]]:
    """Top 10 lists of the first `n` questions of a set, scored with the default policy, and labels."""
    with np.load(data_dir / name / f"topk_{embedder}.npz") as file:
        lists = {key: file[key][:n] if len(file[key]) > 3 else file[key] for key in file.files}
    with np.load(data_dir / name / f"emb_{embedder}.npz") as file:
        queries, corpus = (file[key].astype(np.float32) for key in ("queries", "corpus"))
    at = lists["ks"].tolist().index(10)
    batch = score_many(queries[:n], corpus[lists["idx"][:, :10]], embedder=embedder, k_requested=10)
    return batch, lists["sufficient"][:, at]


@pytest.mark.needs_data
def test_on_clapnq_the_plain_cosine_is_said_to_be_better(data_dir: Path) -> None:
    """The default KPI separates there, is beaten by the best cosine, and leaves evidence unused."""
    found = diagnose(*real(data_dir, "clapnq", "minilm", 600))
    codes = {one.code for one in found.findings}
    assert {"kpi_separates", "cosine_beats_kpi", "signals_beyond_kpi", "grounding_not_fitted"} <= codes
    numbers = found.of("cosine_beats_kpi")[0].numbers
    assert numbers["auroc_cosine"] == pytest.approx(0.856, abs=0.001)
    assert "AUROC .856 for the cosine" in found.of("cosine_beats_kpi")[0].sentence
    assert not codes & {"more_labels", "too_few_labels", "near_misses_missing", "one_verdict"}


@pytest.mark.needs_data
def test_on_squad2_separation_is_left_open(data_dir: Path) -> None:
    """Near misses: the KPI is better than chance, and a slice of 600 does not show that a gate can use it."""
    found = diagnose(*real(data_dir, "squad2", "minilm", 600))
    (said,) = found.of("separation_open")
    assert said.numbers["low"] < 0.6 < said.numbers["high"]
    assert "better than chance" in said.sentence
    assert said.numbers["rows_needed"] > 600
    assert found.of("kpi_like_cosine")


@pytest.mark.needs_data
def test_thirty_real_retrievals_claim_little(data_dir: Path) -> None:
    """With thirty rows of which few are sufficient, separation is open or cannot be tested."""
    batch, labels = real(data_dir, "squad2", "minilm", 30)
    found = diagnose(batch, labels)
    assert found.of("separation_open", "separation_not_testable", "kpi_does_not_separate")
    assert found.of("more_labels")
    assert not found.of("kpi_separates", "kpi_beats_cosine", "cosine_beats_kpi")
