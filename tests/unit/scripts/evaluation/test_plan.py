"""Rules of the parts of a run, and of what the key of a part depends on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import beir_folder
from evaluation.plan import FULL, QUICK, digest_of, parts

FAMILIES = ["natural", "withheld", "gap"]


def test_parts_come_with_the_main_k_first(tmp_path: Path) -> None:
    """Every set, k and family once; an interrupted run has what is read most."""
    places = [beir_folder.write_set(tmp_path, name, queries=2, passages=25) for name in ("a", "b")]
    found = list(parts(places, places, [beir_folder.EMBEDDER], [5, 10]))
    assert [part.k for part in found] == [10] * 6 + [5] * 6
    assert [part.family.name for part in found[:3]] == FAMILIES
    assert len(set(found)) == len(found)


def test_topic_gaps_need_a_set_on_another_subject(tmp_path: Path) -> None:
    """Strangers are looked for among all sets, evaluated or not; related ones do not count."""
    squad2, clapnq, other = (
        beir_folder.write_set(tmp_path, name, queries=2, passages=25) for name in ("squad2", "clapnq", "z")
    )
    without = parts([squad2], [squad2, clapnq], [beir_folder.EMBEDDER], [10])
    assert [part.family.name for part in without] == FAMILIES[:2]
    *_, gap = parts([squad2], [squad2, clapnq, other], [beir_folder.EMBEDDER], [10])
    assert gap.strangers == (other,)


def test_a_key_depends_on_effort_and_files(tmp_path: Path) -> None:
    """Another seed, another effort, other judgements and another stranger each make another key."""
    place, other = (beir_folder.write_set(tmp_path, name, queries=2, passages=25) for name in ("a", "b"))
    keys = [
        digest_of(place, (), beir_folder.EMBEDDER, QUICK),
        digest_of(place, (), beir_folder.EMBEDDER, FULL),
        digest_of(place, (), beir_folder.EMBEDDER, replace(QUICK, seed=1)),
        digest_of(place, (other,), beir_folder.EMBEDDER, QUICK),
    ]
    assert digest_of(place, (), beir_folder.EMBEDDER, QUICK) == keys[0]
    beir_folder.judgements(place, ["q0\tp0\t1"])
    keys.append(digest_of(place, (), beir_folder.EMBEDDER, QUICK))
    assert len(set(keys)) == 5
