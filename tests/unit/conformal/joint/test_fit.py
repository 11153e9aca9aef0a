"""The joint gate: one exact threshold on the strangest check, raw or as a rank among traffic."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import reference_joint as ref
from hypothesis import assume, given
from hypothesis import strategies as st

from rag_confidence._types import Decision
from rag_confidence.conformal.joint.fit import JointGate, fit_joint_gate
from rag_confidence.errors import ArtefactError, CalibrationRefused, SmallCalibrationWarning

INF = math.inf
Rows: TypeAlias = list[list[float]]
GRID = st.integers(-3, 5).map(float)
FAILING = st.one_of(GRID, GRID, GRID, st.just(INF))
WILD = st.one_of(GRID, st.floats(allow_nan=False, allow_infinity=False), st.just(INF))
ALPHAS = st.sampled_from(["0.5", "0.3", "0.2", "0.1", "1/3"])


def rows_of(
    entry: st.SearchStrategy[float], checks: int, low: int = 1, high: int = 14
) -> st.SearchStrategy[Rows]:
    """Score tables (n, checks)."""
    return st.lists(st.lists(entry, min_size=checks, max_size=checks), min_size=low, max_size=high)


def quiet_fit(scores: Any, alpha: Any = 0.1, **options: Any) -> JointGate:
    """A fit whose warnings are not the subject of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return fit_joint_gate(scores, alpha, **options)


def decisions(gate: JointGate, rows: Rows) -> list[tuple[str, ...]]:
    """The same of a gate."""
    return [(str(p.decision), *p.failed_checks) for p in gate.predict(rows)]


@given(rows_of(FAILING, 3), rows_of(FAILING, 3), ALPHAS)
def test_raw_scores_decide_as_loops_over_fractions_do(scores: Rows, rows: Rows, alpha: str) -> None:
    """Without traffic the largest raw score meets the k-th smallest largest score."""
    assert decisions(quiet_fit(scores, alpha), rows) == ref.joint_decisions(scores, alpha, rows, None)


@given(rows_of(FAILING, 2), rows_of(FAILING, 2), rows_of(FAILING, 2), ALPHAS)
def test_ranks_decide_as_loops_over_fractions_do(
    scores: Rows, rows: Rows, reference: Rows, alpha: str
) -> None:
    """With traffic every score is replaced by its rank there, and the largest rank decides."""
    assume(not np.isinf(reference).all(axis=0).any())
    gate = quiet_fit(scores, alpha, reference=reference)
    assert decisions(gate, rows) == ref.joint_decisions(scores, alpha, rows, reference)


@given(rows_of(WILD, 2, low=5), rows_of(WILD, 2), st.booleans(), st.data())
def test_raising_a_score_never_turns_abstain_into_accept(
    scores: Rows, rows: Rows, ranked: bool, data: st.DataObject
) -> None:
    """Whatever the size of the numbers, a stranger call is never accepted where a milder one was not."""
    reference = data.draw(rows_of(WILD, 2)) if ranked else None
    assume(reference is None or not np.isinf(reference).all(axis=0).any())
    gate = quiet_fit(scores, "0.3", reference=reference)
    raised = np.maximum(rows, data.draw(rows_of(WILD, 2, low=len(rows), high=len(rows))))
    before, after = gate.predict(rows), gate.predict(raised)
    assert (after.statistics >= before.statistics).all()
    assert not (after.accepted & before.abstained).any()
    assert (after.failed >= before.failed).all()


@given(rows_of(FAILING, 3), rows_of(FAILING, 3, low=2), st.permutations(range(3)), st.randoms())
def test_the_order_of_calls_and_of_checks_does_not_matter(
    scores: Rows, reference: Rows, order: list[int], random: Any
) -> None:
    """Shuffled rows give the same gate, and shuffled columns the same one under shuffled names."""
    assume(not np.isinf(reference).all(axis=0).any())
    names = ["a", "b", "c"]
    gate = quiet_fit(scores, "0.3", reference=reference, names=names)
    shuffled = random.sample(scores, len(scores))
    moved = [[[row[j] for j in order] for row in table] for table in (shuffled, reference)]
    other = quiet_fit(moved[0], "0.3", reference=moved[1], names=[names[j] for j in order])
    assert other.threshold == gate.threshold
    assert other.max_share == pytest.approx(gate.max_share)
    found, again = gate.predict(reference), other.predict(moved[1][: len(reference)])
    assert (again.accepted == found.accepted).all()
    assert (again.failed == found.failed[:, order]).all()


