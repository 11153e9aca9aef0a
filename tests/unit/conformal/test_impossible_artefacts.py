"""Documents of every kind whose digest fits and whose contents could not have been written are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import quiet, refuse

from rag_confidence import _artefact
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.joint.fit import fit_joint_gate
from rag_confidence.conformal.monitor.drift import DriftMonitor
from rag_confidence.conformal.monitor.risk_monitor import RiskMonitor
from rag_confidence.conformal.probability.isotonic import fit_isotonic
from rag_confidence.conformal.probability.platt import fit_platt
from rag_confidence.conformal.probability.venn_abers import fit_venn_abers
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.errors import ArtefactError

RNG = np.random.default_rng(71)
LABELS = np.arange(60) % 2
SCORES = np.clip(RNG.normal(0.3 + 0.4 * LABELS, 0.2), 0.01, 0.99)
GROUPS = ["a", "b", 3] * 20
ODD = [None, True, -1, 1e308, 10**400, "x", "", [], {}, "2", "-1/2", 0.5, ["a"], [[]]]


def drift() -> DriftMonitor:
    """A monitor that has rung."""
    monitor = DriftMonitor(SCORES[:40], provenance={"policy": "p"})
    monitor.update_many([0.999] * 30)
    assert monitor.alarm
    return monitor


def risk() -> RiskMonitor:
    """A monitor that has rung."""
    monitor = RiskMonitor(0.1, event="bad")
    monitor.update_many([True, False] * 20)
    assert monitor.alarm
    return monitor


def gate(**options: Any) -> Any:
    """A gate of 60 rows."""
    return fit_conformal_gate(SCORES, LABELS, 0.2, **options)


CHECKS = RNG.normal(size=(40, 2))
MADE: dict[str, Callable[[], Any]] = {
    "gate": lambda: gate(row_ids=range(60), collected="2026-01-02", labeling_source="us"),
    "grouped gate": lambda: gate(groups=GROUPS, guarantee="pac"),
    "clustered gate": lambda: gate(clusters=np.arange(60) // 2, groups=np.repeat(["a", "b"], 30)),
    "risk gate": lambda: fit_risk_gate(SCORES, LABELS, target_risk=0.3, row_ids=range(60)),
    "joint gate": lambda: fit_joint_gate(CHECKS, 0.2),
    "ranked gate": lambda: fit_joint_gate(CHECKS, 0.2, reference=RNG.normal(size=(50, 2))),
    "drift": drift,
    "risk": risk,
    "fresh risk": lambda: RiskMonitor(0.1),
    "fresh drift": DriftMonitor,
    "isotonic": lambda: fit_isotonic(SCORES, LABELS),
    "platt": lambda: fit_platt(SCORES, LABELS, row_ids=range(60)),
    "venn_abers": lambda: fit_venn_abers(SCORES, LABELS),
}


def made(name: str) -> tuple[Any, dict[str, Any]]:
    """A fitted object, and its document as JSON gives it back."""
    with quiet():
        fitted = MADE[name]()
    return fitted, json.loads(json.dumps(fitted.to_dict()))


def resealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with a digest that fits."""
    return _artefact.wrap(document["artefact"], document["payload"])


