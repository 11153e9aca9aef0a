"""`demo`: the gate on made-up retrievals."""

from __future__ import annotations

from rag_confidence import run_demo
from rag_confidence.adapters._cli.options import Alpha, Json, Seed
from rag_confidence.adapters._cli.printing import finish


def demo(seed: Seed = 42, alpha: Alpha = "0.1", as_json: Json = False) -> None:
    """Compare a conformal gate with fixed thresholds on made-up retrievals."""
    found = run_demo(seed, alpha)
    finish(as_json, found.to_dict(), [str(found)])
