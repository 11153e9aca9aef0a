"""The commands on retrievals: they say what the library says, and their exit codes are the findings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import lines_file, run

from rag_confidence import (
    ConformalGate,
    MetricPolicy,
    apply_conformal_gate,
    evaluate_conformal_gate,
    find_lexical_traps,
    fit_conformal_gate,
    fit_risk_gate,
    score,
)

pytestmark = pytest.mark.needs_extra("cli")


def rows(seed: int, n: int = 200) -> list[dict[str, object]]:
    """Labelled scores of two groups."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.5
    scores = np.clip(rng.normal(0.4 + 0.25 * labels, 0.12), 0.0, 1.0)
    return [
        {"id": f"q{at}", "kpi": float(kpi), "label": bool(label), "topic": "ab"[at % 2]}
        for at, (kpi, label) in enumerate(zip(scores, labels, strict=True))
    ]


def column(of: list[dict[str, object]], name: str) -> list[object]:
    """One column of rows."""
    return [row[name] for row in of]


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    """A file of labelled scores."""
    return lines_file(tmp_path / "calibration.jsonl", rows(1))


@pytest.fixture
def gate(tmp_path: Path, calibration: Path) -> Path:
    """A gate that the command fitted to it."""
    assert run("gate", "fit", calibration, "--alpha", "1/10", "--out", tmp_path / "gate.json").code == 0
    return tmp_path / "gate.json"


def test_fit_saves_the_gate_of_the_library(gate: Path) -> None:
    """The file holds the very gate that `fit_conformal_gate` makes, and inspect tells it."""
    mine = fit_conformal_gate(column(rows(1), "kpi"), column(rows(1), "label"), "1/10")
    assert ConformalGate.load(gate).to_dict() == mine.to_dict()
    told = run("gate", "inspect", gate, "--json").document
    assert told["thresholds"][0]["q0"] == mine.q0
    assert told["thresholds"][0]["t1"] == mine.t1
    assert told["fingerprint"] == mine.fingerprint
    words = " ".join(run("gate", "inspect", gate).out.split())
    assert " ".join(mine.guarantee.sentence.split()) in words


def test_fit_with_groups_tells_each(tmp_path: Path, calibration: Path) -> None:
    """Thresholds and guarantees are those of the groups."""
    found = run("gate", "fit", calibration, "--group-column", "topic", "--out", tmp_path / "g.json", "--json")
    gate = ConformalGate.load(tmp_path / "g.json")
    assert found.code == 0
    assert {one["group"]: one["q0"] for one in found.document["thresholds"]} == {
        name: gate.thresholds(name)[0] for name in "ab"
    }
    evaluated = run(
        "gate",
        "evaluate",
        lines_file(tmp_path / "n.jsonl", rows(2)),
        "--gate",
        tmp_path / "g.json",
        "--group-column",
        "topic",
    )
    assert (evaluated.code, "Group a:" in evaluated.out, "Group b:" in evaluated.out) == (0, True, True)
    assert run("gate", "apply", calibration, "--gate", tmp_path / "g.json").err.startswith("error: `group")


def test_a_gate_that_never_accepts_is_a_negative_finding(tmp_path: Path, calibration: Path) -> None:
    """Exit code 1, null for the infinite threshold, and the guarantee claims nothing."""
    found = run("gate", "fit", calibration, "--alpha", "0.001", "--out", tmp_path / "g.json", "--json")
    assert (found.code, found.document["thresholds"][0]["q0"]) == (1, None)
    assert run("gate", "inspect", tmp_path / "g.json").code == 1
    assert "infinite" in run("gate", "inspect", tmp_path / "g.json").out
    assert run("gate", "fit", calibration, "--alpha", "0.001", "--strict").code == 2


def test_a_risk_gate(tmp_path: Path, calibration: Path) -> None:
    """--target-risk fits the other kind; groups belong to the first."""
    path = tmp_path / "risk.json"
    found = run("gate", "fit", calibration, "--target-risk", "0.3", "--delta", "0.1", "--out", path, "--json")
    mine = fit_risk_gate(column(rows(1), "kpi"), column(rows(1), "label"), "0.3", "0.1")
    assert (found.code, found.document["threshold"]) == (0, mine.threshold)
    assert (
        mine.guarantee.sentence.split()[:9] == run("gate", "inspect", path).out.split("\n\n")[1].split()[:9]
    )
    assert run("gate", "apply", calibration, "--gate", path).code == 0
    refused = run("gate", "fit", calibration, "--target-risk", "0.3", "--group-column", "topic")
    assert refused.err.startswith("error: `--group-column` must be left out")
    assert run("gate", "fit", calibration, "--target-risk", "0.001", "--delta", "0.01").code == 1


