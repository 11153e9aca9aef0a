"""The server object: tools, resource and prompt, and every refusal in the library's own words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Annotated, Any

from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import INVALID_PARAMS, CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from rag_confidence._predictions import Gate
from rag_confidence._version import __version__
from rag_confidence.adapters._mcp.results import Result
from rag_confidence.conformal.quantile import as_level

METHODOLOGY_URI = "rag-confidence://methodology"
INSTRUCTIONS = (
    "Decides whether retrieved evidence is sufficient to answer from, with a bound on false acceptance that "
    "holds under a stated assumption. Label some past retrievals (1 = the passages hold the answer), call "
    "audit_scores, then fit_conformal_gate, then apply_conformal_gate to new scores. Answer only on ACCEPT; "
    f"pass on the `guarantee` and `warnings` that come back. Read {METHODOLOGY_URI} for what is not promised."
)
WITH_GATE = (
    "Decides whether retrieved evidence is sufficient to answer from, with the saved gate that this server "
    "was started with. Before you answer, call score_retrieval with the vectors of your retriever and "
    "{embedder}, and branch on `verdict`: ANSWER, answer; REVIEW, say what is uncertain; ABSTAIN, say that "
    "the sources do not hold the answer; ESCALATE, show the sources to a person. Do not fit a gate of your "
    "own, and do not decide with thresholds of your own: apply_conformal_gate claims nothing. The bound is "
    "for one try at a question. Pass on the `guarantee` and `warnings` that come back. Read "
    f"{METHODOLOGY_URI} for what is not promised."
)
# Nothing is written, nothing leaves the machine, and equal calls get equal results.
PURE = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


class EvidenceServer(MCPServer[Any]):
    """An MCP server whose refusals are sentences of the library.

    The kit answers an exception it does not know with the name of the tool alone, and a wrong argument
    with a page of its validator's own terms; both are translated here, in the one place that all
    transports pass.
    """

    def __init__(self, tools: Sequence[Tool], instructions: str) -> None:
        self._arguments = {tool.name: sorted(tool.parameters["properties"]) for tool in tools}
        super().__init__(
            "rag-confidence",
            title="rag-confidence: is the evidence enough to answer?",
            instructions=instructions,
            version=__version__,
            tools=[*tools],
            log_level="WARNING",
        )

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; a refusal is a `ToolError` with one readable sentence."""
        self._refuse_unknown(name, arguments)
        try:
            return _compact(await super().call_tool(name, arguments, context))
        except UnexpectedToolError as error:
            if _is_refusal(error.__cause__):
                raise ToolError(str(error.__cause__)) from error.__cause__
            raise
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_sentence(error.__cause__.errors()[0])) from error.__cause__
            raise

    def _refuse_unknown(self, name: str, arguments: dict[str, Any]) -> None:
        """A misspelt `alpha` must not run with the default."""
        known = self._arguments.get(name)
        odd = sorted(set(arguments) - set(known)) if known is not None else []
        if odd:
            raise ToolError(f"`{odd[0]}` must be an argument of {name}; got another name. Known: {known}.")


def _is_refusal(cause: BaseException | None) -> bool:
    """Whether the library refused the input: its sentences begin with the name of what is wrong."""
    return isinstance(cause, ValueError | TypeError | ImportError) and str(cause).startswith("`")


def _compact(result: CallToolResult | InputRequiredResult) -> CallToolResult | InputRequiredResult:
    """The text of a result on one line: a model that reads it pays for every blank."""
    if not isinstance(result, CallToolResult) or result.structured_content is None:
        return result
    content = TextContent(type="text", text=json.dumps(result.structured_content, allow_nan=False))
    return result.model_copy(update={"content": [content]})


def _sentence(problem: ErrorDetails) -> str:
    """What the validator found, in the form of the library's own errors."""
    name = ".".join(map(str, problem["loc"])) or "arguments"
    details = problem.get("ctx", {})
    if problem["type"] == "missing":
        return f"`{name}` must be given; got nothing. Add it to the arguments."
    if problem["type"] == "too_long":
        most, got = details["max_length"], details["actual_length"]
        return f"`{name}` must hold at most {most} entries; got {got}. Send fewer, or use the Python library."
    wanted = problem["msg"].removeprefix("Input should be ")
    return f"`{name}` must be {wanted}; got {_short(problem['input'])}. See the schema of the tool."


def _short(value: Any) -> str:
    """A rejected value, or its type where it is long or nested."""
    shown = repr(value) if isinstance(value, str | int | float) else ""
    return shown if 0 < len(shown) <= 40 else type(value).__name__


def tool(name: str, title: str, function: Callable[..., Result]) -> Tool:
    """A tool that reads nothing but its arguments, and takes no others."""
    made = Tool.from_function(function, name, title, annotations=PURE, structured_output=True)
    made.parameters["additionalProperties"] = False
    return made


def text(name: str) -> str:
    """A Markdown file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def methodology() -> str:
    """Formulas, the derivation of the quantile, and rules for using a gate."""
    return text("methodology.md")


def audit_rag_pipeline(
    pipeline: Annotated[str, Field(description="What is audited, in a few words.")] = "this RAG pipeline",
    alpha: Annotated[str, Field(description="Largest rate of false acceptance, between 0 and 1.")] = "0.10",
) -> str:
    """Steps for auditing a retriever and setting a conformal gate on it."""
    try:
        as_level(alpha)
    except ValueError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
    return text("audit_prompt.md").replace("{pipeline}", pipeline).replace("{alpha}", alpha)


def instructions_for(gate: Gate | None) -> str:
    """What an agent should do with the tools; a server with a gate is there to decide, not to fit."""
    if gate is None:
        return INSTRUCTIONS
    if gate.provenance is None:
        return WITH_GATE.format(embedder="the name of the embedder that made them")
    name = gate.provenance.embedder
    return WITH_GATE.format(embedder="no `embedder`" if name is None else f"embedder={json.dumps(name)}")


def build(tools: Sequence[Tool], gate: Gate | None) -> EvidenceServer:
    """The server with its tools, the resource and the prompt; the gate is named in its instructions."""
    server = EvidenceServer(tools, instructions_for(gate))
    server.resource(METHODOLOGY_URI, title="Methodology", mime_type="text/markdown")(methodology)
    server.prompt(title="Audit a RAG pipeline")(audit_rag_pipeline)
    return server
