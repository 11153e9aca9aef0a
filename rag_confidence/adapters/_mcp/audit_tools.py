"""The audit tools, and the demonstration."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, StrictInt

from rag_confidence import audit_scores, find_lexical_traps, run_demo
from rag_confidence.adapters._mcp.audit_models import AuditResult, DemoResult, TrapsResult
from rag_confidence.adapters._mcp.limits import (
    History,
    Judged,
    Names,
    Number,
    TextRows,
    check_texts,
    check_unit,
)
from rag_confidence.adapters._mcp.results import finite

CURVE_POINTS = 21


def audit(
    scores: History,
    labels: Judged,
    threshold: Annotated[Number, Field(description="Scores of at least this are accepted.")] = 0.5,
    num_bins: Annotated[StrictInt, Field(description="Bins of the calibration errors.")] = 10,
    target_risk: Annotated[
        Number, Field(description="Share of insufficient rows among the accepted that is tolerated.")
    ] = 0.10,
) -> AuditResult:
    """Audit scores against labels: calibration (Brier, ECE), ranking (AUROC), risk-coverage, warnings.

    Describes these rows and promises nothing for new ones; for a cut with a bound fit a gate.
    """
    check_unit("scores", scores)
    found = audit_scores(scores, labels, threshold, num_bins, target_risk=target_risk)
    curve = found.risk_coverage.to_dict(CURVE_POINTS)
    return AuditResult.model_validate(found.to_dict() | {"risk_coverage": curve})


def demo(
    seed: Annotated[StrictInt, Field(description="Seed of the made-up rows, not negative.")] = 42,
    alpha: Annotated[Number, Field(description="Level of the gate, in (0, 1).")] = 0.10,
) -> DemoResult:
    """Demonstrate the gate on 2,000 made-up retrievals, against fixed thresholds of 0.6, 0.7 and 0.8."""
    found = run_demo(seed, alpha)
    plain = found.to_dict()
    plain |= {"q0_infinite": math.isinf(found.q0), "q1_infinite": math.isinf(found.t1)}
    del plain["t1"]
    return DemoResult.model_validate(plain | {"q1": finite(1.0 - found.t1), "table": found.table()})


def traps(
    scores: History,
    labels: Judged,
    threshold: Annotated[Number, Field(description="Scores of at least this are accepted.")] = 0.70,
    item_ids: Annotated[Names | None, Field(description="A name for each row.")] = None,
    queries: Annotated[TextRows | None, Field(description="The question of each row.")] = None,
    passages: Annotated[TextRows | None, Field(description="The best passage of each row.")] = None,
    max_traps: Annotated[StrictInt, Field(ge=1, le=1000, description="Most rows to return.")] = 100,
) -> TrapsResult:
    """Find lexical traps: rows that score high although their evidence is insufficient. Read them."""
    check_unit("scores", scores)
    for name, texts in (("queries", queries), ("passages", passages)):
        check_texts(name, texts)
    found = find_lexical_traps(scores, labels, threshold, item_ids, queries, passages)
    plain = found.to_dict()
    left = len(found) - max_traps
    plain["traps"] = plain["traps"][:max_traps]
    plain["n_traps"] = len(found)
    plain["warnings"] = [f"{left} traps were left out; raise max_traps."] if left > 0 else []
    return TrapsResult.model_validate(plain)