def test_apply_decides_as_the_library(tmp_path: Path, gate: Path) -> None:
    """Row by row; rows without a score stay in their place, undecided."""
    new = [*rows(2, 50), {"kpi": None}]
    path = lines_file(tmp_path / "new.jsonl", new)
    mine = apply_conformal_gate(column(new[:-1], "kpi"), ConformalGate.load(gate))
    document = run("gate", "apply", path, "--gate", gate, "--json").document
    assert [one["decision"] for one in document["decisions"]] == [*(one.decision.name for one in mine), None]
    assert document["n_accept"] == int(mine.accepted.sum())
    assert document["n_without_score"] == 1
    lines = run("gate", "apply", path, "--gate", gate, "--lines").out.splitlines()
    assert [json.loads(line) for line in lines] == document["decisions"]
    assert "41 more" in run("gate", "apply", path, "--gate", gate, "--limit", 10).out


def test_evaluate_measures_as_the_library(tmp_path: Path, gate: Path) -> None:
    """Intervals and bands; a gate far beyond its band is exit code 1, its own rows are refused."""
    new = rows(2)
    found = run("gate", "evaluate", lines_file(tmp_path / "new.jsonl", new), "--gate", gate, "--json")
    mine = evaluate_conformal_gate(column(new, "kpi"), column(new, "label"), ConformalGate.load(gate))
    assert (found.code, found.document) == (
        int(bool(mine.beyond_band)),
        json.loads(json.dumps(mine.to_dict())),
    )
    wrong = [{**row, "label": not row["label"]} for row in new]
    worse = run("gate", "evaluate", lines_file(tmp_path / "wrong.jsonl", wrong), "--gate", gate)
    assert (worse.code, "beyond the band of a sound gate" in worse.out) == (1, True)
    own = run("gate", "evaluate", tmp_path / "calibration.jsonl", "--gate", gate)
    assert (own.code, "not fitted on" in own.err) == (2, True)


@pytest.mark.parametrize("text", ["{}", "[]", "nothing", '{"artefact": "joint_gate"}', '{"artefact": []}'])
def test_other_files_are_no_gates(tmp_path: Path, calibration: Path, text: str) -> None:
    """Refused with the name of the file."""
    (tmp_path / "g.json").write_text(text)
    found = run("gate", "apply", calibration, "--gate", tmp_path / "g.json")
    assert (found.code, found.out) == (2, "")
    assert "g.json` must be" in found.err


def test_scores_made_otherwise_are_refused(tmp_path: Path) -> None:
    """A log says how it was made, the gate keeps it, and another policy, profile or embedder is no match."""
    made = [{**row, "policy_fingerprint": "p", "embedder": "one"} for row in rows(1)]
    gate = tmp_path / "g.json"
    assert run("gate", "fit", lines_file(tmp_path / "log.jsonl", made), "--out", gate).code == 0
    other = lines_file(tmp_path / "other.jsonl", [{**row, "embedder": "two"} for row in made])
    assert "must hold scores made like those of the gate" in run("gate", "apply", other, "--gate", gate).err
    assert run("gate", "evaluate", other, "--gate", gate).code == 2
    mixed = lines_file(tmp_path / "mixed.jsonl", [*made, {**made[0], "policy_fingerprint": "q"}])
    assert "made in one way; got 2" in run("gate", "fit", mixed).err


def test_traps_are_those_of_the_library_by_row_of_the_file(tmp_path: Path) -> None:
    """Rows that were left out still count; texts are cut for people only."""
    some = [{"kpi": 0.5, "label": None}, *rows(1, 60)]
    texts = [{**row, "query_text": "what is " + "x" * 80, "passage": "x is y"} for row in some]
    path = lines_file(tmp_path / "rows.jsonl", texts)
    found = run("traps", path, "--threshold", "0.4", "--limit", 3, "--json").document
    mine = find_lexical_traps(column(some[1:], "kpi"), column(some[1:], "label"), 0.4)
    assert found["n_traps"] == len(mine)
    assert [one["row"] for one in found["traps"]] == [trap.row + 1 for trap in mine.traps[:3]]
    assert "..." in run("traps", path, "--threshold", "0.4").out


def retrievals(n: int, seed: int = 0) -> list[dict[str, object]]:
    """Query and passage vectors."""
    rng = np.random.default_rng(seed)
    queries = rng.normal(size=(n, 6))
    near = queries[:, None, :] * 0.7 + rng.normal(size=(n, 4, 6)) * 0.3
    return [
        {"query": query.tolist(), "passages": passages.tolist(), "label": at % 2, "id": at}
        for at, (query, passages) in enumerate(zip(queries, near, strict=True))
    ]


