"""What must hold for every retrieval, checked on real ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from _data import FloatArray, RetrievalSet, unit_rows
from _scored import Scored
from _tables import Check, Section

from rag_confidence import MetricPolicy, RagConfidenceMetrics, json_schema, score, score_many

RTOL = 1e-9
_SLIGHTLY = 1e-6
_DUPLICATE = 0.995

Retrieval = tuple[FloatArray, FloatArray, MetricPolicy]


def invariants(scored: Sequence[Scored], sample: int, seed: int) -> Section:
    """Equality of one and many, what scores may not depend on, the flip angle, and the JSON record."""
    rng = np.random.default_rng(seed)
    found = [retrieval for s in scored for retrieval in _drawn(s, sample, rng)]
    records = [score(query, passages, policy=policy) for query, passages, policy in found]
    checks = [
        _many_is_one(scored, sample),
        _unchanged(
            "permuting the passages changes no number", found, records, lambda q, p: (q, rng.permutation(p))
        ),
        _unchanged(
            "rescaling query and passages changes no number",
            found,
            records,
            lambda q, p: _rescaled(q, p, rng),
        ),
        _flips(found, records),
        _holds(found, records, rng),
        _round_trip(records),
    ]
    title = f"Invariants on {len(found)} real retrievals"
    if find_spec("jsonschema") is None:
        return Section(title, (), checks, skipped="the JSON Schema, because jsonschema is not installed")
    return Section(title, (), [*checks, _validates(records)])


def _drawn(scored: Scored, sample: int, rng: np.random.Generator) -> list[Retrieval]:
    data = scored.data
    chosen = rng.permutation(len(data.queries))[:sample]
    queries, corpus = data.queries.astype(np.float64), data.corpus.astype(np.float64)
    return [(queries[i], corpus[data.rows[i]], scored.policy) for i in chosen]


def _many_is_one(scored: Sequence[Scored], sample: int) -> Check:
    """Numbers to 1e-9 relative; words exactly."""
    differ, total = [], 0
    for s in scored:
        queries, passages = s.data.queries[:sample], s.data.passages()[:sample]
        for one, query, listed in zip(
            score_many(queries, passages, policy=s.policy), queries, passages, strict=True
        ):
            total += 1
            alone = score(query, listed, policy=s.policy)
            differ += [s.data.label] if _differences(one.to_dict(), alone.to_dict()) else []
    return Check("score_many equals score", not differ, f"{len(differ)} of {total} differ beyond {RTOL:g}")


def _differences(a: dict[str, Any], b: dict[str, Any], tolerance: float = RTOL) -> list[str]:
    return [key for key in a if not _equal(a[key], b[key], tolerance)]


def _equal(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return bool(a == b)


def _unchanged(
    statement: str,
    found: Sequence[Retrieval],
    records: Sequence[RagConfidenceMetrics],
    change: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
) -> Check:
    differ: dict[str, int] = {}
    for (query, passages, policy), before in zip(found, records, strict=True):
        after = score(*change(query, passages), policy=policy)
        for key in _differences(before.to_dict(), after.to_dict()):
            differ[key] = differ.get(key, 0) + 1
    detail = ", ".join(f"{key} in {count}" for key, count in differ.items()) or f"all keys within {RTOL:g}"
    return Check(statement, not differ, detail)


def _rescaled(
    query: FloatArray, passages: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    factors = 10.0 ** rng.uniform(-6.0, 6.0, len(passages) + 1)
    return query * factors[0], passages * factors[1:, None]


def _flips(found: Sequence[Retrieval], records: Sequence[RagConfidenceMetrics]) -> Check:
    """Turned to the nearest rival, a little less than the angle keeps the top, a little more does not."""
    wrong, turned = 0, 0
    for (query, passages, _), metrics in zip(found, records, strict=True):
        angle = math.radians(metrics.to_dict()["signals.flip_angle"] or 0.0)
        if angle < _SLIGHTLY:
            continue
        turned += 1
        q, distinct = unit_rows(query[None])[0], _distinct(query, passages)
        towards = _towards_runner_up(q, distinct)
        before = _top(_turned(q, towards, angle * (1.0 - _SLIGHTLY)), distinct)
        after = _top(_turned(q, towards, angle * (1.0 + _SLIGHTLY)), distinct)
        wrong += before != 0 or after == 0
    return Check(
        "the flip angle, and no smaller turn the same way, changes the top passage",
        wrong == 0,
        f"{wrong} wrong of {turned}; {len(found) - turned} tied at the top",
    )


def _holds(
    found: Sequence[Retrieval], records: Sequence[RagConfidenceMetrics], rng: np.random.Generator
) -> Check:
    """Random turns by 0.99 of the angle keep the top passage, whichever way they go."""
    wrong = 0
    for (query, passages, _), metrics in zip(found, records, strict=True):
        angle = 0.99 * math.radians(metrics.to_dict()["signals.flip_angle"] or 0.0)
        q, distinct = unit_rows(query[None])[0], _distinct(query, passages)
        for towards in rng.standard_normal((8, len(q))):
            wrong += angle > _SLIGHTLY and _top(_turned(q, towards, angle), distinct) != 0
    return Check(
        "no random turn below the flip angle changes the top passage",
        wrong == 0,
        f"{wrong} do of {8 * len(found)}",
    )


def _distinct(query: FloatArray, passages: FloatArray) -> FloatArray:
    """Unit passages in order of cosine, near duplicates of a better one left out."""
    unit = unit_rows(passages)
    kept: list[FloatArray] = []
    for row in unit[np.argsort(-(unit @ query), kind="stable")]:
        if all(float(row @ other) <= _DUPLICATE for other in kept):
            kept.append(row)
    return np.array(kept)


def _towards_runner_up(query: FloatArray, distinct: FloatArray) -> FloatArray:
    apart = unit_rows(distinct[0] - distinct[1:])
    return np.asarray(-apart[np.argmin(apart @ query)])


def _turned(query: FloatArray, towards: FloatArray, angle: float) -> FloatArray:
    tangent = towards - (towards @ query) * query
    return np.asarray(math.cos(angle) * query + math.sin(angle) * tangent / np.linalg.norm(tangent))


def _top(query: FloatArray, distinct: FloatArray) -> int:
    return int(np.argmax(distinct @ query))


def _round_trip(records: Sequence[RagConfidenceMetrics]) -> Check:
    wrong = 0
    for metrics in records:
        text = json.dumps(metrics.to_dict(), allow_nan=False)
        wrong += RagConfidenceMetrics.from_dict(json.loads(text)).to_dict() != metrics.to_dict()
    return Check("every record survives JSON without nan", wrong == 0, f"{wrong} changed of {len(records)}")


def _validates(records: Sequence[RagConfidenceMetrics]) -> Check:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    validator = Draft202012Validator(json_schema())
    wrong = sum(not validator.is_valid(metrics.to_dict()) for metrics in records)
    return Check(
        "every record validates against the JSON Schema", wrong == 0, f"{wrong} invalid of {len(records)}"
    )


def describe(data: RetrievalSet) -> str:
    """Name, size and dimension of a set for the head of the report."""
    return (
        f"{data.label}: {len(data.queries)} queries, {len(data.corpus)} passages, d = {data.queries.shape[1]}"
    )
