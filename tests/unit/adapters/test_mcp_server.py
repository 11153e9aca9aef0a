"""The command line of the MCP server, without the kit that it needs to serve."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rag_confidence import ArtefactError, MetricPolicy, Provenance, fit_conformal_gate
from rag_confidence.adapters import mcp_server
from rag_confidence.adapters._mcp.embedding import WORDLLAMA_POLICY
from rag_confidence.conformal.risk.fit import fit_risk_gate


def test_it_serves_stdio_unless_told_otherwise() -> None:
    """No option is needed by a client that starts the command."""
    options = mcp_server.parse([])
    assert (options.http, options.demo, options.gate, options.policy) == (False, False, None, None)
    options.http = True
    assert mcp_server.address(options) == ("127.0.0.1", 8000)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_is_served(host: str) -> None:
    """The three names of the loopback interface are allowed."""
    mcp_server.check_host(host, allow_remote=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", "127.0.0.2"])
def test_other_machines_are_served_only_on_demand(host: str) -> None:
    """Any other address is refused without --allow-remote: nothing here asks for a password."""
    mcp_server.check_host(host, allow_remote=True)
    with pytest.raises(ValueError, match="--allow-remote"):
        mcp_server.check_host(host, allow_remote=False)


def test_a_policy_is_read_from_its_own_json(tmp_path: Path) -> None:
    """What `to_dict` wrote comes back; another file is refused by name."""
    policy = MetricPolicy(answer_at=70)
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy.to_dict()), encoding="utf-8")
    assert mcp_server.read_policy(file) == policy
    for text in ("not json", "[]", "null"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="`--policy` must be a JSON file of a policy; got"):
            mcp_server.read_policy(file)


def test_a_gate_of_either_kind_is_read(tmp_path: Path) -> None:
    """What `save` wrote comes back as what it was; anything else is refused."""
    scores, labels = [row / 100 for row in range(100)], [0] * 50 + [1] * 50
    file = tmp_path / "gate.json"
    for gate in (fit_conformal_gate(scores, labels), fit_risk_gate(scores, labels, 0.2)):
        gate.save(file)
        read = mcp_server.read_gate(file)
        assert (type(read), read.to_dict()) == (type(gate), gate.to_dict())
    for text in ("not json", "[]", '{"artefact": "model"}'):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ArtefactError, match="`--gate` must be a saved conformal or risk gate; got"):
            mcp_server.read_gate(file)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--http", "--host", "0.0.0.0"], "`--host` must be one of 127.0.0.1, localhost, ::1; got 0.0.0.0."),
        (["--http", "--port", "65536"], "`--port` must be from 0 to 65535; got 65536."),
        (["--host", "127.0.0.1"], "`--host` must come with --http; got 127.0.0.1 alone."),
        (["--port", "0"], "`--port` must come with --http; got 0 alone."),
        (["--gate", "nowhere.json"], "`--gate` must be a file that can be read; got nowhere.json ("),
        (
            ["--policy", "nowhere.json"],
            "`--policy` must be a file that can be read; got nowhere.json (",
        ),
        (["--demo", "--alpha", "2"], "`alpha` must be strictly between 0 and 1; got 2.0."),
        (["--demo", "--seed", "-1"], "`seed` must be an integer of at least 0; got -1."),
    ],
)
def test_options_that_cannot_be_meant_end_the_command(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one line on standard error, nothing on standard output."""
    assert mcp_server.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("rag-confidence-mcp: ")
    assert sentence in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("policy", [None, MetricPolicy(answer_at=70)])
def test_a_gate_of_another_policy_does_not_start(
    policy: MetricPolicy | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every call would be refused: the command says so at once, whether a policy is given or not."""
    arguments = ["--gate", str(_saved_gate(tmp_path, MetricPolicy(answer_at=75)))]
    if policy is not None:
        (tmp_path / "policy.json").write_text(json.dumps(policy.to_dict()), encoding="utf-8")
        arguments += ["--policy", str(tmp_path / "policy.json")]
    assert mcp_server.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "`--gate` must be fitted under the policy of this server; got a gate for policy" in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("policy", [MetricPolicy(), WORDLLAMA_POLICY, MetricPolicy(answer_at=75)])
def test_a_gate_of_the_policy_in_force_is_taken(policy: MetricPolicy, tmp_path: Path) -> None:
    """Without --policy the scoring tools have two policies of their own; a gate for either is of use."""
    gate = mcp_server.read_gate(_saved_gate(tmp_path, policy))
    mcp_server.check_policy(gate, policy)
    if policy.answer_at != 75:
        mcp_server.check_policy(gate, None)


def _saved_gate(folder: Path, policy: MetricPolicy) -> Path:
    scores, labels = [row / 100 for row in range(100)], [0] * 50 + [1] * 50
    made = Provenance.of_kpi(policy.fingerprint, "minilm", "precomputed")
    fit_conformal_gate(scores, labels, provenance=made).save(folder / "gate.json")
    return folder / "gate.json"


def test_a_port_in_use_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A second server on the port of the first is told so in one line."""
    with mcp_server.listening("127.0.0.1", 0) as first:
        assert mcp_server.main(["--http", "--port", str(first.getsockname()[1])]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1


def test_without_the_kit_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On an install without the extra `mcp` the command ends with one sentence."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert mcp_server.main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "pip install 'rag-confidence[mcp]'" in printed.err


def test_the_demonstration_needs_no_kit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--demo` runs with the core dependencies alone."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert mcp_server.main(["--demo"]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(("made", "what"), [({"profile": "p"}, "corpus profile"), ({"model": "m"}, "model")])
def test_a_gate_that_needs_more_than_the_server_has_is_refused_at_the_start(
    made: dict[str, str], what: str
) -> None:
    """No tool scores with a profile or a model, so a gate for such scores would refuse every call."""
    gate = fit_conformal_gate([0.1] * 20 + [0.9] * 20, [0] * 20 + [1] * 20, provenance=Provenance(**made))
    with pytest.raises(ValueError, match=f"^`--gate` must be .* without a {what}; got "):
        mcp_server.check_policy(gate, None)
