"""An agent that checks its evidence before it answers, offline, over this project's own documents.

    python scripts/agent_audit_example.py
    python scripts/agent_audit_example.py "How is the grounding gate fitted?" --alpha 0.05

It fits one gate for each try on a labelled history, at a level for which all tries together stay within
alpha. Then it retrieves a few passages for each question and asks the gate. ACCEPT: it answers. REJECT or
ABSTAIN: it retrieves more and asks the gate of the next try. After the last try it declines, or hands the
question to a person. Without questions of yours it shows one held-out question for each course that this can
take. No model is called and no key is needed: where an agent would write an answer, the best passage stands.
The exit code is 2 for options that cannot be meant.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, shorten

import numpy as np
from _agent_history import Asked, Library, ask_about, fit_policy
from _corpus import read_project
from _pipe import run
from _retrieval import EMBEDDER_NAME, FloatArray, load_embedder
from numpy.typing import NDArray

from rag_confidence import (
    ConformalGate,
    Decision,
    MetricPolicy,
    RagConfidenceMetrics,
    alpha_for_attempt,
    fit_conformal_gate,
    score,
    score_many,
    split_history,
)

PROJECT = Path(__file__).resolve().parents[1]
# Passages retrieved at each try. Each try has a gate of its own: the score of eight passages is not
# exchangeable with scores of four.
TRIES = (4, 8)
SHARES = {"model": 0.4, "gate": 0.4, "evaluation": 0.2}
NOT_COVERED = "Nothing is claimed: the history asked otherwise; its guarantee does not cover your questions."


@dataclass(frozen=True)
class Agent:
    """What is needed to decide: a library, a policy, and a gate for each try."""

    library: Library
    policy: MetricPolicy
    gates: tuple[ConformalGate, ...]

    def tries(self, text: str, vector: FloatArray, without: str = "") -> list[RagConfidenceMetrics]:
        """The assessments of one question: the last one is accepted, or no try is left."""
        made: list[RagConfidenceMetrics] = []
        for k, gate in zip(TRIES, self.gates, strict=True):
            rows = self.library.find(vector, k, without).rows
            found = [self.library.passages[row] for row in rows]
            made.append(
                score(
                    vector,
                    self.library.vectors[rows],
                    texts=[f"{passage.place}: {passage.text}" for passage in found],
                    policy=self.policy,
                    gate=gate,
                    query_text=text,
                    embedder=EMBEDDER_NAME,
                )
            )
            if made[-1].decision is Decision.ACCEPT:
                break
        return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    try:
        agent, held_out = prepare(options.alpha, options.seed)
    except (ValueError, TypeError, ImportError) as problem:
        print(f"agent_audit_example.py: {problem}", file=sys.stderr)
        return 2
    describe(agent)
    if options.questions:
        for text, vector in zip(options.questions, agent.library.embed(options.questions), strict=True):
            show(text, agent.tries(text, vector), NOT_COVERED)
    else:
        for text, truth, made in courses(agent, held_out):
            show(f"{text} ... ({truth})", made, guarantee_of(made[-1]))
    verify(agent, held_out, options.alpha)
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="An agent that checks its evidence before it answers.")
    parser.add_argument("questions", nargs="*", help="what to ask (default: held-out questions)")
    parser.add_argument("--alpha", default="0.10", help="largest rate of false acceptance over all tries")
    parser.add_argument("--seed", type=int, default=0, help="seed of the history (default: %(default)s)")
    return parser.parse_args(arguments)


def prepare(alpha: str, seed: int) -> tuple[Agent, Asked]:
    """The agent, and the questions kept back to measure it: no question is used twice."""
    corpus, embed = read_project(PROJECT), load_embedder()
    vectors = embed([passage.content for passage in corpus.passages])
    library = Library(corpus.passages, vectors, embed)
    asked = ask_about(library, seed)
    parts = split_history(asked.texts, shares=SHARES, seed=seed)
    policy = fit_policy(library, asked.part(parts.model), TRIES[0])
    history = asked.part(parts.gate)
    gates = [fit_gate(library, policy, history, attempt, alpha) for attempt in range(len(TRIES))]
    return Agent(library, policy, tuple(gates)), asked.part(parts.evaluation)


def fit_gate(
    library: Library, policy: MetricPolicy, history: Asked, attempt: int, alpha: str
) -> ConformalGate:
    """The gate of one try, fitted on retrievals made as that try makes them."""
    found = history.search(library, TRIES[attempt])
    labels = history.labels(found)
    passages = [library.vectors[hits.rows] for hits in found]
    batch = score_many(history.vectors, passages, policy=policy, embedder=EMBEDDER_NAME)
    return fit_conformal_gate(
        batch.kpi,
        labels,
        alpha_for_attempt(alpha, attempt + 1, attempts=len(TRIES)),
        provenance=batch.provenance,
        row_ids=history.texts,
        negatives=history.kinds(labels),
        labeling_source="a script that left files out",
    )


def courses(agent: Agent, held_out: Asked) -> Iterator[tuple[str, str, list[RagConfidenceMetrics]]]:
    """The first held-out question for each course of decisions: its text, the truth, and its tries."""
    seen = set()
    asked = zip(held_out.texts, held_out.vectors, held_out.owners, held_out.without, strict=True)
    for text, vector, owner, without in asked:
        made = agent.tries(text, vector, without)
        course = tuple(metrics.decision for metrics in made)
        if course in seen:
            continue
        seen.add(course)
        served = agent.library.find(vector, TRIES[len(made) - 1], without).rows
        yield text, f"in truth {'sufficient' if owner in served else 'insufficient'}", made


def describe(agent: Agent) -> None:
    """What the gates rest on."""
    print(f"== Calibrated on {len(agent.library.passages)} passages, embedder {EMBEDDER_NAME}")
    for attempt, (k, gate) in enumerate(zip(TRIES, agent.gates, strict=True), start=1):
        print(
            f"   try {attempt}: {k} passages, alpha {gate.alpha:g}, AUROC {gate.auroc:.3f} "
            f"[{gate.auroc_low:.3f}, {gate.auroc_high:.3f}], accepts above {max(gate.q0, gate.t1):.3f}"
        )


def show(question: str, made: list[RagConfidenceMetrics], promise: str) -> None:
    """One question: each try, what the agent then says, and what that promises."""
    print(f"\n== {question}")
    for attempt, metrics in enumerate(made, start=1):
        print(f"   try {attempt}: {told(metrics)}")
    print(f"   agent: {reply(made[-1])}")
    print(fill(promise, 104, initial_indent="     ", subsequent_indent="     "))


def guarantee_of(metrics: RagConfidenceMetrics) -> str:
    """What the gate of the last try promises for questions that are drawn like the history."""
    return "Nothing is claimed." if metrics.guarantee is None else metrics.guarantee.sentence


def told(metrics: RagConfidenceMetrics) -> str:
    """The decision on one try, with the distance from acceptance."""
    record = metrics.to_dict()
    margin = record["margin_to_threshold"]
    away = "never accepted" if margin is None else f"{margin:+.3f} from acceptance"
    return (
        f"{record['k_returned']} passages, KPI {metrics.kpi:.3f}, {away}: {record['decision']}, "
        f"verdict {metrics.verdict} ({metrics.reason_code})"
    )


def reply(metrics: RagConfidenceMetrics) -> str:
    """What the agent says after its last try."""
    if metrics.decision is Decision.ACCEPT:
        best = metrics.support[0].snippet or ""
        return f"I answer from {shorten(best, 90, placeholder='...')}"
    if metrics.decision is Decision.REJECT:
        return "The documents do not hold the answer."
    return "I cannot tell whether the documents hold the answer, and ask a person."


def verify(agent: Agent, held_out: Asked, alpha: str) -> None:
    """On questions that took no part: how often insufficient evidence was accepted, at any try."""
    wrong = np.zeros(len(held_out.texts), dtype=bool)
    ever = np.zeros(len(held_out.texts), dtype=bool)
    print(f"\n== Held out: {len(held_out.texts)} questions")
    for attempt, (k, gate) in enumerate(zip(TRIES, agent.gates, strict=True), start=1):
        found = held_out.search(agent.library, k)
        passages = [agent.library.vectors[hits.rows] for hits in found]
        batch = score_many(held_out.vectors, passages, policy=agent.policy, gate=gate, embedder=EMBEDDER_NAME)
        accepted, sufficient = batch.decision == Decision.ACCEPT, held_out.labels(found)
        wrong |= accepted & ~sufficient
        ever |= ~sufficient
        print(
            f"   try {attempt} accepts {share(accepted, sufficient)} sufficient and "
            f"{share(accepted, ~sufficient)} insufficient retrievals"
        )
    print(f"   any try accepts {share(wrong, ever)} insufficient ones; alpha is {float(alpha):g}")


def share(accepted: NDArray[np.bool_], among: NDArray[np.bool_]) -> str:
    """How many of some rows were accepted."""
    return f"{(accepted & among).sum()} of {among.sum()}"


if __name__ == "__main__":
    sys.exit(run(main))
