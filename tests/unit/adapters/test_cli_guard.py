"""The commands on recorded calls: guards, the store and the monitors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from command_line import lines_file, run

from rag_confidence import DriftMonitor, RiskMonitor, fit_joint_gate
from rag_confidence._calls import CallRecord, ToolCallContext
from rag_confidence.guard.comparison import compare_checks
from rag_confidence.guard.coverage import coverage_check
from rag_confidence.store import CalibrationStore

pytestmark = pytest.mark.needs_extra("cli")

GOOD = np.random.default_rng(0).normal(size=(300, 2))
BAD = np.random.default_rng(1).normal(2.0, 1.0, size=(40, 2))


def records(scores: np.ndarray, outcome: bool | None = True) -> list[dict[str, object]]:
    """Calls in the form of --data."""
    return [{"scores": {"judge": a, "logprob": b}, "outcome": outcome} for a, b in scores.tolist()]


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Good calls and a few bad ones, as JSON."""
    path = tmp_path / "calls.json"
    path.write_text(json.dumps([*records(GOOD), *records(BAD[:5], False), *records(BAD[:1], None)]))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The good calls in a store, of two tools."""
    path = tmp_path / "calls.db"
    with CalibrationStore(path, synchronous="normal") as opened:
        opened.add_many(
            CallRecord(
                ToolCallContext(tool_name=("search", "pay")[at % 2]),
                outcome=True,
                scores=row["scores"],
                labeling_source="human",
                recorded_at=datetime.now(UTC),
            )
            for at, row in enumerate(records(GOOD))
        )
        opened.add(ToolCallContext(tool_name="search"), scores={"judge": 1.0})
    return path


def test_threshold_is_that_of_the_kernel(calls: Path, store: Path) -> None:
    """From a file and from a store, of all calls or of one tool."""
    mine = fit_joint_gate(GOOD[:, :1], "0.1", names=["judge"])
    for source in (("--data", calls), ("--store", store)):
        found = run("guard", "threshold", *source, "--check", "judge", "--alpha", "0.1", "--json")
        assert (found.code, found.document["threshold"]) == (0, mine.threshold)
        assert "left out 1" in found.err
    of_one = run(
        "guard", "threshold", "--store", store, "--check", "judge", "--alpha", "0.1", "--tool-name", "pay"
    )
    assert repr(fit_joint_gate(GOOD[1::2, :1], "0.1").threshold) in of_one.out
    assert "judged good by human" in " ".join(of_one.out.split())


def test_an_infinite_threshold_is_a_negative_finding(calls: Path) -> None:
    """Exit code 1, null, and how many calls are needed."""
    found = run("guard", "threshold", "--data", calls, "--check", "judge", "--alpha", "0.001", "--json")
    assert (found.code, found.document["threshold"], found.document["infinite"]) == (1, None, True)
    assert found.document["n_needed"] == 999
    assert "at least 999 good calls are needed" in found.err


def test_coverage_check_is_that_of_the_library(calls: Path, store: Path) -> None:
    """Same splits by the same seed; a pool that is too small is refused."""
    common = [
        "--alpha",
        "0.1",
        "--calibration-size",
        "200",
        "--trials",
        "20",
        "--seed",
        "3",
        "--check",
        "judge",
    ]
    mine = coverage_check(GOOD[:, 0], "0.1", calibration_size=200, trials=20, seed=3)
    found = run("guard", "coverage-check", "--store", store, *common, "--json")
    assert (found.code, found.document) == (int(mine.flagged), mine.to_dict())
    with_bad = run("guard", "coverage-check", "--data", calls, *common, "--json").document
    assert with_bad["bad_rejection"] is not None
    small = run("guard", "coverage-check", "--data", calls, *common[:3], "300", "--check", "judge")
    assert (small.code, "must be below the 300 good calls" in small.err) == (2, True)


def test_a_flagged_coverage_is_a_negative_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, in words too."""
    from rag_confidence.adapters._cli import guard

    tested = np.random.default_rng(2).normal(0.5, 1.0, size=300)
    monkeypatch.setattr(
        guard,
        "coverage_check",
        lambda scores, alpha, **options: coverage_check(scores, alpha, tested=tested, **options),
    )
    path = lines_file(tmp_path / "c.jsonl", [{"scores": {"x": a}, "outcome": 1} for a in GOOD[:, 0].tolist()])
    found = run("guard", "coverage-check", "--data", path, "--alpha", "0.1", "--calibration-size", "200")
    assert found.code == 1
    assert "Not as it must be: coverage too low." in found.out