def test_score_is_that_of_the_library(tmp_path: Path) -> None:
    """Every record equals `to_dict` of `score`, with the columns that were carried over."""
    some = retrievals(5)
    path = lines_file(tmp_path / "r.jsonl", [{**row, "query_text": "q", "k_requested": 9} for row in some])
    out = tmp_path / "log.jsonl"
    found = run("score", path, "--keep", "label", "--embedder", "e", "--out", out, "--json")
    mine = [
        score(row["query"], row["passages"], query_text="q", k_requested=9, embedder="e").to_dict()
        for row in some
    ]
    expected = [{"label": row["label"], **record} for row, record in zip(some, mine, strict=True)]
    assert found.document == json.loads(json.dumps({"n": 5, "records": expected}))
    assert [json.loads(line) for line in out.read_text().splitlines()] == found.document["records"]
    lines = run("score", path, "--keep", "label", "--embedder", "e", "--lines").out
    assert lines == out.read_text()


def test_score_reads_archives_and_tells_one_in_words(tmp_path: Path) -> None:
    """A vector and a matrix are one retrieval; a matrix and a stack are many."""
    some = retrievals(3)
    queries, passages = (np.array(column(some, name)) for name in ("query", "passages"))
    np.savez(tmp_path / "many.npz", query=queries, passages=passages)
    np.savez(tmp_path / "one.npz", query=queries[0], passages=passages[0])
    assert run("score", tmp_path / "many.npz", "--json").document["n"] == 3
    words = score(queries[0], passages[0]).narrate()
    assert run("score", tmp_path / "one.npz").out.split() == words.split()


@pytest.mark.needs_extra("parquet")
def test_score_reads_parquet(tmp_path: Path) -> None:
    """Lists of lists are the passages."""
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist(retrievals(3)), tmp_path / "r.parquet")
    lines = lines_file(tmp_path / "r.jsonl", retrievals(3))
    assert run("score", tmp_path / "r.parquet", "--json").out == run("score", lines, "--json").out


def test_score_with_a_gate_and_a_policy(tmp_path: Path) -> None:
    """The gate decides; one for scores of another policy is refused."""
    path = lines_file(tmp_path / "r.jsonl", retrievals(40))
    log, gate, policy = (tmp_path / name for name in ("log.jsonl", "gate.json", "policy.json"))
    assert run("score", path, "--keep", "label", "--out", log).code == 0
    run("gate", "fit", log, "--out", gate)
    decided = run("score", path, "--gate", gate)
    assert (decided.code, "decision" in decided.out) == (0, True)
    policy.write_text(json.dumps(MetricPolicy(grounding_scale=0.2).to_dict()))
    assert "`gate` must be fitted on KPIs made" in run("score", path, "--gate", gate, "--policy", policy).err
    policy.write_text("[]")
    assert "policy.json` must hold a policy" in run("score", path, "--policy", policy).err


def test_a_retrieval_without_passages_is_scored(tmp_path: Path) -> None:
    """It abstains, in its place."""
    path = lines_file(tmp_path / "r.jsonl", [*retrievals(2), {"query": [1.0] * 6, "passages": []}])
    assert run("score", path, "--json").document["records"][2]["verdict"] == "ABSTAIN"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"query": [1, 2], "passages": [[1, 2]]}, "`query` must have 6 numbers as in the first row; got 2"),
        ({"query": [1] * 6, "passages": [[1, 2]]}, "r.jsonl line 3: `passage_embeddings"),
        ({"query": [1] * 6, "passages": [[0] * 6]}, "r.jsonl line 3: `passage_embeddings"),
        ({"query": ["a"] * 6, "passages": [[1] * 6]}, "`query` must be a vector; got something else"),
        ({"query": [1] * 6, "passages": [[1], [1, 2]]}, "`passages` must be a list of vectors"),
        ({"query": [1] * 6}, "r.jsonl line 3` must have the column 'passages'"),
    ],
)
def test_the_line_of_a_bad_retrieval_is_named(tmp_path: Path, row: dict[str, object], said: str) -> None:
    """Also where the library counts the rows of a part of the file."""
    path = lines_file(tmp_path / "r.jsonl", [*retrievals(2), row, *retrievals(2)])
    found = run("score", path, "--out", tmp_path / "log.jsonl")
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert said in found.err
    assert "line 3" in found.err
    assert not (tmp_path / "log.jsonl").exists()
