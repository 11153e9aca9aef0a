"""Ask a question over a folder of text and see whether its passages are good enough to answer from.

    python scripts/ask.py "How is the grounding gate fitted?"
    python scripts/ask.py "When does the gate reject?" --folder ~/notes -k 5 --json

Everything runs offline. The exit code is 0 whatever the verdict, and 2 when there is nothing to ask.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from _corpus import SUFFIXES, Corpus, Passage, read_folder, read_project
from _grounding import EVERYDAY_QUESTIONS, TOP, GroundingSample, grounding_sample
from _retrieval import EMBEDDER_NAME, Hits, load_embedder, nearest

from rag_confidence import MetricPolicy, RagConfidenceMetrics, score

PROJECT = Path(__file__).resolve().parents[1]
CANDIDATES = 50
SNIPPET_CHARACTERS = 100
FEW = 20
FEW_WARNING = (
    f"Fewer than {FEW} passages: the gate is coarse, and at most half of the text is retrieved.",
    "With so little text, cohesion and consistency describe the whole of it more than the question.",
)


@dataclass(frozen=True)
class Answer:
    """A scored retrieval and all that was needed to make it."""

    corpus: Corpus
    hits: Hits
    sample: GroundingSample
    policy: MetricPolicy
    metrics: RagConfidenceMetrics


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    forgive_encoding()
    try:
        check(options)
        answer = ask(options)
    except (ValueError, ImportError) as problem:
        print(f"ask.py: {problem}", file=sys.stderr)
        return 2
    show(options, answer)
    return 0


def forgive_encoding() -> None:
    """Let a console that cannot show a character show "?" for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Score the retrieval for a question over a folder of text.")
    parser.add_argument("question", help="what to ask")
    parser.add_argument("--folder", type=Path, help="folder to search (default: this project's documents)")
    parser.add_argument("-k", type=int, default=8, help="passages to retrieve (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the JSON record alone")
    parser.add_argument("--seed", type=int, default=0, help="seed of the probe (default: %(default)s)")
    return parser.parse_args(arguments)


def check(options: argparse.Namespace) -> None:
    """Refuse what cannot be asked before anything is read or loaded."""
    if not options.question.strip():
        raise ValueError("the question must hold at least one word; got an empty one.")
    if options.k < 1:
        raise ValueError(f"-k must be at least 1; got {options.k}.")
    if options.seed < 0:
        raise ValueError(f"--seed must be at least 0; got {options.seed}.")
    if options.folder is not None and not options.folder.is_dir():
        raise ValueError(f"--folder must be an existing folder; got {options.folder}.")


def ask(options: argparse.Namespace) -> Answer:
    """Read, embed, retrieve, fit the grounding gate and score."""
    corpus = read(options.folder)
    embed = load_embedder()
    vectors = embed([passage.content for passage in corpus.passages])
    question = embed([options.question])[0]
    hits = nearest(question, vectors, max(options.k, CANDIDATES))
    sample = grounding_sample(corpus.passages, vectors, embed, min(TOP, options.k))
    policy = gate(sample, len(corpus.passages))
    served = hits.first(min(options.k, max(1, len(corpus.passages) // 2)))
    metrics = score(
        question,
        vectors[served.rows],
        texts=[corpus.passages[row].text for row in served.rows],
        policy=policy,
        candidates=hits.cosines,
        query_text=options.question,
        embedder=EMBEDDER_NAME,
        k_requested=options.k,
        seed=options.seed,
    )
    return Answer(corpus, served, sample, policy, metrics)


def gate(sample: GroundingSample, n_passages: int) -> MetricPolicy:
    """The gate fitted to the text, or one sentence about why it cannot be."""
    try:
        return MetricPolicy.fit_grounding(sample.on_topic, sample.off_topic)
    except ValueError as error:
        raise ValueError(
            f"the text is too short or too mixed to fit the grounding gate on ({n_passages} passages): its "
            "own sentences are hardly nearer to it than everyday questions. Add text on its subjects."
        ) from error


def read(folder: Path | None) -> Corpus:
    """Passages of the folder, by default of this project's own documents."""
    corpus = read_project(PROJECT) if folder is None else read_folder(folder)
    if not corpus.passages:
        where = "this project" if folder is None else folder
        kinds = ", ".join(SUFFIXES)
        raise ValueError(f"{where} must hold text in {kinds} files; found none.{skipped(corpus)}")
    return corpus


def show(options: argparse.Namespace, answer: Answer) -> None:
    """Print the card; with --json the record goes to stdout and what was done to stderr."""
    record = json.dumps(answer.metrics.to_dict(), indent=2, allow_nan=False)
    if options.json:
        print(done(answer), file=sys.stderr)
        print(record)
        return
    card = f"{answer.metrics.narrate(snippets=True)}\n\n  {lost(answer.metrics)}"
    parts = {"Read": done(answer), "Found": passages(answer), "Explained": card, "JSON": record}
    print("\n\n".join(f"== {title}\n{body}" for title, body in parts.items()))


def done(answer: Answer) -> str:
    """What was read and how the gate was fitted, in sentences."""
    corpus, policy, sample = answer.corpus, answer.policy, answer.sample
    return "\n".join(
        (
            f"{len(corpus.passages)} passages from {corpus.n_files} files.{skipped(corpus)}",
            f"Embedder: {EMBEDDER_NAME}, offline.",
            f"Grounding gate: fitted to this text without labels, centre {policy.grounding_center:.3f}, "
            f"scale {policy.grounding_scale:.3f},",
            f"  on {len(sample.on_topic)} questions made from its headings and sentences (the own passage "
            "left out)",
            f"  and {len(sample.off_topic)} of {len(EVERYDAY_QUESTIONS)} everyday questions, "
            "those that it does not cover.",
            *(FEW_WARNING if len(corpus.passages) < FEW else ()),
        )
    )


def skipped(corpus: Corpus) -> str:
    """A sentence about the files that are not text, empty if there are none."""
    if not corpus.skipped:
        return ""
    names = ", ".join(corpus.skipped[:3]) + (", ..." if len(corpus.skipped) > 3 else "")
    return f" Skipped as not readable UTF-8 text: {len(corpus.skipped)} ({names})."


def passages(answer: Answer) -> str:
    """Two lines for each passage: index (as in the card), cosine and place; the start of its text."""
    found = [answer.corpus.passages[row] for row in answer.hits.rows]
    return "\n".join(
        f"  [{index}] {cosine:+.3f}  {passage.place}\n              {snippet(passage)}"
        for index, (passage, cosine) in enumerate(zip(found, answer.hits.cosines, strict=True))
    )


def lost(metrics: RagConfidenceMetrics) -> str:
    """What keeps the confidence below 100, the costliest signal first."""
    costs = [(part.signal.replace("_", " "), part.points_lost) for part in metrics.explain()]
    named = [f"{signal} {points:.1f}" for signal, points in costs if points >= 0.1]
    return f"points lost, each signal alone: {', '.join(named) or 'none'}"


def snippet(passage: Passage) -> str:
    """The start of a passage on one line."""
    return shorten(passage.text, SNIPPET_CHARACTERS, placeholder="...")


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # `| head` ends the script without a traceback; Windows has no such signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
