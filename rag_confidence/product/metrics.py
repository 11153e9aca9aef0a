"""RagConfidenceMetrics: one assessed retrieval in words and numbers, and its JSON record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from rag_confidence._types import Decision, Guarantee, Provenance, ReasonCode, Signal, Verdict
from rag_confidence.product.narrative import Contribution, contributions, narrative
from rag_confidence.product.record import KEY_NAMES, KEYS, SCHEMA_VERSION, check_value

_SNIPPET = 160


@dataclass(frozen=True)
class Support:
    """One supporting passage: its place in the served list, its cosine, and its text if given."""

    index: int
    cosine: float
    snippet: str | None


def supported(leaders: Iterable[tuple[int, float]], texts: Sequence[str] | None) -> tuple[Support, ...]:
    """Support from (served position, cosine) pairs; a position of -1 pads."""
    return tuple(
        Support(place, cosine, None if texts is None else _snippet(texts[place]))
        for place, cosine in leaders
        if place >= 0
    )


def _copied(record: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that shares nothing that could be changed."""
    whole = {**record, "warnings": [*record["warnings"]]}
    if record["model_contributions"] is not None:
        whole["model_contributions"] = {**record["model_contributions"]}
        whole["model_out_of_range"] = [*record["model_out_of_range"]]
    if record["decision"] is not None:
        kept = record["prediction_set"]
        whole["prediction_set"] = None if kept is None else [*kept]
        whole["guarantee"] = {k: copy(value) for k, value in record["guarantee"].items()}
    return whole


def _named(keys: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, keys))[:8])