@given(rows_of(FAILING, 2, low=4), ALPHAS, st.booleans())
def test_of_all_calls_left_out_in_turn_few_abstain(calls: Rows, alpha: str, ranked: bool) -> None:
    """The bound itself: of n + 1 exchangeable calls at most alpha (n + 1) abstain when each is left out."""
    reference = [[0.0, 1.0], [2.0, 3.0], [1.0, -1.0]] if ranked else None
    abstained, infinite = 0, False
    for at, call in enumerate(calls):
        gate = quiet_fit(calls[:at] + calls[at + 1 :], alpha, reference=reference)
        infinite |= not gate.certified
        abstained += gate.predict_one(call).decision == Decision.ABSTAIN
    assert infinite or abstained <= Fraction(alpha) * len(calls)


AFFINE = st.tuples(st.sampled_from([1.0, 2.0, 1000.0, 7.0]), st.integers(-1000, 1000))


@given(
    rows_of(FAILING, 2),
    rows_of(FAILING, 2, low=2),
    rows_of(FAILING, 2),
    st.lists(AFFINE, min_size=2, max_size=2),
)
def test_units_and_origins_do_not_matter_with_traffic(
    scores: Rows, reference: Rows, rows: Rows, maps: list[tuple[float, int]]
) -> None:
    """a s + b in one check, in traffic and scores alike, changes no statistic and no decision."""
    assume(not np.isinf(reference).all(axis=0).any())
    factors, shifts = np.array(maps, dtype=float).T
    moved = [np.array(table) * factors + shifts for table in (scores, reference, rows)]
    before = quiet_fit(scores, "0.3", reference=reference).predict(rows)
    after = quiet_fit(moved[0], "0.3", reference=moved[1]).predict(moved[2])
    assert after.statistics.tolist() == before.statistics.tolist()
    assert after.failed.tolist() == before.failed.tolist()


def test_a_threshold_that_n_cannot_support_abstains_on_all() -> None:
    """100 good calls at alpha .005 support no threshold: every call abstains, and 199 are needed."""
    scores = np.linspace(0.0, 1.0, 100)[:, None]
    with pytest.warns(SmallCalibrationWarning, match="at least 199 good calls are needed, and there are 100"):
        gate = fit_joint_gate(scores, 0.005)
    assert gate.threshold == INF
    assert (gate.certified, gate.n_needed) == (False, 199)
    assert not gate.predict([[0.0], [1e9], [INF]]).accepted.any()
    call = gate.predict_one([1e9])
    assert (call.decision, call.failed_checks, call.threshold) == (Decision.ABSTAIN, (), INF)
    assert "was not judged" in call.reason
    assert "199" in call.reason
    assert (call.guarantee.holds, call.guarantee.bound, call.guarantee.kind) == (False, None, "none")


@pytest.mark.parametrize("alpha", ["0.005", "0.1", "1/3", "0.99"])
def test_the_calls_needed_are_the_fewest_that_certify(alpha: str) -> None:
    """One call fewer than `n_needed` gives an infinite threshold, and `n_needed` a finite one."""
    needed = quiet_fit([[0.0]], alpha).n_needed
    if needed > 1:
        assert not quiet_fit(np.zeros((needed - 1, 2)), alpha).certified
    assert quiet_fit(np.zeros((max(needed, 1), 2)), alpha).certified


def test_failed_checks_of_calibration_calls_count_as_infinite() -> None:
    """At alpha .1 and n = 99 nine calls with a failed check leave a finite threshold, ten do not."""
    scores = np.tile(np.linspace(0.0, 1.0, 99)[:, None], (1, 2))
    scores[:9, 1] = INF
    gate = fit_joint_gate(scores, 0.1)
    assert (gate.threshold, gate.n_failed) == (1.0, 9)
    assert gate.predict_one([0.5, INF]).failed_checks == ("check_1",)
    scores[9, 0] = INF
    with pytest.warns(
        SmallCalibrationWarning, match=r"at most 9 of 99 .* and 10 have.*level of at least 11 %"
    ):
        broken = fit_joint_gate(scores, 0.1)
    assert broken.predict_one([0.0, 0.0]).decision == Decision.ABSTAIN
    assert fit_joint_gate(scores, "0.11").certified


