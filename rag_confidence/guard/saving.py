"""A calibrator as plain values, and back: to the last bit, and only with the scorers it was made with."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rag_confidence import _artefact
from rag_confidence._history import check_group
from rag_confidence._options import check_integer, check_text
from rag_confidence._types import FloatArray
from rag_confidence.conformal.joint.traffic import TrafficRanks
from rag_confidence.conformal.reading import read_history, read_level
from rag_confidence.errors import ArtefactError, CalibrationMismatch
from rag_confidence.guard.scorers import Scorer
from rag_confidence.guard.thresholds import count_failed

KIND = "tool_call_calibrator"


def written(calibrator: Any) -> dict[str, Any]:
    """Everything a calibrator holds but its scorers, of which it holds the fingerprints, as JSON values."""
    return {
        **_rules(calibrator),
        "good": _statistics(calibrator.good),
        "bad": _statistics(calibrator.bad),
        "n_unlabelled": calibrator.n_unlabelled,
        "notes": [*calibrator.data_notes],
    }


def fingerprint_of(calibrator: Any) -> str:
    """Hash of what decides and of the calls behind it, in binary because writing floats takes long."""
    calls = hashlib.sha256()
    for statistics in (calibrator.good, calibrator.bad):
        calls.update(len(statistics).to_bytes(8, "little"))
        calls.update(statistics.astype("<f8").tobytes())
    return _artefact.digest([_rules(calibrator), calls.hexdigest()])


def _rules(calibrator: Any) -> dict[str, Any]:
    beta, ranks, tools = calibrator.beta_level, calibrator.ranks, calibrator.tool_names
    return {
        "scorers": [_scorer(scorer) for scorer in calibrator.scorers],
        "alpha": str(calibrator.level),
        "beta": None if beta is None else str(beta),
        "threshold": _artefact.encode_float(calibrator.threshold),
        "reject_above": _artefact.encode_float(calibrator.reject_above),
        "ranks": None if ranks is None else ranks.to_dict(),
        "tool_names": None if tools is None else sorted(tools),
        "group": calibrator.group,
        "history": calibrator.history.to_dict(),
    }


def check_scorers(name: str, payload: Mapping[str, Any], scorers: Sequence[Scorer]) -> None:
    """Refuse scorers that are not those behind a payload; a threshold means nothing for other scores."""
    try:
        known = {str(entry["name"]): entry["fingerprint"] for entry in payload["scorers"]}
    except (KeyError, TypeError) as error:
        raise ArtefactError(
            f"`{name}` must be a saved {KIND}; got one that cannot be read ({error!r}). Make a new one."
        ) from error
    given = {scorer.name: scorer.fingerprint for scorer in scorers}
    if list(known) != list(given):
        raise CalibrationMismatch(
            f"`scorers` must be {', '.join(known)}, in this order; got {', '.join(given)}. "
            "Pass the scorers of the calibration."
        )
    changed = [scorer for scorer in given if known[scorer] != given[scorer]]
    if changed:
        raise CalibrationMismatch(
            f"`scorers` must be those of the calibration; got {', '.join(changed)} with other code, range or "
            "version. Calibrate again, or give a scorer a `version` of its own, which harmless changes of "
            "its code leave alone."
        )


def read(payload: Mapping[str, Any], scorers: Sequence[Scorer]) -> dict[str, Any]:
    """The fields of the calibrator that `written` took apart, but for its scorers."""
    beta, ranks, tools, group = (payload[name] for name in ("beta", "ranks", "tool_names", "group"))
    fields: dict[str, Any] = {
        "level": read_level("alpha", payload["alpha"]),
        "beta_level": None if beta is None else read_level("beta", beta),
        "good": _read_statistics(payload["good"]),
        "bad": _read_statistics(payload["bad"]),
        "ranks": None if ranks is None else TrafficRanks.from_dict(ranks),
        "tool_names": None if tools is None else frozenset(_texts("tool_names", tools)),
        "group": None if group is None else check_group("group", group),
        "history": read_history(payload["history"], None),
        "n_unlabelled": check_integer("n_unlabelled", payload["n_unlabelled"], 0),
        "data_notes": tuple(_texts("notes", payload["notes"])),
    }
    if not len(fields["good"]) or (beta is not None and not len(fields["bad"])):
        raise ValueError("a kind without calls")
    if ranks is not None and len(fields["ranks"].columns) != len(scorers):
        raise ValueError("traffic of other checks")
    return fields


def frozen_ascending(statistics: FloatArray) -> FloatArray:
    """Sorted, and nobody can change them. Adding 0.0 makes -0.0 the 0.0 that it equals."""
    ascending = np.sort(statistics + 0.0)
    ascending.flags.writeable = False
    return ascending


def _scorer(scorer: Scorer) -> dict[str, Any]:
    return {
        "name": scorer.name,
        "fingerprint": scorer.fingerprint,
        "low": _artefact.encode_float(scorer.low),
        "high": _artefact.encode_float(scorer.high),
    }


def _statistics(ascending: FloatArray) -> dict[str, Any]:
    failed = count_failed(ascending)
    return {"scores": _artefact.encode_floats(ascending[: len(ascending) - failed]), "failed": failed}


def _read_statistics(plain: Mapping[str, Any]) -> FloatArray:
    finite = _artefact.decode_ascending(plain["scores"])
    failed = check_integer("failed", plain["failed"], 0)
    return frozen_ascending(np.concatenate([finite, np.full(failed, math.inf)]))


def _texts(name: str, values: Iterable[Any]) -> list[str]:
    found = [*values]
    for text in found:
        check_text(name, text)
        if text is None:
            raise ValueError(f"{name} without a text")
    return found
