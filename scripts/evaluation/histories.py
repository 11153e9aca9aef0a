"""Priors that have not seen the set they are tested on.

ConfidenceModel starts from a prior that was learned on public sets, and the same sets are evaluated here. So
for each of them a prior is learned anew from the others; a set that the shipped prior has not seen gets it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _data import SETS, FloatArray

from evaluation.collection import has_embedder, read_collection
from evaluation.ours import learned_prior, signals_of
from evaluation.plan import Effort, digest_of
from evaluation.samples import view_of
from evaluation.strata import Draw, natural

LEAST_SETS = 2
_LIMIT = 1200


@dataclass(frozen=True)
class Deployment:
    """The natural rows of one set under one embedder, to learn a prior from."""

    place: Path
    embedder: str
    k: int

    @property
    def label(self) -> str:
        """For progress, and the name of the file."""
        return f"{self.place.name} {self.embedder} k{self.k} signals"


def deployments(places: Sequence[Path], embedders: Sequence[str], ks: Sequence[int]) -> list[Deployment]:
    """Those of the sets that the shipped prior has seen; none where too few are there to leave one out."""
    seen = [place for place in places if place.name in SETS]
    if len(seen) <= LEAST_SETS:
        return []
    return [
        Deployment(place, embedder, k)
        for k in ks
        for place in seen
        for embedder in embedders
        if has_embedder(place, embedder)
    ]


def key(deployment: Deployment, effort: Effort) -> str:
    """Hash of all that its signals depend on."""
    return digest_of(deployment.place, (), deployment.embedder, effort)


def measured(deployment: Deployment, effort: Effort) -> dict[str, Any]:
    """Signals (n, p) and labels (n,) of the judged queries, as plain values."""
    data = read_collection(deployment.place, deployment.embedder)
    limit = _LIMIT if effort.limit is None else min(effort.limit, _LIMIT)
    draw = Draw(deployment.k, limit, effort.seed)
    rows = natural(data, (), draw)
    view, _ = view_of(data, rows, draw, effort)
    values = signals_of(view)
    return {"values": np.where(np.isnan(values), None, values).tolist(), "labels": rows.sufficient.tolist()}


def priors(found: Mapping[Deployment, Mapping[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """For each set and k the prior learned from the other sets, as plain values."""
    wanted = dict.fromkeys((one.place.name, one.k) for one in found)
    return {at: learned_prior(_others(found, *at)) for at in wanted}


def fingerprint(prior: Mapping[str, Any] | None) -> str:
    """Short hash of a prior, for the key of what was measured with it."""
    return (
        "shipped" if prior is None else hashlib.sha256(repr(sorted(prior.items())).encode()).hexdigest()[:16]
    )


def _others(
    found: Mapping[Deployment, Mapping[str, Any]], name: str, k: int
) -> list[tuple[FloatArray, FloatArray]]:
    return [
        (np.array(one["values"], dtype=np.float64), np.array(one["labels"], dtype=np.float64))
        for deployment, one in found.items()
        if deployment.k == k and deployment.place.name != name
    ]
