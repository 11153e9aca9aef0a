"""Warnings of a calibration: each fault of the calls is said in words, and strict=True refuses it."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from guard_calls import INF, call, labelled, quietly, reader, readers

from rag_confidence._calls import CallRecord, LabelingSource, ToolCallContext
from rag_confidence._types import Decision
from rag_confidence.errors import (
    CalibrationRefused,
    MixedScorersWarning,
    SelectedCallsWarning,
    SmallCalibrationWarning,
    StaleCalibrationWarning,
    TiedScoresWarning,
)
from rag_confidence.guard.calibration import calibrate
from rag_confidence.guard.calibrator import Calibrator

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SPREAD = [at / 40 for at in range(40)]
Warned = tuple[Calibrator, list[tuple[type[Warning], str]]]


def warned(data: Any, scorers: Any = None, alpha: Any = "0.1", **options: Any) -> Warned:
    """A calibrator, and all that it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrator = calibrate(scorers or readers(1), data, alpha, now=NOW, **options)
    assert all(Path(one.filename).name == Path(__file__).name for one in caught)
    return calibrator, [(one.category, str(one.message)) for one in caught]


def records(values: list[float], **more: Any) -> list[CallRecord]:
    """Good calls as records."""
    return [CallRecord(call(score), True, **more) for score in values]


def refused(data: Any, message: str, scorers: Any = None, **options: Any) -> None:
    """With strict=True the same is an error."""
    with pytest.raises(CalibrationRefused, match=message):
        calibrate(scorers or readers(1), data, "0.1", now=NOW, strict=True, **options)


def test_calls_without_fault_warn_of_nothing() -> None:
    """Enough fresh calls of one scorer are no reason to warn, and strict=True takes them."""
    fresh = records(SPREAD, recorded_at=NOW - timedelta(days=1))
    calibrator, found = warned(fresh, strict=True)
    assert (found, calibrator.notes) == ([], ())


def test_too_few_calls_warn_with_the_number_that_is_missing() -> None:
    """The warning is the sentence of the guarantee."""
    calibrator, found = warned(labelled(SPREAD[:5]))
    assert found == [(SmallCalibrationWarning, calibrator.guarantee.sentence)]
    assert "known: 5, missing: 4" in found[0][1]
    assert (calibrator.n_needed, calibrator.n_missing) == (9, 4)
    refused(labelled(SPREAD[:5]), "missing: 4")


def test_too_few_bad_calls_warn_too() -> None:
    """With beta both kinds must suffice."""
    calibrator, found = warned(labelled(SPREAD, [3.0]), beta="0.1")
    assert [category for category, _ in found] == [SmallCalibrationWarning]
    assert (calibrator.n_missing, calibrator.n_bad_missing) == (0, 8)


def test_scorers_that_fail_too_often_warn() -> None:
    """Infinite scores among the good calls make the threshold infinite, and a note names the scorer."""
    calibrator, found = warned(labelled([*SPREAD[:17], *[INF] * 3]))
    assert [category for category, _ in found] == [SmallCalibrationWarning]
    assert (
        "check_0 failed on 3 of 20 calls, which count as +inf: check_0 raised ConnectionError"
        in calibrator.notes[0]
    )
    assert (calibrator.n_failed, calibrator.threshold) == (3, INF)


def test_old_calls_warn() -> None:
    """The newest call decides, from its record or from `collected`; None never warns."""
    old = records(SPREAD, recorded_at=NOW - timedelta(days=91))
    _, found = warned(old)
    assert found[0][0] is StaleCalibrationWarning
    assert found[0][1].startswith("The newest call is of 2026-08-31, 91 days ago.")
    refused(old, "91 days ago")
    newer = [*old[1:], *records([0.5], recorded_at=NOW - timedelta(days=89))]
    assert warned(newer)[1] == warned(old, max_age=None)[1] == []
    assert warned(labelled(SPREAD), collected="2026-01-31")[1][0][0] is StaleCalibrationWarning
    assert warned(labelled(SPREAD), collected=("2026-01-31", "2026-11-30"))[1] == []


def test_an_age_that_is_not_known_is_a_note() -> None:
    """Calls without dates do not warn, are not taken for today's, and the note says so."""
    calibrator, found = warned(labelled(SPREAD))
    assert found == []
    assert calibrator.collected is None
    assert calibrator.notes == ("When the calls were made is not recorded, so their age is not known.",)


