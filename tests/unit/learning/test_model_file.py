"""A saved model that no fit could have written is refused, whatever its digest says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from model_logs import PRIOR, labelled
from refusals import refuse

from rag_confidence import _artefact
from rag_confidence.errors import ArtefactError
from rag_confidence.learning.model import ConfidenceModel
from rag_confidence.learning.model_file import KIND

RECORDS, LABELS = labelled(60)
PAYLOAD = ConfidenceModel.fit(RECORDS, LABELS, prior=PRIOR).to_dict()["payload"]

Change = Callable[[dict[str, Any]], Any]


def _set(*path: Any, to: Any) -> Change:
    def change(payload: dict[str, Any]) -> None:
        inner: Any = payload
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to

    return change


CHANGES: dict[str, Change] = {
    "infinite intercept": _set("intercept", to="inf"),
    "boolean intercept": _set("intercept", to=True),
    "no terms": _set("terms", to=[]),
    "a term that is no signal": _set("terms", 0, "name", to="kpi"),
    "a signal twice": _set("terms", 0, "name", to="signals.flip_angle"),
    "a signal used and unused": _set("unused", to=["signals.flip_angle"]),
    "no scale": _set("terms", 0, "scale", to=0.0),
    "an empty range": _set("terms", 0, "low", to=9.0),
    "a centre outside": _set("terms", 0, "centre", to=9.0),
    "a fraction of rows": _set("terms", 0, "n", to=2.5),
    "one row": _set("terms", 0, "n", to=1),
    "a coefficient in words": _set("terms", 0, "coefficient", to="large"),
    "other counts": _set("report", "n0", to=7),
    "negative folds": _set("report", "folds", to=-1),
    "an AUROC of two": _set("report", "auroc", to=2.0),
    "half a report": _set("report", "brier", to=None),
    "figures without folds": _set("report", "folds", to=0),
    "a hash that is no text": _set("prior_fingerprint", to=7),
    "scores that are no probabilities": _set("rows", "scores1", 0, to=-5.0),
    "rows of unknown making": _set("rows", "provenance", to=None),
    "no rows": lambda payload: payload.pop("rows"),
    "something else": _set("comment", to="hello"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_impossible_model_is_refused(what: str) -> None:
    """A changed payload with a fresh digest is still no model."""
    payload = copy.deepcopy(PAYLOAD)
    CHANGES[what](payload)
    document = _artefact.wrap(KIND, payload)
    refuse(ArtefactError, "cannot be read", lambda: ConfidenceModel.from_dict(document))


def test_a_changed_file_is_refused() -> None:
    """A payload that does not match its digest was changed after it was saved."""
    document = {**_artefact.wrap(KIND, PAYLOAD), "sha256": "0" * 64}
    refuse(ArtefactError, "unchanged", lambda: ConfidenceModel.from_dict(document))


def test_another_kind_is_refused() -> None:
    """A gate is no model."""
    document = _artefact.wrap("conformal_gate", PAYLOAD)
    refuse(ArtefactError, "conformal_gate", lambda: ConfidenceModel.from_dict(document))