def test_multi_check_threshold_is_the_joint_one(calls: Path, store: Path) -> None:
    """One threshold, and what each check adds; the same from a file and from a store."""
    mine = fit_joint_gate(GOOD, "0.1", names=["judge", "logprob"])
    for source in (("--data", calls), ("--store", store)):
        found = run("guard", "multi-check-threshold", *source, "--alpha", "0.1", "--json").document
        assert found["threshold"] == mine.threshold
        assert {one["check"]: one["share_largest"] for one in found["by_check"]} == dict(mine.max_share)
    assert "own threshold" in run("guard", "multi-check-threshold", "--data", calls, "--alpha", "0.1").out


def test_multi_check_coverage_compares_on_bad_calls(tmp_path: Path, calls: Path) -> None:
    """--bad-data takes the place of the bad calls of the data, whatever its outcomes say."""
    bad = lines_file(tmp_path / "bad.jsonl", records(BAD, True))
    common = ["--data", calls, "--alpha", "0.1", "--calibration-size", "200", "--trials", "10", "--compare"]
    found = run("guard", "multi-check-coverage-check", *common, "--bad-data", bad, "--json").document
    mine = compare_checks(
        GOOD, "0.1", calibration_size=200, bad=BAD, trials=10, names=["judge", "logprob"]
    ).to_dict()
    assert found["comparison"] == mine
    own = run("guard", "multi-check-coverage-check", *common, "--json").document["comparison"]
    assert own["bad_size"] == 5
    people = run("guard", "multi-check-coverage-check", *common, "--bad-data", bad).out
    assert all(name in people for name in ("joint", "bonferroni", "naive"))


def test_failed_checks_count_as_infinite(tmp_path: Path) -> None:
    """ "inf" is a check that failed to run, as in an export of a store."""
    some = [*records(GOOD[:30]), {"scores": {"judge": "inf", "logprob": 0.0}, "outcome": True}]
    path = lines_file(tmp_path / "c.jsonl", some)
    found = run("guard", "multi-check-threshold", "--data", path, "--alpha", "0.1", "--json")
    assert (found.code, found.document["n_failed"], found.document["by_check"][0]["high"]) == (0, 1, None)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {"scores": {"judge": 1.0}, "outcome": True},
            "must be of judge, logprob in every record; got judge in",
        ),
        ({"scores": {"judge": 1.0, "logprob": "x"}, "outcome": True}, "`scores.logprob` must be a number"),
        ({"scores": {"judge": True, "logprob": 1}, "outcome": True}, "`scores.judge` must be a number"),
        ({"scores": [1.0], "outcome": True}, "`scores` must be an object of numbers; got [1.0]"),
        ({"scores": {"judge": 1.0, "logprob": 1.0}, "outcome": "yes"}, "`outcome` must be true, false"),
        ({"scores": {"judge": 1.0, "logprob": 1.0}}, "must have the column 'outcome'"),
    ],
)
def test_bad_records_are_named(tmp_path: Path, record: object, said: str) -> None:
    """By file and line."""
    path = lines_file(tmp_path / "c.jsonl", [*records(GOOD[:20]), record])
    found = run("guard", "multi-check-threshold", "--data", path, "--alpha", "0.1")
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert said in found.err
    assert "c.jsonl line 21" in found.err


