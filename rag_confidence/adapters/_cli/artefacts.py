"""Saved gates, of either kind, and the policy that goes with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from rag_confidence import ArtefactError, ConformalGate, MetricPolicy, RiskGate
from rag_confidence.adapters._cli.reading import read_json
from rag_confidence.conformal.gate.fitted import KIND as CONFORMAL_GATE
from rag_confidence.conformal.risk.fitted import KIND as RISK_GATE

SavedGate: TypeAlias = ConformalGate | RiskGate

LOADERS: dict[str, Callable[[Path], SavedGate]] = {
    CONFORMAL_GATE: ConformalGate.load,
    RISK_GATE: RiskGate.load,
}


def load_gate(path: Path) -> SavedGate:
    """The gate in a file that `save` wrote."""
    document = read_json(path)
    kind = document.get("artefact") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in LOADERS:
        raise ArtefactError(
            f"`{path}` must be a saved conformal or risk gate; got {kind or 'something else'!r}. "
            "Pass a file that `gate fit --out` wrote."
        )
    return LOADERS[kind](path)


def load_policy(path: Path) -> MetricPolicy:
    """The policy in a JSON file that holds its `to_dict()`."""
    constants = read_json(path)
    if not isinstance(constants, dict):
        raise ValueError(
            f"`{path}` must hold a policy; got {type(constants).__name__}. "
            "Write MetricPolicy.to_dict() to it."
        )
    return MetricPolicy.from_dict(constants)