def test_strict_refuses_what_is_a_warning_otherwise() -> None:
    """strict=True raises the same sentence for too few calls and for scales that let one check decide."""
    with pytest.raises(CalibrationRefused, match="at least 9 good calls are needed, and there are 8"):
        fit_joint_gate(np.zeros((8, 2)), 0.1, strict=True)
    rng = np.random.default_rng([1, 0])
    with pytest.raises(CalibrationRefused, match="Pass `reference`"):
        fit_joint_gate(rng.random((50, 2)) * [1.0, 1000.0], 0.1, strict=True)


def test_ties_with_the_threshold_are_accepted() -> None:
    """Equal scores are equally strange: 20 tied calls give their value, which is accepted, and no more."""
    gate = fit_joint_gate(np.full((20, 2), 0.5), 0.1)
    assert gate.threshold == 0.5
    assert gate.predict([[0.5, 0.5], [0.5, 0.51], [0.49, 0.0]]).accepted.tolist() == [True, False, True]


def test_which_checks_failed_is_said_by_name() -> None:
    """failed_checks holds every check above the joint threshold, in order, and no other."""
    scores = [[i / 20, 1 - i / 20, 0.0] for i in range(20)]
    gate = quiet_fit(scores, 0.1, names=["schema", "logprob", "judge"])
    assert gate.threshold == 0.95
    call = gate.predict_one([0.96, 0.95, INF])
    assert call.failed_checks == ("schema", "judge")
    assert call.statistic == INF
    assert call.reason == "These checks find the call stranger than good calls usually are: schema, judge."
    assert gate.predict_one([0.0, 0.951, 0.0]).reason.startswith("This check finds")
    passed = gate.predict_one([0.95, 0.95, 0.0])
    assert passed.reason == "No check finds this call stranger than good calls usually are."


def test_the_share_of_being_the_maximum_is_reported() -> None:
    """`max_share` adds up to one, splits ties, and shows a check that decides alone."""
    gate = quiet_fit([[1, 0], [2, 1], [3, 3], [0, 4]], 0.5, names=["a", "b"])
    assert gate.max_share == {"a": 0.625, "b": 0.375}


def scaled(factor: float, n: int = 50) -> np.ndarray[Any, Any]:
    """Two independent checks, one in other units."""
    return np.random.default_rng([2, 0]).random((n, 2)) * [1.0, factor]


def test_scales_that_differ_wildly_are_not_passed_in_silence() -> None:
    """Raw checks of very different spread warn with numbers; with traffic, or alike, nothing is said."""
    with pytest.warns(UserWarning, match="spread of check_1 is 944 times the smallest"):
        gate = fit_joint_gate(scaled(1000.0), 0.1)
    assert gate.max_share["check_1"] > 0.95
    assert gate.scale_note is not None
    assert fit_joint_gate(scaled(1.0), 0.1).scale_note is None
    assert fit_joint_gate(scaled(1000.0), 0.1, reference=scaled(1000.0, 90)[50:]).scale_note is None


def test_an_offset_that_lets_one_check_decide_is_not_passed_in_silence() -> None:
    """A check that is always the largest warns too, at whatever spread."""
    with pytest.warns(UserWarning, match="check_0 is the largest in 100 % of good calls"):
        fit_joint_gate(np.add(scaled(1.0), [5.0, 0.0]), 0.1)


def test_a_check_whose_strangest_scores_are_common_is_not_passed_in_silence() -> None:
    """A check that failed a tenth of the traffic has rank .9 at most, which may never be stopped."""
    schema, judge = np.zeros(200), np.random.default_rng([5, 0]).random(200)
    schema[:20] = 1.0
    traffic, names = np.column_stack([schema, judge]), ["schema", "judge"]
    scores = np.column_stack([np.zeros(50), scaled(1.0)[:, 0]])
    with pytest.warns(UserWarning, match="The largest score of schema in the traffic is not above"):
        gate = fit_joint_gate(scores, "0.05", reference=traffic, names=names)
    assert gate.predict_one([1.0, 0.5]).decision == Decision.ACCEPT
    schema[2:20] = 0.0
    better = fit_joint_gate(scores, "0.05", reference=np.column_stack([schema, judge]), names=names)
    assert better.predict_one([1.0, 0.5]).failed_checks == ("schema",)


