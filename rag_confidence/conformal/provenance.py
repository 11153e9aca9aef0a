"""Where scores come from, as a user hands it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from rag_confidence._options import check_text
from rag_confidence._types import Provenance

_NAMES = tuple(field.name for field in fields(Provenance))


def check_provenance(provenance: Provenance | Mapping[str, str | None] | None) -> Provenance | None:
    """A `Provenance`, from one or from a mapping of its entries."""
    if provenance is None or isinstance(provenance, Provenance):
        return provenance
    if not isinstance(provenance, Mapping):
        raise TypeError(
            f"`provenance` must be a Provenance or a mapping; got {type(provenance).__name__}. "
            "Pass MetricsBatch.provenance."
        )
    odd = sorted(map(str, set(provenance) - set(_NAMES)))
    if odd:
        raise ValueError(f"`provenance` must name {', '.join(_NAMES)}; got {odd}. Drop the others.")
    for name, value in provenance.items():
        check_text(f"provenance[{name!r}]", value)
    return Provenance(**provenance)
