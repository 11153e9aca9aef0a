"""The MCP server as its clients meet it: over stdio and HTTP, as a command, and as the docs configure it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_session import (
    CALLS,
    LABELS,
    MODULE,
    SCORES,
    SERVER,
    called,
    in_memory,
    over_http,
    over_stdio,
    whole_session,
)

from rag_confidence import MetricPolicy, fit_conformal_gate, run_demo, score

pytestmark = pytest.mark.needs_extra("mcp")

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "mcp.md"
COMMAND = "rag-confidence-mcp"
CLIENT = {"name": "a test", "version": "1"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a server over HTTP on a free port, ended with the module."""
    command = [*SERVER, "--http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            announced = process.stderr.readline()
            yield announced.removeprefix("Serving MCP on ").strip()
        finally:
            process.terminate()
            process.communicate(timeout=20)


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """What every transport must give: a session in memory."""
    found: dict[str, Any] = in_memory(whole_session)
    return found


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, run to its end with nothing on standard input."""
    command = [*SERVER, *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


# Transports


def test_stdio_gives_what_memory_gives(expected: dict[str, Any]) -> None:
    """A real subprocess, `python -m`, answers every call with the same values."""
    assert over_stdio(whole_session) == expected


def test_the_old_handshake_gives_what_the_new_one_gives(expected: dict[str, Any]) -> None:
    """Clients that know only `initialize` are served alike."""
    assert in_memory(whole_session, "legacy") == expected


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_http_gives_what_memory_gives(address: str, mode: str, expected: dict[str, Any]) -> None:
    """Streamable HTTP on a free port of this machine, by both handshakes."""
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", address)
    assert over_http(whole_session, address, mode) == expected


def test_standard_output_carries_the_protocol_alone() -> None:
    """Every line that the process writes there is a JSON-RPC message, warnings and refusals included."""
    few = {"scores": [0.1, 0.9], "labels": [0, 1]}
    messages = [
        _request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=CLIENT),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _request(2, "tools/call", name="fit_conformal_gate", arguments=few),
        _request(3, "tools/call", name="fit_conformal_gate", arguments={**few, "alpha": 7}),
        _request(4, "tools/call", name="no_such_tool", arguments={}),
    ]
    with subprocess.Popen(SERVER, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(json.dumps(message) + "\n" for message in messages)
        process.stdin.flush()
        lines = [json.loads(process.stdout.readline()) for _ in range(4)]
        rest, errors = process.communicate(timeout=20)
    assert sorted(line["id"] for line in lines) == [1, 2, 3, 4]
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    assert rest == ""
    assert "SmallCalibrationWarning" in errors
    assert process.returncode == 0


def _request(number: int, method: str, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


@pytest.mark.parametrize(
    ("header", "code"), [({"Host": "evil.example"}, 421), ({"Origin": "http://evil.example"}, 403)]
)
def test_http_refuses_a_foreign_host_and_a_foreign_origin(
    address: str, header: dict[str, str], code: int
) -> None:
    """A page in a browser that rebinds its name to this machine gets nothing."""
    body = _request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=CLIENT)
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), {**headers, **header})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=20)
    caught.value.close()
    assert caught.value.code == code


def test_calls_at_the_same_time_do_not_disturb_each_other(address: str) -> None:
    """Calls of four kinds in flight together give what they give one by one."""
    import anyio

    alphas = [(row + 1) / 7 for row in range(6)]
    calls = [("fit_conformal_gate", {**CALLS["fit_conformal_gate"], "alpha": alpha}) for alpha in alphas]
    calls += [("plan_calibration", {"alpha": alpha}) for alpha in alphas]
    calls += [(name, CALLS[name]) for name in ("score_retrieval", "audit_scores") for _ in alphas]

    async def together(client: Any) -> list[Any]:
        found: list[Any] = [None] * len(calls)

        async def one(place: int) -> None:
            found[place] = (await client.call_tool(*calls[place])).structured_content

        async with anyio.create_task_group() as group:
            for place in range(len(calls)):
                group.start_soon(one, place)
        return found

    async def in_turn(client: Any) -> list[Any]:
        return [(await client.call_tool(*call)).structured_content for call in calls]

    alone = in_memory(in_turn)
    assert all(alone)
    assert in_memory(together) == alone
    assert over_http(together, address) == alone


# The command


def test_a_server_with_a_saved_gate_and_policy_decides_with_them(tmp_path: Path) -> None:
    """`--gate` and `--policy` bind the scoring tools: the decision is final and carries its guarantee."""
    arguments = CALLS["score_retrieval"]
    policy = MetricPolicy(grounding_center=0.5)
    metrics = score(arguments["query_embedding"], arguments["passage_embeddings"], policy=policy)
    gate = fit_conformal_gate(SCORES, LABELS, provenance=metrics.provenance)
    gate.save(tmp_path / "gate.json")
    (tmp_path / "policy.json").write_text(json.dumps(policy.to_dict()))

    async def session(client: Any) -> Any:
        return client.instructions, (await client.call_tool("score_retrieval", arguments)).structured_content

    options = ["--gate", str(tmp_path / "gate.json"), "--policy", str(tmp_path / "policy.json")]
    told, found = over_stdio(session, *options)
    assert "branch on `verdict`" in told
    assert (found["verdict"], found["gate"]["decision"]) == ("ANSWER", "ACCEPT")
    assert found["gate"]["prediction_set"] == [1]
    assert found["gate"]["guarantee"] == json.loads(json.dumps(gate.guarantee.to_dict()))
    assert not any("--policy" in warning for warning in found["warnings"])


def test_the_demonstration_runs_in_a_terminal() -> None:
    """`--demo` prints what `run_demo` reports, for the seed and level asked for, and ends."""
    done = run("--demo", "--seed", "7", "--alpha", "0.2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{run_demo(seed=7, alpha=0.2)}\n"


# The documented configurations


def json_blocks() -> list[dict[str, Any]]:
    """The JSON blocks of docs/mcp.md, in order."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [json.loads(block) for block in found]


def test_the_documented_call_gives_the_documented_result() -> None:
    """The example on the page is a real call and what it returns, to the last digit."""
    blocks = json_blocks()
    place, call = next((at, block) for at, block in enumerate(blocks) if "tool" in block)
    found = called(call["tool"], call["arguments"]).structured_content
    assert found == blocks[place + 1]


def test_the_documented_limits_are_those_in_force() -> None:
    """The table of sizes on the page states the constants."""
    from rag_confidence.adapters._mcp import limits

    table = PAGE.read_text(encoding="utf-8").partition("## Sizes")[2].partition("##")[0]
    stated = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", table.split("Beyond")[0])}
    constants = {value for name, value in vars(limits).items() if name.startswith("MAX_")}
    assert stated == (constants - {limits.MAX_REQUEST_BYTES}) | {limits.MAX_REQUEST_BYTES // 2**20}


def test_the_documented_tools_are_those_that_are_offered() -> None:
    """The table of tools names every tool with each of its arguments."""

    async def offered(client: Any) -> Any:
        return (await client.list_tools()).tools

    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    stated = {name: re.findall(r"`(\w+)`", arguments) for name, arguments in rows}
    assert {tool.name: sorted(tool.input_schema["properties"]) for tool in in_memory(offered)} == {
        name: sorted(arguments) for name, arguments in stated.items()
    }


def test_the_documented_configurations_start_this_server() -> None:
    """Each entry runs the installed script, the module, uvx with the script, or names an address."""
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts[COMMAND] == f"{MODULE}:main"
    servers = [entry for block in json_blocks() for entry in block.get("mcpServers", {}).values()]
    starts = {_started(entry) for entry in servers}
    assert starts == {"script", "module", "uvx", "http"}


def _started(entry: dict[str, Any]) -> str:
    if "url" in entry:
        assert re.fullmatch(r"http://127\.0\.0\.1:8000/mcp", entry["url"])
        return "http"
    command, arguments = entry["command"], entry.get("args", [])
    if command.endswith(COMMAND):
        return "script"
    if command == "uvx":
        assert "rag-confidence[mcp]" in arguments[arguments.index("--from") + 1]
        assert COMMAND in arguments
        return "uvx"
    assert (Path(command).name, arguments[:2]) == ("python", ["-m", MODULE])
    return "module"


def test_the_installed_script_serves() -> None:
    """The script beside this interpreter is the command of the configurations, and answers."""
    import anyio
    from mcp import Client, StdioServerParameters

    async def main() -> Any:
        with anyio.fail_after(60):
            script = str(Path(sys.executable).parent / COMMAND)
            async with Client(StdioServerParameters(command=script)) as client:
                return client.server_info.name

    assert anyio.run(main) == "rag-confidence"
