"""Rules of the labelled rows: what makes a row sufficient, and where the negatives come from."""

from __future__ import annotations

from pathlib import Path

import beir_folder
import numpy as np
import pytest
from evaluation.collection import Collection, read_collection, read_queries
from evaluation.strata import Draw, enough, evaluated, natural, strangers, topic_gap, withheld

DRAW = Draw(k=5, limit=None, seed=0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """A made-up set."""
    place = beir_folder.write_set(tmp_path_factory.mktemp("sets"), "own")
    return read_collection(place, beir_folder.EMBEDDER)


def test_natural_rows_are_the_judged_queries(data: Collection) -> None:
    """Sufficient: answerable, and a relevant passage is among the k; the strata part the negatives."""
    rows = natural(data, (), DRAW)
    for at, query in enumerate(rows.places.tolist()):
        expected = data.answerable[query] == 1 and bool(set(data.rows[query, :5]) & data.relevant[query])
        assert rows.sufficient[at] == expected
    bad = ~rows.sufficient
    assert not (rows.strata["near miss"] & rows.strata["ranking failure"] & bad).any()
    assert ((rows.strata["near miss"] | rows.strata["ranking failure"]) & bad).sum() == bad.sum()
    assert (data.answerable[rows.places][rows.strata["near miss"] & bad] == 0).all()


def test_withheld_evidence_is_gone(data: Collection) -> None:
    """No negative has a relevant passage in the corpus that is left; every positive was served one."""
    rows = withheld(data, (), DRAW)
    assert (data.answerable[rows.places] == 1).all()
    left = {tuple(row) for row in rows.corpus.tolist()}
    for at, query in enumerate(rows.places.tolist()):
        own = {tuple(data.corpus[row].tolist()) for row in data.relevant[query]}
        served = {tuple(rows.corpus[row].tolist()) for row in rows.found[at, :5]}
        assert bool(own & served) if rows.sufficient[at] else not own & left
    assert len(rows.passages) == len(rows.corpus)


def test_a_topic_gap_is_another_sets_query_on_this_corpus(data: Collection, tmp_path: Path) -> None:
    """Positives are the sufficient natural rows; strangers have units of their own."""
    foreign = read_queries(beir_folder.write_set(tmp_path, "other"), beir_folder.EMBEDDER)
    rows = topic_gap(data, [foreign], DRAW)
    assert rows.sufficient.sum() == natural(data, (), DRAW).sufficient.sum()
    assert (rows.places[~rows.sufficient] == -1).all()
    assert len(set(rows.unit.tolist())) == len(rows)
    assert rows.unit.max() < rows.n_units
    text_of = {tuple(row): text for row, text in zip(foreign.vectors.tolist(), foreign.texts, strict=True)}
    strange = rows.queries[~rows.sufficient].tolist()
    assert [text_of[tuple(row)] for row in strange] == [*rows.questions[-len(strange) :]]


def test_a_limit_draws_the_same_queries_for_every_k(data: Collection) -> None:
    """At most `limit`, of the judged ones, and the draw does not depend on k."""
    few = evaluated(data, Draw(5, 30, 0))
    assert len(few) == 30
    assert few.tolist() == evaluated(data, Draw(20, 30, 0)).tolist()
    assert few.tolist() != evaluated(data, Draw(5, 30, 1)).tolist()


def test_related_sets_are_no_strangers() -> None:
    """A corpus on a related subject is no topic gap; unknown names are strangers."""
    assert strangers("squad2", ["squad2", "clapnq", "scifact", "mine"]) == ["scifact", "mine"]


def test_both_classes_need_rows() -> None:
    """Twenty-five of each, and a hundred passages to sample."""
    assert enough(np.arange(50) < 25, 100)
    assert not enough(np.arange(50) < 24, 100)
    assert not enough(np.arange(50) < 25, 99)


@pytest.mark.needs_data
@pytest.mark.parametrize("k", [5, 10, 20])
def test_labels_are_those_stored_with_the_sets(data_dir: Path, k: int) -> None:
    """On the real sets, labels from judgements and lists are the stored ones."""
    place = data_dir / "scifact"
    rows = natural(read_collection(place, "minilm"), (), Draw(k, None, 0))
    with np.load(place / "topk_minilm.npz") as file:
        stored = file["sufficient"][:, file["ks"].tolist().index(k)]
    assert np.array_equal(rows.sufficient, stored)
