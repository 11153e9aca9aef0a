"""The tools that score one retrieval, from vectors or from texts, with the gate and policy of the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt, StrictStr

from rag_confidence import MetricPolicy, RagConfidenceMetrics, score
from rag_confidence._predictions import Gate
from rag_confidence.adapters._mcp.embedding import EMBEDDER, WORDLLAMA_POLICY, embed
from rag_confidence.adapters._mcp.limits import (
    Parents,
    Texts,
    Vector,
    Vectors,
    check_numbers,
    check_texts,
)
from rag_confidence.adapters._mcp.score_models import GateOutcome, ScoreResult, SupportResult

UNFITTED = (
    "The grounding gate is not fitted to this corpus: start the server with --policy, see "
    "MetricPolicy.fit_grounding."
)

QueryText = Annotated[StrictStr | None, Field(description="The question in words, for the narrative.")]
ParentsOf = Annotated[
    Parents | None,
    Field(description="Parent of each passage when they form a tree: null for its root, parents first."),
]
Contradiction = Annotated[
    float | None,
    Field(
        strict=True,
        description="Your judgement in [0, 1] of how far the passages contradict each other, which "
        "embeddings cannot see; needs the texts.",
    ),
]
Group = Annotated[
    StrictStr | StrictInt | None, Field(description="Group of the question, if the gate has groups.")
]
FullRecord = Annotated[StrictBool, Field(description="Return the whole JSON record as well.")]


@dataclass(frozen=True)
class Scorer:
    """The scoring tools, with the gate and the policy of the server."""

    gate: Gate | None
    policy: MetricPolicy | None

    def score_retrieval(
        self,
        query_embedding: Annotated[Vector, Field(description="Embedding of the question.")],
        passage_embeddings: Annotated[
            Vectors,
            Field(description="Embeddings of the retrieved passages, one row each, from the same model."),
        ],
        texts: Annotated[Texts | None, Field(description="Text of each passage, for snippets.")] = None,
        parents: ParentsOf = None,
        query_text: QueryText = None,
        candidates: Annotated[
            Vector | None,
            Field(description="Cosines of the whole retrieved list, the served passages first."),
        ] = None,
        embedder: Annotated[StrictStr | None, Field(description="Name of the embedding model.")] = None,
        k_requested: Annotated[StrictInt | None, Field(description="Passages that were asked for.")] = None,
        group: Group = None,
        contradiction: Contradiction = None,
        full_record: FullRecord = False,
    ) -> ScoreResult:
        """Score one retrieval from its embeddings: a verdict, five signals, and the gate's decision.

        The KPI is no probability. When the server was started with a gate, the verdict ANSWER means that the
        gate accepted; without one it is a rule of thumb.
        """
        check_numbers("passage_embeddings", passage_embeddings)
        metrics = score(
            query_embedding,
            passage_embeddings,
            texts=check_texts("texts", texts),
            parents=parents,
            policy=self.policy,
            gate=self.gate,
            group=group,
            candidates=candidates,
            query_text=query_text,
            contradiction=_judged(contradiction),
            embedder=embedder,
            k_requested=k_requested,
        )
        return self._result(metrics, full_record)

    def score_texts(
        self,
        query: Annotated[StrictStr, Field(description="The question in words.")],
        passages: Annotated[Texts, Field(description="The retrieved passages, best first.")],
        parents: ParentsOf = None,
        group: Group = None,
        contradiction: Contradiction = None,
        full_record: FullRecord = False,
    ) -> ScoreResult:
        """Score one retrieval from its texts, embedded on this machine with a small static model.

        For clients that hold no vectors. The model compares words more than meanings: prefer
        `score_retrieval` with the vectors of your own retriever. Needs the extra `demo`.
        """
        check_texts("query", [query])
        question, *served = _words([query, *(check_texts("passages", passages) or [])])
        vectors = embed([question, *served])
        metrics = score(
            vectors[0],
            vectors[1:],
            texts=served,
            parents=parents,
            policy=self.policy or WORDLLAMA_POLICY,
            gate=self.gate,
            group=group,
            query_text=query,
            contradiction=_judged(contradiction),
            embedder=EMBEDDER,
        )
        return self._result(metrics, full_record)

    def _result(self, metrics: RagConfidenceMetrics, full_record: bool) -> ScoreResult:
        record = metrics.to_dict()
        same = {name: record[name] for name in ScoreResult.model_fields if name in record}
        if self.policy is None:
            same["warnings"] = [*same["warnings"], UNFITTED]
        return ScoreResult(
            **same,
            gate=None if self.gate is None else _outcome(record),
            support=[
                SupportResult(index=s.index, cosine=s.cosine, snippet=s.snippet) for s in metrics.support
            ],
            narrative=metrics.narrate(),
            record=record if full_record else None,
        )


def _words(texts: list[str]) -> list[str]:
    for text in texts:
        if not text.strip():
            raise ValueError("`query` and `passages` must hold words; got a blank text. Leave it out.")
    return texts


def _judged(contradiction: float | None) -> Callable[[list[str]], float] | None:
    """The caller's judgement in the form that `score` takes."""
    return None if contradiction is None else lambda _: contradiction


def _outcome(record: dict[str, Any]) -> GateOutcome:
    return GateOutcome.model_validate({name: record[name] for name in GateOutcome.model_fields})
