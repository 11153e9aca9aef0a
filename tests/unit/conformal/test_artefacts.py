"""A saved gate comes back to the last bit or not at all: changed, foreign and damaged files are refused."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import LEVELS, History, histories
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import quiet, refuse

import rag_confidence
from rag_confidence import _artefact
from rag_confidence._types import Provenance
from rag_confidence.conformal.gate.fit import fit_conformal_gate
from rag_confidence.conformal.gate.fitted import ConformalGate
from rag_confidence.errors import ArtefactError

PACKAGE = Path(rag_confidence.__file__).parent
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def full_gate(**options: Any) -> ConformalGate:
    """A gate with everything that can be recorded."""
    scores = [
        0.05,
        0.1,
        0.15,
        0.2,
        0.25,
        0.3,
        0.35,
        0.4,
        1 / 3,
        0.55,
        0.6,
        0.65,
        0.7,
        0.75,
        0.8,
        0.85,
        0.9,
        2 / 3,
    ]
    with quiet():
        return fit_conformal_gate(
            scores,
            [0] * 9 + [1] * 9,
            "1/10",
            alpha_reject=0.2,
            provenance=Provenance(policy="p1", profile="c1", model=None, embedder="e1"),
            row_ids=[f"q{i}" for i in range(18)],
            negatives={"near_miss": 4, "topic_gap": 5},
            collected=("2026-01-01", "2026-02-01"),
            labeling_source="human, Übersetzer 標",
            on_conflict="accept",
            **options,
        )


def saved(folder: Path, gate: ConformalGate | None = None) -> Path:
    """A file of a gate."""
    path = folder / "gate.json"
    (gate or full_gate()).save(path)
    return path


# --- what comes back


@ONE_FOLDER
@given(histories(), LEVELS, st.sampled_from(["marginal", "pac"]), st.booleans())
def test_a_loaded_gate_is_the_saved_one(
    tmp_path: Path, history: History, alpha: Any, guarantee: str, grouped: bool
) -> None:
    """Predictions, p-values and everything written are equal after save and load, and after from_dict."""
    groups = [("a", 2)[i % 2] for i in range(len(history.labels))] if grouped else None
    with quiet():
        gate = fit_conformal_gate(
            history.scores,
            history.labels,
            alpha,
            guarantee=guarantee,
            groups=groups,
            score_kind=history.score_kind,
        )
    asked = None if groups is None else [("a", 2, "new")[i % 3] for i in range(len(history.probes))]
    path = saved(tmp_path, gate)
    for again in (ConformalGate.load(path), ConformalGate.from_dict(json.loads(json.dumps(gate.to_dict())))):
        assert again.to_dict() == gate.to_dict()
        assert again.fingerprint == gate.fingerprint
        with quiet():
            ours, theirs = gate.predict(history.probes, asked), again.predict(history.probes, asked)
            assert list(ours) == list(theirs)
            p_ours, p_theirs = gate.p_values(history.probes, asked), again.p_values(history.probes, asked)
            moved, moved_again = gate.at_alpha("0.3"), again.at_alpha("0.3")
        assert np.asarray(p_ours).tobytes() == np.asarray(p_theirs).tobytes()
        assert moved.to_dict() == moved_again.to_dict()
        assert ours.decision.tolist() == theirs.decision.tolist()


def test_everything_recorded_comes_back(tmp_path: Path) -> None:
    """Levels, provenance, dates, source, negatives, notes and guarantee survive, with their types."""
    gate = full_gate()
    again = ConformalGate.load(saved(tmp_path, gate))
    for name in ("levels", "on_conflict", "provenance", "data_hash", "notes", "history", "scale"):
        assert getattr(again, name) == getattr(gate, name)
    assert again.guarantee == gate.guarantee
    assert (again.auroc, again.auroc_low, again.auroc_high) == (gate.auroc, gate.auroc_low, gate.auroc_high)
    assert again.predict_one(1 / 3) == gate.predict_one(1 / 3)


def test_a_file_is_plain_json(tmp_path: Path) -> None:
    """The file is strict JSON with versions and fingerprints: no nan, no infinity literal, no code."""
    with quiet():
        gate = fit_conformal_gate([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert gate.q0 == math.inf
    text = saved(tmp_path, gate).read_text(encoding="utf-8")

    def refuse_literal(word: str) -> None:
        raise AssertionError(word)

    document = json.loads(text, parse_constant=refuse_literal)
    assert document == gate.to_dict()
    assert document["package_version"] == rag_confidence.__version__
    assert document["artefact_version"] == _artefact.ARTEFACT_VERSION
    assert len(document["sha256"]) == 64


def test_saving_is_the_same_each_time(tmp_path: Path) -> None:
    """The same gate gives the same bytes, and saving a loaded one changes nothing."""
    path = saved(tmp_path)
    before = path.read_bytes()
    saved(tmp_path)
    assert path.read_bytes() == before
    ConformalGate.load(path).save(path)
    assert path.read_bytes() == before


def test_a_fingerprint_tells_gates_apart() -> None:
    """Another level, row, choice or provenance gives another fingerprint."""
    with quiet():
        base = {"scores": [0.1, 0.2, 0.8, 0.9], "labels": [0, 0, 1, 1]}
        gates = [
            fit_conformal_gate(**base),
            fit_conformal_gate(**base, alpha="0.11"),
            fit_conformal_gate(**base, alpha_reject="0.11"),
            fit_conformal_gate(**base, on_conflict="accept"),
            fit_conformal_gate(**base, guarantee="pac"),
            fit_conformal_gate(**base, score_kind="raw"),
            fit_conformal_gate(**base, provenance=Provenance(policy="p")),
            fit_conformal_gate(**base, row_ids=["a", "b", "c", "d"]),
            fit_conformal_gate(np.array(base["scores"], dtype=np.float32), base["labels"]),
            fit_conformal_gate([0.1, 0.2, 0.8, 0.91], base["labels"]),
        ]
    assert len({gate.fingerprint for gate in gates}) == len(gates)


# --- what is refused


def test_no_character_can_be_changed(tmp_path: Path) -> None:
    """Replacing or removing any one character is refused, unless the JSON still says exactly the same."""
    with quiet():
        path = saved(tmp_path, fit_conformal_gate([0.1, 1 / 3, 0.9], [0, 0, 1], row_ids=["a", "b", "c"]))
    text = path.read_text(encoding="utf-8")
    original = json.loads(text)
    rng = np.random.default_rng(64)
    tampered = tmp_path / "tampered.json"
    loaded = 0
    for at, old in enumerate(text):
        new = rng.choice([c for c in '0123456789abcdef"{}[]:, .-\\x' if c != old])
        changed = text[:at] + (new if at % 3 else "") + text[at + 1 :]
        if same_json(changed, original):
            loaded += 1
            continue
        tampered.write_text(changed, encoding="utf-8")
        refuse(ArtefactError, "^`path` must ", lambda: ConformalGate.load(tampered))
    assert loaded < len(text) / 4


def same_json(text: str, original: Any) -> bool:
    """Whether a text still says what it said."""
    try:
        return bool(json.loads(text) == original)
    except ValueError:
        return False


@given(st.data())
def test_no_value_can_be_changed(data: Any) -> None:
    """Changing any one value of the written record is refused."""
    document = json.loads(json.dumps(full_gate().to_dict()))
    places = list(leaves(document))
    *path, last = data.draw(st.sampled_from(places))
    holder = document
    for key in path:
        holder = holder[key]
    other = data.draw(st.sampled_from([None, 0, 1, 0.5, "x", True, [], {}]))
    if holder[last] == other and type(holder[last]) is type(other):
        return
    holder[last] = other
    refuse(ArtefactError, "^`document` must ", lambda: ConformalGate.from_dict(document))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The path to every plain value of a JSON record."""
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(entry, (*path, key))
    else:
        yield path


