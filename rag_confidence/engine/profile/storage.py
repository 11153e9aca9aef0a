"""Profiles as plain values and as files: JSON with packed arrays, or npz."""

from __future__ import annotations

import base64
import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rag_confidence import _artefact
from rag_confidence._types import FloatArray
from rag_confidence.engine.profile.embedder import EmbedderTest
from rag_confidence.errors import ArtefactError

KIND = "corpus_profile"

# What reading a damaged or foreign file can raise; a file that is not there is no such case.
_UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError, EOFError, IsADirectoryError),
    *(zipfile.BadZipFile, zlib.error),
)

_PACKED = ("vectors", "axes", "centroid", "query_centroid")
_TYPES = {"float32": "<f4", "float64": "<f8"}
_PLAIN = (
    *("embedder", "duplicate_cosine", "n_corpus", "effective_dimension", "background_level"),
    *("background_scale", "typical_companionship", "n_queries", "n_texts"),
)


def packed(array: FloatArray | None) -> dict[str, Any] | None:
    """An array as JSON: dtype, shape and the little-endian bytes in base64."""
    if array is None:
        return None
    raw = np.ascontiguousarray(array, dtype=_TYPES[array.dtype.name]).tobytes()
    return {
        "dtype": array.dtype.name,
        "shape": [*array.shape],
        "base64": base64.b64encode(raw).decode("ascii"),
    }


def unpacked(stored: Mapping[str, Any] | None) -> Any:
    """The read-only array that `packed` wrote."""
    if stored is None:
        return None
    raw = base64.b64decode(stored["base64"], validate=True)
    array = np.frombuffer(raw, dtype=_TYPES[stored["dtype"]]).reshape(stored["shape"])
    if not np.isfinite(array).all():
        raise ValueError("an array that is not finite")
    return array


def encoded(profile: Any) -> dict[str, Any]:
    """The payload of a profile."""
    counts = profile.document_frequencies
    return {
        **{name: getattr(profile, name) for name in _PLAIN},
        "vectors": packed(profile.vectors),
        "ids": None if profile.ids is None else [*profile.ids],
        "centroid": packed(profile.centroid),
        "norms": [*profile.norms],
        "passage_cosines": [*profile.passage_cosines],
        "contrast_units": None if profile.contrast_units is None else [*profile.contrast_units],
        "axes": packed(profile.embedder_test.axes),
        "own_energy": profile.embedder_test.own_energy,
        "energy_floor": profile.embedder_test.floor,
        "query_centroid": packed(profile.query_centroid),
        "document_frequencies": None if counts is None else dict(counts),
    }


def decoded(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the profile written as `payload`; ValueError where they contradict each other."""
    test = EmbedderTest(
        unpacked(payload["axes"]), float(payload["own_energy"]), float(payload["energy_floor"])
    )
    fields = {
        **{name: payload[name] for name in _PLAIN},
        "vectors": unpacked(payload["vectors"]),
        "ids": None if payload["ids"] is None else tuple(payload["ids"]),
        "centroid": unpacked(payload["centroid"]),
        "norms": tuple(payload["norms"]),
        "passage_cosines": tuple(payload["passage_cosines"]),
        "contrast_units": None if payload["contrast_units"] is None else tuple(payload["contrast_units"]),
        "embedder_test": test,
        "query_centroid": unpacked(payload["query_centroid"]),
        "document_frequencies": payload["document_frequencies"],
    }
    _refuse_contradictions(fields)
    return fields


def _refuse_contradictions(fields: Mapping[str, Any]) -> None:
    count, dimension = fields["vectors"].shape
    test = fields["embedder_test"]
    if fields["vectors"].dtype != np.float32 or test.axes.dtype != np.float32:
        raise ValueError("vectors of another precision")
    wide = [fields["centroid"], fields["query_centroid"]]
    if any(array is not None and array.shape != (dimension,) for array in wide):
        raise ValueError("centroids of another dimension")
    if test.axes.shape[1] != dimension:
        raise ValueError("axes of another dimension")
    if fields["ids"] is not None and len(set(fields["ids"])) != count:
        raise ValueError("ids that do not go with the vectors")
    if not np.allclose(np.linalg.norm(fields["vectors"], axis=1), 1.0, atol=1e-5):
        raise ValueError("vectors that are not of unit length")
    if not fields["background_scale"] > 0.0:
        raise ValueError("a background without spread")
    typical, units = fields["typical_companionship"], fields["contrast_units"]
    if typical is not None and not 0.0 <= typical <= 1.0:
        raise ValueError("a companionship outside [0, 1]")
    if units is not None and not (len(units) == 2 and math.isfinite(units[0]) and units[1] > 0.0):
        raise ValueError("contrast units that are no centre and scale")


def write(path: str | os.PathLike[str], payload: Mapping[str, Any]) -> None:
    """Write a payload as JSON or npz, whichever the name of the file says, all of it or nothing."""
    if _is_npz(path):
        _write_npz(path, payload)
    else:
        _artefact.write(path, KIND, payload)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The payload of a file that `write` wrote."""
    return _read_npz(path) if _is_npz(path) else _artefact.read(path, KIND)


def _is_npz(path: str | os.PathLike[str]) -> bool:
    suffix = Path(path).suffix.lower()
    if suffix not in (".npz", ".json"):
        raise ValueError(
            f"`path` must end in .json or .npz; got {os.fspath(path)!r}. Name the format of the file."
        )
    return suffix == ".npz"


def _write_npz(path: str | os.PathLike[str], payload: Mapping[str, Any]) -> None:
    document = _artefact.wrap(KIND, payload)
    arrays = {name: unpacked(payload[name]) for name in _PACKED if payload[name] is not None}
    rest = {name: value for name, value in payload.items() if name not in arrays}
    text = json.dumps({**document, "payload": rest}, allow_nan=False)
    arrays["document"] = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    with _artefact.whole_file(path) as file:
        np.savez_compressed(file, **arrays)


def _read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        # NumPy leaves a file open that it finds to be damaged.
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        document = json.loads(arrays.pop("document").tobytes())
        document["payload"] |= {name: packed(array) for name, array in arrays.items()}
    except _UNREADABLE as error:
        raise ArtefactError(
            f"`path` must be a saved {KIND}; got {os.fspath(path)!r}, which is no such npz file. "
            "Check the path or restore the file."
        ) from error
    return _artefact.unwrap("path", KIND, document)
