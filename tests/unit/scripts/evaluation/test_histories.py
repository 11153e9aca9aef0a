"""Rules of the priors: a set is never tested with a prior that has seen it."""

from __future__ import annotations

from pathlib import Path

import beir_folder
import pytest
from evaluation import histories
from evaluation.histories import Deployment, deployments, fingerprint, priors


def test_a_prior_is_learned_from_the_other_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same k, under all embedders, the tested set left out under each of them."""
    found = {
        Deployment(Path(name), embedder, k): {"values": [[float(len(name))]], "labels": [True]}
        for name in ("a", "bb", "ccc")
        for embedder in ("x", "y")
        for k in (5, 10)
    }
    sizes = {}

    def learned(given: list[tuple[object, object]]) -> dict[str, object]:
        return {"sizes": [float(values[0][0]) for values, _ in given]}  # type: ignore[index]

    monkeypatch.setattr(histories, "learned_prior", learned)
    sizes = priors(found)
    assert set(sizes) == {(name, k) for name in ("a", "bb", "ccc") for k in (5, 10)}
    assert sizes["bb", 10] == {"sizes": [1.0, 1.0, 3.0, 3.0]}


def test_only_sets_that_the_shipped_prior_saw_need_one(tmp_path: Path) -> None:
    """Others get the shipped prior, and so does everything where too few are left to learn from."""
    names = ("squad2", "clapnq", "scifact", "mine")
    places = [beir_folder.write_set(tmp_path, name, queries=2, passages=25) for name in names]
    found = deployments(places, [beir_folder.EMBEDDER], [10])
    assert [one.place.name for one in found] == ["squad2", "clapnq", "scifact"]
    assert deployments(places[1:], [beir_folder.EMBEDDER], [10]) == []


def test_what_was_measured_with_another_prior_has_another_key() -> None:
    """The fingerprint is that of the numbers."""
    assert fingerprint(None) == "shipped"
    assert fingerprint({"mean": [1]}) == fingerprint({"mean": [1]}) != fingerprint({"mean": [2]})
