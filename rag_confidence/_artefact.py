"""Versioned JSON files of fitted objects: what is loaded is what was saved, to the last bit, or an error."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from rag_confidence._types import FloatArray
from rag_confidence._version import __version__
from rag_confidence.errors import ArtefactError

ARTEFACT_VERSION = 1
_KEYS = {"artefact", "artefact_version", "package_version", "payload", "sha256"}
# What reading a value of an unexpected type or size can raise.
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_Fitted = TypeVar("_Fitted")
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
    version = document["artefact_version"]
    if type(version) is not int or version != ARTEFACT_VERSION:
        raise ArtefactError(
            f"`{name}` must have artefact version {ARTEFACT_VERSION}; got {version!r}, "
            f"written by rag-confidence {document['package_version']}. Fit it again, or use that release."
        )
    body = {key: value for key, value in document.items() if key != "sha256"}
    if not isinstance(body["package_version"], str) or document["sha256"] != _digest_or_none(body):
        raise ArtefactError(
            f"`{name}` must be unchanged since it was saved; got contents that do not match its digest. "
            "Fit it again or restore the file."
        )
    return dict(document["payload"])


def _digest_or_none(body: Any) -> str | None:
    """None where a value cannot even be written as JSON, which no digest equals."""
    try:
        return digest(body)
    except (TypeError, ValueError, RecursionError):
        return None


def restored(
    name: str,
    kind: str,
    *,
    payload: Mapping[str, Any],
    build: Callable[[Mapping[str, Any]], _Fitted],
    written: Callable[[_Fitted], Mapping[str, Any]],
) -> _Fitted:
    """What `build` makes of a payload, if it would be written as the same payload again.

    A digest shows that nothing was changed by accident. It does not show that the contents make sense: what
    is missing, superfluous, of another type or not what the rest implies is refused here.
    """
    try:
        fitted = build(payload)
        odd = _differing(written(fitted), payload)
    except _UNREADABLE as error:
        raise ArtefactError(
            f"`{name}` must be a saved {kind}; got one that cannot be read ({error!r}). Make a new one."
        ) from error
    if odd:
        raise ArtefactError(
            f"`{name}` must be a saved {kind}; got one that cannot be read (a difference in "
            f"{', '.join(odd)}). Make a new one."
        )
    return fitted


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Fields that one side lacks or that are not written the same."""
    names = sorted({*map(str, ours), *map(str, theirs)})
    return [n for n in names if n not in ours or n not in theirs or digest(ours[n]) != digest(theirs[n])]


def write(path: str | os.PathLike[str], kind: str, payload: Mapping[str, Any]) -> None:
    """Write a payload to a file, all of it or nothing."""
    # In ASCII, because a lone surrogate in a name cannot be written as UTF-8.
    text = json.dumps(wrap(kind, payload), indent=1, allow_nan=False)
    with whole_file(path) as file:
        file.write(f"{text}\n".encode("ascii"))


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` once all of it is written, and does nothing otherwise."""
    target = Path(path)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
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
