"""Sessions with the MCP server: what tests of its tools and of its transports share.

The kit is imported when a session starts, because this module is collected where it is not installed too.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

MODULE = "rag_confidence.adapters.mcp_server"
SERVER = [sys.executable, "-m", MODULE]
URI = "rag-confidence://methodology"

Session = Callable[[Any], Awaitable[Any]]

SCORES = [row / 40 for row in range(40)]
LABELS = [0] * 20 + [1] * 20
QUERY = [1.0, 0.0, 0.0]
PASSAGES = [[0.9, 0.1, 0.2], [0.8, 0.3, 0.1], [0.85, -0.2, 0.3]]

CALLS: dict[str, dict[str, Any]] = {
    "audit_scores": {"scores": SCORES, "labels": LABELS},
    "fit_conformal_gate": {"scores": SCORES, "labels": LABELS},
    "apply_conformal_gate": {"scores": [0.1, 0.48, 0.9], "q0": 0.45, "q1": 0.475},
    "evaluate_conformal_gate": {"eval_scores": SCORES, "eval_labels": LABELS, "q0": 0.45, "q1": 0.475},
    "find_lexical_traps": {"scores": SCORES, "labels": LABELS, "threshold": 0.4},
    "run_demo": {},
    "fit_risk_gate": {"scores": SCORES, "labels": LABELS, "target_risk": 0.2},
    "plan_calibration": {},
    "score_retrieval": {"query_embedding": QUERY, "passage_embeddings": PASSAGES},
}


@cache
def plain_server() -> Any:
    """A server without a gate or a policy; its schemas take a while to build."""
    from rag_confidence.adapters._mcp.tools import build_server

    return build_server()


def in_memory(session: Session, mode: str = "auto", server: Any = None) -> Any:
    """What a session with a server in this process returns."""
    from mcp import Client

    return _run(Client(server or plain_server(), mode=mode), session)


def over_stdio(session: Session, *arguments: str, mode: str = "auto") -> Any:
    """What a session with a server in a process of its own returns."""
    from mcp import Client, StdioServerParameters

    command, *rest = SERVER
    return _run(Client(StdioServerParameters(command=command, args=[*rest, *arguments]), mode=mode), session)


def over_http(session: Session, address: str, mode: str = "auto") -> Any:
    """What a session with a server at an address returns."""
    from mcp import Client

    return _run(Client(address, mode=mode), session)


def _run(client: Any, session: Session) -> Any:
    import anyio

    async def main() -> Any:
        with anyio.fail_after(60):
            async with client as connected:
                return await session(connected)

    return anyio.run(main)


async def whole_session(client: Any) -> dict[str, Any]:
    """Everything that the server offers, each tool called once."""
    results = {name: await client.call_tool(name, arguments) for name, arguments in CALLS.items()}
    assert not any(result.is_error for result in results.values())
    prompt = await client.get_prompt("audit_rag_pipeline", {"alpha": "0.05"})
    return {
        "tools": sorted(tool.name for tool in (await client.list_tools()).tools),
        "results": {name: result.structured_content for name, result in results.items()},
        "texts": {name: [part.text for part in result.content] for name, result in results.items()},
        "methodology": (await client.read_resource(URI)).contents[0].text,
        "prompt": prompt.messages[0].content.text,
        "refusal": (await client.call_tool("plan_calibration", {"alpha": 2.0})).content[0].text,
    }


def called(name: str, arguments: dict[str, Any], server: Any = None) -> Any:
    """The result of one call in memory."""

    async def session(client: Any) -> Any:
        return await client.call_tool(name, arguments)

    return in_memory(session, server=server)


def refusal(name: str, arguments: dict[str, Any], server: Any = None) -> str:
    """The sentence of a call that must be refused."""
    result = called(name, arguments, server)
    assert result.is_error
    assert result.structured_content is None
    text: str = result.content[0].text
    return text
