"""Findings on the log itself: what was mixed, dropped, missing or all alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rag_confidence._types import Backend, ReasonCode, Verdict
from rag_confidence.conformal.proportion import Proportion, proportion_of
from rag_confidence.learning.evidence import AT_BOUND
from rag_confidence.learning.findings import Finding, finding
from rag_confidence.learning.log import Log
from rag_confidence.learning.wording import listed, of_all, percent, plain, rows

LEXICAL: Backend = "lexical"
# What must be one and the same for numbers to be comparable: key, code, what to call it.
SAME = (
    ("schema_version", "mixed_versions", "versions of the record"),
    ("policy_fingerprint", "mixed_policies", "policies"),
    ("embedder", "mixed_embedders", "embedders"),
    ("evidence.embedding_backend", "mixed_backends", "kinds of vectors"),
    ("profile_fingerprint", "mixed_profiles", "corpus profiles"),
    ("model_fingerprint", "mixed_models", "learned models"),
    ("gate_fingerprint", "mixed_gates", "gates"),
)
# KPIs under another gate or model are the same numbers; only what was decided on them differs.
HARMLESS = {"mixed_models", "mixed_gates", "mixed_versions"}
# One retrieval in ten with half of its list copied, or one passage in ten a copy, is worth a look.
MANY_COPIES = 0.10
HALF = 0.5
# A tie of this share of the log cannot be cut by any threshold.
LARGE_TIE = 0.05
# Where this share of the KPIs is shown as 0 or 100, thresholds near the ends act on noise.
SATURATED = 0.20
LEAST_ROWS = 20


def about_mixture(log: Log) -> Iterator[Finding]:
    """A finding for each thing of which the log holds several kinds."""
    for key, code, what in SAME:
        tally = log.tally(key)
        if len(tally) == 1:
            continue
        counts = {str(word): count for word, count in tally}
        shown = [f"{'none' if word is None else word} on {count}" for word, count in tally]
        yield finding(
            code,
            "note" if code in HARMLESS else "problem",
            f"The log mixes {len(tally)} {what}: {listed(shown)} of {log.n} retrievals.",
            "" if code in HARMLESS else "Diagnose each apart: numbers pooled over them mean little.",
            counts=counts,
            n=log.n,
        )


def about_lists(log: Log) -> Iterator[Finding]:
    """Findings on the retrieved lists: empty, short, with dropped rows, full of copies."""
    yield from _unscored(log)
    yield from _short(log)
    yield from _dropped(log)
    yield from _copies(log)


def about_verdicts(log: Log) -> Iterator[Finding]:
    """Findings on verdicts: all alike, undecided by the gate, without grounding."""
    verdicts = log.tally("verdict")
    if len(verdicts) == 1 and log.n >= LEAST_ROWS:
        yield _one_verdict(log, str(verdicts[0][0]))
    elif log.n >= LEAST_ROWS and str(Verdict.ANSWER) not in dict(verdicts):
        yield _nothing_answered(log, verdicts)
    yield from _answers(log)
    reasons = dict(log.tally("reason_code"))
    unfit = sum(reasons.get(str(code), 0) for code in (ReasonCode.GATE_INFINITE, ReasonCode.GATE_UNFIT_GROUP))
    if unfit:
        yield finding(
            "gate_without_threshold",
            "problem",
            f"The gate had too few calibration labels to decide on {of_all(unfit, log.n)} retrievals.",
            "Refit it with more labels of the class, or the group, that is short; plan() says how many.",
            count=unfit,
            n=log.n,
        )
    lexical = dict(log.tally("evidence.embedding_backend")).get(LEXICAL, 0)
    if lexical:
        yield finding(
            "lexical_vectors",
            "warning",
            f"{of_all(lexical, log.n)} retrievals come from lexical vectors: grounding is not assessed, the "
            "KPI is shape alone and cannot see an off-topic question.",
            "Embed questions and passages with a sentence embedder.",
            count=lexical,
            n=log.n,
        )


def about_kpi(log: Log) -> Iterator[Finding]:
    """Findings on the KPI as a number to set thresholds on: ties and saturation."""
    kpi = log.kpi[log.scored]
    if len(kpi) < LEAST_ROWS:
        return
    values, counts = np.unique(kpi, return_counts=True)
    tied, value = int(counts.max()), float(values[counts.argmax()])
    if tied > LARGE_TIE * len(kpi):
        yield finding(
            "kpi_tied",
            "warning",
            f"{of_all(tied, len(kpi))} scored retrievals share the KPI {plain(value)}: a threshold takes all "
            "of them or none.",
            "If these are logs, keep kpi unrounded; else see which driver is saturated.",
            count=tied,
            n=len(kpi),
            value=value,
        )
    ends = int(np.count_nonzero((kpi <= AT_BOUND) | (kpi >= 1.0 - AT_BOUND)))
    if ends > SATURATED * len(kpi):
        yield finding(
            "kpi_saturated",
            "warning",
            f"The KPI shows 0 or 100 on {of_all(ends, len(kpi))} scored retrievals: its scale does not fit "
            "this embedder.",
            "See which driver is saturated, and whether the profile is of this corpus."
            if log.profiled
            else "Fit the grounding gate (MetricPolicy.fit_grounding) or score with a corpus profile.",
            count=ends,
            n=len(kpi),
        )


def _unscored(log: Log) -> Iterator[Finding]:
    count = int(np.count_nonzero(~log.scored))
    if count:
        yield finding(
            "nothing_to_score",
            "problem" if count == log.n else "warning",
            f"{of_all(count, log.n)} retrievals had no passages or a question without a usable vector. They "
            "are left out of everything below.",
            "See why the retriever came back empty.",
            count=count,
            n=log.n,
        )


def _short(log: Log) -> Iterator[Finding]:
    wanted, got = log.counts["k_requested"], log.counts["k_returned"]
    short = got < wanted
    count = int(np.count_nonzero(short))
    if count:
        yield finding(
            "fewer_than_requested",
            "warning",
            f"{of_all(count, log.n)} retrievals returned fewer passages than were asked for, "
            f"{plain(float((wanted - got)[short].mean()))} fewer on average.",
            "Look for filters that empty the list, and ask the index for a deeper list.",
            count=count,
            n=log.n,
        )


def _dropped(log: Log) -> Iterator[Finding]:
    dropped = np.nan_to_num(log.counts["evidence.n_dropped_rows"])
    count = int(np.count_nonzero(dropped))
    if count:
        yield finding(
            "rows_dropped",
            "warning",
            f"{rows(int(dropped.sum()), 'passage vector')} in {of_all(count, log.n)} retrievals were invalid "
            "(zero, nan or infinite) and were dropped.",
            "Embed these passages again: empty texts are the usual cause.",
            passages=int(dropped.sum()),
            count=count,
            n=log.n,
        )


def _copies(log: Log) -> Iterator[Finding]:
    shown, distinct = log.counts["evidence.n_shape"], log.counts["effective_k"]
    known = log.scored & ~np.isnan(shown) & ~np.isnan(distinct)
    if not known.any():
        return
    passages, copies = int(shown[known].sum()), int((shown - distinct)[known].sum())
    half = int(np.count_nonzero(distinct[known] <= HALF * shown[known]))
    n = int(np.count_nonzero(known))
    if copies > MANY_COPIES * passages or half > MANY_COPIES * n:
        yield finding(
            "many_duplicates",
            "warning",
            f"{of_all(copies, passages)} retrieved passages are near copies of another one in their list; in "
            f"{of_all(half, n)} retrievals at most half of the list is distinct.",
            "Remove duplicates from the index, or ask for a deeper list, so that k passages are k pieces of "
            "evidence.",
            copies=copies,
            passages=passages,
            half_or_less=half,
            n=n,
        )


def _answers(log: Log) -> Iterator[Finding]:
    """How often each class is answered, with exact intervals."""
    if log.labels is None or log.labels.all() or not log.labels.any():
        return
    answered = np.asarray(log.words["verdict"] == str(Verdict.ANSWER))
    rates = [
        proportion_of(int(np.count_nonzero(answered[at])), int(np.count_nonzero(at)))
        for at in (~log.labels, log.labels)
    ]
    bad, good = rates
    yield finding(
        "answered",
        "note",
        f"ANSWER went to {_of(good)} sufficient and {_of(bad)} insufficient retrievals (95 % intervals "
        f"{_limits(good)} and {_limits(bad)}).",
        "",
        insufficient=bad.to_dict(),
        sufficient=good.to_dict(),
    )


def _of(rate: Proportion) -> str:
    return f"{rate.count} of {rate.total} ({percent(rate.count, rate.total)})"


def _limits(rate: Proportion) -> str:
    return f"{100 * rate.low:.2g} to {100 * rate.high:.2g} %"


def _nothing_answered(log: Log, verdicts: list[tuple[str | None, int]]) -> Finding:
    return finding(
        "nothing_answered",
        "problem",
        f"None of {log.n} retrievals got ANSWER; there were {_counted(verdicts)} (reasons: "
        f"{_counted(log.tally('reason_code'))}).",
        "See which thresholds fire on all or nearly all retrievals: most often they belong to another "
        "embedder.",
        n=log.n,
        verdicts={str(word): count for word, count in verdicts},
    )


def _counted(tally: list[tuple[str | None, int]]) -> str:
    return listed([f"{word} {count}" for word, count in tally])


def _one_verdict(log: Log, verdict: str) -> Finding:
    reasons = log.tally("reason_code")
    cure = {
        str(Verdict.ANSWER): "See which thresholds never fire, and whether the labels agree.",
        str(
            Verdict.REVIEW
        ): "See which thresholds always fire; with a gate, whether it has enough labels and a "
        "score that separates.",
        str(Verdict.ABSTAIN): "See which thresholds always fire; most often the grounding gate belongs to "
        "another embedder.",
    }
    return finding(
        "one_verdict",
        "problem",
        f"Every one of {log.n} retrievals got {verdict} (reasons: {_counted(reasons)}): the "
        "verdict tells nothing apart.",
        cure.get(verdict, "See whether the contradiction function says yes to everything."),
        verdict=verdict,
        n=log.n,
        reasons={str(reason): count for reason, count in reasons},
    )
