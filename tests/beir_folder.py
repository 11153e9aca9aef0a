"""Made-up retrieval sets on disk, in the layout of BEIR with vectors beside the texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

EMBEDDER = "tiny"
UNANSWERABLE = 0.3


def write_set(folder: Path, name: str, *, queries: int = 200, passages: int = 240, seed: int = 0) -> Path:
    """A set in `folder / name`: query i is about passage i, closely or loosely; a third has no answer.

    All vectors of a set lie around a centre of its own, so that another set is another topic.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    centre = 3.0 * rng.standard_normal(24)
    corpus = centre + rng.standard_normal((passages, 24)) * 2.0
    noise = rng.uniform(0.5, 8.0, (queries, 1))
    asked = corpus[:queries] + noise * rng.standard_normal((queries, 24))
    answerable = rng.random(queries) >= UNANSWERABLE
    place = folder / name
    (place / "qrels").mkdir(parents=True)
    lines(
        place / "corpus.jsonl",
        [{"_id": f"p{i}", "title": f"Title {i}", "text": f"word{i} text"} for i in range(passages)],
    )
    lines(place / "queries.jsonl", [{"_id": f"q{i}", "text": f"what is word{i}"} for i in range(queries)])
    judged = [f"q{i}\tp{i}\t{int(answerable[i])}" for i in range(queries)]
    judgements(place, judged)
    np.savez(
        place / f"emb_{EMBEDDER}.npz", queries=asked.astype(np.float32), corpus=corpus.astype(np.float32)
    )
    return place


def lines(path: Path, records: list[dict[str, Any]]) -> None:
    """Write one JSON object a line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def judgements(place: Path, judged: list[str]) -> None:
    """Write qrels/test.tsv under its header."""
    text = "\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n"
    (place / "qrels" / "test.tsv").write_text(text, encoding="utf-8")
