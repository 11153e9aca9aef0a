"""The page from profile to gate, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill

from deployed.profiles import ASKED, SAMPLE
from deployed.results import LEAST, Result, is_large_enough, of_stratum, strata_of
from deployed.tables import READING, price, stratum_tables, summary
from deployed.trials import ALPHA, DELTA, TARGET
from deployed.words import CURES, verdict
from deployed.worlds import FAILURE, GAP, MISS, STRATA, WITHHELD, World

TITLE = "# From profile to gate on real data"
WHAT = {
    GAP: "Questions of other sets, on other subjects, put to this corpus; as many as the set has of its own.",
    FAILURE: "Questions whose evidence is in the corpus, but not among the ten passages.",
    MISS: "Questions on the subject of the corpus that it does not answer: annotators looked.",
    WITHHELD: "A random half of the answerable questions, whose evidence was taken out of the corpus before "
    "retrieval; the other half is sufficient where its own evidence is still found.",
}


@dataclass(frozen=True)
class Run:
    """What the page is written from."""

    worlds: Sequence[World]
    results: Sequence[Result]
    repeats: int
    command: str


def page(run: Run) -> str:
    """The whole page."""
    parts = [TITLE, _intro(run), "## In short"]
    parts.append("\n".join(_bullet(one) for one in verdict(run.results, run.worlds)))
    parts += [summary(run.results, run.repeats).markdown(), "What to do:", CURES.strip()]
    parts += ["## The price of the wrong negatives", *_prices(run)]
    parts += ["## How to read the tables", "\n".join(_bullet(one) for one in READING)]
    for stratum in STRATA:
        parts += _section(run, stratum)
    parts += ["## How it was done", _method(run)]
    return "\n\n".join(parts) + "\n"


def _intro(run: Run) -> str:
    return fill(
        f"Made by `{run.command}`. Real retrievals with labels, k = 10: a `CorpusProfile` without labels, "
        "the "
        "KPI with it, and two gates on the KPI, fitted on one random half of the queries and counted on the "
        "other. The class-conditional gate bounds the false-sufficiency rate (FSR), P(ACCEPT | "
        "insufficient), "
        f"by alpha {float(ALPHA):.2f}; the risk gate bounds P(insufficient | ACCEPT) by {float(TARGET):g} "
        "for "
        f"all but a share {float(DELTA):g} of calibration sets. The kinds of insufficient retrievals are "
        "never "
        "pooled, except where the page shows what pooling does.",
        110,
    )


def _prices(run: Run) -> Iterator[str]:
    for stratum in STRATA:
        if any(one.wrong for one in of_stratum(run.results, stratum)):
            yield price(run.results, stratum).markdown()


def _section(run: Run, stratum: str) -> Iterator[str]:
    found = of_stratum(run.results, stratum)
    yield f"## {stratum.capitalize()}"
    small = [
        f"{world.label} ({world.count(stratum)})"
        for world in run.worlds
        if stratum in strata_of(world) and not is_large_enough(world, stratum)
    ]
    left_out = f" Left out, with fewer than {LEAST} rows of a class: {', '.join(small)}." if small else ""
    yield fill(WHAT[stratum] + left_out, 110)
    yield from (table.markdown() for table in (stratum_tables(found) if found else ()))


def _method(run: Run) -> str:
    whole = sorted({one.label.split(" / ")[0] for one in run.worlds if not one.thin and not one.apart})
    thin = sorted({one.label.split(" / ")[0] for one in run.worlds if one.thin and not one.apart})
    lines = (
        f"Each corpus has a profile of its own: {SAMPLE} of its vectors and {ASKED} unlabelled queries with "
        "the ten passages that were served for them. No deeper list is given. For withheld evidence the "
        "profile is that of the corpus without it.",
        f"The queries of the profile are not among the evaluated ones if at least {2 * ASKED} others are "
        "left. "
        f"On the corpus as it is they are among them for {', '.join(whole) or 'no set'}, on the thinner one "
        f"for {', '.join(thin) or 'no set'}. The profile sees no label, and calibration and test rows alike, "
        "so rows stay exchangeable and the bound is untouched; but the test rows are then not new to it.",
        f"{run.repeats} random halves by query, the same for both scores; a query has one row. The scores "
        "are "
        "computed once. FSR, acceptance and risk are shares of all test rows of all halves together.",
        "Halves of one pool are independent trials given the pool: only ranks matter. They say nothing of "
        "queries unlike the pool, and not how the KPI would do with another profile.",
        "The constants behind the KPI were chosen while looking at these sets "
        "([how](profile_weights.md)), so "
        "what the KPI buys is in sample. The bounds do not depend on that.",
        "Selective risk and the risk gate depend on the mix of rows in each pool, which is made, not "
        "met: for "
        "topic gaps there are about as many as the set has questions.",
    )
    return "\n".join(_bullet(line) for line in lines)


def _bullet(text: str) -> str:
    return "- " + fill(text, 108, subsequent_indent="  ")
