"""`demo`: the gate on made-up retrievals."""

from __future__ import annotations

from rag_confidence import DemoReport, run_demo
from rag_confidence.adapters._cli.options import Alpha, Json, Seed
from rag_confidence.adapters._cli.printing import Part, finish, table

COLUMNS = ("method", "FSR", "true\nFSR", "risk", "suffi-\ncient", "accept", "reject", "abstain", "conflict")
LEGEND = (
    "FSR: insufficient rows that are accepted; true FSR: the same for all future rows, known here. risk: "
    "accepted rows that are insufficient. sufficient: sufficient rows that are accepted. accept, reject, "
    "abstain: of all rows. conflict: rows that are strange for both labels."
)


def demo(seed: Seed = 42, alpha: Alpha = "0.1", as_json: Json = False) -> None:
    """Compare a conformal gate with fixed thresholds on made-up retrievals."""
    found = run_demo(seed, alpha)
    finish(as_json, found.to_dict(), demo_page(found))


def demo_page(found: DemoReport) -> list[Part]:
    """The demonstration for people."""
    rows = found.n0 + found.n1, found.test_n0 + found.test_n1
    lines = [
        (
            one.name,
            one.false_sufficiency_rate,
            one.true_false_sufficiency_rate,
            one.selective_risk,
            one.sufficient_accepted,
            one.acceptance_rate,
            one.rejection_rate,
            one.abstention_rate,
            one.conflict_rate,
        )
        for one in found.methods
    ]
    return [
        f"Made-up retrievals, seed {found.seed}, alpha {found.alpha:g}: {rows[0]} calibration rows, "
        f"{rows[1]} test rows.",
        "",
        table(COLUMNS, lines, left=("method",), digits=3),
        "",
        LEGEND,
        "",
        found.sentence,
    ]