def test_what_is_asked_must_be_clear(tmp_path: Path, calls: Path, store: Path) -> None:
    """One source, one check where there are several, good calls, and options that have a meaning."""
    refused: list[tuple[list[object], str]] = [
        ([], "`--store` must be given, or --data"),
        (["--store", store, "--data", calls], "got both"),
        (["--data", calls], "`--check` must name one check"),
        (["--store", store], "`--check` must name one check"),
        (["--data", calls, "--check", "nothing"], "must be of nothing"),
        (["--store", store, "--check", "nothing"], "must hold good calls"),
        (["--data", calls, "--check", "judge", "--tool-name", "x"], "must come with --store"),
        (["--store", tmp_path / "none.db", "--check", "judge"], "that exists"),
        (["--data", lines_file(tmp_path / "e.jsonl", [])], "got 0: none"),
        (
            ["--data", lines_file(tmp_path / "b.jsonl", records(BAD, False)), "--check", "judge"],
            "must hold good",
        ),
    ]
    for arguments, said in refused:
        found = run("guard", "threshold", "--alpha", "0.1", *arguments)
        assert (found.code, found.out) == (2, ""), arguments
        assert said in found.err
    assert not (tmp_path / "none.db").exists()


def test_calls_without_a_score_are_counted(store: Path) -> None:
    """A good call that the check never judged is left out aloud."""
    with CalibrationStore(store) as opened:
        opened.add(ToolCallContext(tool_name="search"), True, labeling_source="human")
    found = run("guard", "threshold", "--store", store, "--check", "judge", "--alpha", "0.1")
    assert "left out 1 labelled calls without a score of judge" in found.err


def test_scores_of_several_scorers_make_no_threshold(tmp_path: Path) -> None:
    """A mixture is refused, and one scorer of it can be chosen."""
    path = tmp_path / "mixed.db"
    with CalibrationStore(path, synchronous="normal") as opened:
        for made_by, low in (("old", 0.0), ("new", 1000.0)):
            opened.add_many(
                CallRecord(
                    ToolCallContext("search"),
                    outcome=True,
                    scores={"judge": low + at},
                    fingerprints={"judge": made_by},
                    labeling_source="human",
                    recorded_at=datetime.now(UTC),
                )
                for at in range(20)
            )
    asked = ["guard", "threshold", "--store", path, "--alpha", "0.1", "--json"]
    refused = run(*asked)
    assert (refused.code, refused.out) == (2, "")
    assert "judge" in refused.err
    assert run(*asked, "--fingerprint", "old").document["threshold"] == 18.0
    of_file = run("guard", "threshold", "--data", path, "--alpha", "0.1", "--fingerprint", "old")
    assert of_file.err.startswith("error: `--fingerprint` must come with --store")


def test_inspect_tells_what_is_amiss(store: Path) -> None:
    """Counts as the summary; with --strict a note is a negative finding."""
    found = run("guard", "inspect", "--store", store, "--json")
    assert (found.code, found.document["n_good"], found.document["n_unlabelled"]) == (0, 300, 1)
    assert found.document["notes"]
    assert run("guard", "inspect", "--store", store, "--strict").code == 1
    people = run("guard", "inspect", "--store", store, "--tool-name", "pay", "--recommended-minimum", 9).out
    assert "tool pay" in people
    assert "tool search" not in people


def test_a_log_goes_through_a_store(tmp_path: Path) -> None:
    """Import, label, export, prune, migrate and verify."""
    line = {"kpi": 0.5, "policy_fingerprint": "p", "embedder": "e", "label": True}
    log = lines_file(tmp_path / "log.jsonl", [{**line, "id": at} for at in range(4)])
    db, copy = tmp_path / "s.db", tmp_path / "copy.jsonl"
    common = ["--store", db, "--json"]

    def again() -> object:
        return run("store", "import", log, "--id-column", "id", *common).document

    assert again() == {"n_added": 4, "n_known": 0, "n_labelled": 0, "skipped": []}
    assert again() == {"n_added": 0, "n_known": 4, "n_labelled": 0, "skipped": []}
    assert run("store", "label", 1, "--bad", *common).code == 2
    labelled = run("store", "label", 1, "--bad", "--labeling-source", "human", *common)
    assert labelled.document["outcome"] is False
    assert run("store", "export", copy, "--labelled", *common).document["n_calls"] == 4
    outcomes = [json.loads(text)["outcome"] for text in copy.read_text().splitlines()]
    assert outcomes == [False, True, True, True]
    assert run("store", "prune", "--keep-last", 3, *common).document == {"n_deleted": 1}
    assert run("store", "prune", "--older-than-days", 1, *common).document == {"n_deleted": 0}
    migrated = run("store", "migrate", *common).document
    assert migrated["before"] == migrated["after"]
    assert run("store", "verify", *common).document == {"ok": True, "findings": []}
    assert run("audit", "--store", db, "--json").document["n"] == 3
    refused = run("store", "prune", "--before", "yesterday", *common)
    assert refused.err.startswith("error: `--before` must be a time in ISO 8601")


