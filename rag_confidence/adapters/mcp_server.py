"""MCP server: the gate, the audits and `score` as tools for an agent, over stdio or HTTP on this machine.

Run it as ``rag-confidence-mcp`` or ``python -m rag_confidence.adapters.mcp_server``. Over stdio, standard
output carries the protocol and nothing else; what people should read goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rag_confidence import ConformalGate, MetricPolicy, run_demo
from rag_confidence._optional import require
from rag_confidence.conformal.gate.fitted import KIND as CONFORMAL_GATE
from rag_confidence.conformal.risk.fitted import KIND as RISK_GATE
from rag_confidence.conformal.risk.fitted import RiskGate

if TYPE_CHECKING:
    from rag_confidence.adapters._mcp.server import EvidenceServer

SavedGate: TypeAlias = ConformalGate | RiskGate
LOADERS: dict[str, Callable[[Path], SavedGate]] = {
    CONFORMAL_GATE: ConformalGate.load,
    RISK_GATE: RiskGate.load,
}
DEFAULT_PORT = 8000
MAX_PORT = 65535
PATH = "/mcp"
# For these alone the kit refuses requests whose Host header was rebound by a page in a browser.
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the name of the program; by default those it was started with.

    Returns
    -------
    int
        Exit code: 0, 2 for options that cannot be meant, 130 after an interrupt.
    """
    options = parse(arguments)
    try:
        if options.demo:
            sys.stdout.write(f"{run_demo(seed=options.seed, alpha=options.alpha)}\n")
        else:
            serve(options)
    except (ValueError, TypeError, ImportError, OSError) as problem:
        sys.stderr.write(f"rag-confidence-mcp: {problem}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="rag-confidence-mcp",
        description="Serve rag-confidence to an MCP client, by default over standard input and output.",
    )
    add = parser.add_argument
    add("--http", action="store_true", help="serve streamable HTTP on this machine instead")
    add("--host", default="127.0.0.1", help="address for --http (default: %(default)s)")
    add("--port", type=int, default=DEFAULT_PORT, help="port for --http, 0 for any (default: %(default)s)")
    add("--allow-remote", action="store_true", help="let --host be an address that other machines reach")
    add("--gate", type=Path, help="saved gate that the scoring tools decide with")
    add("--policy", type=Path, help="JSON file of a MetricPolicy for the scoring tools")
    add("--demo", action="store_true", help="print the synthetic demonstration and exit")
    add("--seed", type=int, default=42, help="seed of --demo (default: %(default)s)")
    add("--alpha", type=float, default=0.10, help="level of --demo (default: %(default)s)")
    return parser.parse_args(arguments)


def serve(options: argparse.Namespace) -> None:
    """Answer one MCP client on stdio, or many over HTTP, until they are done or the process is stopped.

    What the options may get wrong is found before the kit is loaded, which takes a second.
    """
    check_host(options.host, options.allow_remote)
    gate = None if options.gate is None else read_gate(options.gate)
    policy = None if options.policy is None else read_policy(options.policy)
    with listening(options.host, options.port) if options.http else nullcontext() as listener:
        require("mcp", extra="mcp")
        from rag_confidence.adapters._mcp.tools import build_server

        server = build_server(gate=gate, policy=policy)
        if listener is None:
            serve_stdio(server)
        else:
            serve_http(server, options.host, listener)


def read_gate(path: Path) -> SavedGate:
    """The gate in a file that `save` wrote, of either kind."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        document = None
    kind = document.get("artefact") if isinstance(document, dict) else None
    return LOADERS.get(str(kind), ConformalGate.load)(path)


def read_policy(path: Path) -> MetricPolicy:
    """The policy in a JSON file that holds its `to_dict()`."""
    try:
        constants = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        constants = None
    if not isinstance(constants, dict):
        raise ValueError(
            f"`--policy` must be a JSON file of a policy; got {path}. Write MetricPolicy.to_dict() to it."
        )
    return MetricPolicy.from_dict(constants)


def check_host(host: str, allow_remote: bool) -> None:
    """Refuse an address that other machines reach, unless that was asked for."""
    if host not in LOOPBACK and not allow_remote:
        raise ValueError(
            f"`--host` must be one of {', '.join(LOOPBACK)}; got {host}. Nothing here asks for a password: "
            "put a proxy in front that does, then pass --allow-remote."
        )


def listening(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; port 0 takes a free one."""
    if not 0 <= port <= MAX_PORT:
        raise ValueError(f"`--port` must be from 0 to {MAX_PORT}; got {port}. 0 takes a free one.")
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def serve_stdio(server: EvidenceServer) -> None:
    """Serve the client that started this process."""
    if sys.stdin.isatty():
        sys.stderr.write("Waiting for an MCP client on standard input. To look around, try --demo.\n")
    server.run("stdio")


def serve_http(server: EvidenceServer, host: str, listener: socket.socket) -> None:
    """Serve streamable HTTP on a socket; its address is announced on standard error."""
    import uvicorn

    from rag_confidence.adapters._mcp.limits import MAX_REQUEST_BYTES

    app = server.streamable_http_app(
        streamable_http_path=PATH, host=host, max_request_body_size=MAX_REQUEST_BYTES
    )
    name = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"Serving MCP on http://{name}:{listener.getsockname()[1]}{PATH}\n")
    sys.stderr.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    sys.exit(main())