def test_a_clock_that_went_backwards_is_a_note() -> None:
    """Calls from the future are counted."""
    ahead = records(SPREAD[:3], recorded_at=NOW + timedelta(days=1)) + records(SPREAD[3:], recorded_at=NOW)
    calibrator, found = warned(ahead)
    assert found == []
    assert calibrator.notes == ("3 calls were recorded later than now: a clock is wrong.",)


def test_days_come_from_the_records_only_if_all_have_one() -> None:
    """One call without a date leaves the days unknown; dates given by hand win."""
    dated = records(SPREAD[:20], recorded_at=NOW - timedelta(days=30)) + records(SPREAD[20:], recorded_at=NOW)
    assert warned(dated)[0].collected == ("2026-10-31", "2026-11-30")
    assert warned([*dated, (call(0.5), True)])[0].collected is None
    assert warned(dated, collected="2026-11-01")[0].collected == ("2026-11-01", "2026-11-01")


def test_scores_of_other_scorers_warn() -> None:
    """Stored scores that this scorer did not make are replaced, and the warning says how many."""
    mine = {"check_0": reader(0).fingerprint}
    mixed = records(SPREAD[:30], scores={"check_0": 0.25}, fingerprints=mine)
    mixed += records(SPREAD[30:], scores={"check_0": 9.0}, fingerprints={"check_0": "another"})
    calibrator, found = warned(mixed)
    assert found[0][0] is MixedScorersWarning
    assert found[0][1].startswith("10 calls carry scores of other scorers")
    assert calibrator.good.tolist() == sorted([0.25] * 30 + SPREAD[30:])
    refused(mixed, "10 calls carry scores of other scorers")


def test_calibrating_on_accepted_calls_only_warns() -> None:
    """Round after round on what a guard accepted, the threshold falls, and each round warns."""
    calibrator = quietly([at / 1000 for at in range(1000)])
    thresholds = [calibrator.threshold]
    for _ in range(4):
        let_through = [at / 1000 for at in range(1000) if at / 1000 <= calibrator.threshold]
        calibrator, found = warned(records(let_through, decision=Decision.ACCEPT))
        assert [category for category, _ in found] == [SelectedCallsWarning]
        thresholds.append(calibrator.threshold)
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[-1] < 0.7
    refused(
        records(SPREAD, decision=Decision.ACCEPT),
        "All 40 calls of which a decision is recorded were accepted",
    )


def test_calls_that_were_stopped_among_them_do_not_warn() -> None:
    """Calls of a guard are fine where stopped ones are among them, or where they are the smaller part."""
    accepted = records(SPREAD[:36], decision=Decision.ACCEPT)
    assert warned([*accepted, *records(SPREAD[36:], decision=Decision.ABSTAIN)])[1] == []
    assert warned([*records(SPREAD[:10], decision=Decision.ACCEPT), *labelled(SPREAD[10:])])[1] == []


@pytest.mark.parametrize("good", [[1.0] * 40, [0.0] * 20 + [1.0] * 20, [0.0] * 35 + [1.0] * 5])
def test_tied_scores_that_stop_nothing_warn(good: list[float]) -> None:
    """A constant or binary score whose largest value is common accepts every call that can be scored."""
    for scorer in (reader(0), reader(0, low=0.0, high=1.0)):
        calibrator, found = warned(labelled(good), [scorer])
        assert [category for category, _ in found] == [TiedScoresWarning]
        assert calibrator.decide(call(1.0)).accepted
        refused(labelled(good), "Use a finer scorer", [scorer])


def test_a_threshold_at_the_end_of_the_scale_warns() -> None:
    """At the largest score there is no call is stopped, even if the rank is the last one."""
    _, found = warned(labelled([*SPREAD[:8], 1.0]), [reader(0, low=0.0, high=1.0)])
    assert found[0][0] is TiedScoresWarning
    assert found[0][1].startswith("The threshold 1 is the largest score there is")
    assert warned(labelled([*SPREAD[:8], 1.0]))[1] == []


def test_ties_that_stop_others_do_not_warn() -> None:
    """All good calls at the least score there is: any violation is above the threshold."""
    assert warned(labelled([0.0] * 40), [reader(0, low=0.0)])[1] == []
    assert warned(labelled([0.0] * 35 + [1.0] * 5), [reader(0, low=0.0)], "0.2")[1] == []
    rows = [[0.0, 0.0]] * 40
    assert warned(labelled(rows), [reader(0, low=0.0), reader(1, low=-1.0)])[1] == []


