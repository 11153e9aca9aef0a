"""MetricsBatch: assessed retrievals as columns, each of which reads as RagConfidenceMetrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from rag_confidence._types import FloatArray, IntArray, Provenance, Signal
from rag_confidence.engine.signals import SIGNAL_NAMES, Signals
from rag_confidence.product.assemble import Call, Row, build_record, signal_columns, signal_values
from rag_confidence.product.drivers import Drivers
from rag_confidence.product.gating import Gated, verdicts
from rag_confidence.product.metrics import RagConfidenceMetrics, supported
from rag_confidence.product.verdict import SIGNALS

_RISKS = np.array([*(signal.value for signal in SIGNALS), "none"])


@dataclass(frozen=True, eq=False)
class Context:
    """What was noted on single retrievals of a batch.

    Arrays have shape (Q,); the mappings hold only the queries they have something on.
    """

    k_requested: Sequence[int | None]
    k_returned: IntArray
    n_dropped: IntArray
    contradiction: FloatArray
    p_sufficient: FloatArray
    warnings: Mapping[int, list[str]]
    questions: Mapping[int, str]
    texts: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class MetricsBatch:
    """Q assessed retrievals, held as columns.

    ``batch[i]`` and iteration give `RagConfidenceMetrics`, a slice gives a list of them. The columns are
    what dashboards and calibration read.

    Attributes
    ----------
    signals : Signals
        What the engine measured.
    drivers : Drivers
        Fractions in [0, 1] and the weights as used.
    codes, risks : ndarray of int, shape (Q,)
        Rows of the policy's verdict table, and primary risks (-1 for none).
    leaders, leader_cosines : ndarray, shape (Q, m)
        Served positions of the best distinct passages (-1 pads), and their cosines (nan pads).
    call : Call
        The policy and the options of the call.
    context : Context
        What was noted on single retrievals.
    gated : Gated or None
        Decisions of the gate, if one was given.
    """

    signals: Signals
    drivers: Drivers
    codes: IntArray
    risks: IntArray
    leaders: IntArray
    leader_cosines: FloatArray
    call: Call
    context: Context
    gated: Gated | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        words, counts = np.unique(self.verdict, return_counts=True)
        tally = ", ".join(f"{count} {word}" for word, count in zip(words, counts, strict=True))
        return f"MetricsBatch({len(self)} retrievals: {tally or 'none'})"

    @overload
    def __getitem__(self, index: int) -> RagConfidenceMetrics: ...

    @overload
    def __getitem__(self, index: slice) -> list[RagConfidenceMetrics]: ...

    def __getitem__(self, index: int | slice) -> RagConfidenceMetrics | list[RagConfidenceMetrics]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        position = range(len(self))[index]
        leaders = zip(self.leaders[position].tolist(), self.leader_cosines[position].tolist(), strict=True)
        return RagConfidenceMetrics(
            record=build_record(self._row(position), self.call),
            support=supported(leaders, self.context.texts.get(position)),
            query_text=self.context.questions.get(position),
        )

    def __iter__(self) -> Iterator[RagConfidenceMetrics]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def kpi(self) -> FloatArray:
        """The KPI in [0, 1], shape (Q,)."""
        return self.drivers.kpi

    @cached_property
    def retrieval_confidence(self) -> FloatArray:
        """The KPI on 0..100, shape (Q,)."""
        return 100.0 * self.drivers.kpi

    @cached_property
    def topical_grounding(self) -> FloatArray:
        """On 0..100, shape (Q,); nan when not assessed, as in the next four."""
        return 100.0 * self.drivers.of(Signal.TOPICAL_GROUNDING)

    @cached_property
    def answer_localization(self) -> FloatArray:
        """On 0..100, shape (Q,)."""
        return 100.0 * self.drivers.of(Signal.ANSWER_LOCALIZATION)

    @cached_property
    def support_cohesion(self) -> FloatArray:
        """On 0..100, shape (Q,)."""
        return 100.0 * self.drivers.of(Signal.SUPPORT_COHESION)

    @cached_property
    def evidence_consistency(self) -> FloatArray:
        """On 0..100, shape (Q,)."""
        return 100.0 * self.drivers.of(Signal.EVIDENCE_CONSISTENCY)

    @cached_property
    def query_robustness(self) -> FloatArray:
        """On 0..100, shape (Q,)."""
        return 100.0 * self.drivers.of(Signal.QUERY_ROBUSTNESS)

    @cached_property
    def verdict(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """Final verdicts as strings, shape (Q,)."""
        return self._final[0]

    @cached_property
    def policy_verdict(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """What the policy alone would say, shape (Q,)."""
        return verdicts(self.codes, None)[0]

    @cached_property
    def decision(self) -> np.ndarray[Any, Any]:
        """ "accept", "reject" or "abstain", shape (Q,); None without a gate, or without a score."""
        if self.gated is None:
            return np.full(len(self), None)
        return self.gated.column(self.gated.predictions.decision.astype(object), None)

    @property
    def provenance(self) -> Provenance:
        """How the KPIs were made; hand it to `fit_conformal_gate`."""
        call = self.call
        return Provenance.of_kpi(
            call.policy.fingerprint, call.embedder, call.backend, call.profile_fingerprint
        )

    @cached_property
    def reason_code(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """Reason codes as strings, shape (Q,)."""
        return self._final[1]

    @cached_property
    def _final(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        return verdicts(self.codes, self.gated)

    @cached_property
    def primary_risk(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """Primary risks as strings, shape (Q,)."""
        return _RISKS[self.risks]

    @cached_property
    def p_sufficient(self) -> FloatArray:
        """What the calibrator or the model says, shape (Q,); nan without either."""
        return self.context.p_sufficient

    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """The main columns and all signals by their key in the JSON record, ready for a data frame."""
        table: dict[str, np.ndarray[Any, Any]] = {
            "verdict": self.verdict,
            "policy_verdict": self.policy_verdict,
            "decision": np.array([word and word.upper() for word in self.decision], dtype=object),
            "reason_code": self.reason_code,
            "primary_risk": self.primary_risk,
            "kpi": self.kpi,
            "p_sufficient": self.p_sufficient,
        }
        return table | signal_columns(self.signals, self.drivers, self.context.contradiction)

    def to_dicts(self) -> list[dict[str, Any]]:
        """`RagConfidenceMetrics.to_dict` of every retrieval."""
        return [metrics.to_dict() for metrics in self]

    def _row(self, position: int) -> Row:
        context, model = self.context, self.call.model
        measured = dict(zip(SIGNAL_NAMES, self.signals.table[:, position].tolist(), strict=True))
        values, predicted = self.drivers.values[:, position].tolist(), None
        if model is not None and not np.isnan(context.p_sufficient[position]):
            predicted = model.predict_one(
                signal_values(measured, values, float(context.contradiction[position]))
            )
        return Row(
            measured=measured,
            values=values,
            weights=self.drivers.weights[:, position].tolist(),
            kpi=float(self.drivers.kpi[position]),
            code=int(self.codes[position]),
            risk=int(self.risks[position]),
            k_requested=context.k_requested[position],
            k_returned=int(context.k_returned[position]),
            n_dropped=int(context.n_dropped[position]),
            contradiction=float(context.contradiction[position]),
            p_sufficient=float(context.p_sufficient[position]),
            warnings=context.warnings.get(position, []),
            gated=None if self.gated is None else self.gated.of(position),
            predicted=predicted,
        )
