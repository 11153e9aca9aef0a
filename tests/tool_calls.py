"""Calls as the APIs write them, for tests of the tool registry."""

from __future__ import annotations

import json
from typing import Any

from deciders import ShortQueries

from rag_confidence.guard.registry import ToolRegistry
from rag_confidence.guard.wrapping import wrap


def function(call_id: str | None, name: str, arguments: Any) -> dict[str, Any]:
    """A function call of Chat Completions; what is no string is written as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def custom(call_id: str, name: str, text: str) -> dict[str, Any]:
    """A call of a custom tool of Chat Completions."""
    return {"id": call_id, "type": "custom", "custom": {"name": name, "input": text}}


def choice(*calls: dict[str, Any], reason: str = "tool_calls", **more: Any) -> dict[str, Any]:
    """A choice with these calls."""
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [*calls]}
    return {"index": 0, "finish_reason": reason, "logprobs": None, "message": message, **more}


def item(call_id: str, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    """A function call of the Responses API."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text, **more}


def response(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A response with these items."""
    return {"output": [*items], "status": "completed", **more}


def use(call_id: str, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    """A call of the Messages API."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments, **more}


def message(*blocks: dict[str, Any], reason: str = "tool_use", **more: Any) -> dict[str, Any]:
    """A message with these blocks."""
    return {"role": "assistant", "content": [*blocks], "stop_reason": reason, **more}


def registry(*tools: Any, decider: Any = None, **options: Any) -> ToolRegistry:
    """A registry of tools whose calls run if their query is short."""
    return ToolRegistry([wrap(tool, decider or ShortQueries(), **options) for tool in tools])
