"""Schema validity: violations counted by real validators, and nothing fetched from a network."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from guard_calls import call
from refusals import refuse

from rag_confidence._calls import ToolCallContext
from rag_confidence.guard.schema import schema_validity_score

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}

needs_schema = pytest.mark.needs_extra("schema")


def weather(**args: Any) -> ToolCallContext:
    """A call of the tool `weather`."""
    return ToolCallContext("weather", args)


def model(**options: Any) -> Any:
    """The same schema as a pydantic model."""
    import pydantic

    config = pydantic.ConfigDict(extra="forbid", **options)
    days = (int, pydantic.Field(default=1, ge=1))
    return pydantic.create_model("Weather", __config__=config, city=(str, ...), days=days)


@needs_schema
@pytest.mark.parametrize(
    ("args", "violations"),
    [
        ({"city": "Berlin"}, 0),
        ({"city": "Berlin", "days": 3}, 0),
        ({}, 1),
        ({"city": 5}, 1),
        ({"city": 5, "days": 0, "hours": 2}, 3),
        ({"city": None, "days": "many"}, 2),
    ],
)
def test_violations_are_counted(args: dict[str, Any], violations: int) -> None:
    """JSON Schema and pydantic count the rules that the arguments break."""
    for schema in (SCHEMA, model()):
        assert schema_validity_score(schema).score(weather(**args)) == (float(violations), None)


@needs_schema
def test_nested_arguments_are_checked() -> None:
    """Lists and objects inside the arguments are what JSON Schema takes them for."""
    schema = {"properties": {"to": {"type": "array", "items": {"type": "object", "required": ["name"]}}}}
    scorer = schema_validity_score(schema)
    assert scorer.score(weather(to=[{"name": "a"}, {}, {}])).value == 2.0
    assert scorer.score(weather(to="a")).value == 1.0


@needs_schema
def test_a_model_converts_text_unless_it_is_strict() -> None:
    """A pydantic model checks as it is configured."""
    loose, strict = model(), model(strict=True)
    assert schema_validity_score(loose).score(weather(city="Berlin", days="3")).value == 0.0
    assert schema_validity_score(strict).score(weather(city="Berlin", days="3")).value == 1.0


@needs_schema
def test_each_tool_can_have_its_own_schema() -> None:
    """A table of tools mixes both kinds of schemas, and a tool without one is unavailable."""
    scorer = schema_validity_score({"weather": model(), "search": {"required": ["query"]}})
    assert scorer.score(weather(city=1)).value == 1.0
    assert scorer.score(ToolCallContext("search")).value == 1.0
    scored = scorer.score(ToolCallContext("mail"))
    assert scored == (math.inf, "schema is unavailable: there is no schema for the tool mail")


@needs_schema
def test_a_validator_that_raises_is_a_failure() -> None:
    """Another exception than that of the validator is no count."""
    import pydantic

    def explode(value: Any) -> Any:
        raise ZeroDivisionError("inside")

    odd = pydantic.create_model(
        "Odd", city=(str, ...), __validators__={"v": pydantic.field_validator("city")(explode)}
    )
    scored = schema_validity_score(odd).score(weather(city="Berlin"))
    assert scored == (math.inf, "schema raised ZeroDivisionError: inside")


@needs_schema
def test_references_are_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference to another host fails the scorer; nobody opens a connection."""
    import urllib.request

    opened: list[Any] = []
    monkeypatch.setattr(urllib.request, "urlopen", opened.append)
    scorer = schema_validity_score({"properties": {"city": {"$ref": "https://example.org/city.json"}}})
    assert math.isinf(scorer.score(weather(city="Berlin")).value)
    assert opened == []


@needs_schema
def test_references_inside_the_schema_are_followed() -> None:
    """Definitions of the schema itself, and the meta-schemas that come with the validator, are known."""
    schema = {"$defs": {"city": {"type": "string"}}, "properties": {"city": {"$ref": "#/$defs/city"}}}
    assert schema_validity_score(schema).score(weather(city=5)).value == 1.0


@needs_schema
def test_an_older_draft_is_read_as_such() -> None:
    """`$schema` decides on the draft: in draft 4 an exclusive minimum is a boolean."""
    draft = "http://json-schema.org/draft-04/schema#"
    schema = {"$schema": draft, "properties": {"days": {"minimum": 1, "exclusiveMinimum": True}}}
    assert schema_validity_score(schema).score(weather(days=1)).value == 1.0


@needs_schema
def test_what_is_no_schema_is_refused() -> None:
    """Broken schemas, unknown drafts, tool definitions, classes, texts and nothing are refused by message."""
    make: Any = schema_validity_score
    refuse(ValueError, r"`schema` must hold rules; got an empty", lambda: make({}))
    refuse(ValueError, r"`schema` must be valid JSON Schema; got ", lambda: make({"type": "function"}))
    refuse(ValueError, r"`schema` must be valid JSON Schema; got ", lambda: make({"a": {"type": 5}}))
    unknown = {"$schema": "https://example.org/mine", "type": "object"}
    refuse(
        ValueError, r"`schema` must name a draft .*; got 'https://example.org/mine'", lambda: make(unknown)
    )
    refuse(TypeError, r"`schema` must be a pydantic model; got the class dict", lambda: make(dict))
    refuse(TypeError, r"`schema` must be a schema; got str", lambda: make("{}"))
    refuse(TypeError, r"`schema` must be a schema; got NoneType", lambda: make(None))


@needs_schema
def test_the_fingerprint_knows_the_rules() -> None:
    """Another rule makes another scorer, in a dictionary, in a model and in a table."""
    other = {**SCHEMA, "required": ["city", "days"]}
    schemas = [SCHEMA, other, model(), model(title="Other"), {"weather": SCHEMA}, {"weather": other}]
    assert len({schema_validity_score(schema).fingerprint for schema in schemas}) == len(schemas)
    assert schema_validity_score(model()).fingerprint == schema_validity_score(model()).fingerprint


@pytest.mark.parametrize("missing", ["jsonschema", "pydantic"])
def test_a_missing_package_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error says how to install it, and the guard itself imports."""
    monkeypatch.setitem(sys.modules, missing, None)
    schema: Any = SCHEMA if missing == "jsonschema" else type("Model", (), {})
    with pytest.raises(ImportError, match=rf"`{missing}` .*pip install 'rag-confidence\[schema\]'"):
        schema_validity_score(schema).score(call())


@pytest.mark.parametrize("odd", [math.nan, [1.0, {"deep": math.nan}], (math.nan,)])
def test_nan_is_no_json(odd: Any) -> None:
    """Every comparison with nan is false, so that limits alone would let it pass."""
    scorer = schema_validity_score({"properties": {"amount": {"minimum": 0, "maximum": 100}}})
    assert scorer.score(ToolCallContext("pay", {"amount": odd})).value == 1.0
    assert scorer.score(ToolCallContext("pay", {"amount": 5.0})).value == 0.0