def test_failed_calls_are_no_strange_scores() -> None:
    """Ties are sought among the calls that were scored."""
    _, found = warned(labelled([1.0] * 38 + [INF] * 2))
    assert [category for category, _ in found] == [TiedScoresWarning]
    assert "38 of 38 scored good calls share the largest score, 1," in found[0][1]


def test_checks_of_different_scales_warn() -> None:
    """Raw scores of wildly different spreads warn, ranks among traffic do not."""
    rows = [[score, 1000 * score + 5] for score in SPREAD]
    _, found = warned(labelled(rows), readers(2))
    assert found[0][0] is UserWarning
    assert "The checks are of different scales" in found[0][1]
    traffic = [call(at / 33, 990 * at / 33 + 4) for at in range(60)]
    assert warned(labelled(rows), readers(2), reference=traffic)[1] == []


def test_traffic_full_of_strange_calls_warns() -> None:
    """Where the largest score is common in the traffic, it cannot count as strange."""
    traffic = [call(0.0), call(0.5), *[call(3.0)] * 98]
    _, found = warned(labelled([*SPREAD[:30], *[3.0] * 10]), reference=traffic)
    assert any("too common" in text for _, text in found)


def test_what_was_left_out_or_comes_twice_is_a_note() -> None:
    """Records without an outcome, and calls that share a call id, are counted."""
    data: list[Any] = [CallRecord(call(0.1), None), *labelled(SPREAD)]
    data += [(call(0.3, call_id="a"), True), (call(0.3, call_id="a"), True), (call(0.3, call_id="b"), True)]
    calibrator, found = warned(data)
    assert found == []
    assert calibrator.n_unlabelled == 1
    assert calibrator.notes[0] == "1 records without an outcome were left out."
    assert calibrator.notes[1].startswith("1 calls have the call id of another one.")


def test_labelling_sources_are_those_of_the_calls() -> None:
    """There is no default source; several are all named, and the argument stands in for missing ones."""
    judged = records(SPREAD[:20], labeling_source="judge")
    assert warned(labelled(SPREAD))[0].labeling_source is None
    assert warned(labelled(SPREAD), labeling_source=LabelingSource.HUMAN)[0].labeling_source == "human"
    mixed = [*judged, *labelled(SPREAD[20:])]
    assert warned(mixed)[0].labeling_source == "judge and a source that is not recorded"
    assert warned(mixed, labeling_source="human")[0].labeling_source == "human and judge"
    assert warned(judged, labeling_source="human")[0].labeling_source == "judge"


def test_another_level_has_notes_of_its_own_and_does_not_warn() -> None:
    """`at_level` is quiet; its notes say what is odd there."""
    calibrator = warned(records(SPREAD, recorded_at=NOW))[0]
    strict = calibrator.at_level("0.01")
    assert strict.notes == (strict.guarantee.sentence,)
    assert "missing: 59" in strict.notes[0]
    assert strict.at_level("0.1").notes == calibrator.notes == ()


def test_a_scorer_cannot_change_what_the_tool_runs_with() -> None:
    """Arguments in a context are copies: what a scorer does to them, it does to those."""
    args = {"items": [1, 2], "name": "a"}

    def greedy(context: ToolCallContext) -> float:
        context.args["items"].append(3)
        return 0.5

    result = quietly(SPREAD, scorers=[reader(0)]).decide(call(0.5))
    assert result.accepted
    spoiled, _ = warned([(ToolCallContext("mail", args), True)] * 20, [greedy])
    spoiled.decide(ToolCallContext("mail", args))
    assert args == {"items": [1, 2], "name": "a"}
    with pytest.raises(TypeError):
        ToolCallContext("mail", args).args["name"] = "b"  # type: ignore[index]


def test_the_longest_age_never_warns() -> None:
    """No time lies so far back, and none is computed."""
    records = [CallRecord(call(0.1), True, recorded_at=NOW) for _ in range(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", StaleCalibrationWarning)
        warnings.simplefilter("ignore", TiedScoresWarning)
        calibrate(readers(1), records, "0.1", max_age=timedelta.max, now=NOW)