def test_a_check_that_never_varies_has_no_scale() -> None:
    """A schema check that every good call passes does not make the scales look different."""
    assert fit_joint_gate(np.column_stack([np.zeros(50), scaled(1.0)[:, 0] + 1.0]), 0.1).scale_note is None


def test_float32_scores_meet_a_threshold_in_float32() -> None:
    """numpy.float32(0.1) is not stranger than the 0.1 it was rounded from, and the reverse."""
    wide, narrow = np.full((20, 2), 0.1), np.full((20, 2), 0.1, dtype=np.float32)
    for scores, row in ((wide, narrow[0]), (narrow, wide[0]), (-wide, -narrow[0]), (-narrow, -wide[0])):
        for reference in (None, [[0.0, 0.3], [0.1, 0.2], [0.2, 0.1], [-0.1, 0.1]]):
            gate = fit_joint_gate(scores, 0.1, reference=reference)
            assert gate.predict_one(row).decision == Decision.ACCEPT
    above = np.nextafter(np.float32(0.1), np.float32(1.0))
    assert fit_joint_gate(wide, 0.1).predict_one(np.array([above, above])).decision == Decision.ABSTAIN


def test_scores_too_large_for_float32_are_not_taken_for_failures() -> None:
    """Rounding to float32 keeps finite scores finite, so that the bound holds for float32 rows as well."""
    gate = fit_joint_gate(np.full((20, 2), 1e300), 0.1)
    assert gate.predict_one(np.array([3e38, 0.0], dtype=np.float32)).decision == Decision.ACCEPT
    assert gate.predict_one(np.array([INF, 0.0], dtype=np.float32)).decision == Decision.ABSTAIN


def test_columns_and_single_calls_agree() -> None:
    """`predict` says of each row what `predict_one` says, by index, slice and iteration."""
    gate = fit_joint_gate(scaled(1.0), 0.1)
    rows = scaled(1.3)
    columns = gate.predict(rows)
    assert len(columns) == 50
    assert [*columns] == [gate.predict_one(row) for row in rows] == columns[:]
    assert columns[-1] == columns[49]
    assert columns.decision.tolist() == [p.decision.value for p in columns]
    assert (columns.abstained == ~columns.accepted).all()
    assert (
        repr(columns)
        == f"JointPredictions(50 calls: {columns.accepted.sum()} accept, {columns.abstained.sum()} abstain)"
    )
    with pytest.raises(IndexError):
        columns[50]


def test_no_calls_give_no_decisions() -> None:
    """An empty table of the right width is no error when predicting."""
    gate = fit_joint_gate(scaled(1.0), 0.1, reference=scaled(1.0, 90)[50:])
    assert len(gate.predict(np.zeros((0, 2)))) == 0


def test_the_guarantee_says_what_is_bounded_and_what_is_not() -> None:
    """Event, bound, data and limits are fields, and one sentence holds them for a reader."""
    gate = fit_joint_gate(
        scaled(1.0), 0.1, collected=("2026-06-01", "2026-07-01"), labeling_source="deterministic tests"
    )
    g = gate.guarantee
    assert (g.kind, g.holds, g.bound, g.alpha, g.n0, g.n1) == ("joint", True, 0.1, 0.1, 0, 50)
    assert g.event == "ABSTAIN although the call is good"
    assert "exchangeable with the 50 good calls" in g.assumption
    assert g.conditioning.endswith("one whose threshold is infinite counting as no error")
    assert any("bad calls" in line for line in g.not_claimed)
    assert any("session" in line for line in g.not_claimed)
    assert any("fail to run" in line for line in g.not_claimed)
    for word in (
        "at most 10 %",
        "all 2 checks",
        "infinite counting as no error",
        "deterministic tests",
        "from 2026-06-01 to 2026-07-01",
    ):
        assert word in g.sentence
    assert g is gate.predict_one([0.0, 0.0]).guarantee
    ranked = fit_joint_gate(scaled(1.0), 0.1, reference=scaled(1.0, 90)[50:])
    assert ranked.guarantee.assumption.startswith("given the traffic that fixed the ranks, new good calls")
    assert "neither these calls nor retries or relatives of them" in ranked.guarantee.assumption


