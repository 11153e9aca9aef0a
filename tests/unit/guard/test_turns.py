"""Arguments and ids of the calls in a response, whatever API it came from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from refusals import refuse

from rag_confidence.guard.turns import (
    RequestedCall,
    call_id_of,
    check_ids,
    joined,
    named_arguments,
    part,
    parts,
)


@pytest.mark.parametrize("given", [None, "", "  \n", "{}", {}])
def test_no_arguments_are_an_empty_mapping(given: Any) -> None:
    """Models leave the text out where a tool takes nothing."""
    assert named_arguments(given) == ({}, None)


def test_arguments_are_read_from_json_and_from_a_mapping() -> None:
    """Some servers parse them already."""
    assert named_arguments('{"query": "ä", "limit": 3}') == ({"query": "ä", "limit": 3}, None)
    assert named_arguments({"query": "ä"}) == ({"query": "ä"}, None)


def test_arguments_of_a_mapping_are_copied() -> None:
    """What a tool does to them does not change the response, which goes back to the model."""
    given = {"rows": [1]}
    found, _ = named_arguments(given)
    found["rows"].append(2)
    assert given == {"rows": [1]}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ('{"query": ', "not valid JSON"),
        ("{'query': 'x'}", "not valid JSON"),
        ('{"query": "a", "query": "b"}', "a name comes twice"),
        ('{"limit": NaN}', "NaN is no number of JSON"),
        ('{"limit": -Infinity}', "-Infinity is no number of JSON"),
        ('{"limit": 1e999}', "1e999 is no number of JSON, or too large"),
        ("[" * 100_000, "not valid JSON"),
        ('["weather"]', "must be a JSON object, not an array"),
        ('"weather"', "must be a JSON object, not a string"),
        ("3", "must be a JSON object, not a number"),
        ("true", "must be a JSON object, not a boolean"),
        ("null", "must be a JSON object, not null"),
        (3, "must be a JSON object, not a number"),
        ({3: "x"}, "must have strings as names"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_other_arguments_are_a_problem(given: Any, problem: str) -> None:
    """They are described for the model, and nothing of them is kept."""
    found, said = named_arguments(given)
    assert found == {}
    assert said is not None
    assert problem in said


def test_fields_are_read_from_dictionaries_and_objects() -> None:
    """What is missing is None, and what is no list has no entries."""
    for holder in ({"a": [1], "b": "text"}, SimpleNamespace(a=[1], b="text")):
        assert (part(holder, "a"), part(holder, "c")) == ([1], None)
        assert (parts(holder, "a"), parts(holder, "b"), parts(holder, "c")) == ((1,), (), ())
    assert part(None, "a") is None


def test_texts_are_joined_without_the_empty_ones() -> None:
    """None where nothing was said."""
    assert joined(["a", None, "", "b"]) == "a\nb"
    assert joined([None, ""]) is None


def test_a_call_without_an_id_is_refused() -> None:
    """No result could be matched to it."""
    assert call_id_of({"id": "c1"}, "id", "choice") == "c1"
    refuse(ValueError, "`choice` must give each call an `id`", lambda: call_id_of({}, "id", "choice"))


def test_two_calls_of_one_id_are_refused() -> None:
    """Calls without ids, of older models, are not compared."""
    one, other, nameless = (RequestedCall(name, "search", lambda text, _: {}) for name in ("c1", "c2", None))
    assert check_ids("choice", [one, other, nameless, nameless]) == (one, other, nameless, nameless)
    refuse(ValueError, "ids of their own; got 'c1' more than once", lambda: check_ids("choice", [one, one]))