def resealed(change: Any) -> dict[str, Any]:
    """A record with a change and a digest that fits: what a bug, not an accident, would write."""
    document = json.loads(json.dumps(full_gate().to_dict()))
    change(document)
    body = {key: value for key, value in document.items() if key != "sha256"}
    return {**body, "sha256": _artefact.digest(body)}


@pytest.mark.parametrize("version", [0, 2, 999, "1", 1.5, None, -1], ids=repr)
def test_other_versions_are_refused(version: Any) -> None:
    """A schema version that this release does not know is refused by name, even with a digest that fits."""
    document = resealed(lambda d: d.update(artefact_version=version))
    message = refuse(ArtefactError, "^`document` must .*version", lambda: ConformalGate.from_dict(document))
    assert repr(version) in message


@pytest.mark.parametrize("kind", ["risk_gate", "", None, 5, ["conformal_gate"]], ids=repr)
def test_other_kinds_are_refused(kind: Any) -> None:
    """An artefact of another kind is refused and named, even with a digest that fits."""
    document = resealed(lambda d: d.update(artefact=kind))
    message = refuse(
        ArtefactError, "^`document` must be a saved conformal", lambda: ConformalGate.from_dict(document)
    )
    assert repr(kind) in message


CHANGES: dict[str, Any] = {
    "no payload": lambda d: d.pop("payload"),
    "a further key": lambda d: d.update(extra=1),
    "payload of another type": lambda d: d.update(payload=[1, 2]),
    "payload null": lambda d: d.update(payload=None),
    "payload empty": lambda d: d.update(payload={}),
    "a level of zero": lambda d: d["payload"].update(alpha="0"),
    "a level above one": lambda d: d["payload"].update(alpha="3/2"),
    "a level that is no number": lambda d: d["payload"].update(alpha="x"),
    "a level by zero": lambda d: d["payload"].update(alpha="1/0"),
    "another threshold": lambda d: d["payload"]["whole"].update(q0=0.1),
    "an infinite threshold": lambda d: d["payload"]["whole"].update(q0="inf"),
    "unsorted scores": lambda d: d["payload"]["whole"]["scores0"].reverse(),
    "scores as text": lambda d: d["payload"]["whole"].update(scores0=["a"]),
    "scores null": lambda d: d["payload"]["whole"].update(scores0=None),
    "an unknown choice": lambda d: d["payload"].update(on_conflict="answer"),
    "an unknown scale": lambda d: d["payload"]["scale"].update(kind="percent"),
    "an unknown precision": lambda d: d["payload"]["scale"].update(precision="float8"),
    "groups of another type": lambda d: d["payload"].update(groups=5),
    "provenance of another type": lambda d: d["payload"].update(provenance={"foo": 1}),
    "history of another type": lambda d: d["payload"].update(history=3),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_record_that_makes_no_sense_is_refused(change: Any) -> None:
    """A record whose digest fits but whose contents cannot be a gate is one clear ArtefactError."""
    document = resealed(change)
    refuse(ArtefactError, r"^`(document|payload)` must ", lambda: ConformalGate.from_dict(document))


NO_GATES: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n",
    "null": b"null",
    "number": b"5",
    "text": b"not json",
    "list": b"[1, 2]",
    "object": b"{}",
    "half": b'{"artefact": "conformal_gate", ',
    "nan": b'{"artefact": NaN}',
    "utf-16": '{"artefact": "conformal_gate"}'.encode("utf-16"),
    "bytes": bytes(range(256)),
    "nul": b"\x00" * 100,
    "deep": b"[" * 100_000,
    "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
    "big number": b'{"a": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("content", NO_GATES.values(), ids=NO_GATES)
def test_a_file_that_is_no_gate_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    """What is no artefact is one clear ArtefactError that names the file, which stays as it is."""
    path = tmp_path / "some.json"
    path.write_bytes(content)
    refuse(ArtefactError, "^`path` must be a saved conformal", lambda: ConformalGate.load(path))
    refuse(ArtefactError, "^`path` must be a saved conformal", lambda: ConformalGate.load(str(path)))
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["some.json"]


def test_a_folder_is_no_gate(tmp_path: Path) -> None:
    """A folder is refused when loaded and when saved to, and nothing is left in it or beside it."""
    folder = tmp_path / "gate.json"
    folder.mkdir()
    refuse(ArtefactError, "^`path` must ", lambda: ConformalGate.load(folder))
    with pytest.raises((ArtefactError, OSError)):
        full_gate().save(folder)
    assert [p.name for p in tmp_path.iterdir()] == ["gate.json"]
    assert not list(folder.iterdir())


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    """A path where nothing is stays Python's own FileNotFoundError, for loading and for saving below it."""
    with pytest.raises(FileNotFoundError):
        ConformalGate.load(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        full_gate().save(tmp_path / "no" / "gate.json")


@pytest.mark.parametrize("document", [None, 5, "{}", [], {}, {"payload": {}}, b"{}"], ids=repr)
def test_from_dict_takes_what_to_dict_gave(document: Any) -> None:
    """Anything but a written record is refused."""
    refuse(ArtefactError, "^`document` must be a saved conformal", lambda: ConformalGate.from_dict(document))


def test_saving_replaces_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails the old file is intact and no draft is left."""
    path = saved(tmp_path)
    before = path.read_bytes()

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        full_gate().save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["gate.json"]


def test_changing_a_written_record_leaves_the_gate_alone() -> None:
    """to_dict gives copies: the gate cannot be changed through them."""
    gate = full_gate()
    document = gate.to_dict()
    document["payload"]["whole"]["scores0"].clear()
    document["payload"]["history"].clear()
    assert gate.to_dict() != document
    assert gate.n0 == 9


# --- no pickle


def test_no_module_unpickles() -> None:
    """No module of the package imports pickle or its kin, or lets NumPy read it."""
    forbidden = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: set[str] = set()
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                names = {(node.module or "").split(".")[0]}
            assert not names & forbidden, path
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.unparse(node.value) == "False", path
            assert not (isinstance(node, ast.Call) and ast.unparse(node.func) in {"eval", "exec"}), path
