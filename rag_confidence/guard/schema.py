"""Schema validity: how many rules of its schema the arguments of a call break."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from rag_confidence import _artefact
from rag_confidence._calls import ToolCallContext
from rag_confidence._optional import require
from rag_confidence.guard.scorers import Scorer, ScoreUnavailable

Schema: TypeAlias = Mapping[str, Any] | type[Any]
Violations: TypeAlias = Callable[[dict[str, Any]], int]

_CURE = "Pass a JSON Schema as a dictionary, a pydantic model, or one of these for each tool by name."
# Keywords of JSON Schema that have an object as their value: a dictionary of objects with one of these as a
# key is a schema, and no table of tools.
_KEYWORDS = {
    *("properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties"),
    *("items", "contains", "unevaluatedItems", "not", "if", "then", "else", "const", "default"),
    *("$defs", "definitions", "$vocabulary", "dependentSchemas", "dependentRequired", "dependencies"),
}


def schema_validity_score(schema: Schema | Mapping[str, Schema], *, name: str = "schema") -> Scorer:
    """How many rules of its schema the arguments of a call break, by a real validator.

    Parameters
    ----------
    schema : dict, pydantic model class, or mapping from tool names to these
        A dictionary is read as JSON Schema, Draft 2020-12 unless its `$schema` names another; a dictionary
        without any keyword of JSON Schema is a table of tools.
    name : str
        Name of the scorer.

    Returns
    -------
    Scorer
        Number of violations, 0 for valid arguments. It fails on a tool without a schema, and where a
        reference in the schema cannot be resolved; none is fetched from a network.

    Raises
    ------
    ImportError
        If the extra `schema` (jsonschema, pydantic) is not installed.
    TypeError, ValueError
        For what is no schema.

    Notes
    -----
    Most calls of a working model break no rule, so that nearly all scores are 0: as the only scorer it stops
    what breaks more rules than the threshold, and nothing else. Each nan and infinity counts as a violation,
    because JSON has none. `format` is an annotation and not checked.
    A pydantic model checks as it is configured, and converts text to numbers unless it is strict.
    """
    if isinstance(schema, Mapping) and _is_table(schema):
        tools = {str(tool): _violations(entry) for tool, entry in schema.items()}

        def of_tool(context: ToolCallContext) -> int:
            if context.tool_name not in tools:
                raise ScoreUnavailable(f"there is no schema for the tool {context.tool_name}")
            return tools[context.tool_name](dict(context.args))

        written = {str(tool): _written(entry) for tool, entry in schema.items()}
        return Scorer(name, of_tool, version=_version(written), low=0.0)
    count = _violations(schema)
    return Scorer(
        name, lambda context: count(dict(context.args)), version=_version(_written(schema)), low=0.0
    )


def _is_table(schema: Mapping[str, Any]) -> bool:
    if not schema:
        raise ValueError(f"`schema` must hold rules; got an empty dictionary, which allows anything. {_CURE}")
    return _KEYWORDS.isdisjoint(schema) and all(isinstance(e, Mapping | type) for e in schema.values())


def _violations(schema: Any) -> Violations:
    if isinstance(schema, Mapping):
        return _of_json_schema(dict(schema))
    if not isinstance(schema, type):
        raise TypeError(f"`schema` must be a schema; got {type(schema).__name__}. {_CURE}")
    return _of_model(require("pydantic", extra="schema"), schema)


def _of_json_schema(schema: dict[str, Any]) -> Violations:
    jsonschema = require("jsonschema", extra="schema")
    specifications = require("jsonschema_specifications", extra="schema")
    kind = jsonschema.Draft202012Validator
    if "$schema" in schema:
        kind = jsonschema.validators.validator_for(schema, default=None)
    if kind is None:
        raise ValueError(
            f"`schema` must name a draft that is known; got {schema['$schema']!r}. Leave `$schema` out."
        )
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"`schema` must be valid JSON Schema; got {error.message}. {_CURE}") from error
    # The registry of the specifications alone: the default one fetches references over the network.
    validator = kind(schema, registry=specifications.REGISTRY)
    return lambda args: sum(1 for _ in validator.iter_errors(args)) + _count_no_json(args)


def _count_no_json(value: Any) -> int:
    """Numbers that JSON does not have. Comparisons with nan are never true, so no rule would be broken."""
    if isinstance(value, float | np.floating):
        return int(not math.isfinite(value))
    if isinstance(value, dict):
        return sum(map(_count_no_json, value.values()))
    return sum(map(_count_no_json, value)) if isinstance(value, list | tuple) else 0


def _of_model(pydantic: ModuleType, model: Any) -> Violations:
    if not issubclass(model, pydantic.BaseModel):
        raise TypeError(f"`schema` must be a pydantic model; got the class {model.__name__}. {_CURE}")
    wrong: type[Exception] = pydantic.ValidationError

    def violations(args: dict[str, Any]) -> int:
        try:
            model.model_validate(args)
        except wrong as error:
            return int(error.error_count())  # type: ignore[attr-defined]
        return 0

    return violations


def _written(schema: Any) -> Any:
    """The rules as JSON; of a model also its name, because validators in code are in no schema."""
    if isinstance(schema, Mapping):
        return dict(schema)
    return [f"{schema.__module__}.{schema.__qualname__}", schema.model_json_schema()]


def _version(written: Any) -> str:
    try:
        return f"schema {_artefact.digest(written)}"
    except (TypeError, ValueError) as error:
        raise ValueError(f"`schema` must be JSON; got values that are not ({error}). {_CURE}") from error
