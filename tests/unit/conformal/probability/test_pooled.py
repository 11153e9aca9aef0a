"""What holds for all three probability maps: shapes, refusals, order of rows, artefacts, place in score()."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import History, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuse

from rag_confidence import _artefact, score, score_many
from rag_confidence.conformal.probability.isotonic import IsotonicMap, fit_isotonic
from rag_confidence.conformal.probability.platt import PlattMap, fit_platt
from rag_confidence.conformal.probability.pooled import check_points, pool, position
from rag_confidence.conformal.probability.venn_abers import VennAbersMap, fit_venn_abers
from rag_confidence.conformal.rows import refuse_overlap, rows_of
from rag_confidence.errors import ArtefactError, RowsReused

FITS = {"isotonic_map": fit_isotonic, "platt_map": fit_platt, "venn_abers_map": fit_venn_abers}
CLASSES: dict[str, Any] = {
    "isotonic_map": IsotonicMap,
    "platt_map": PlattMap,
    "venn_abers_map": VennAbersMap,
}
SCORES = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
LABELS = [0, 0, 1, 0, 1, 0, 1, 1]

all_maps = pytest.mark.parametrize("kind", sorted(FITS))
# Each such test runs for three maps.
brief = settings(max_examples=20)


def made(kind: str, **options: Any) -> Any:
    """A map of this kind, fitted on eight rows."""
    return FITS[kind](SCORES, LABELS, **options)


# --- the call


@all_maps
@pytest.mark.parametrize("number", [0.35, np.float64(0.35), np.float32(0.35), np.array(0.35), 1, np.int64(0)])
def test_a_number_gives_a_float(kind: str, number: Any) -> None:
    """One score, of any numeric type, gives one Python float in [0, 1]."""
    chance = made(kind)(number)
    assert type(chance) is float
    assert 0.0 <= chance <= 1.0


@all_maps
@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (2, 3), (2, 0), (1, 1, 1)])
def test_an_array_gives_an_array_of_its_shape(kind: str, shape: tuple[int, ...]) -> None:
    """Any shape, empty ones included, comes back as it went in, entry by entry what a number gives."""
    points = np.linspace(-0.5, 1.5, int(np.prod(shape))).reshape(shape)
    chances = made(kind)(points)
    assert isinstance(chances, np.ndarray)
    assert chances.shape == shape
    assert chances.ravel().tolist() == [made(kind)(float(point)) for point in points.ravel()]


@all_maps
def test_lists_and_tuples_are_arrays(kind: str) -> None:
    """A list of scores is as good as an array."""
    chance = made(kind)
    assert chance([0.2, 0.5]).tolist() == chance((0.2, 0.5)).tolist() == chance(np.array([0.2, 0.5])).tolist()


@all_maps
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, [0.1, np.nan], np.array([[0.1], [np.inf]])])
def test_what_is_not_finite_is_refused(kind: str, odd: Any) -> None:
    """nan and infinities are one clear error, alone or among others, and never a probability."""
    refuse(ValueError, "^`score` must be finite; got (nan|-?inf)", lambda: made(kind)(odd))


@all_maps
@pytest.mark.parametrize("odd", ["0.5", None, True, b"1", 1j, ["a"], [0.1, None], [True, False], object()])
def test_what_is_not_a_number_is_refused(kind: str, odd: Any) -> None:
    """Strings, None, booleans and complex numbers are one clear error."""
    refuse(TypeError, "^`score` must hold real numbers", lambda: made(kind)(odd))


@all_maps
def test_masked_scores_are_refused(kind: str) -> None:
    """A masked entry has no score."""
    masked = np.ma.masked_array([0.1, 0.2], mask=[True, False])
    refuse(ValueError, "^`score` must not hide", lambda: made(kind)(masked))


@all_maps
@brief
@given(h=histories())
def test_every_history_gives_probabilities(kind: str, h: History) -> None:
    """Whatever the scale of the scores, each probability is a number in [0, 1], without a warning."""
    chances = FITS[kind](h.scores, h.labels)(np.concatenate([h.scores, h.probes]).astype(np.float64))
    assert ((chances >= 0.0) & (chances <= 1.0)).all()


# --- the fit


@all_maps
@brief
@given(h=histories(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(kind: str, h: History, order: Any) -> None:
    """A permutation of the rows changes no bit of the map."""
    places = list(range(len(h.labels)))
    order.shuffle(places)
    there = FITS[kind](h.scores, h.labels)
    again = FITS[kind](h.scores[places], [h.labels[i] for i in places])
    assert there.to_dict() == again.to_dict()


@all_maps
@brief
@given(h=histories())
def test_a_precision_is_only_a_way_to_write_a_number(kind: str, h: History) -> None:
    """Scores in float32 give the map of the same numbers in float64."""
    wide = FITS[kind](h.scores.astype(np.float64), np.array(h.labels, dtype=bool))
    assert FITS[kind](h.scores, h.labels).to_dict() == wide.to_dict()


@all_maps
def test_both_zeros_are_one_score(kind: str) -> None:
    """0.0 and -0.0 are tied, in the rows and in the call."""
    signed, plain = ([z, 0.0, 1.0, 1.0] for z in (-0.0, 0.0))
    there, again = (FITS[kind](x, [1, 0, 0, 1]) for x in (signed, plain))
    assert there(-0.0) == there(0.0) == again(-0.0) == again(0.0)


@all_maps
def test_the_counts_and_rows_are_carried(kind: str) -> None:
    """A map knows how many rows of each class it saw, and which."""
    chance = made(kind, row_ids=[f"q{i}" for i in range(8)])
    assert (chance.n0, chance.n1) == (4, 4)
    assert chance.rows.scores0.tolist() == [0.1, 0.2, 0.4, 0.7]
    assert chance.rows.scores1.tolist() == [0.3, 0.6, 0.8, 0.9]
    assert len(chance.rows.ids) == 8
    assert made(kind).rows.ids is None


@all_maps
def test_rows_of_a_map_are_recognised(kind: str) -> None:
    """A calibration set that shares a row with the map is refused; another passes."""
    chance = made(kind, row_ids=range(8))
    shared, other = (
        rows_of(np.array([0.5, 0.6]), np.array([False, True]), [a, b]) for a, b in [(7, 8), (8, 9)]
    )
    with pytest.raises(RowsReused, match=CLASSES[kind].__name__):
        refuse_overlap(shared, [chance])
    refuse_overlap(other, [chance])


@all_maps
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_is_refused(kind: str, label: int) -> None:
    """Rows of one class alone say nothing about the other."""
    refuse(ValueError, "^`labels` must hold both classes", lambda: FITS[kind]([0.1, 0.2], [label, label]))


BAD_HISTORIES: dict[str, tuple[Any, Any, Any, str]] = {
    "nan": ([0.1, np.nan], [0, 1], None, "`scores` must be finite"),
    "infinite": ([0.1, np.inf], [0, 1], None, "`scores` must be finite"),
    "strings": (["0.1", "0.2"], [0, 1], None, "`scores` must hold real numbers"),
    "two dimensions": ([[0.1], [0.2]], [0, 1], None, "`scores` must have shape"),
    "empty": ([], [], None, "`scores` must hold at least one"),
    "label 2": ([0.1, 0.2], [0, 2], None, "`labels` must be 0 or 1"),
    "label no": ([0.1, 0.2], ["no", "yes"], None, "`labels` must be 0 or 1"),
    "lengths": ([0.1, 0.2, 0.3], [0, 1], None, "`labels` must have one entry for each"),
    "lengths of ids": ([0.1, 0.2], [0, 1], ["a"], "`row_ids` must have one entry for each"),
    "an id twice": ([0.1, 0.2], [0, 1], ["a", "a"], "`row_ids` must differ"),
}


@all_maps
@pytest.mark.parametrize("case", sorted(BAD_HISTORIES))
def test_a_bad_history_is_refused(kind: str, case: str) -> None:
    """Scores, labels and ids that cannot be meant are one clear error each."""
    scores, labels, row_ids, pattern = BAD_HISTORIES[case]
    refuse((TypeError, ValueError), f"^{pattern}", lambda: FITS[kind](scores, labels, row_ids=row_ids))


# --- artefacts


@all_maps
@brief
@given(h=histories())
def test_a_record_brings_back_every_bit(kind: str, h: History) -> None:
    """Through JSON text and back, the map gives the same bits everywhere."""
    chance = FITS[kind](h.scores, h.labels, row_ids=range(len(h.labels)))
    again = CLASSES[kind].from_dict(json.loads(json.dumps(chance.to_dict(), allow_nan=False)))
    points = np.concatenate([h.scores, h.probes]).astype(np.float64)
    assert again.to_dict() == chance.to_dict()
    assert again(points).tobytes() == chance(points).tobytes()


@all_maps
def test_a_file_brings_back_every_bit(kind: str, tmp_path: Path) -> None:
    """What is loaded is what was saved; the file names its kind."""
    chance, path = made(kind, row_ids=list("abcdefgh")), tmp_path / "map.json"
    chance.save(path)
    again = CLASSES[kind].load(path)
    assert type(again) is type(chance)
    assert again.to_dict() == chance.to_dict() == json.loads(path.read_text())
    assert chance.to_dict()["artefact"] == kind


@all_maps
def test_another_kind_is_refused(kind: str, tmp_path: Path) -> None:
    """Each class loads its own files only."""
    for other in set(FITS) - {kind}:
        made(other).save(tmp_path / "map.json")
        refuse(ArtefactError, f"must be a saved {kind}", lambda: CLASSES[kind].load(tmp_path / "map.json"))
        document = made(other).to_dict()
        refuse(ArtefactError, f"a saved {kind}", lambda d=document: CLASSES[kind].from_dict(d))


@all_maps
def test_a_changed_file_is_refused(kind: str, tmp_path: Path) -> None:
    """One changed digit is noticed."""
    path = tmp_path / "map.json"
    made(kind).save(path)
    path.write_text(path.read_text().replace('"n0": 4', '"n0": 5'))
    refuse(ArtefactError, "unchanged", lambda: CLASSES[kind].load(path))


@all_maps
@pytest.mark.parametrize("change", ["add", "drop"])
def test_unknown_and_missing_fields_are_refused(kind: str, change: str) -> None:
    """A well-formed artefact with a field too many or too few is of another release."""
    payload = made(kind).to_dict()["payload"]
    payload = {**payload, "colour": 1} if change == "add" else {k: v for k, v in payload.items() if k != "n1"}
    document = _artefact.wrap(kind, payload)
    named = "colour" if change == "add" else "n1"
    refuse(ArtefactError, f"cannot be read .*{named}", lambda: CLASSES[kind].from_dict(document))


@all_maps
def test_a_map_cannot_be_changed(kind: str) -> None:
    """Maps are frozen, and so are their arrays, fitted or loaded."""
    chance = made(kind)
    for one in (chance, CLASSES[kind].from_dict(chance.to_dict())):
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.n0 = 1
        arrays = [v for v in vars(one).values() if isinstance(v, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)


# --- beside the KPI

RNG = np.random.default_rng([26, 1])
QUERY, PASSAGES = RNG.standard_normal(8), RNG.standard_normal((5, 8))


@all_maps
def test_a_map_writes_p_sufficient_and_leaves_the_kpi(kind: str) -> None:
    """As `calibrator` a map adds the probability of the KPI to the record and changes nothing else."""
    chance = made(kind)
    with_map, without = (score(QUERY, PASSAGES, calibrator=c) for c in (chance, None))
    assert with_map.p_sufficient == chance(with_map.kpi)
    assert {**with_map.to_dict(), "p_sufficient": None} == without.to_dict()


@all_maps
def test_a_map_serves_many_retrievals(kind: str) -> None:
    """In a batch each retrieval gets the probability of its own KPI."""
    batch = score_many([QUERY, -QUERY], [PASSAGES, PASSAGES], calibrator=made(kind))
    assert batch.p_sufficient.tolist() == made(kind)(batch.kpi).tolist()


# --- the shared pieces


def test_pooling_counts_rows_at_each_distinct_score() -> None:
    """Distinct scores ascend, each with its rows of label 0 and of label 1."""
    pooled = pool([2.0, 1.0, 2.0, 2.0], [1, 0, 0, 1], None)
    assert pooled.scores.tolist() == [1.0, 2.0]
    assert (pooled.zeros.tolist(), pooled.ones.tolist()) == ([1, 1], [0, 2])
    assert (pooled.n0, pooled.n1) == (2, 2)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(ends=st.tuples(finite, finite).map(sorted), point=finite)
def test_a_position_between_two_ends_lies_in_the_unit_interval(ends: list[float], point: float) -> None:
    """0 at the low end, 1 at the high end, in [0, 1] between, finite however far apart the ends are."""
    low, high = ends
    inside = np.array(min(max(point, low), high))
    assert 0.0 <= float(position(inside, low, high)) <= 1.0
    assert float(position(np.array(low), low, high)) == 0.0
    assert float(position(np.array(high), low, high)) == float(high > low)


def test_points_are_float64() -> None:
    """Every number is widened before it meets a knot."""
    widths: list[Callable[[float], Any]] = [np.float16, np.float32, np.float64, int]
    assert [check_points(width(1)).dtype for width in widths] == [np.dtype(np.float64)] * 4
