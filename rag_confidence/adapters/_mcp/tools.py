"""The list of tools, and the server that offers them."""

from __future__ import annotations

from rag_confidence._predictions import Gate
from rag_confidence.adapters._mcp.audit_tools import audit, demo, traps
from rag_confidence.adapters._mcp.gate_tools import apply_gate, evaluate_gate, fit_gate, plan_calibration
from rag_confidence.adapters._mcp.risk_tools import fit_risk
from rag_confidence.adapters._mcp.score_tools import Scorer
from rag_confidence.adapters._mcp.server import EvidenceServer, build, tool
from rag_confidence.product.policy import MetricPolicy


def build_server(*, gate: Gate | None = None, policy: MetricPolicy | None = None) -> EvidenceServer:
    """An MCP server with every tool.

    Parameters
    ----------
    gate : Gate, optional
        Decides on the KPI in `score_retrieval` and `score_texts`.
    policy : MetricPolicy, optional
        Of these two tools; by default that of `score`, and for texts one fitted to the text model.

    Returns
    -------
    EvidenceServer
    """
    scorer = Scorer(gate, policy)
    return build(
        [
            tool("audit_scores", "Audit scores against labels", audit),
            tool("fit_conformal_gate", "Fit a conformal gate", fit_gate),
            tool("apply_conformal_gate", "Decide on new scores", apply_gate),
            tool("evaluate_conformal_gate", "Evaluate a gate on held-out rows", evaluate_gate),
            tool("find_lexical_traps", "Find lexical traps", traps),
            tool("run_demo", "Run the demonstration", demo),
            tool("fit_risk_gate", "Certify the share that is wrong", fit_risk),
            tool("plan_calibration", "Plan a calibration set", plan_calibration),
            tool("score_retrieval", "Score a retrieval from embeddings", scorer.score_retrieval),
            tool("score_texts", "Score a retrieval from texts", scorer.score_texts),
        ],
        gate,
    )