def _snippet(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SNIPPET else line[: _SNIPPET - 3].rstrip() + "..."


@dataclass(frozen=True, repr=False)
class RagConfidenceMetrics:
    """How far to trust one retrieval, and what to do with it.

    Attributes
    ----------
    verdict : Verdict
        ANSWER, REVIEW, ABSTAIN or ESCALATE; equal to the plain string.
    verdict_reason, verdict_action : str
        A sentence for the user, and what the verdict asks serving code to do.
    reason_code : ReasonCode
        The row of the verdict table that decided.
    policy_verdict : Verdict
        What the policy alone would say; equal to `verdict` without a gate.
    decision : Decision or None
        ACCEPT, REJECT or ABSTAIN of the gate; None without a gate, and where there was nothing to score.
    primary_risk : str
        The signal that clears its floor by least; "none" when nothing was assessed.
    kpi : float
        Unrounded, in [0, 1].
    support : tuple of Support
        The best distinct passages. Not part of the record.
    record : Mapping
        What `to_dict` returns a copy of.

    Notes
    -----
    `retrieval_confidence` and the five signals are on 0..100, unrounded, and None when they were not
    assessed; `to_dict` rounds them for people.
    """

    record: Mapping[str, Any]
    support: tuple[Support, ...] = ()
    query_text: str | None = field(default=None, repr=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RagConfidenceMetrics:
        """The metrics that `to_dict` wrote; texts and support are not in the record.

        Raises
        ------
        ValueError
            For another schema version, for missing or unknown keys, and for values out of range.
        """
        if not isinstance(record, Mapping):
            raise TypeError(
                f"`record` must be a dictionary; got {type(record).__name__}. Parse the JSON text first."
            )
        version = record.get("schema_version")
        if version != SCHEMA_VERSION:
            raise ValueError(
                f"`record` must have schema_version {SCHEMA_VERSION!r}; got {version!r}. "
                "Read it with the version of rag-confidence that wrote it."
            )
        missing, unknown = set(KEY_NAMES) - set(record), set(record) - set(KEY_NAMES)
        if missing or unknown:
            got = f"missing: {_named(missing) or 'none'}; unknown: {_named(unknown) or 'none'}"
            raise ValueError(
                f"`record` must have the keys of the JSON contract; got {got}. "
                'Keep a to_dict() whole, under a key of its own: {"time": ..., "rag": m.to_dict()}.'
            )
        for key in KEYS:
            check_value(key, record[key.name])
        return cls(_copied({name: record[name] for name in KEY_NAMES}))

    def __repr__(self) -> str:
        return (
            f"RagConfidenceMetrics(verdict={self.verdict.value}, kpi={self.kpi:.3f}, "
            f"reason_code={self.reason_code.value}, primary_risk={self.primary_risk})"
        )

    @property
    def verdict(self) -> Verdict:
        """What serving code should do."""
        return Verdict(self.record["verdict"])

    @property
    def policy_verdict(self) -> Verdict:
        """What the policy alone would say."""
        return Verdict(self.record["policy_verdict"])

    @property
    def decision(self) -> Decision | None:
        """What the gate decided."""
        word = self.record["decision"]
        return None if word is None else Decision[word]

    @property
    def prediction_set(self) -> tuple[int, ...] | None:
        """Labels that the gate could not exclude; None without a gate, and for one without sets."""
        kept = self.record["prediction_set"]
        return None if kept is None else tuple(kept)

    @property
    def guarantee(self) -> Guarantee | None:
        """What the gate bounds, under which assumption, and what it does not claim."""
        plain = self.record["guarantee"]
        return None if plain is None else Guarantee.from_dict(plain)

    @property
    def provenance(self) -> Provenance:
        """How the KPI was made; hand it to `fit_conformal_gate`."""
        return Provenance.of_kpi(
            self.record["policy_fingerprint"],
            self.record["embedder"],
            self.record["evidence.embedding_backend"],
            self.record["profile_fingerprint"],
        )

    @property
    def verdict_action(self) -> str:
        """The action that the verdict asks for."""
        return str(self.record["verdict_action"])

    @property
    def verdict_reason(self) -> str:
        """One sentence that a user can be shown."""
        return str(self.record["verdict_reason"])

    @property
    def reason_code(self) -> ReasonCode:
        """The row of the verdict table that decided."""
        return ReasonCode(self.record["reason_code"])

    @property
    def primary_risk(self) -> str:
        """The signal that clears its floor by least, or "none"."""
        return str(self.record["primary_risk"])

    @property
    def kpi(self) -> float:
        """The KPI in [0, 1], to twelve decimals."""
        return float(self.record["kpi"])

    @property
    def p_sufficient(self) -> float | None:
        """What the calibrator made of the KPI, or the model of the signals; None without either."""
        value = self.record["p_sufficient"]
        return None if value is None else float(value)

    @property
    def retrieval_confidence(self) -> float:
        """The KPI on 0..100, unrounded."""
        return 100.0 * self.kpi

    @property
    def confidence_band(self) -> str:
        """HIGH, MEDIUM or LOW."""
        return str(self.record["confidence_band"])

    @property
    def topical_grounding(self) -> float | None:
        """Whether the query is about the passages at all, 0..100."""
        return self._percent(Signal.TOPICAL_GROUNDING)

    @property
    def answer_localization(self) -> float | None:
        """Whether the query hits one coherent region, 0..100."""
        return self._percent(Signal.ANSWER_LOCALIZATION)

    @property
    def support_cohesion(self) -> float | None:
        """Whether the passages hold together, 0..100."""
        return self._percent(Signal.SUPPORT_COHESION)

    @property
    def evidence_consistency(self) -> float | None:
        """Whether the passages resemble each other, 0..100; not whether they agree."""
        return self._percent(Signal.EVIDENCE_CONSISTENCY)

    @property
    def query_robustness(self) -> float | None:
        """How far the query can turn before the top passage changes, 0..100."""
        return self._percent(Signal.QUERY_ROBUSTNESS)

    @property
    def grounding_assessed(self) -> bool:
        """Whether absolute cosines were taken to mean anything."""
        return bool(self.record["grounding_assessed"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was capped, dropped or not assessed, in sentences."""
        return tuple(self.record["warnings"])

    def to_dict(self) -> dict[str, Any]:
        """The flat JSON record: plain Python values, no nan, null where a value does not apply.

        Every key is described in docs/json_contract.md and by `json_schema`.
        """
        return _copied(self.record)

    def explain(self) -> tuple[Contribution, ...]:
        """How the KPI comes about: one `Contribution` a signal, the costliest first."""
        return contributions(self.record)

    def narrate(self, *, snippets: bool = False) -> str:
        """The assessment in a few lines for people, with the supporting passages on request."""
        passages = [(s.index, s.cosine, s.snippet) for s in self.support] if snippets else []
        return narrative(self.record, self.query_text, passages)

    def _percent(self, signal: Signal) -> float | None:
        value = self.record[f"signals.{signal}"]
        return None if value is None else 100.0 * float(value)