def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The path to every value, of long lists only to the ends."""
    if path:
        yield path
    if isinstance(value, dict | list):
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        for key, entry in items[:2] + items[-1:] if len(items) > 8 and isinstance(value, list) else items:
            yield from places(entry, (*path, key))


@pytest.mark.parametrize("name", MADE)
def test_what_is_loaded_could_have_been_written(name: str) -> None:
    """With any value replaced by an odd one, a document is refused or read as exactly what it says."""
    fitted, original = made(name)
    kind, text = type(fitted), json.dumps(original)
    assert kind.from_dict(original).to_dict() == original
    for *path, last in places(original["payload"]):
        for odd in ODD:
            document = json.loads(text)
            holder = document["payload"]
            for key in path:
                holder = holder[key]
            holder[last] = odd
            document = resealed(document)
            try:
                again = kind.from_dict(document)
            except ArtefactError:
                continue
            assert _artefact.digest(again.to_dict()) == _artefact.digest(document), (path, last, odd)


@pytest.mark.parametrize("name", MADE)
def test_fields_are_exactly_those_of_the_kind(name: str) -> None:
    """A payload that lacks a field, or has one more, is refused."""
    fitted, original = made(name)
    for field in original["payload"]:
        less = {key: value for key, value in original["payload"].items() if key != field}
        document = _artefact.wrap(original["artefact"], less)
        refuse(ArtefactError, "must be a saved", lambda d=document: type(fitted).from_dict(d))
    more = _artefact.wrap(original["artefact"], {**original["payload"], "more": 1})
    refuse(ArtefactError, "difference in more", lambda: type(fitted).from_dict(more))


def change(field: str, **entries: Any) -> Callable[[dict[str, Any]], None]:
    """Replace entries of a field of the payload."""
    return lambda payload: payload[field].update(entries)


IMPOSSIBLE: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "range of percentages": ("gate", change("scale", high=1.0)),
    "low end of the range": ("gate", change("scale", low=0.0)),
    "precision": ("gate", change("scale", precision="float32")),
    "auroc": ("gate", lambda p: p.update(auroc=[0.5, 0.4, 0.6])),
    "interval": ("gate", lambda p: p.update(auroc=[p["auroc"][0], 0.0, 1.0])),
    "kind of negatives": ("gate", change("history", negatives=[["odd", 30]])),
    "number of negatives": ("gate", change("history", negatives=[["unknown", 29]])),
    "collected": ("gate", change("history", collected=["2026-02-01", "2026-01-01"])),
    "ids": ("gate", lambda p: p["row_ids"].pop()),
    "group twice": ("grouped gate", lambda p: p["groups"][0].update(group="b")),
    "group missing": ("grouped gate", lambda p: p["groups"].pop()),
    "clusters of other rows": ("clustered gate", lambda p: p["groups"][0]["scores0"].pop()),
    "risk gate target": ("risk gate", lambda p: p.update(target_risk="-3/2")),
    "risk gate delta": ("risk gate", lambda p: p.update(delta="2")),
    "joint threshold": ("joint gate", lambda p: p.update(threshold="inf", threshold_single="inf")),
    "joint counts": ("joint gate", lambda p: p.update(n=2)),
    "joint thresholds": ("joint gate", lambda p: p.update(threshold=0.0)),
    "limit": ("drift", change("capital", log_limit=99.0)),
    "peak": ("drift", change("capital", log_peak=99.0, log_total=99.0)),
    "alarm": ("risk", change("capital", alarm_at=None)),
    "rate": ("risk", lambda p: p.update(false_alarm_rate="1/100")),
    "generator": ("drift", lambda p: p["ranks"]["generator"].update(inc="2")),
    "isotonic values": ("isotonic", lambda p: p.update(values=[0.0] * len(p["values"]))),
    "platt curve": ("platt", lambda p: p.update(logit_low=3.0)),
    "venn abers": ("venn_abers", lambda p: p.update(p0=p["p1"])),
}


@pytest.mark.parametrize(("name", "edit"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_follows_from_the_rest_is_checked(name: str, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Contents of the right type that the rest contradicts are refused."""
    fitted, document = made(name)
    edit(document["payload"])
    refuse(ArtefactError, "must be a saved", lambda: type(fitted).from_dict(resealed(document)))


@pytest.mark.parametrize("version", [True, 1.0], ids=repr)
def test_a_version_is_an_integer(version: Any) -> None:
    """What only equals the version is no version."""
    fitted, document = made("platt")
    body = {key: value for key, value in document.items() if key != "sha256"} | {"artefact_version": version}
    document = {**body, "sha256": _artefact.digest(body)}
    refuse(ArtefactError, "artefact version 1", lambda: type(fitted).from_dict(document))


def test_any_text_can_be_saved(tmp_path: Path) -> None:
    """Names with half a surrogate pair, which no UTF-8 can hold, come back."""
    with quiet():
        odd = gate(groups=["a", "\ud800", "標"] * 20, labeling_source="\udfff")
    odd.save(tmp_path / "gate.json")
    again = type(odd).load(tmp_path / "gate.json")
    assert again.to_dict() == odd.to_dict()
    assert again.fingerprint == odd.fingerprint


def test_a_joint_gate_keeps_a_copy_of_its_shares() -> None:
    """The shares of a gate cannot be changed, and the document's are its own."""
    fitted, document = made("ranked gate")
    payload = document["payload"]
    again = type(fitted).from_dict(document)
    payload["max_share"].clear()
    assert dict(again.max_share) == dict(fitted.max_share)
    with pytest.raises(TypeError):
        fitted.max_share["check_0"] = 1.0
    for held in (fitted, again):
        with pytest.raises(ValueError, match="read-only"):
            held.ranks.columns[0].below[0] = 5
        with pytest.raises(ValueError, match="read-only"):
            held.ranks.columns[0].levels[0] = 5.0
