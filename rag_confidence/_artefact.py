"""Versioned JSON files of fitted objects: what is loaded is what was saved, to the last bit, or an error."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence._version import __version__
from rag_confidence.errors import ArtefactError

ARTEFACT_VERSION = 1
_KEYS = {"artefact", "artefact_version", "package_version", "payload", "sha256"}
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def digest(payload: Any) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys."""
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def wrap(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a fitted object with its kind, versions and digest, ready for JSON."""
    body = {
        "artefact": kind,
        "artefact_version": ARTEFACT_VERSION,
        "package_version": __version__,
        "payload": dict(payload),
    }
    return {**body, "sha256": digest(body)}


def unwrap(name: str, kind: str, document: Any) -> dict[str, Any]:
    """The payload that `wrap` was given; anything else is refused."""
    if (
        not isinstance(document, Mapping)
        or set(document) != _KEYS
        or not isinstance(document["payload"], Mapping)
    ):
        raise ArtefactError(
            f"`{name}` must be a saved {kind}; got something else. Pass what save() or to_dict() wrote."
        )
    if document["artefact"] != kind:
        raise ArtefactError(
            f"`{name}` must be a saved {kind}; got a {document['artefact']!r}. Load it with its own class."
        )
    if document["artefact_version"] != ARTEFACT_VERSION:
        raise ArtefactError(
            f"`{name}` must have artefact version {ARTEFACT_VERSION}; got {document['artefact_version']!r}, "
            f"written by rag-confidence {document['package_version']}. Fit it again, or use that release."
        )
    body = {key: value for key, value in document.items() if key != "sha256"}
    if document["sha256"] != _digest_or_none(body):
        raise ArtefactError(
            f"`{name}` must be unchanged since it was saved; got contents that do not match its digest. "
            "Fit it again or restore the file."
        )
    return dict(document["payload"])


def _digest_or_none(body: Any) -> str | None:
    """None where a value cannot even be written as JSON, which no digest equals."""
    try:
        return digest(body)
    except (TypeError, ValueError):
        return None


def write(path: str | os.PathLike[str], kind: str, payload: Mapping[str, Any]) -> None:
    """Write a payload to a file, all of it or nothing."""
    target = Path(path)
    text = json.dumps(wrap(kind, payload), indent=1, allow_nan=False, ensure_ascii=False)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def read(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """The payload of a file that `write` wrote."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError, IsADirectoryError) as error:
        raise ArtefactError(
            f"`path` must be a saved {kind}; got {os.fspath(path)!r}, which is no such JSON file. "
            "Check the path or restore the file."
        ) from error
    return unwrap("path", kind, document)


def _refuse_constant(word: str) -> None:
    raise ValueError(word)


def encode_float(number: float) -> float | str:
    """A float for JSON: itself, or "inf" and "-inf", which JSON lacks."""
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return float(number)


def decode_float(value: float | str) -> float:
    """The float that `encode_float` wrote."""
    return _INFINITIES[value] if isinstance(value, str) else float(value)


def encode_floats(numbers: FloatArray) -> list[float]:
    """Finite floats for JSON; Python writes each so that it reads back the same."""
    return [float(number) for number in numbers.tolist()]


def decode_floats(values: Iterable[float]) -> FloatArray:
    """The read-only array that `encode_floats` wrote."""
    array = np.array([float(value) for value in values], dtype=np.float64)
    array.flags.writeable = False
    return array


def decode_ascending(values: Iterable[float]) -> FloatArray:
    """`decode_floats` of finite numbers that never fall; ValueError for others."""
    array = decode_floats(values)
    if not np.isfinite(array).all() or (array[1:] < array[:-1]).any():
        raise ValueError("scores that are not in ascending order")
    return array
