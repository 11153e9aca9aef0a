"""What the audits and the demonstration return."""

from __future__ import annotations

from pydantic import Field

from rag_confidence.adapters._mcp.results import ProportionResult, Result


class BinResult(Result):
    """Scores of one interval beside what was observed there."""

    low: float = Field(description="Lower end, included.")
    high: float = Field(description="Upper end, excluded but for the last bin.")
    count: int = Field(description="Rows in it.")
    mean_score: float | None = Field(description="What the scores say; null for an empty bin.")
    observed_rate: float | None = Field(description="Share of sufficient rows.")
    observed_low: float | None = Field(description="Lower end of its 95 % interval.")
    observed_high: float | None = Field(description="Upper end of its 95 % interval.")


class ConfusionResult(Result):
    """What accepting every score from a threshold on does."""

    threshold: float = Field(description="Scores of at least this are accepted.")
    true_accepts: int = Field(description="Accepted and sufficient.")
    false_accepts: int = Field(description="Accepted and insufficient.")
    false_rejects: int = Field(description="Not accepted and sufficient.")
    true_rejects: int = Field(description="Not accepted and insufficient.")
    acceptance: ProportionResult = Field(description="Accepted among all rows.")
    false_sufficiency: ProportionResult = Field(description="Accepted among the insufficient rows.")
    selective_risk: ProportionResult = Field(description="Insufficient among the accepted rows.")
    sufficient_accepted: ProportionResult = Field(description="Accepted among the sufficient rows.")


class RiskCoverageResult(Result):
    """Share of wrong rows among the best-scored ones, at some cuts."""

    thresholds: list[float] = Field(description="Cuts, descending.")
    coverage: list[float] = Field(description="Share of rows accepted at each cut.")
    risk: list[float] = Field(description="Share of insufficient rows among those.")
    aurc: float = Field(description="Area under the whole curve; low is good.")
    optimum: float = Field(description="Area of the best order of these rows.")
    e_aurc: float = Field(description="aurc - optimum; 0 is best.")


class AuditResult(Result):
    """Scores against labels: as probabilities, as a ranking, and at a threshold."""

    n: int = Field(description="Rows.")
    n0: int = Field(description="Insufficient rows.")
    n1: int = Field(description="Sufficient rows.")
    prevalence: float = Field(description="Share of sufficient rows.")
    brier: float = Field(description="Mean squared error of the score as a probability; low is good.")
    miscalibration: float = Field(description="The part that a monotone recalibration would save.")
    discrimination: float = Field(description="What the recalibrated score saves; high is good.")
    uncertainty: float = Field(description="Brier score of always saying the prevalence.")
    ece: float = Field(description="Expected calibration error, equal-width bins; low is good.")
    ece_equal_mass: float = Field(description="The same with bins of about equally many rows.")
    ece_debiased: float | None = Field(description="Calibration error (L2) less what chance adds.")
    auroc: float | None = Field(description="Ties count one half; null if a label is missing.")
    auroc_low: float | None = Field(description="Lower end of its 95 % interval.")
    auroc_high: float | None = Field(description="Upper end of its 95 % interval.")
    bins: list[BinResult] = Field(description="Reliability, bin by bin.")
    confusion: ConfusionResult = Field(description="Counts and rates at the threshold.")
    risk_coverage: RiskCoverageResult = Field(description="The risk-coverage curve at some cuts.")
    target_risk: float = Field(description="The selective risk that acceptance_at_target refers to.")
    acceptance_at_target: float = Field(description="Largest share accepted at that risk on these rows.")
    warnings: list[str] = Field(description="What speaks against the numbers; empty if nothing does.")


class DemoMethodResult(Result):
    """Rates of one method on the test rows."""

    name: str = Field(description="A fixed threshold, or the conformal gate.")
    false_sufficiency_rate: float = Field(description="Insufficient rows that were accepted.")
    true_false_sufficiency_rate: float = Field(description="The same over all rows there could be.")
    selective_risk: float | None = Field(description="Accepted rows that are insufficient.")
    sufficient_accepted: float = Field(description="Sufficient rows that were accepted.")
    coverage_0: float | None = Field(description="Insufficient rows whose label was kept.")
    coverage_1: float | None = Field(description="Sufficient rows whose label was kept.")
    acceptance_rate: float = Field(description="Rows that were accepted.")
    rejection_rate: float = Field(description="Rows that were rejected.")
    abstention_rate: float = Field(description="Rows that were abstained on.")
    conflict_rate: float = Field(description="Rows that are strange for both labels.")


class DemoResult(Result):
    """Fixed thresholds and a conformal gate on made-up retrievals."""

    seed: int = Field(description="Seed of the rows.")
    alpha: float = Field(description="Level of the gate.")
    n0: int = Field(description="Insufficient calibration rows.")
    n1: int = Field(description="Sufficient calibration rows.")
    test_n0: int = Field(description="Insufficient test rows.")
    test_n1: int = Field(description="Sufficient test rows.")
    q0: float | None = Field(description="Threshold of the gate; null if infinite.")
    q0_infinite: bool = Field(description="Too few insufficient rows for alpha.")
    q1: float | None = Field(description="Threshold of the gate; null if infinite.")
    q1_infinite: bool = Field(description="Too few sufficient rows for alpha.")
    methods: list[DemoMethodResult] = Field(description="Three fixed thresholds, then the gate.")
    fsr_band: tuple[float, float] = Field(description="95 % band of a sound gate's rate on such a draw.")
    sentence: str = Field(description="Where the gate's false-sufficiency rate lies.")
    table: str = Field(description="The methods as a text table.")


class TrapResult(Result):
    """An insufficient row that the threshold accepts."""

    rank: int = Field(description="1 for the highest score.")
    row: int = Field(description="Its place in the input, from 0.")
    score: float = Field(description="Its score.")
    item_id: str | int | None = Field(description="Its name, if names were sent.")
    query: str | None = Field(description="Its query, if queries were sent.")
    passage: str | None = Field(description="Its passage, if passages were sent.")
    word_overlap: float | None = Field(description="Share of the query's content words in the passage.")


class TrapsResult(Result):
    """Rows to read: high scores on insufficient evidence."""

    threshold: float = Field(description="Scores of at least this are accepted.")
    traps: list[TrapResult] = Field(description="The highest scores first, at most max_traps of them.")
    n_traps: int = Field(description="Traps in all.")
    n: int = Field(description="Rows.")
    n_insufficient: int = Field(description="Insufficient rows.")
    n_accepted: int = Field(description="Rows that the threshold accepts.")
    share_of_insufficient: float | None = Field(description="Traps among the insufficient rows.")
    share_of_accepted: float | None = Field(description="Traps among the accepted rows.")
    mean_word_overlap: float | None = Field(description="Mean over all traps that have one.")
    summary: str = Field(description="All of it in a sentence or two.")
    warnings: list[str] = Field(description="What was left out.")
