"""The payload of a saved `ConfidenceModel`, written and read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rag_confidence.conformal.reading import read_rows
from rag_confidence.conformal.rows import Rows
from rag_confidence.learning.crossfit import ModelReport
from rag_confidence.learning.model_fit import Fitted
from rag_confidence.learning.prior import SIGNALS
from rag_confidence.learning.terms import Term

KIND = "confidence_model"
_FRACTIONS = ("auroc", "auroc_low", "auroc_high", "auroc_kpi", "brier", "brier_base")


def payload_of(fitted: Fitted) -> dict[str, Any]:
    """Plain values, ready for JSON."""
    return {
        "intercept": fitted.intercept,
        "terms": [asdict(term) for term in fitted.terms],
        "unused": [*fitted.unused],
        "prior_fingerprint": fitted.prior_fingerprint,
        "report": fitted.report.to_dict(),
        "rows": fitted.rows.to_dict(),
    }


def read_payload(payload: Mapping[str, Any]) -> Fitted:
    """What `payload_of` wrote; ValueError for what no fit could have written."""
    terms = tuple(_term(plain) for plain in payload["terms"])
    unused, rows = tuple(payload["unused"]), read_rows(payload["rows"])
    names = [term.name for term in terms] + [*unused]
    if not terms or len(set(names)) < len(names) or not all(name.startswith(SIGNALS) for name in names):
        raise ValueError("names that are no distinct signals")
    if not isinstance(payload["prior_fingerprint"], str):
        raise ValueError("a prior fingerprint that is no text")
    return Fitted(
        intercept=_finite(payload["intercept"]),
        terms=terms,
        unused=unused,
        prior_fingerprint=payload["prior_fingerprint"],
        report=_report(payload["report"], rows),
        rows=rows,
    )


def _term(plain: Mapping[str, Any]) -> Term:
    numbers = {name: _finite(plain[name]) for name in ("coefficient", "centre", "scale", "low", "high")}
    term = Term(name=plain["name"], n=_count(plain["n"]), **numbers)
    # The centre is a mean: rounding can push it past an end of the range, but not by much.
    slack = 1e-9 * max(abs(term.low), abs(term.high))
    if not (term.scale > 0.0 and term.low - slack <= term.centre <= term.high + slack and term.n > 1):
        raise ValueError(f"a term that no fit could have: {term}")
    if term.low >= term.high:
        raise ValueError(f"a signal that does not vary: {term.name!r}")
    return term


def _report(plain: Mapping[str, Any], rows: Rows) -> ModelReport:
    counts = [_count(plain[name]) for name in ("n0", "n1", "n_unscored", "folds")]
    fractions = [None if plain[name] is None else _finite(plain[name]) for name in _FRACTIONS]
    report = ModelReport(*counts, *fractions)
    scores = np.concatenate([rows.scores0, rows.scores1])
    if (report.n0, report.n1) != (len(rows.scores0), len(rows.scores1)) or not (report.n0 and report.n1):
        raise ValueError("counts that are not those of the rows")
    if not ((scores >= 0.0) & (scores <= 1.0)).all() or rows.provenance is None:
        raise ValueError("rows whose scores are no predictions of a model")
    known = [value for value in fractions if value is not None]
    if len(known) != (len(_FRACTIONS) if report.folds else 0) or not all(0.0 <= v <= 1.0 for v in known):
        raise ValueError("a report that no cross-fitting could have written")
    return report


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"no finite number: {value!r:.80}")
    return float(value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"no count: {value!r:.80}")
    return value