def test_what_was_not_stated_is_said_to_be_so() -> None:
    """Without dates and source the sentence says that they are not recorded; nothing is made up."""
    g = fit_joint_gate(scaled(1.0), 0.1).guarantee
    assert (g.collected, g.labeling_source) == (None, None)
    assert "a source that is not recorded, on days that are not recorded" in g.sentence


@pytest.mark.parametrize("reference", [None, [[0.1, 0.3], [1 / 3, 0.7], [INF, -2.5], [1e-310, 1e300]]])
@pytest.mark.parametrize("alpha", [0.1, "0.001"])
def test_a_saved_gate_is_the_same_to_the_last_bit(tmp_path: Path, reference: Rows | None, alpha: Any) -> None:
    """Thresholds, ranks, words and decisions survive a file and a dict; JSON holds no pickle and no nan."""
    gate = quiet_fit(scaled(1.0), alpha, reference=reference, names=["a", "b"], collected="2026-06-01")
    gate.save(tmp_path / "gate.json")
    for other in (
        JointGate.load(tmp_path / "gate.json"),
        JointGate.from_dict(json.loads(json.dumps(gate.to_dict()))),
    ):
        assert other.to_dict() == gate.to_dict()
        assert other.fingerprint == gate.fingerprint
        assert other.guarantee == gate.guarantee
        rows = np.vstack([scaled(1.4), [[INF, 0.0], [1e300, 1e-310]]])
        assert other.predict(rows).statistics.tolist() == gate.predict(rows).statistics.tolist()
        assert other.predict(rows)[:] == gate.predict(rows)[:]


def test_a_changed_file_is_refused() -> None:
    """A threshold edited by hand, and another kind of artefact, do not load."""
    document = fit_joint_gate(scaled(1.0), 0.1).to_dict()
    changed = {**document, "payload": {**document["payload"], "threshold": 9.0}}
    with pytest.raises(ArtefactError, match="unchanged"):
        JointGate.from_dict(changed)
    with pytest.raises(ArtefactError, match="conformal_gate"):
        JointGate.from_dict({**document, "artefact": "conformal_gate"})


def test_another_gate_has_another_fingerprint() -> None:
    """Level, scores, names and traffic all enter the fingerprint."""
    gates = [
        fit_joint_gate(scaled(1.0), 0.1),
        fit_joint_gate(scaled(1.0), 0.2),
        fit_joint_gate(scaled(1.1), 0.1),
        fit_joint_gate(scaled(1.0), 0.1, names=["a", "b"]),
        fit_joint_gate(scaled(1.0), 0.1, reference=scaled(1.0, 90)[50:]),
    ]
    assert len({gate.fingerprint for gate in gates}) == 5


class Frame:
    """As much of a data frame or a series as names its columns."""

    def __init__(self, values: Any, labels: Sequence[Any]) -> None:
        self.values, self.iloc, self.index = np.asarray(values), self, labels
        if self.values.ndim == 2:
            self.columns = labels

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


def test_a_data_frame_names_the_checks_and_must_keep_their_order() -> None:
    """Columns name the checks; a table or a row with other columns, or another order, is refused."""
    gate = fit_joint_gate(Frame(scaled(1.0), ["a", "b"]), 0.1)
    assert gate.names == ("a", "b")
    assert gate.predict_one(Frame([0.1, 0.2], ["a", "b"])).decision == Decision.ACCEPT
    assert gate.predict(Frame(scaled(1.0), [0, 1])).accepted.sum() >= 45
    wrong: list[Callable[[], object]] = [
        lambda: gate.predict(Frame(scaled(1.0), ["b", "a"])),
        lambda: gate.predict_one(Frame([0.1, 0.2], ["b", "a"])),
        lambda: fit_joint_gate(Frame(scaled(1.0), ["a", "b"]), 0.1, reference=Frame(scaled(1.0), ["b", "a"])),
        lambda: fit_joint_gate(Frame(scaled(1.0), ["a", "b"]), 0.1, names=["b", "a"]),
    ]
    for call in wrong:
        with pytest.raises(ValueError, match="must have the columns"):
            call()


