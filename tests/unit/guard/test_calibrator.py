"""Calibrator: what it knows of itself, other levels, decisions that wait, and saved files."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guard_calls import INF, call, labelled, quietly, reader, readers
from hypothesis import given
from hypothesis import strategies as st
from refusals import quiet, refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence.errors import ArtefactError, CalibrationMismatch
from rag_confidence.guard.calibration import acalibrate
from rag_confidence.guard.calibrator import Calibrator, decide
from rag_confidence.guard.result import GuardReason
from rag_confidence.guard.scorers import Scorer

TWENTY = [at / 20 for at in range(20)]
FLOATS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.just(INF))


def every_kind() -> list[Calibrator]:
    """Calibrators of every kind, with all that can be saved."""
    rows = [[score, score * score / 3] for score in TWENTY]
    traffic = [call(at / 33, at / 77) for at in range(60)]
    return [
        quietly(TWENTY, labeling_source="human", collected="2026-05-01", tool_names=["search"], group="high"),
        quietly([*TWENTY, INF], [0.3, INF, 2.0], beta="1/3", group=3),
        quietly(rows, rows[5:], alpha="1/7", reference=traffic),
        quietly([0.1]),
    ]


@pytest.mark.parametrize("at", range(4))
def test_a_saved_calibrator_is_the_same_to_the_last_bit(at: int, tmp_path: Path) -> None:
    """After saving and loading every field, decision and fingerprint is the same."""
    before = every_kind()[at]
    before.save(tmp_path / "guard.json")
    scorers = readers(len(before.names))
    for after in (
        Calibrator.load(tmp_path / "guard.json", scorers),
        Calibrator.from_dict(json.loads(json.dumps(before.to_dict())), scorers),
    ):
        assert (after.fingerprint, after.to_dict()) == (before.fingerprint, before.to_dict())
        assert (after.guarantee, after.notes, after.thresholds) == (
            before.guarantee,
            before.notes,
            before.thresholds,
        )
        assert (after.tool_names, after.group, after.level) == (before.tool_names, before.group, before.level)
        for scores in ([0.1, 0.1], [0.7, 0.3], [9.0, 9.0], [INF, 0.0]):
            one, other = (c.decide(call(*scores)).to_dict(args=True) for c in (before, after))
            assert one == other


@given(st.lists(FLOATS, min_size=1, max_size=20), st.lists(FLOATS, max_size=10))
def test_any_scores_survive_saving(good: list[float], bad: list[float]) -> None:
    """Whatever the floats, they come back as they were."""
    before = quietly(good, bad)
    after = Calibrator.from_dict(json.loads(json.dumps(before.to_dict())), readers(1))
    assert after.good.tobytes() == before.good.tobytes()
    assert after.bad.tobytes() == before.bad.tobytes()
    assert after.fingerprint == before.fingerprint


def test_other_scorers_are_refused(tmp_path: Path) -> None:
    """Other names, another order, another range or other code do not fit a saved threshold."""
    quietly([[0.1, 0.2]] * 20).save(tmp_path / "guard.json")

    def load(*scorers: Scorer) -> Any:
        return lambda: Calibrator.load(tmp_path / "guard.json", scorers)

    order = r"`scorers` must be check_0, check_1, in this order; got "
    refuse(CalibrationMismatch, order, load(reader(1), reader(0)))
    refuse(CalibrationMismatch, order, load(reader(0)))
    changed = r"`scorers` must be those of the calibration; got check_1 with other code"
    refuse(CalibrationMismatch, changed, load(reader(0), reader(1, low=0.0)))
    refuse(CalibrationMismatch, changed, load(reader(0), reader(1, version="2")))
    refuse(CalibrationMismatch, changed, load(reader(0), reader(1, version=None)))


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": "1/5"},
        {"alpha": "0"},
        {"beta": "1/5"},
        {"threshold": 0.5},
        {"reject_above": 0.5},
        {"good": {"scores": [0.3, 0.1], "failed": 0}},
        {"good": {"scores": [], "failed": 0}},
        {"good": {"scores": [0.1], "failed": -1}},
        {"ranks": {"rows": 1, "columns": []}},
        {"tool_names": ["b", "a"]},
        {"group": 0.5},
        {"n_unlabelled": -1},
        {"notes": [None]},
        {"scorers": []},
        {"scorers": None},
        {"extra": 1},
        {"history": {}},
    ],
    ids=str,
)
def test_a_payload_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    """A file with a valid digest whose contents contradict each other is no calibrator."""
    from rag_confidence import _artefact

    payload = {**quietly(TWENTY).to_dict()["payload"], **change}
    document = _artefact.wrap("tool_call_calibrator", payload)
    kinds = (ArtefactError, CalibrationMismatch)
    refuse(kinds, "must be", lambda: Calibrator.from_dict(document, readers(1)))


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    """A changed digit, another kind of artefact and a file that is none are refused."""
    path = tmp_path / "guard.json"
    quietly(TWENTY).save(path)
    text = path.read_text()
    path.write_text(text.replace("0.45", "0.46"))
    refuse(ArtefactError, "must be unchanged", lambda: Calibrator.load(path, readers(1)))
    path.write_text(text.replace("tool_call_calibrator", "joint_gate"))
    refuse(ArtefactError, "must be a saved tool_call_calibrator", lambda: Calibrator.load(path, readers(1)))
    path.write_text("{}")
    refuse(ArtefactError, "must be a saved tool_call_calibrator", lambda: Calibrator.load(path, readers(1)))


def test_other_levels_come_from_the_same_calls() -> None:
    """`at_level` equals a new calibration at that level, for one kind of calls and for two."""
    bad = [score + 0.4 for score in TWENTY]
    for options in ({}, {"beta": "0.3"}):
        before = quietly(TWENTY, bad, "0.1", **options)
        for alpha in ("0.3", "0.05", "0.01"):
            after, fresh = before.at_level(alpha), quietly(TWENTY, bad, alpha, **options)
            assert (after.thresholds, after.guarantee) == (fresh.thresholds, fresh.guarantee)
            assert after.fingerprint == fresh.fingerprint
    assert before.at_level("0.2", "0.4").fingerprint == quietly(TWENTY, bad, "0.2", beta="0.4").fingerprint
    refuse(ValueError, r"`beta` must be None without bad calls", lambda: quietly(TWENTY).at_level(0.1, 0.1))
    refuse(
        ValueError, r"`alpha` must be strictly between 0 and 1; got 0", lambda: quietly(TWENTY).at_level(0)
    )


def test_the_fingerprint_knows_what_decides() -> None:
    """Other scores, levels, tools, groups or scorers make another calibrator; another order does not."""
    made = [
        *every_kind(),
        quietly(TWENTY),
        quietly(TWENTY, alpha="0.2"),
        quietly([*TWENTY[1:], 0.03]),
        quietly(TWENTY, tool_names=["search", "mail"]),
        quietly(TWENTY, group="low"),
        quietly(TWENTY, [5.0]),
        quietly(TWENTY, scorers=[reader(0, version="2")]),
    ]
    assert len({one.fingerprint for one in made}) == len(made)
    assert quietly(TWENTY[::-1]).fingerprint == quietly(TWENTY).fingerprint


def test_decisions_can_wait_for_scorers() -> None:
    """`adecide` awaits what must be awaited; `decide` abstains on it and names the cure."""

    async def judge(context: ToolCallContext) -> float:
        await asyncio.sleep(0)
        return context.args["s0"]  # type: ignore[no-any-return]

    with quiet():
        calibrator = asyncio.run(acalibrate([judge, reader(1)], labelled([[s, s] for s in TWENTY]), "0.1"))
    for scores in ([0.1, 0.2], [9.0, 0.2], [0.1, 9.0], [0.1, INF]):
        awaited = asyncio.run(calibrator.adecide(call(*scores)))
        plain = calibrator.decide_scores({"judge": scores[0], "check_1": scores[1]})
        assert (awaited.decision, awaited.failed_checks) == (plain.decision, plain.failed_checks)
    result = calibrator.decide(call(0.1, 0.2))
    assert result.reason_code is GuardReason.SCORER_FAILED
    assert "judge returned coroutine, which must be awaited: use adecide" in result.reason


def test_waiting_knows_other_tools_too() -> None:
    """`adecide` asks no scorer about a tool that the calibration is not for."""
    calibrator = quietly(TWENTY, tool_names=["search"])
    result = asyncio.run(calibrator.adecide(call(0.1, tool="mail")))
    assert result.reason_code is GuardReason.OTHER_TOOL


def test_a_cancelled_decision_is_cancelled() -> None:
    """A cancellation of the caller is not turned into an abstention."""

    async def forever(context: ToolCallContext) -> float:
        await asyncio.Event().wait()
        return 0.0

    async def cancel() -> None:
        calibrator = quietly(TWENTY)
        stuck = Calibrator(**{**vars_of(calibrator), "scorers": (Scorer("check_0", forever),)})
        task = asyncio.ensure_future(stuck.adecide(call(0.1)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def vars_of(calibrator: Calibrator) -> dict[str, Any]:
    """The fields of a calibrator."""
    return {name: getattr(calibrator, name) for name in Calibrator.__dataclass_fields__}


def test_only_contexts_are_decided_on() -> None:
    """Anything else is an error of the caller and no abstention."""
    calibrator: Any = quietly(TWENTY)
    for odd in (None, {"tool_name": "search"}, "search"):
        refuse(
            TypeError, r"`context` must be a ToolCallContext; got ", lambda odd=odd: calibrator.decide(odd)
        )  # type: ignore[misc]
        with pytest.raises(TypeError, match="`context` must be a ToolCallContext"):
            asyncio.run(calibrator.adecide(odd))
    assert decide(calibrator, call(0.1)).accepted


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, r"`scores` must hold a score for each of check_0; got none"),
        ({"check_1": 0.1}, r"`scores` must hold a score for each of check_0; got check_1"),
        (
            {"check_0": 0.1, "check_1": 0.1},
            r"`scores` must hold a score for each of check_0; got check_0, check_1",
        ),
        ({"check_0": math.nan}, r"`scores\['check_0'\]` must not be nan or -inf"),
        ({"check_0": -INF}, r"`scores\['check_0'\]` must not be nan or -inf"),
        ({"check_0": "0.1"}, r"`scores\['check_0'\]` must be a number; got '0.1'"),
        ({"check_0": True}, r"`scores\['check_0'\]` must be a number; got True"),
        ([0.1], r"`scores` must be a mapping from names of checks"),
    ],
)
def test_scores_made_elsewhere_are_checked(scores: Any, message: str) -> None:
    """Other checks, NaN, -inf and what is no number are refused by message."""
    calibrator = quietly(TWENTY)
    refuse((TypeError, ValueError), message, lambda: calibrator.decide_scores(scores))


def test_scores_made_elsewhere_outside_the_range_abstain() -> None:
    """A score that the scorer could not have made counts as failed."""
    calibrator = quietly(TWENTY, scorers=[reader(0, low=0.0, high=1.0)])
    result = calibrator.decide_scores({"check_0": -0.5})
    assert result.reason_code is GuardReason.SCORER_FAILED
    assert "outside [0.0, 1.0]" in result.reason
    assert calibrator.decide_scores({"check_0": np.float32(0.5)}).accepted  # type: ignore[dict-item]


def test_it_says_in_a_line_what_it_is() -> None:
    """Its text names scorers, level, calls and threshold, or that nothing is accepted."""
    assert repr(quietly(TWENTY)) == "Calibrator(check_0: alpha=0.1, 20 good calls, threshold=0.9)"
    assert repr(quietly([0.1])) == "Calibrator(check_0: alpha=0.1, 1 good calls, accepts nothing)"


def first(context: ToolCallContext) -> float:
    """A scorer that other processes can find."""
    return context.args["s0"]  # type: ignore[no-any-return]


def test_other_processes_can_have_it() -> None:
    """It can be pickled where its scorers can, also after it has decided."""
    calibrator = quietly(TWENTY, scorers=[first])
    before = calibrator.decide(call(0.95))
    again = pickle.loads(pickle.dumps(calibrator))
    assert again.fingerprint == calibrator.fingerprint
    assert again.decide(call(0.95)).to_dict() == before.to_dict()


def test_nobody_can_change_it() -> None:
    """Its statistics are read-only, its fields frozen."""
    calibrator: Any = quietly(TWENTY)
    with pytest.raises(ValueError, match="read-only"):
        calibrator.good[0] = 5.0
    with pytest.raises(AttributeError):
        calibrator.level = 0.5


def test_deciding_loads_no_optional_package() -> None:
    """The guard imports and decides with the core packages alone."""
    code = (
        "import sys; from rag_confidence.guard import ToolCallContext as C, calibrate\n"
        "c = calibrate(lambda c: c.args['x'], [(C('a', {'x': x / 9}), True) for x in range(9)], 0.5)\n"
        "c.decide(C('a', {'x': 0.5}))\n"
        "names = ('jsonschema', 'pydantic', 'sqlalchemy', 'openai', 'anthropic', 'pyarrow', 'pandas')\n"
        "print([m for m in names if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout.strip(), run.stderr) == ("[]", "")
