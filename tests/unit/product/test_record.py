"""The list of keys, the JSON Schema made from it, and the check of a record."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuse
from strategies import Retrieval, retrievals

from rag_confidence import MetricPolicy, RagConfidenceMetrics, json_schema, score
from rag_confidence.conformal.gate.loose import Thresholds
from rag_confidence.product.record import KEY_NAMES, KEYS, SCHEMA_VERSION, Key, check_value

ROWS = [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3], [0.7, 0.2, 0.5]]
RECORD = score(
    [1.0, 0.0, 0.0],
    ROWS,
    ["a", "b", "c", "d"],
    calibrator=lambda kpi: 0.5,
    contradiction=lambda texts: 0.25,
    k_requested=6,
    embedder="m",
).to_dict()


def test_keys_are_unique_and_described() -> None:
    """One entry a key, each with a sentence."""
    assert len(set(KEY_NAMES)) == len(KEY_NAMES)
    assert all(key.meaning for key in KEYS)
    assert tuple(RECORD) == KEY_NAMES


def test_ranges_and_words_fit_their_kind() -> None:
    """Only numbers have a range, only strings have words."""
    for key in KEYS:
        assert key.low is None or key.kind in {"number", "integer"}, key
        assert not key.words or key.kind == "string", key
        assert key.low is None or key.high is None or key.low < key.high, key


def wrong_values(key: Key) -> list[Any]:
    """Values that the contract does not allow under a key, all of them JSON."""
    wrong: dict[str, list[Any]] = {
        "number": ["1", True, [], {}],
        "integer": ["1", True, 1.5, []],
        "string": [1, True, [], {}],
        "boolean": ["true", 1, 0],
        "array": ["note", 1, {}, [1], [None], ["note", 2.5]],
        "numbers": ["{}", 1, True, [], [["a", 1.0]], {"a": None}, {"a": "1"}, {"a": True}, {"a": [1.0]}],
        "labels": ["01", 1, {}, [2], [None], [0, 1, 1], [1, 1], ["1"], [True]],
        "object": ["{}", 1, [], {}, {"kind": "marginal"}],
    }
    values = list(wrong[key.kind])
    if not key.nullable:
        values.append(None)
    if key.words:
        values += ["", "unknown", f"{key.words[0]} "]
    if key.low is not None:
        values.append(key.low - (1 if key.kind == "integer" else 1e-9))
    if key.high is not None:
        values.append(key.high + 1e-9)
    return values


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_altered_records_are_refused(key: Key) -> None:
    """A value of another type, out of range or of another vocabulary is named by its key."""
    assert RagConfidenceMetrics.from_dict(RECORD).to_dict() == RECORD
    extra = [math.nan, math.inf, -math.inf] if key.kind in {"number", "integer"} else []
    for value in [*wrong_values(key), *extra]:
        with pytest.raises((ValueError, TypeError), match=r"^`record") as caught:
            RagConfidenceMetrics.from_dict(RECORD | {key.name: value})
        assert key.name in str(caught.value)


@pytest.mark.parametrize("name", KEY_NAMES)
def test_missing_keys_are_refused(name: str) -> None:
    """Every key is always there."""
    short = {key: value for key, value in RECORD.items() if key != name}
    with pytest.raises(ValueError, match=r"^`record` must have"):
        RagConfidenceMetrics.from_dict(short)


@pytest.mark.parametrize("record", [None, 3, "{}", [], [("verdict", "ANSWER")], RECORD.items()])
def test_what_is_no_record_is_refused(record: Any) -> None:
    """Text and lists are not records; the sentence says what is."""
    with pytest.raises((TypeError, ValueError), match=r"^`record` must"):
        RagConfidenceMetrics.from_dict(record)


@pytest.mark.parametrize("version", [None, "0.9", "2.0", 1.0])
def test_other_versions_are_refused(version: Any) -> None:
    """A record of another contract is not read as this one."""
    with pytest.raises(ValueError, match=f"schema_version {SCHEMA_VERSION!r}"):
        RagConfidenceMetrics.from_dict(RECORD | {"schema_version": version})


def test_unknown_keys_are_refused() -> None:
    """A key that the contract does not have may mean anything."""
    with pytest.raises(ValueError, match="extra"):
        RagConfidenceMetrics.from_dict(RECORD | {"extra": 1})


def test_whole_numbers_are_numbers() -> None:
    """JSON writers turn 1.0 into 1; that is the same number."""
    for key in KEYS:
        if key.kind == "number" and (key.low or 0.0) <= 0.0:
            check_value(key, 0)


def test_the_record_in_hand_is_not_the_callers() -> None:
    """Changing the dictionary after from_dict, or what to_dict returned, changes no metrics."""
    given_record = copy.deepcopy(RECORD)
    m = RagConfidenceMetrics.from_dict(given_record)
    given_record["warnings"].append("later")
    given_record["verdict"] = "ABSTAIN"
    m.to_dict()["warnings"].append("later")
    assert m.to_dict() == RECORD


# --- JSON Schema


@pytest.fixture(scope="module")
def validator() -> Any:
    """Validator of the published schema, itself checked against its own metaschema."""
    import jsonschema

    schema = json.loads(json.dumps(json_schema(), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.needs_extra("test")
@given(r=retrievals(), choice=st.integers(0, 6))
def test_the_schema_accepts_every_record(validator: Any, r: Retrieval, choice: int) -> None:
    """Whatever is scored, by any policy and backend, the record validates."""
    n = len(r.passages)
    options: list[dict[str, Any]] = [
        {},
        {"perturb": False, "policy": MetricPolicy.seed()},
        {"embedding_backend": "lexical"},
        {"parents": [None, *range(n - 1)]},
        {"texts": ["t"] * n, "contradiction": lambda texts: 1.0, "calibrator": lambda kpi: kpi},
        {"loops": "ratio", "k_requested": 50},
        {"duplicate_cosine": 1.0},
    ]
    record = score(r.query, r.passages, **options[choice]).to_dict()
    validator.validate(json.loads(json.dumps(record, allow_nan=False)))


@pytest.mark.needs_extra("test")
def test_the_schema_accepts_results_without_numbers(validator: Any) -> None:
    """No passages, a zero query and dropped rows give valid records."""
    for query, rows in (([1.0, 0.0], []), ([0.0, 0.0], [[1.0, 0.0]]), ([1.0, 0.0], [[np.nan, 0.0]])):
        validator.validate(score(query, rows, invalid_rows="drop").to_dict())


@pytest.mark.needs_extra("test")
@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_the_schema_refuses_what_from_dict_refuses(validator: Any, key: Key) -> None:
    """The schema and `from_dict` are one contract."""
    assert validator.is_valid(RECORD)
    for value in wrong_values(key):
        assert not validator.is_valid(RECORD | {key.name: value}), value
    assert not validator.is_valid({k: v for k, v in RECORD.items() if k != key.name})
    assert not validator.is_valid(RECORD | {"extra": 1})


STATED = Thresholds(0.4, 0.5).guarantee.to_dict()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("collected", ["x"]),
        ("collected", "2026-01-01"),
        ("collected", [1, 2]),
        ("negatives", []),
        ("negatives", {"near_miss": "1"}),
        ("negatives", {"near_miss": -1}),
        ("holds", "yes"),
        ("holds", 1),
        ("kind", "certain"),
        ("kind", ["pac"]),
        ("bound", 1.5),
        ("alpha", True),
        ("delta", "0.1"),
        ("alpha_reject", math.nan),
        ("n0", -1),
        ("n1", 2.0),
        ("n1", True),
        ("group", 1.5),
        ("group", True),
        ("labeling_source", 3),
        ("not_claimed", "all"),
        ("not_claimed", [1]),
        *((name, None) for name in ("event", "conditioning", "assumption", "sentence", "kind", "holds")),
    ],
    ids=repr,
)
def test_each_field_of_a_guarantee_is_checked(field: str, value: Any) -> None:
    """A guarantee with a field of another type is refused by the name of the field."""
    assert RagConfidenceMetrics.from_dict(RECORD | {"guarantee": STATED}).to_dict()["guarantee"] == STATED
    refuse(
        ValueError,
        rf"^`record\['guarantee'\]\['{field}'\]` must be ",
        lambda: RagConfidenceMetrics.from_dict(RECORD | {"guarantee": STATED | {field: value}}),
    )


def test_refusals_of_a_record_are_in_words() -> None:
    """What a key must be is said in words, with None where that is allowed."""
    wanted = {
        "labels": "one of [], [0], [1], [0, 1] or None",
        "object": "the guarantee of a gate, as a dict or None",
        "array": "a list of strings",
        "boolean": "True or False",
        "integer": "a whole number in",
    }
    for kind, words in wanted.items():
        key = next(key for key in KEYS if key.kind == kind)
        assert f"must be {words}" in refuse(ValueError, "^`record", lambda k=key: check_value(k, "odd"))