NAN = math.nan
GOOD: Rows = [[0.1, 0.2], [0.3, 0.1]] * 10


@pytest.mark.parametrize(
    ("scores", "options", "error", "match"),
    [
        (
            [[0.1, NAN], [NAN, 0.2]],
            {},
            ValueError,
            r"`scores` must not hold nan .* 2 bad .* \(0, 1\), \(1, 0\)\. .*\+inf",
        ),
        ([[0.1, -INF]], {}, ValueError, "`scores` must not hold nan or -inf; got -inf"),
        ([0.1, 0.2], {}, ValueError, r"`scores` must have shape \(n, K\); got \(2,\)"),
        ([[]], {}, ValueError, r"`scores` must have shape \(n, K\); got \(1, 0\)"),
        (np.zeros((0, 2)), {}, ValueError, "`scores` must hold at least one call; got none"),
        ([[0.1, 0.2], [0.3]], {}, ValueError, "`scores` must be a rectangular array"),
        ([["0.1", "0.2"]], {}, TypeError, "`scores` must hold real numbers"),
        ([[True, False]], {}, TypeError, "`scores` must hold real numbers"),
        ([[None, 0.2]], {}, TypeError, "`scores` must hold real numbers"),
        (
            GOOD,
            {"reference": [[0.1, 0.2, 0.3]]},
            ValueError,
            r"`reference` must have shape \(n, 2\); got \(1, 3\)",
        ),
        (GOOD, {"reference": [[0.1, NAN]]}, ValueError, "`reference` must not hold nan"),
        (GOOD, {"reference": np.zeros((0, 2))}, ValueError, "`reference` must hold at least one call"),
        (
            GOOD,
            {"reference": [[0.1, INF]]},
            ValueError,
            "`reference` must hold a finite score .* none of check_1",
        ),
        (GOOD, {"names": ["a"]}, ValueError, r"`names` must hold 2 different strings"),
        (GOOD, {"names": ["a", "a"]}, ValueError, r"`names` must hold 2 different strings"),
        (GOOD, {"names": "ab"}, TypeError, "`names` must be a list of strings"),
        (GOOD, {"names": [1, 2]}, TypeError, "`names` must be a list of strings"),
        (GOOD, {"alpha": 0}, ValueError, "`alpha` must be strictly between 0 and 1; got 0"),
        (GOOD, {"alpha": NAN}, ValueError, "`alpha`"),
        (GOOD, {"alpha": 10}, ValueError, "`alpha` must be strictly between 0 and 1; got 10"),
        (GOOD, {"strict": "no"}, TypeError, "`strict` must be True or False"),
        (GOOD, {"labeling_source": 3}, TypeError, "`labeling_source` must be a string"),
        (
            GOOD,
            {"collected": ("2026-07-01", "2026-06-01")},
            ValueError,
            "`collected` must run from the first",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    scores: Any, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    """Each odd argument has an error that names it, says what it must be, what it was, and the cure."""
    with pytest.raises(error, match=match):
        fit_joint_gate(scores, **options)


@pytest.mark.parametrize(
    ("row", "error", "match"),
    [
        ([0.1], ValueError, r"`row` must have shape \(2,\); got \(1,\)\. .* in the order check_0, check_1"),
        ([[0.1, 0.2]], ValueError, r"`row` must have shape \(2,\); got \(1, 2\)"),
        ([0.1, NAN], ValueError, r"`row` must not hold nan"),
        (["0.1", "0.2"], TypeError, "`row` must hold real numbers"),
        (0.5, ValueError, r"`row` must have shape \(2,\); got \(\)"),
    ],
)
def test_a_bad_call_is_refused_in_one_sentence(row: Any, error: type[Exception], match: str) -> None:
    """A call that cannot be judged is an error, never a decision."""
    with pytest.raises(error, match=match):
        fit_joint_gate(GOOD, 0.1).predict_one(row)


def test_bad_tables_are_refused_when_predicting() -> None:
    """`predict` wants as many columns as there are checks, and no nan."""
    gate = fit_joint_gate(GOOD, 0.1)
    for rows, match in (([[0.1]], r"shape \(n, 2\); got \(1, 1\)"), ([[0.1, NAN]], "must not hold nan")):
        with pytest.raises(ValueError, match=f"`rows` .*{match}"):
            gate.predict(rows)
