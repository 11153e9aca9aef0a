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
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_confidence import ArtefactError, ConformalGate, MetricPolicy, run_demo
from rag_confidence._optional import require
from rag_confidence.adapters._mcp.embedding import WORDLLAMA_POLICY
from rag_confidence.conformal.gate.fitted import KIND as CONFORMAL_GATE
from rag_confidence.conformal.risk.fitted import KIND as RISK_GATE
from rag_confidence.conformal.risk.fitted import RiskGate
from rag_confidence.product.policy import DEFAULT_POLICY

if TYPE_CHECKING:
    from rag_confidence.adapters._mcp.server import EvidenceServer

SavedGate: TypeAlias = ConformalGate | RiskGate
LOADERS: dict[str, Callable[[Path], SavedGate]] = {
    CONFORMAL_GATE: ConformalGate.load,
    RISK_GATE: RiskGate.load,
}
DEFAULT_HOST = "127.0.0.1"
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
    add("--host", help=f"address for --http (default: {DEFAULT_HOST})")
    add("--port", type=int, help=f"port for --http, 0 for any (default: {DEFAULT_PORT})")
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
    host, port = address(options)
    gate = None if options.gate is None else read_gate(options.gate)
    policy = None if options.policy is None else read_policy(options.policy)
    check_policy(gate, policy)
    with listening(host, port) if options.http else nullcontext() as listener:
        require("mcp", extra="mcp")
        from rag_confidence.adapters._mcp.tools import build_server

        server = build_server(gate=gate, policy=policy)
        if listener is None:
            serve_stdio(server)
        else:
            serve_http(server, host, listener)


def read_gate(path: Path) -> SavedGate:
    """The gate in a file that `save` wrote, of either kind."""
    document = read_json("--gate", path)
    kind = document.get("artefact") if isinstance(document, dict) else None
    if kind not in LOADERS:
        got = f"{path}, a {kind!r}" if isinstance(kind, str) else f"{path}, which is something else"
        raise ArtefactError(
            f"`--gate` must be a saved conformal or risk gate; got {got}. Pass the file that save() wrote."
        )
    return LOADERS[kind](path)


def read_policy(path: Path) -> MetricPolicy:
    """The policy in a JSON file that holds its `to_dict()`."""
    constants = read_json("--policy", path)
    if not isinstance(constants, dict):
        raise ValueError(
            f"`--policy` must be a JSON file of a policy; got {path}. Write MetricPolicy.to_dict() to it."
        )
    return MetricPolicy.from_dict(constants)


def read_json(option: str, path: Path) -> Any:
    """The contents of a JSON file, None if it holds anything else."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ValueError(
            f"`{option}` must be a file that can be read; got {path} ({problem.strerror}). Check the path."
        ) from problem
    except ValueError:
        return None


def check_policy(gate: SavedGate | None, policy: MetricPolicy | None) -> None:
    """Refuse a gate for KPIs of another policy than any tool here has: every call would be refused."""
    if gate is None or gate.provenance is None:
        return
    for what, named in (("corpus profile", gate.provenance.profile), ("model", gate.provenance.model)):
        if named is not None:
            raise ValueError(
                f"`--gate` must be fitted on KPIs made without a {what}; got a gate for scores of the {what} "
                f"{named!r}, and no tool here has one. Serve it from Python with score()."
            )
    served = [DEFAULT_POLICY, WORDLLAMA_POLICY] if policy is None else [policy]
    if gate.provenance.policy not in [one.fingerprint for one in served]:
        loaded = "no --policy is given" if policy is None else f"--policy is {policy.fingerprint!r}"
        raise ValueError(
            f"`--gate` must be fitted under the policy of this server; got a gate for policy "
            f"{gate.provenance.policy!r} where {loaded}. Pass --policy with the policy of the gate."
        )


def address(options: argparse.Namespace) -> tuple[str, int]:
    """Host and port to listen on; named without --http they would be ignored, which nobody means."""
    for name in ("host", "port"):
        value = getattr(options, name)
        if value is not None and not options.http:
            raise ValueError(f"`--{name}` must come with --http; got {value} alone. Add --http, or drop it.")
    host = DEFAULT_HOST if options.host is None else options.host
    check_host(host, options.allow_remote)
    return host, DEFAULT_PORT if options.port is None else options.port


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
