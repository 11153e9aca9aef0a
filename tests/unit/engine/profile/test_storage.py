"""Profiles as dictionaries and files: the same to the last bit, or an error."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refuse
from strategies import generator

from rag_confidence import _artefact
from rag_confidence.engine.profile.corpus_profile import CorpusProfile
from rag_confidence.engine.profile.storage import KIND, packed, unpacked
from rag_confidence.errors import ArtefactError

SUFFIXES = (".json", ".npz")


def full() -> CorpusProfile:
    """A profile with everything that one can hold."""
    rng = generator(0)
    corpus, queries = rng.standard_normal((60, 8)), rng.standard_normal((20, 8))
    texts = [f"Wort {row % 7} naïve 中文" for row in range(60)]
    return CorpusProfile.fit(
        corpus,
        queries,
        query_passages=rng.standard_normal((20, 7, 8)),
        embedder="e\ud800",
        texts=texts,
        ids=[f"p{row}" if row % 2 else row for row in range(60)],
    )


def bare() -> CorpusProfile:
    """A profile of vectors alone."""
    return CorpusProfile.fit(generator(1).standard_normal((60, 8)))


def assert_same(a: CorpusProfile, b: CorpusProfile) -> None:
    assert a.fingerprint == b.fingerprint
    assert a.to_dict() == b.to_dict()
    for name in ("vectors", "centroid", "query_centroid"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None)
        if left is not None:
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
            assert not right.flags.writeable
    assert (a.ids, a.embedder, a.document_frequencies) == (b.ids, b.embedder, b.document_frequencies)


@pytest.mark.parametrize("profile", [full(), bare()], ids=["full", "bare"])
def test_dictionaries_come_back(profile: CorpusProfile) -> None:
    """A dictionary, and one that went through JSON text, give the profile back to the last bit."""
    assert_same(profile, CorpusProfile.from_dict(profile.to_dict()))
    assert_same(profile, CorpusProfile.from_dict(json.loads(json.dumps(profile.to_dict()))))


@pytest.mark.parametrize("profile", [full(), bare()], ids=["full", "bare"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_come_back(tmp_path: Path, suffix: str, profile: CorpusProfile) -> None:
    """Both kinds of file give the profile back to the last bit, leave no draft, and may be written again."""
    path = tmp_path / f"profile{suffix}"
    profile.save(path)
    profile.save(str(path))
    assert_same(profile, CorpusProfile.load(path))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("units", [(-0.085, 0.1), (0.0, 0.5)])
def test_a_centre_below_zero_comes_back(tmp_path: Path, units: tuple[float, float]) -> None:
    """Where hardly any retrieval has a contrast, the scale reaches below 0; that is no damage."""
    profile = replace(full(), contrast_units=units)
    for name in ("profile.json", "profile.npz"):
        profile.save(tmp_path / name)
        assert CorpusProfile.load(tmp_path / name).contrast_units == units


def test_npz_is_smaller() -> None:
    """The npz needs fewer bytes a vector entry than JSON, which packs them in text."""
    profile = bare()
    assert len(json.dumps(packed(profile.vectors))) > 4 * profile.vectors.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_packed_to_the_last_bit(dtype: type) -> None:
    """An array comes back with its shape, type and bits; None stays None; what is not finite is refused."""
    array = generator(2).standard_normal((3, 4)).astype(dtype)
    back = unpacked(json.loads(json.dumps(packed(array))))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
    assert unpacked(packed(None)) is None
    with pytest.raises(ValueError, match="not finite"):
        unpacked(packed(np.full(2, np.nan, dtype=dtype)))


def forged(**changes: Any) -> dict[str, Any]:
    """A document whose digest fits its changed contents."""
    return _artefact.wrap(KIND, {**full().to_dict()["payload"], **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"background_scale": 0.0},
        {"background_scale": None},
        {"ids": ["p"] * 60},
        {"ids": ["p", "q"]},
        {"vectors": packed(np.ones((60, 8), dtype=np.float32))},
        {"vectors": packed(np.ones((60, 8)))},
        {"vectors": None},
        {"centroid": packed(np.ones(7))},
        {"query_centroid": packed(np.ones(9))},
        {"axes": packed(np.ones((2, 7), dtype=np.float32))},
        {"typical_companionship": 1.5},
        {"typical_companionship": "0.2"},
        {"contrast_units": [0.3]},
        {"contrast_units": [0.3, 0.0]},
        {"contrast_units": ["0.3", 0.1]},
        {"contrast_units": 0.3},
        {"norms": 3},
        {"more": 1},
    ],
    ids=lambda changes: "-".join(f"{k}={str(v)[:12]}" for k, v in changes.items()),
)
def test_contents_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    """A document with a right digest and contents that contradict each other is no profile."""
    refuse(
        ArtefactError,
        "`document` must be a saved corpus_profile",
        lambda: CorpusProfile.from_dict(forged(**changes)),
    )


def test_changed_documents_are_refused() -> None:
    """A changed number, another kind and another version are refused."""
    document = full().to_dict()
    changed = {**document, "payload": {**document["payload"], "background_scale": 0.5}}
    refuse(ArtefactError, "unchanged since it was saved", lambda: CorpusProfile.from_dict(changed))
    other = _artefact.wrap("platt_map", document["payload"])
    refuse(ArtefactError, "got a 'platt_map'", lambda: CorpusProfile.from_dict(other))
    later = {**document, "artefact_version": 99}
    refuse(ArtefactError, "artefact version", lambda: CorpusProfile.from_dict(later))


def rewritten(path: Path, **changes: Any) -> None:
    """The npz file with some of its arrays changed or, where None, missing."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {"vectors": np.eye(8, dtype=np.float32)},
        {"vectors": np.ones((60, 8), dtype=np.int64)},
        {"vectors": None},
        {"document": None},
        {"document": np.frombuffer(b"{", dtype=np.uint8)},
        {"document": np.frombuffer(b"[]", dtype=np.uint8)},
        {"document": np.frombuffer(b"{}", dtype=np.uint8)},
        {"extra": np.ones(3)},
    ],
    ids=lambda changes: "-".join(f"{k}={str(v)[:8]}" for k, v in changes.items()),
)
def test_a_changed_npz_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Changed, missing and additional arrays of an npz are refused as such."""
    path = tmp_path / "profile.npz"
    full().save(path)
    rewritten(path, **changes)
    refuse(ArtefactError, "`path` must be", lambda: CorpusProfile.load(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kept", [0, 1, 100, 1000])
def test_a_truncated_file_is_refused(tmp_path: Path, suffix: str, kept: int) -> None:
    """A file that ends early, or is empty, is no profile."""
    path = tmp_path / f"profile{suffix}"
    full().save(path)
    path.write_bytes(path.read_bytes()[:kept])
    refuse(ArtefactError, "`path` must be a saved corpus_profile", lambda: CorpusProfile.load(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_not_there_is_named(tmp_path: Path, suffix: str) -> None:
    """A missing file stays the error that it is; a folder is no profile."""
    with pytest.raises(FileNotFoundError):
        CorpusProfile.load(tmp_path / f"none{suffix}")
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    refuse(ArtefactError, "no such", lambda: CorpusProfile.load(folder))


@pytest.mark.parametrize("name", ["profile", "profile.npy", "profile.json.gz"])
def test_the_name_says_the_format(tmp_path: Path, name: str) -> None:
    """Names that end in neither .json nor .npz are refused before anything is written."""
    refuse(ValueError, r"`path` must end in \.json or \.npz", lambda: bare().save(tmp_path / name))
    refuse(ValueError, r"`path` must end in \.json or \.npz", lambda: CorpusProfile.load(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If writing fails, the file that was there is still the one there, and no draft is left."""
    path = tmp_path / "profile.npz"
    first = bare()
    first.save(path)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        full().save(path)
    monkeypatch.undo()
    assert_same(first, CorpusProfile.load(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["profile.npz"]
