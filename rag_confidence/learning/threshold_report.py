"""Findings on thresholds: which never fire here, which always do, and which never decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_confidence.conformal.binomial import binomial_upper
from rag_confidence.learning.findings import Finding, Severity, finding
from rag_confidence.learning.inert import LEAST_ROWS, BandUse, ThresholdUse
from rag_confidence.learning.wording import listed, of_all, percent, plain, rows

_MISS = 0.05
# The end of the scale of all that fires below a threshold, as it is shown.
_END = 100.0


def about_thresholds(uses: Sequence[ThresholdUse], n: int, *, profiled: bool) -> Iterator[Finding]:
    """Findings on the thresholds of one policy, on `n` scored retrievals that it was used for.

    `profiled` says whether grounding is that of a corpus profile.
    """
    if n < LEAST_ROWS:
        yield _too_few(n)
        return
    for use in uses:
        if use.always:
            yield _always(use, profiled)
        elif use.nearly_always:
            yield _nearly_always(use, profiled)
        elif use.never:
            yield from _never(use, profiled)
    told = [use for use in uses if use.always or use.nearly_always or not use.fired]
    shadowed = [use for use in uses if use not in told and not use.decided and use.n >= LEAST_ROWS]
    if shadowed:
        yield _shadowed(shadowed)


def about_bands(bands: Sequence[BandUse]) -> Iterator[Finding]:
    """One finding on all words that no retrieval was given."""
    unused = [f"{band.reads} {word!r}" for band in bands for word in band.unused]
    if unused:
        n = sum(bands[0].counts)
        yield finding(
            "bands_unused",
            "note",
            f"Words that none of the {rows(n, 'retrieval')} got: {listed(unused, 12)}.",
            "Move the cuts of these bands in MetricPolicy if people read the words, or ignore them.",
            n=n,
            unused=unused,
        )


def unknown_policy(count: int, n: int) -> Finding:
    """The records do not say what their policy was."""
    return finding(
        "policy_unknown",
        "advice",
        f"Thresholds were not checked for {of_all(count, n)} retrievals: records hold a hash of their "
        "policy, not its constants.",
        "Pass the policy that scored them: diagnose(metrics, policy=policy).",
        count=count,
        n=n,
    )


def _too_few(n: int) -> Finding:
    return finding(
        "too_few_for_thresholds",
        "note",
        f"Whether a threshold is inert cannot be said from {rows(n, 'scored retrieval')}: at least "
        f"{LEAST_ROWS} are needed.",
        "Pass a larger part of the log.",
        n=n,
        needed=LEAST_ROWS,
    )


def _never(use: ThresholdUse, profiled: bool) -> Iterator[Finding]:
    # A floor of 0 was switched off on purpose.
    if use.value == 0.0:
        return
    most = binomial_upper(0, use.n, _MISS)
    # A rare conflict, or no question on another subject, is what one hopes for.
    hoped = use.reads == "contradiction" or (profiled and use.name == "grounding_min")
    word = "reaches it" if use.fires == "at least" else "falls below it"
    yield finding(
        "threshold_never_fires",
        "note" if hoped else "warning",
        f"`{use.name}` = {plain(use.value)} never fires: {_named(use)} {word} in none of {use.n} retrievals "
        f"({_range(use)}). With 95 % confidence it fires on fewer than {100 * most:.2g} % of such questions.",
        _advice(use, profiled),
        **_numbers(use),
    )


def _always(use: ThresholdUse, profiled: bool) -> Finding:
    withholds = use.name in ("grounding_min", "review_at")
    word = "reaches it" if use.fires == "at least" else "is below it"
    severity: Severity = "problem" if use.decided or withholds else "warning"
    effect = {
        "grounding_min": " Every retrieval is called off topic.",
        "review_at": " Nothing but ABSTAIN or ESCALATE can come out.",
        "answer_at": " Nothing can be answered.",
    }.get(use.name, " It says nothing about the single retrieval.")
    return finding(
        "threshold_always_fires",
        severity,
        f"`{use.name}` = {plain(use.value)} always fires: {_named(use)} {word} in all {use.n} retrievals "
        f"({_range(use)}).{effect}",
        _advice(use, profiled),
        **_numbers(use),
    )


def _nearly_always(use: ThresholdUse, profiled: bool) -> Finding:
    return finding(
        "threshold_nearly_always_fires",
        "warning",
        f"`{use.name}` = {plain(use.value)} fires on {of_all(use.fired, use.n)} retrievals ({_range(use)}): "
        "it hardly tells any two apart.",
        _advice(use, profiled),
        **_numbers(use),
    )


def _shadowed(uses: Sequence[ThresholdUse]) -> Finding:
    shown = [f"`{use.name}` = {plain(use.value)} ({use.fired} of {use.n})" for use in uses]
    return finding(
        "thresholds_never_decide",
        "note",
        f"These fire and never change the verdict, because another row of the verdict table stops the same "
        f"retrievals: {listed(shown)}.",
        "",
        fired={use.name: use.fired for use in uses},
        n=max(use.n for use in uses),
    )


def _named(use: ThresholdUse) -> str:
    return "the KPI" if use.reads == "kpi" else use.reads


def _range(use: ThresholdUse) -> str:
    if use.lowest == use.highest:
        return f"it is {plain(use.lowest or 0.0)} in all of them"
    return f"observed from {plain(use.lowest or 0.0)} to {plain(use.highest or 0.0)}"


def _advice(use: ThresholdUse, profiled: bool) -> str:
    tenth = _tenth(use)
    if use.name != "grounding_min":
        return f"Move it to your scale, or do not count on it: {tenth}" if _proposed(use) else tenth
    if not profiled:
        return f"Fit the gate rather than move this threshold (MetricPolicy.fit_grounding). {tenth}"
    if use.fired:
        return f"See whether the profile was fitted on this corpus, with this embedder. {tenth}"
    return "With a corpus profile it is for questions on other subjects, and rests where nobody asks any."


def _proposed(use: ThresholdUse) -> bool:
    """Whether there is a value to propose: one at the end of the scale would fire on all but that end."""
    if use.for_tenth is None:
        return False
    return use.fires == "at least" or float(plain(use.for_tenth)) < _END


def _tenth(use: ThresholdUse) -> str:
    if use.for_tenth is None:
        return "No value would fire on about 10 %: too many values are equal."
    if not _proposed(use):
        return "No value below the end of the scale would fire on about 10 %."
    share = percent(use.for_tenth_fires, use.n)
    return f"{plain(use.for_tenth)} would have fired on {use.for_tenth_fires} of {use.n} ({share})."


def _numbers(use: ThresholdUse) -> dict[str, object]:
    return {
        "name": use.name,
        "value": use.value,
        "n": use.n,
        "fired": use.fired,
        "decided": use.decided,
        "lowest": use.lowest,
        "highest": use.highest,
        "for_tenth": use.for_tenth,
        "for_tenth_fires": use.for_tenth_fires,
    }
