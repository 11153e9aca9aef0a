"""Words of the pages that do not depend on the results."""

from __future__ import annotations

from collections.abc import Mapping

STRATA: Mapping[str, str] = {
    "natural": "The queries of each set on its own corpus, labelled as the set labels them.",
    "near miss": "On topic, but the annotators found no answer in the corpus.",
    "ranking failure": "The evidence is in the corpus, but not among the k passages.",
    "withheld evidence": "A random half of the answerable queries, whose relevant passages were taken out of "
    "the corpus before retrieval.",
    "topic gap": "Queries of sets on other subjects, on this corpus.",
}
CAPTIONS: Mapping[str, str] = {
    "labels.png": "What scores gain over the best cosine by number of labels",
    "strata.png": "Mean AUROC by the kind of negatives",
}
AGAIN = """```sh
python scripts/evaluate.py FOLDER{quick}
```"""
METHOD = """\
- Rows: {queries}. A stratum of a pair counts when each class has at least 25 rows, and the corpus at
  least 100 passages.
- Profile: {sample} passages of the corpus and {query_sample} queries, drawn at random without labels. The
  queries are ones that are not evaluated where a set has enough of them (here: {held_out}); else they are
  drawn from the evaluated ones, of which the profile sees no label. Served lists: the k nearest passages of
  these queries. Candidates: the cosines of the 20 nearest passages.
- Nothing learned from a set is tested on it, except on rows that were not drawn: ConfidenceModel starts from
  a prior learned on the other sets.
- Learned scores: {draws} draws of labels, each class in its share, three of each at least; tested on all
  other rows, at least as many. Logistic regression on sorted scores has a ridge of 1 on standardised cosines,
  which is stronger here than one chosen by cross-validation inside the drawn rows. On near misses and
  ranking failures the learned scores are those of the natural rows.
- AURC and E-AURC: area under the risk-coverage curve, and what it exceeds the best order by; low is good.
  nAUC: area under the abstention curve between 0 (random) and 1 (best order), as in MTEB (Gisserot-Boukhlef
  and others 2024, TMLR). Acceptance: largest share of rows accepted by a cut that accepts at most 10 % of the
  insufficient rows, the cut chosen on the same rows; `sufficient accepted` is the share of sufficient rows it
  accepts. Brier: of the probability; a score without labels is none, so Platt's method maps it, cross-fitted
  in five folds.
- Intervals: paired percentile bootstrap over queries, {rounds} rounds ({learned_rounds} for learned scores),
  the same draws for all scores and embedders of a set. They hold the sets fixed: another set may differ by
  more. p-values of one table are adjusted by Holm's method; with this many rounds none can be lower than the
  number of scores times 2 / {rounds}.
- Predictors from the literature are implemented without tuning; where they have parameters, the plainest
  choice: the score of the corpus in NQC and SMV is the mean cosine with the sampled passages, A-Ratio
  compares the two halves of the list, entries multiplied element by element and without the diagonal."""