def test_lines_left_out_are_a_negative_finding(tmp_path: Path) -> None:
    """Nothing is imported of a bad file, unless its bad lines are to be skipped; no store is left behind."""
    log = lines_file(tmp_path / "log.jsonl", [{"kpi": 0.5, "policy_fingerprint": "p"}, {"a": 1}])
    db = tmp_path / "s.db"
    assert "line 2" in run("store", "import", log, "--store", db).err
    found = run("store", "import", log, "--store", db, "--skip-bad", "--json")
    assert (found.code, found.document["n_added"], found.document["skipped"][0]["line"]) == (1, 1, 2)
    assert run("store", "import", tmp_path / "none.jsonl", "--store", tmp_path / "t.db").code == 2
    assert not (tmp_path / "t.db").exists()


def test_what_is_no_store_is_not_touched(tmp_path: Path) -> None:
    """A foreign file gives one line and stays as it is."""
    path = tmp_path / "file.db"
    path.write_text("a file of something else, long enough to be read as one")
    for command in ("verify", "migrate"):
        found = run("store", command, "--store", path)
        assert (found.code, found.err.count("\n")) == (2, 1)
    assert path.read_text().startswith("a file")


def test_drift_is_watched_from_run_to_run(tmp_path: Path) -> None:
    """The file carries the monitor on as if all scores had come at once; an alarm is exit code 1."""
    rng = np.random.default_rng(0)
    parts = [rng.random(80), rng.random(50), 0.9 + rng.random(150) / 10]
    paths = [
        lines_file(tmp_path / f"{at}.jsonl", [{"kpi": value} for value in part.tolist()])
        for at, part in enumerate(parts)
    ]
    state = tmp_path / "drift.json"
    first = run("monitor", "drift", paths[1], "--reference", paths[0], "--state", state)
    assert (first.code, "No drift" in first.out) == (0, True)
    second = run("monitor", "drift", "-", "--state", state, "--json", stdin=paths[2].read_text())
    whole = DriftMonitor(parts[0])
    whole.update_many(np.concatenate(parts[1:]))
    assert (second.code, second.document["log_max"]) == (1, whole.state.log_max)
    assert DriftMonitor.load(state).state == whole.state
    late = run("monitor", "drift", paths[1], "--reference", paths[0], "--state", state)
    assert late.err.startswith("error: `--reference` must be left out once")


def test_risk_is_watched_among_the_accepted(tmp_path: Path) -> None:
    """Only accepted rows with a label count when decisions are named."""
    rows = [{"label": at % 3 > 0, "decision": "ACCEPT" if at % 2 else "ABSTAIN"} for at in range(240)]
    path = lines_file(tmp_path / "log.jsonl", [*rows, {"label": None, "decision": "ACCEPT"}])
    state = tmp_path / "risk.json"
    found = run(
        "monitor",
        "risk",
        path,
        "--target",
        "0.1",
        "--state",
        state,
        "--decision-column",
        "decision",
        "--json",
    )
    mine = RiskMonitor("0.1")
    mine.update_many([not row["label"] for row in rows if row["decision"] == "ACCEPT"])
    assert (found.code, found.document["n_seen"], found.document["n_bad"]) == (1, 120, mine.state.n_bad)
    assert found.err.splitlines() == [
        "left out 120 rows that were not accepted",
        "left out 1 rows without 'label'",
    ]
    assert run("monitor", "risk", path, "--state", tmp_path / "new.json").err.startswith(
        "error: `--target` must"
    )
    assert "saved drift_monitor" in run("monitor", "drift", path, "--state", state).err
