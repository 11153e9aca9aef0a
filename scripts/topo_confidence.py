"""Everything the engine measures on one retrieval, in the terminal.

    python scripts/topo_confidence.py
    python scripts/topo_confidence.py --set scifact --model usem3 --query 7 -k 20 --loops surrogate
    python scripts/topo_confidence.py --npz retrieval.npz --parents parents.json --plot report.png

`--npz` holds the arrays `query` (d,) and `passages` (n, d). With neither a file nor a set, query 0 of squad2
is shown, or vectors made for the purpose when there is no data folder. The exit code is 2 for bad input.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from _data import EMBEDDERS, SETS, FloatArray, data_folder, nearest, unit_rows
from _report_text import record, text

from rag_confidence import EngineReport, plots, report_from_embeddings
from rag_confidence._optional import require
from rag_confidence.engine.relevance import DUPLICATE_COSINE

PANELS = [["relevance", "barcode"], ["tree", "graph"], ["betti", "graph"]]


@dataclass(frozen=True)
class Retrieval:
    """A query (d,), its passages (n, d) as served, and where they came from."""

    source: str
    query: FloatArray
    passages: FloatArray
    texts: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    options = parse(arguments)
    try:
        found = retrieval(options)
        report = report_from_embeddings(
            found.query, found.passages, parents(options.parents), loops=options.loops, seed=options.seed
        )
        if options.plot is not None:
            draw(report, options.plot)
    except (ValueError, TypeError, OSError, ImportError) as problem:
        print(f"topo_confidence.py: {problem}", file=sys.stderr)
        return 2
    same = copies(report, found)
    if options.json:
        print(record(report, found.source, same))
    else:
        print(text(report, found.source, same, len(found.passages), found.texts))
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Show the full engine report of one retrieval.")
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--npz", type=Path, help="file with the arrays query (d,) and passages (n, d)")
    of.add_argument("--set", choices=SETS, help="real retrieval set (default: squad2, if it is there)")
    parser.add_argument("--model", choices=EMBEDDERS, default="minilm", help="embedder (%(default)s)")
    parser.add_argument("--query", type=int, default=0, help="row of the query in the set (%(default)s)")
    parser.add_argument("-k", type=int, default=10, help="passages to retrieve from the set (%(default)s)")
    parser.add_argument("--data", type=Path, help="folder of the sets (or RAG_CONFIDENCE_DATA)")
    parser.add_argument("--parents", type=Path, help="JSON list: parent of each passage, null for the root")
    parser.add_argument(
        "--loops", choices=("off", "ratio", "surrogate"), default="ratio", help="(%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the probe and the surrogates (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--plot", type=Path, help="draw the report into this file as well")
    return parser.parse_args(arguments)


def retrieval(options: argparse.Namespace) -> Retrieval:
    """The retrieval that was asked for; made vectors when nothing was asked and there is no data."""
    if options.npz is not None:
        return from_file(options.npz)
    try:
        folder = data_folder(options.data)
    except FileNotFoundError:
        if options.set is not None or options.data is not None:
            raise
        return made_up()
    return from_set(folder / (options.set or "squad2"), options)


def from_file(path: Path) -> Retrieval:
    """The arrays `query` and `passages` of an .npz file."""
    wanted = "--npz must be an .npz file with the arrays `query` (d,) and `passages` (n, d)"
    try:
        with np.load(path) as file:
            held = dict(file)
    except (ValueError, TypeError, AttributeError, EOFError, BadZipFile) as problem:
        raise ValueError(f"{wanted}; got {path}, which NumPy cannot read as one.") from problem
    if not {"query", "passages"} <= set(held):
        raise ValueError(f"{wanted}; got {', '.join(held) or 'no arrays'} in {path}.")
    return Retrieval(str(path), held["query"], held["passages"])


def from_set(folder: Path, options: argparse.Namespace) -> Retrieval:
    """The k nearest passages of a set to one of its queries, by exact search."""
    with np.load(folder / f"emb_{options.model}.npz") as file:
        queries, corpus = file["queries"].astype(np.float32), file["corpus"].astype(np.float32)
    if not 0 <= options.query < len(queries):
        raise ValueError(f"--query must be 0 to {len(queries) - 1} in {folder.name}; got {options.query}.")
    if not 1 <= options.k < len(corpus):
        raise ValueError(f"-k must be 1 to {len(corpus) - 1} in {folder.name}; got {options.k}.")
    query = queries[options.query]
    rows = nearest(query[None], corpus, options.k)[0][0]
    question = lines(folder / "queries.jsonl")[options.query]
    passages = lines(folder / "corpus.jsonl")
    source = f"{folder.name}, {options.model}, query {options.query}: {question}"
    return Retrieval(source, query, corpus[rows], tuple(passages[row] for row in rows))


def lines(path: Path) -> list[str]:
    """The texts of a .jsonl file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def made_up() -> Retrieval:
    """Seeded vectors in two groups, with a near copy of the best passage and a stray one."""
    rng = np.random.default_rng([2026, 0])
    query, *groups = rng.standard_normal((3, 64))
    near = query + groups[0] + 0.5 * rng.standard_normal((5, 64))
    far = query + 1.2 * groups[1] + 0.5 * rng.standard_normal((3, 64))
    copy, stray = near[0] + 0.05 * rng.standard_normal(64), rng.standard_normal(64)
    return Retrieval("made vectors (no data folder)", query, np.vstack([near, far, copy, stray]))


def parents(path: Path | None) -> list[int | None] | None:
    """The list of parents in a JSON file."""
    if path is None:
        return None
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ValueError(f"--parents must be a JSON file; got {path} ({problem}).") from problem
    if not isinstance(given, list):
        raise ValueError(f"--parents must hold a list such as [null, 0, 0]; got {type(given).__name__}.")
    return given


def copies(report: EngineReport, found: Retrieval) -> dict[int, int]:
    """For each near duplicate that the report leaves out, the passage in it that it resembles most."""
    unit = unit_rows(np.asarray(found.passages, dtype=np.float64))
    left_out = sorted(set(range(len(unit))) - set(report.nodes.tolist()))
    nearest = {row: unit[report.nodes] @ unit[row] for row in left_out}
    return {row: int(report.nodes[c.argmax()]) for row, c in nearest.items() if c.max() > DUPLICATE_COSINE}


def draw(report: EngineReport, path: Path) -> None:
    """Five plots of the report in one picture."""
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(12, 12), layout="constrained")
    panels = figure.subplot_mosaic(PANELS)
    plots.plot_relevance(report, panels["relevance"])
    plots.plot_barcode(report, panels["barcode"])
    plots.plot_merge_tree(report, panels["tree"])
    plots.plot_passage_graph(report, panels["graph"])
    plots.plot_betti_curve(report, panels["betti"])
    figure.savefig(path)


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # `| head` ends the script without a traceback; Windows has no such signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
