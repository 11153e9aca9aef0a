"""A log becomes calls: all of it or nothing, and not twice where its lines have names."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import quiet, refuse
from store_places import call

import rag_confidence as rc
from rag_confidence.errors import MixedScorersWarning
from rag_confidence.store import CalibrationStore

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
N = 120


def batch(seed: int = 0, **options: Any) -> tuple[rc.MetricsBatch, np.ndarray[Any, Any]]:
    """Scored retrievals, and labels that follow the best cosine."""
    rng = np.random.default_rng([71, seed])
    queries, passages = rng.normal(size=(N, 8)), rng.normal(size=(N, 6, 8))
    passages[: N // 2, 0] += 2.0 * queries[: N // 2]
    labels = (np.arange(N) < N // 2) ^ (rng.random(N) < 0.1)
    return rc.score_many(queries, passages, **options), labels


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    """A log, one object a line."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def log_of(scored: rc.MetricsBatch, labels: Any) -> list[dict[str, Any]]:
    """Records with labels, as a service would log them."""
    pairs = zip(scored.to_dicts(), labels, strict=True)
    return [{**record, "label": int(label), "request": f"r{at}"} for at, (record, label) in enumerate(pairs)]


def test_a_log_of_retrievals_feeds_the_gate(place: str, tmp_path: Path) -> None:
    """The gate of imported columns is that of the batch itself, to the last bit, and knows its origin."""
    scored, labels = batch(embedder="mini")
    path = write_lines(tmp_path / "log.jsonl", log_of(scored, labels))
    with CalibrationStore(place) as store:
        assert store.import_jsonl(path, labeling_source="human").ids == tuple(range(1, N + 1))
        history = store.history("kpi")
        signal = store.history("signals.max_cosine")
    np.testing.assert_array_equal(history.scores, scored.kpi)
    np.testing.assert_array_equal(signal.scores, scored.columns()["signals.max_cosine"])
    with quiet():
        direct = rc.fit_conformal_gate(scored.kpi, labels, provenance=scored.provenance)
        stored = rc.fit_conformal_gate(
            history.scores,
            history.labels,
            provenance=history.provenance,
            row_ids=history.row_ids,
            collected=history.collected,
            labeling_source=history.labeling_source,
        )
    assert (stored.q0, stored.q1, stored.t1) == (direct.q0, direct.q1, direct.t1)
    assert history.provenance == scored.provenance
    assert history.labeling_source == "human"


@pytest.mark.parametrize("other", [{"embedder": "other"}, {"policy": rc.MetricPolicy(localization_tau=0.3)}])
def test_scores_made_in_two_ways_warn_and_claim_no_provenance(tmp_path: Path, other: dict[str, Any]) -> None:
    """Another embedder or policy makes other scores; one of them can be chosen."""
    first, labels = batch(embedder="mini")
    second, _ = batch(1, **{"embedder": "mini", **other})
    lines = [*log_of(first, labels), *log_of(second, labels)]
    with CalibrationStore(tmp_path / "calls.db") as store:
        store.import_jsonl(write_lines(tmp_path / "log.jsonl", lines))
        with pytest.warns(MixedScorersWarning, match="made by 2 scorers"):
            history = store.history("kpi")
        assert history.provenance is None
        chosen = [store.history("kpi", fingerprint=made_by).provenance for made_by in history.fingerprints]
        assert chosen == [first.provenance, second.provenance]


def test_what_a_line_says_is_kept(tmp_path: Path) -> None:
    """Group, decision and gate have their fields, the rest is metadata, and an unknown time stays unknown."""
    scored, _ = batch()
    record = scored[0].to_dict()
    line = {**record, "group": "g", "decision": "ACCEPT", "gate_fingerprint": "f", "ok": True}
    line["at"] = "2026-11-30T13:00:00+01:00"
    path = write_lines(tmp_path / "log.jsonl", [line])
    with CalibrationStore(tmp_path / "calls.db") as store:
        store.import_jsonl(path, label_key="ok", time_key="at")
        store.import_jsonl(path)
        timed, untimed = store.query()
        assert (timed.context.tool_name, timed.group, timed.decision) == (
            "retrieval",
            "g",
            rc.Decision.ACCEPT,
        )
        assert (timed.outcome, timed.calibrator, timed.recorded_at) == (True, "f", NOW)
        assert timed.context.metadata["verdict"] == record["verdict"]
        assert (untimed.outcome, untimed.recorded_at, untimed.labeled_at) == (None, None, None)
        assert store.summary(now=NOW).n_untimed == 1
        assert store.prune(before=datetime(2100, 1, 1, tzinfo=UTC)) == 1
        assert store.count() == 1


def test_an_export_is_the_same_store_elsewhere(place: str, tmp_path: Path) -> None:
    """Records are equal but for their numbers, and a second import adds nothing."""
    path = tmp_path / "out.jsonl"
    with CalibrationStore(tmp_path / "first.db") as first, CalibrationStore(place) as copy:
        first.add_many([(call("a"), True), (call("b"), None), (call("c"), False)])
        first.prune(keep_last=2)
        first.export(path)
        report = copy.import_jsonl(path)
        assert (report.ids, report.n_added, report.n_known) == ((1, 2), 2, 0)
        for mine, theirs in zip(first.query(), copy.query(), strict=True):
            assert {**vars(mine), "id": 0} == {**vars(theirs), "id": 0}
        for again in (first, copy):
            assert (again.import_jsonl(path).n_added, again.count()) == (0, 2)
        first.label(2, True, "human")
        first.export(path)
        report = copy.import_jsonl(path)
        assert (report.n_added, report.n_known, report.n_labelled) == (0, 2, 1)
        assert [record.outcome for record in copy.query()] == [True, False]
        copy.export(tmp_path / "back.jsonl")
        assert (first.import_jsonl(tmp_path / "back.jsonl").n_added, first.count()) == (0, 2)


