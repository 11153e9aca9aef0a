"""The JSON contract: every key of `to_dict()`, its type, whether it may be null, and what it means.

The JSON Schema and the table in the docs are made from this list, so the three cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from rag_confidence._types import GUARANTEE_KEYS, Decision, ReasonCode, Signal, Verdict
from rag_confidence.product.claim import check_claim
from rag_confidence.product.verdict import CONFIDENCE_BANDS, KPI_BANDS, SIGNAL_BANDS

SCHEMA_VERSION = "1.2"

LABEL_SETS = ((), (0,), (1,), (0, 1))

Kind = Literal["number", "integer", "string", "boolean", "array", "labels", "numbers", "object"]


@dataclass(frozen=True)
class Key:
    """One key of the record."""

    name: str
    kind: Kind
    meaning: str
    nullable: bool = False
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()


def _percent(name: str, meaning: str, nullable: bool = True) -> Key:
    return Key(name, "number", meaning, nullable, 0.0, 100.0)


def _fraction(name: str, meaning: str, nullable: bool = True) -> Key:
    return Key(name, "number", meaning, nullable, 0.0, 1.0)


def _count(name: str, meaning: str, nullable: bool = False) -> Key:
    return Key(name, "integer", meaning, nullable, 0.0)


def _real(name: str, meaning: str, low: float | None = None, high: float | None = None) -> Key:
    return Key(name, "number", meaning, True, low, high)


def _band(signal: Signal) -> Key:
    words = SIGNAL_BANDS[signal]
    return Key(f"{signal}_band", "string", f"band of `{signal}`", True, words=words)


_HEADLINE = (
    Key("schema_version", "string", "version of this contract", words=(SCHEMA_VERSION,)),
    Key("verdict", "string", "what to do; with a gate its decision is final", words=tuple(Verdict)),
    Key("policy_verdict", "string", "what the policy alone would say", words=tuple(Verdict)),
    Key("verdict_action", "string", "the action the verdict asks for"),
    Key("verdict_reason", "string", "one sentence that a user can be shown"),
    Key(
        "reason_code",
        "string",
        "row of the verdict table, or outcome of the gate, that decided",
        words=tuple(ReasonCode),
    ),
    Key("primary_risk", "string", "signal that clears its floor by least", words=(*Signal, "none")),
    _percent(
        "retrieval_confidence",
        "the KPI for people, to one decimal where no threshold is near",
        nullable=False,
    ),
    Key("confidence_band", "string", "coarse band of the KPI", words=CONFIDENCE_BANDS),
    Key("retrieval_confidence_band", "string", "band of the KPI", words=KPI_BANDS),
    _fraction("kpi", "the KPI to twelve decimals: fit gates on this one", nullable=False),
    _fraction("p_sufficient", "what `calibrator` made of the KPI, or `model` of the signals"),
)

_GATE = (
    Key("decision", "string", "decision of the gate", True, words=tuple(word.name for word in Decision)),
    Key("prediction_set", "labels", "labels that the gate could not exclude: 1 sufficient, 0 not", True),
    _fraction("p_value_0", "conformal p-value of insufficient evidence"),
    _fraction("p_value_1", "conformal p-value of sufficient evidence"),
    _real("margin_to_threshold", "score minus the score from which the gate accepts"),
    Key("score_used", "string", "what the gate saw", True, words=("kpi", "model")),
    Key("group", "string", "group that the gate was asked about", True),
    Key("gate_fingerprint", "string", "hash of the gate", True),
    Key("guarantee", "object", "what the gate bounds, under which assumption, and what not", True),
)

_DISPLAYED = (
    _percent("topical_grounding", "is the question about these passages at all?"),
    _band(Signal.TOPICAL_GROUNDING),
    _percent("answer_localization", "does the query hit one coherent region?"),
    _band(Signal.ANSWER_LOCALIZATION),
    _percent("support_cohesion", "do the passages hold together?"),
    _band(Signal.SUPPORT_COHESION),
    _percent("evidence_consistency", "do the passages resemble each other? Not: do they agree"),
    _band(Signal.EVIDENCE_CONSISTENCY),
    _percent("query_robustness", "how far can the query turn before the top passage changes?"),
    _band(Signal.QUERY_ROBUSTNESS),
)

_CONTEXT = (
    Key("grounding_assessed", "boolean", "false for lexical vectors: shape only"),
    Key("contradiction_assessed", "boolean", "whether a contradiction function was supplied"),
    _count("k_requested", "passages that were asked for", nullable=True),
    _count("k_returned", "passages that were handed in"),
    _count("effective_k", "distinct passages among those whose shape was measured"),
    Key("embedder", "string", "name of the embedder, as given", True),
    Key("policy_fingerprint", "string", "hash of every constant of the policy"),
    Key("profile_fingerprint", "string", "hash of the corpus profile", True),
    Key("model_fingerprint", "string", "hash of the learned model", True),
    Key("model_contributions", "numbers", "what each signal adds to the log-odds of the model", True),
    Key("model_out_of_range", "array", "signals outside the range that the model was trained on", True),
    Key("warnings", "array", "sentences about what was capped, dropped or not assessed"),
)

_WEIGHTS = tuple(
    _fraction(f"weights.{signal}", f"weight of `{signal}` as used; 0 when not assessed", nullable=False)
    for signal in Signal
    if signal is not Signal.TOPICAL_GROUNDING
)

_SIGNALS = (
    *(_fraction(f"signals.{signal}", f"`{signal}`, unrounded") for signal in Signal),
    _real("signals.max_cosine", "best cosine", -1.0, 1.0),
    _real("signals.mean_top3_cosine", "mean of the three best cosines", -1.0, 1.0),
    _real("signals.top_gap", "best cosine minus the second", 0.0, 2.0),
    _real("signals.std_top10_cosine", "standard deviation of the ten best cosines", 0.0, 1.0),
    _real("signals.std_top20_cosine", "standard deviation of the twenty best cosines", 0.0, 1.0),
    _real("signals.head_tail_gap", "mean of ranks 1 to 3 minus mean of ranks 11 to 20", 0.0, 2.0),
    _real("signals.second_bar", "cosine length of the longest bar that dies", 0.0, 2.0),
    _real("signals.lambda_2", "algebraic connectivity of the passage graph", 0.0, 2.0),
    _fraction("signals.dirichlet_energy", "mean disagreement of pairs (tree: of edges)"),
    _fraction("signals.conditioned_energy", "the same with the query direction projected out"),
    _real("signals.flip_angle", "degrees the query must turn to change the top passage", 0.0, 90.0),
    _real("signals.head_coherence", "mean mutual cosine of the three best passages", -1.0, 1.0),
    _real("signals.tail_coherence", "mean cosine between them and ranks 6 to 10", -1.0, 1.0),
    _fraction("signals.companionship", "likeness of ranks 2 and 3 to the best, above that of the tail"),
    _real("signals.best_pair", "cosine of the two best passages", -1.0, 1.0),
    _real("signals.best_nearest", "largest cosine of the best passage to another", -1.0, 1.0),
    _real("signals.best_partial", "mean cosine of the best to the others, beside the query", -1.0, 1.0),
    _real("signals.contrast", "with a profile: log ratio of reference to best squared distance", 0.0),
    _real("signals.saturated_contrast", "the same, levelling off where more is no better sign", 0.0),
    _real("signals.best_excess", "best cosine minus the background tail", -2.0, 2.0),
    _real("signals.head_excess", "mean of the three best minus the background tail", -2.0, 2.0),
    _real("signals.level_excess", "best cosine above the tail usual here, in background deviations"),
    _real("signals.background_mean", "mean cosine of the query to the corpus sample", -1.0, 1.0),
    _real("signals.background_std", "standard deviation of these cosines", 0.0, 1.0),
    _real("signals.background_tail", "mean of the largest 5 % of these cosines", -1.0, 1.0),
    _real("signals.typicality", "cosine of the query to the mean sampled query", -1.0, 1.0),
    _fraction("signals.text_best", "share of the question's rare words in the best passage for it"),
    _fraction("signals.text_top3", "mean of the three largest such shares"),
    _fraction("signals.contradiction", "largest score of the contradiction function"),
)

_EVIDENCE = (
    _real(
        "evidence.topical_match_cosine",
        "what grounding reads: mean of the three best cosines, or the best",
        -1.0,
        1.0,
    ),
    _count("evidence.n_relevance_clusters", "bars of the barcode", nullable=True),
    _real("evidence.persistence_margin", "first bar minus second bar", 0.0, 2.0),
    _fraction("evidence.dominance", "first bar over all bars"),
    _real("evidence.fragmentation", "total length of all bars but the first", 0.0),
    _fraction("evidence.focus_depth", "depth of the focus in the tree; null on flat lists"),
    _fraction("evidence.concentration", "1 - normalised entropy of the relevance"),
    _fraction("evidence.sheaf_consistency", "1 - Dirichlet energy"),
    _count("evidence.contradiction_loops", "loops judged real by the test named in `loops`", nullable=True),
    _count("evidence.minor_loops", "the other loops", nullable=True),
    _real("evidence.contradiction_loop_life", "life of the longest loop", 0.0, 2.0),
    _real("evidence.loop_ratio", "largest death over birth of any loop; null without loops", 0.0),
    _fraction("evidence.loop_p_value", "share of rotation surrogates with as long a loop"),
    _real("evidence.stability_move", "mean movement over the probes of the query", 0.0),
    Key(
        "evidence.stability_move_kind",
        "string",
        "exact bottleneck distance, or the bound on it that is used on flat lists",
        True,
        words=("bottleneck", "bound"),
    ),
    Key(
        "evidence.embedding_backend",
        "string",
        "where the vectors came from",
        words=("precomputed", "lexical"),
    ),
    _count("evidence.n_nodes", "vertices of the filtration", nullable=True),
    _count("evidence.n_shape", "passages whose shape was measured"),
    _count("evidence.n_dropped_rows", "invalid passages dropped on request"),
)

KEYS: tuple[Key, ...] = (*_HEADLINE, *_GATE, *_DISPLAYED, *_CONTEXT, *_WEIGHTS, *_SIGNALS, *_EVIDENCE)
"""All keys, in the order of `to_dict()`."""

KEY_NAMES: tuple[str, ...] = tuple(key.name for key in KEYS)

GATE_KEYS: tuple[str, ...] = tuple(key.name for key in _GATE)
"""The keys that are null without a gate."""


_PYTHON: dict[Kind, tuple[type, ...]] = {
    "number": (int, float),
    "integer": (int,),
    "string": (str,),
    "boolean": (bool,),
    "array": (list, tuple),
    "labels": (list, tuple),
    "numbers": (dict,),
    "object": (dict,),
}


_WANTED: dict[Kind, str] = {
    "number": "a number",
    "integer": "a whole number",
    "string": "a string",
    "boolean": "True or False",
    "array": "a list of strings",
    "labels": f"one of {', '.join(str([*labels]) for labels in LABEL_SETS)}",
    "numbers": "a dict of finite numbers by name",
    "object": "the guarantee of a gate, as a dict",
}


def check_value(key: Key, value: Any) -> None:
    """Refuse a `value` that the contract does not allow under `key`."""
    if value is None and key.nullable:
        return
    typed = isinstance(value, _PYTHON[key.kind]) and isinstance(value, bool) == (key.kind == "boolean")
    typed = typed and _ENTRIES.get(key.kind, _any)(value)
    worded = not key.words or value in key.words
    if typed and worded and _within(key, value):
        if key.kind == "object":
            check_claim(f"record[{key.name!r}]", value)
        return
    wanted = " or ".join(map(repr, map(str, key.words))) or f"{_WANTED[key.kind]}{_range_text(key)}"
    wanted += " or None" if key.nullable else ""
    raise ValueError(f"`record[{key.name!r}]` must be {wanted}; got {value!r}. Pass an unchanged to_dict().")


def _any(value: Any) -> bool:
    return True


_ENTRIES: dict[Kind, Callable[[Any], bool]] = {
    "array": lambda value: all(isinstance(entry, str) for entry in value),
    "labels": lambda value: tuple(value) in LABEL_SETS and not any(map(_is_bool, value)),
    "numbers": lambda value: all(isinstance(name, str) and _is_finite(value[name]) for name in value),
}


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not _is_bool(value) and math.isfinite(value)


def _within(key: Key, value: Any) -> bool:
    """Whether a number lies in the range of its key; nan does not."""
    if key.kind not in ("number", "integer"):
        return True
    low = -math.inf if key.low is None else key.low
    high = math.inf if key.high is None else key.high
    return math.isfinite(value) and low <= value <= high


def _range_text(key: Key) -> str:
    return "" if key.low is None else f" in [{key.low:g}, {'inf' if key.high is None else f'{key.high:g}'}]"


_JSON_TYPES: dict[Kind, str] = {"labels": "array", "numbers": "object"}


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `RagConfidenceMetrics.to_dict()`.

    Examples
    --------
    >>> json_schema()["properties"]["kpi"]["maximum"]
    1.0
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "RagConfidenceMetrics",
        "type": "object",
        "additionalProperties": False,
        "required": list(KEY_NAMES),
        "properties": {key.name: _property(key) for key in KEYS},
    }


def _property(key: Key) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": key.meaning}
    kind = _JSON_TYPES.get(key.kind, key.kind)
    schema["type"] = [kind, "null"] if key.nullable else kind
    if key.words:
        schema["enum"] = [str(word) for word in key.words] + ([None] if key.nullable else [])
    if key.low is not None:
        schema["minimum"] = key.low
    if key.high is not None:
        schema["maximum"] = key.high
    if key.kind == "array":
        schema["items"] = {"type": "string"}
    if key.kind == "labels":
        schema["enum"] = [*map(list, LABEL_SETS), None]
    if key.kind == "numbers":
        schema["additionalProperties"] = {"type": "number"}
    if key.kind == "object":
        schema |= {"required": [*GUARANTEE_KEYS], "additionalProperties": False}
        schema["properties"] = {name: {} for name in GUARANTEE_KEYS}
    return schema
