"""Words and array types that every layer shares."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
Mask: TypeAlias = NDArray[np.bool_]

InvalidRows: TypeAlias = Literal["raise", "drop"]
LoopTest: TypeAlias = Literal["off", "ratio", "surrogate"]
Backend: TypeAlias = Literal["precomputed", "lexical"]


class Verdict(StrEnum):
    """What serving code should do with a retrieval."""

    ANSWER = "ANSWER"
    REVIEW = "REVIEW"
    ABSTAIN = "ABSTAIN"
    ESCALATE = "ESCALATE"


class Decision(StrEnum):
    """What a conformal gate decides on a retrieval."""

    ACCEPT = "accept"
    REJECT = "reject"
    ABSTAIN = "abstain"


class ReasonCode(StrEnum):
    """The row of the verdict table, or the outcome of the gate, that decided."""

    NO_PASSAGES = "no_passages"
    DEGENERATE_QUERY = "degenerate_query"
    OFF_TOPIC = "off_topic"
    CONFLICTING = "conflicting"
    WEAK = "weak"
    AMBIGUOUS = "ambiguous"
    DRIVER_FLOOR = "driver_floor"
    SHAPE_ONLY = "shape_only"
    HEALTHY = "healthy"
    GATE_ACCEPT = "gate_accept"
    GATE_REJECT = "gate_reject"
    GATE_AMBIGUOUS = "gate_ambiguous"
    GATE_EMPTY_SET = "gate_empty_set"
    GATE_UNFIT_GROUP = "gate_unfit_group"
    GATE_INFINITE = "gate_infinite"


class Signal(StrEnum):
    """The five signals that make up the KPI."""

    TOPICAL_GROUNDING = "topical_grounding"
    ANSWER_LOCALIZATION = "answer_localization"
    SUPPORT_COHESION = "support_cohesion"
    EVIDENCE_CONSISTENCY = "evidence_consistency"
    QUERY_ROBUSTNESS = "query_robustness"


@dataclass(frozen=True)
class Provenance:
    """How scores were made: hashes and names that are compared for equality, never read.

    Attributes
    ----------
    policy, profile, model, embedder : str or None
        Fingerprints of the policy, of the corpus profile and of the learned model, and the name of the
        embedder ("lexical:..." for lexical vectors); None where there is none.
    """

    policy: str | None = None
    profile: str | None = None
    model: str | None = None
    embedder: str | None = None

    @classmethod
    def of_kpi(
        cls, policy: str, embedder: str | None, backend: Backend, profile: str | None = None
    ) -> Provenance:
        """Of a KPI made under a policy, from the vectors of an embedder, against a corpus profile."""
        name = f"lexical:{embedder or ''}" if backend == "lexical" else embedder
        return cls(policy=policy, profile=profile, embedder=name)

    def to_dict(self) -> dict[str, str | None]:
        """The four entries as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Guarantee:
    """What is bounded, under which assumption, by which data, and what is not claimed.

    Attributes
    ----------
    kind : str
        "marginal", "pac", "selective_risk", "joint", "session" or "none"; "none" claims nothing.
    holds : bool
        Whether anything is claimed.
    event : str
        The error whose probability is bounded.
    bound : float or None
        The bound on that probability; None when nothing is claimed.
    conditioning : str
        Given what, and averaged over what, the bound holds.
    assumption : str
        What must be true of the new score and the calibration set.
    alpha, alpha_reject, delta : float or None
        Levels of a false ACCEPT and of a false REJECT, and the chance that an unlucky calibration set
        breaks them. For a guard that rests on good calls alone, `alpha` is that of a false ABSTAIN.
    n0, n1 : int
        Insufficient and sufficient rows that the thresholds rest on; for tool calls, bad and good ones.
    group : str or int or None
        The group that the bound is for.
    collected : tuple of str, or None
        First and last day of the calibration set.
    labeling_source : str or None
        Who or what decided on the labels.
    negatives : tuple of (str, int)
        Kinds of insufficient rows and how many of each.
    not_claimed : tuple of str
        What a reader might believe and should not.
    sentence : str
        All of it in one readable sentence.
    """

    kind: str
    holds: bool
    event: str
    bound: float | None
    conditioning: str
    assumption: str
    alpha: float | None
    alpha_reject: float | None
    delta: float | None
    n0: int
    n1: int
    group: str | int | None
    collected: tuple[str, str] | None
    labeling_source: str | None
    negatives: tuple[tuple[str, int], ...]
    not_claimed: tuple[str, ...]
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain = self._plain
        return {
            **plain,
            **{key: copy(value) for key, value in plain.items() if isinstance(value, dict | list)},
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Guarantee:
        """The guarantee that `to_dict` wrote."""
        days = plain["collected"]
        tuples = {
            "collected": None if days is None else (days[0], days[1]),
            "negatives": tuple(plain["negatives"].items()),
            "not_claimed": tuple(plain["not_claimed"]),
        }
        return cls(**{**plain, **tuples})

    @cached_property
    def _plain(self) -> dict[str, Any]:
        # A gate states the same guarantee with every decision: it is taken apart once.
        plain = {name: getattr(self, name) for name in GUARANTEE_KEYS}
        plain["collected"] = None if self.collected is None else [*self.collected]
        plain["negatives"] = dict(self.negatives)
        plain["not_claimed"] = [*self.not_claimed]
        return plain


GUARANTEE_KEYS: tuple[str, ...] = tuple(field.name for field in fields(Guarantee))