def test_a_key_that_names_the_lines_makes_an_import_idempotent(place: str, tmp_path: Path) -> None:
    """Lines of a name that is in the store, or came before in the file, are not added again."""
    scored, labels = batch()
    lines = log_of(scored, labels)
    path = write_lines(tmp_path / "log.jsonl", [*lines[:3], *lines[:2]])
    with CalibrationStore(place) as store:
        first = store.import_jsonl(path, id_key="request")
        assert (first.n_added, first.n_known) == (3, 2)
        write_lines(path, lines[:5])
        assert store.import_jsonl(path, id_key="request").n_added == 2
        assert store.import_jsonl(path).n_added == 5
        refuse(ValueError, "line 1: `nothing` must be", lambda: store.import_jsonl(path, id_key="nothing"))


BAD_LINES = {
    "not json": ("{", "line 2"),
    "no object": ("[1]", "line 2: `line` must be an object"),
    "another log": ('{"score": 1}', "line 2: `line` must be a retrieval"),
    "nan": ('{"kpi": NaN, "policy_fingerprint": "p"}', "line 2: `line` must be JSON; got the number NaN"),
    "percentage": ('{"kpi": 71.5, "policy_fingerprint": "p"}', "line 2: `kpi` must be"),
    "odd label": (
        '{"kpi": 0.5, "policy_fingerprint": "p", "label": "no"}',
        "line 2: `outcome` must be 0 or 1",
    ),
    "odd signal": ('{"kpi": 0.5, "policy_fingerprint": "p", "signals.x": "y"}', "line 2: .*number"),
    "odd policy": ('{"kpi": 0.5, "policy_fingerprint": 5}', "line 2: `policy_fingerprint` must be a string"),
    "odd decision": ('{"kpi": 0.5, "policy_fingerprint": "p", "decision": "MAYBE"}', "line 2"),
    "export without a name": ('{"format": "rag_confidence_call"}', "line 2"),
    "no text": (b"\xff\xfe", "line 2"),
    "deep": ("[" * 100_000, "line 2"),
    "huge signal": (
        f'{{"kpi": 0.5, "policy_fingerprint": "p", "signals.x": -1{"0" * 400}}}',
        "line 2: .*-inf",
    ),
    "huge kpi": (f'{{"kpi": 1{"0" * 400}, "policy_fingerprint": "p"}}', "line 2"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_nothing_is_imported(tmp_path: Path, name: str) -> None:
    """Or it is skipped on request, with its number and the reason."""
    bad, pattern = BAD_LINES[name]
    good = json.dumps({"kpi": 0.5, "policy_fingerprint": "p"}).encode()
    raw = bad if isinstance(bad, bytes) else bad.encode()
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join([good, raw, b"", good]))
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(ValueError, pattern, lambda: store.import_jsonl(path))
        assert store.count() == 0
        report = store.import_jsonl(path, on_error="skip")
        assert (report.n_added, [number for number, _ in report.skipped]) == (2, [2])


@pytest.mark.parametrize("time", ["yesterday", 5, "2026-11-30T12:00:00"])
def test_times_need_a_zone(tmp_path: Path, time: Any) -> None:
    """A time that could be of any zone is refused."""
    line = {"kpi": 0.5, "policy_fingerprint": "p", "at": time}
    path = write_lines(tmp_path / "log.jsonl", [line])
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(ValueError, "line 1", lambda: store.import_jsonl(path, time_key="at"))


def test_a_long_import_that_fails_late_leaves_nothing(tmp_path: Path) -> None:
    """Rows that were written to the open transaction already go with it."""
    lines: list[dict[str, Any]] = [{"kpi": 0.5, "policy_fingerprint": "p"}] * 2500
    path = write_lines(tmp_path / "log.jsonl", [*lines, {"kpi": 2.0, "policy_fingerprint": "p"}])
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(ValueError, "line 2501", lambda: store.import_jsonl(path))
        assert store.count() == 0
        assert store.add(call()) == 1


def test_options_and_missing_files(tmp_path: Path) -> None:
    """A typo in an option is refused, and a missing file is what Python calls it."""
    with CalibrationStore(tmp_path / "calls.db") as store:
        refuse(ValueError, "`on_error`", lambda: store.import_jsonl("x", on_error="ignore"))  # type: ignore[arg-type]
        # Python would read, and then close, whatever file of this process has that number.
        refuse(TypeError, "`path` must be a path; got 0", lambda: store.import_jsonl(0))  # type: ignore[arg-type]
        refuse(TypeError, "`id_key`", lambda: store.import_jsonl("x", id_key=1))  # type: ignore[arg-type]
        with pytest.raises(FileNotFoundError):
            store.import_jsonl(tmp_path / "missing.jsonl")
        assert store.add(call()) == 1
