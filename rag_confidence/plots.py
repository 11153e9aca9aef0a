"""Pictures of one retrieval: each function draws into an Axes and returns it.

Needs matplotlib (extra `plots`), which is imported at the first call that has to make a figure. Passages
are named by their served position, as everywhere in the library.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_confidence._optional import require
from rag_confidence._types import Signal
from rag_confidence.engine.report import EngineReport
from rag_confidence.product.metrics import RagConfidenceMetrics
from rag_confidence.product.policy import MetricPolicy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIRST, _OTHER, _QUIET = "#1b4f72", "#ca6f1e", "#7f8c8d"
_LABEL_BOX = {"boxstyle": "circle,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
_BANDS = ("#f2d7d5", "#fcf3cf", "#d4efdf")
_LABELS_ACROSS, _LABELS_DOWN = 10, 30
_MOST_DETAILED = 50
_LEAST_DISTANCE = 0.05


def plot_relevance(report: EngineReport, ax: Axes | None = None) -> Axes:
    """Cosines to the query in descending order, with the mean that the grounding gate reads.

    Parameters
    ----------
    report : EngineReport
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The title counts the near duplicates, which a flat report leaves out.
    """
    ax = _axes(ax)
    order = np.argsort(-report.cosines, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    ax.plot(ranks, report.cosines[order], "o-", color=_FIRST, linewidth=1, markersize=4)
    level = float(report.signals["mean_top3_cosine"][0])
    ax.axhline(level, color=_OTHER, linestyle="--", label=f"mean of the best 3: {level:.3f}")
    step = _step(len(order), _LABELS_ACROSS)
    ax.set_xticks(ranks[::step], [str(place) for place in report.nodes[order][::step]])
    distinct, served = int(report.signals["effective_k"][0]), int(report.signals["n_shape"][0])
    ax.set(title=f"Relevance: {distinct} distinct of {served} passages measured")
    ax.set(xlabel="passage, best first", ylabel="cosine to the query")
    ax.legend(loc="best", fontsize="small")
    return ax


def plot_barcode(report: EngineReport, ax: Axes | None = None) -> Axes:
    """H0 barcode: one bar for each region of relevance, from its birth down to its death.

    Parameters
    ----------
    report : EngineReport
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        The first bar, the longest, never dies: it is cut where all passages are connected, and an arrow
        says that it goes on. The others end where they merge with an older one. A dot marks the birth.
    """
    ax = _axes(ax)
    bars, rows = report.barcode.bars, np.arange(report.barcode.n_components)
    colours = [_FIRST, *[_OTHER] * (len(rows) - 1)]
    ax.use_sticky_edges = False
    ax.barh(rows, bars[:, 0] - bars[:, 1], left=bars[:, 1], height=0.5, color=colours)
    ax.scatter(bars[:, 0], rows, color=colours, zorder=3)
    ax.plot(bars[0, 1], 0, "<", color=_FIRST, markersize=12)
    step = _step(len(rows), _LABELS_DOWN)
    owners = report.nodes[report.barcode.representatives]
    ax.set_yticks(rows[::step], [str(place) for place in owners[::step]])
    ax.set_ylim(max(len(rows), 4) - 0.4, -0.6)
    ax.set(title=f"Barcode: {_counted(len(rows), 'region')}", xlabel="cosine (arrow: never dies)")
    ax.set(ylabel="best passage of the region")
    return ax


def plot_merge_tree(report: EngineReport, ax: Axes | None = None) -> Axes:
    """Merge tree: which region of relevance joins which, and at what cosine.

    Parameters
    ----------
    report : EngineReport
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        A line starts at the cosine of the best passage of its region and ends in the older region that
        absorbs it. Circles are passages that join a region as soon as they appear.
    """
    ax = _axes(ax)
    code, columns = report.barcode, _columns(report)
    bottom = code.floor
    for v, x in columns.items():
        colour, end = (_FIRST, bottom) if code.elder[v] < 0 else (_OTHER, float(code.death[v]))
        ax.plot([x, x], [code.birth[v], end], "-", color=colour, linewidth=2)
        ax.annotate(str(report.nodes[v]), (x, code.birth[v]), (0, 5), textcoords="offset points", ha="center")
        if code.elder[v] >= 0:
            ax.plot([columns[int(code.elder[v])], x], [end, end], "-", color=colour, linewidth=1)
    joined = [(columns[_owner(report, v, columns)], code.birth[v]) for v in _joined(report, columns)]
    if joined:
        ax.plot(*zip(*joined, strict=True), "o", color=_QUIET, markersize=4, zorder=3, label="joins at once")
        ax.legend(loc="best", fontsize="small")
    ax.plot(0, bottom, "v", color=_FIRST, markersize=9)
    ax.margins(0.06, 0.12)
    ax.set_xticks([])
    ax.set(title=f"Merge tree: {_counted(len(columns) - 1, 'merge')}", ylabel="cosine")
    ax.set(xlabel="regions, named by their best passage")
    return ax


def plot_passage_graph(report: EngineReport, ax: Axes | None = None) -> Axes:
    """The passages in the plane, alike ones close together, coloured by their cosine to the query.

    Parameters
    ----------
    report : EngineReport
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Dark lines are edges at which the filtration joins passages, faint ones the other edges of
        `EngineReport.to_networkx`. A ring marks the best passage of each region.

    Notes
    -----
    Kamada-Kawai layout of the chordal distances; above 50 passages the two principal components, without
    faint edges and names. Two dimensions show the distances in part only.
    """
    import networkx as nx

    ax = _axes(ax)
    graph = report.to_networkx()
    places, owners = report.nodes.tolist(), set(report.nodes[report.barcode.representatives].tolist())
    detailed = len(places) <= _MOST_DETAILED
    at = _layout(report, graph) if detailed else _projection(report)
    if detailed:
        nx.draw_networkx_edges(graph, at, ax=ax, edge_color=_QUIET, alpha=0.2)
        nx.draw_networkx_labels(graph, at, ax=ax, font_size=8, bbox=_LABEL_BOX)
    nx.draw_networkx_edges(graph, at, edgelist=_spanning_edges(graph), ax=ax, edge_color=_FIRST, width=1.5)
    points = ax.scatter(
        [at[place][0] for place in places],
        [at[place][1] for place in places],
        c=report.cosines,
        s=260 if detailed else 40,
        cmap="YlGnBu",
        edgecolors=["black" if place in owners else _QUIET for place in places],
        linewidths=[2.5 if place in owners else 0.5 for place in places],
        zorder=2,
    )
    ax.figure.colorbar(points, ax=ax, label="cosine to the query")
    ax.margins(0.12)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(title=f"Passage graph: {_counted(len(places), 'passage')}", xlabel="nearer = more alike, roughly")
    return ax


def plot_betti_curve(report: EngineReport, ax: Axes | None = None) -> Axes:
    """Number of separate regions of relevance among the passages above each cosine.

    Parameters
    ----------
    report : EngineReport
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Exact: the steps are at the births and deaths of the bars. One region is a focused retrieval.
    """
    ax = _axes(ax)
    levels = np.unique(report.barcode.bars)
    room = max(0.1 * float(np.ptp(levels)), 0.01)
    edges = np.concatenate([[levels[0] - room], levels, [levels[-1] + room]])
    counts = report.betti_curve(edges[1:])
    ax.stairs(counts, edges, color=_FIRST, linewidth=2, baseline=None)
    ax.set_ylim(0, counts.max() + 0.5)
    ax.set_yticks(range(0, int(counts.max()) + 1, _step(int(counts.max()), _LABELS_ACROSS)))
    ax.set(title="Betti curve", xlabel="cosine", ylabel="regions above this cosine")
    return ax


def plot_signals(
    metrics: RagConfidenceMetrics, ax: Axes | None = None, *, policy: MetricPolicy | None = None
) -> Axes:
    """The five signals on 0..100 over their bands, with the floors that change the verdict.

    Parameters
    ----------
    metrics : RagConfidenceMetrics
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    policy : MetricPolicy, optional
        The policy that the metrics were scored with, which owns bands and floors; the default one if
        omitted.

    Returns
    -------
    matplotlib.axes.Axes
        A signal that was not assessed has a hatched row and no value.

    Raises
    ------
    ValueError
        If the metrics were scored with another policy.
    """
    policy = policy or MetricPolicy()
    record = metrics.to_dict()
    if policy.fingerprint != record["policy_fingerprint"]:
        raise ValueError(
            f"`policy` must be the one that scored `metrics` ({record['policy_fingerprint']}); "
            f"got {policy.fingerprint}. Pass the policy that score() was given."
        )
    ax = _axes(ax)
    for row, signal in enumerate(Signal):
        _signal_row(ax, row, record, signal, policy)
    ax.set_yticks(range(len(Signal)), [signal.replace("_", " ") for signal in Signal])
    ax.set(xlim=(0, 100), ylim=(len(Signal) - 0.4, -0.6))
    ax.set(xlabel="signal, 0 to 100 (shaded: bands; line: floor)")
    ax.set(title=f"{metrics.verdict.value}: retrieval confidence {record['retrieval_confidence']:.1f}")
    return ax


def _signal_row(ax: Axes, row: int, record: dict[str, Any], signal: Signal, policy: MetricPolicy) -> None:
    value, band = record[signal], record[f"{signal}_band"]
    if value is None:
        ax.barh(row, 100, height=0.8, color="white", edgecolor=_QUIET, hatch="//", label="_not assessed")
        ax.text(50, row, "not assessed", ha="center", va="center", backgroundcolor="white")
        return
    high, low = policy.signal_cuts[signal]
    ax.barh(3 * [row], [low, high - low, 100 - high], left=[0, low, high], height=0.8, color=_BANDS)
    ax.barh(row, value, height=0.3, color=_FIRST, label="_value")
    ax.vlines(policy.signal_floors[signal], row - 0.4, row + 0.4, color=_OTHER, linewidth=2)
    ax.text(101, row, f"{value:.1f} {band}", va="center")


def _axes(ax: Axes | None) -> Axes:
    """The given Axes, or those of a new pyplot figure, which notebooks show by themselves."""
    if ax is not None:
        return ax
    made: Axes = require("matplotlib.pyplot", extra="plots").subplots(layout="constrained")[1]
    return made


def _columns(report: EngineReport) -> dict[int, int]:
    """Column of each vertex that owns a bar, such that no line of the merge tree crosses another."""
    code = report.barcode
    first, *others = code.representatives.tolist()
    younger = defaultdict(list)
    for v in sorted(others, key=lambda v: code.death[v]):
        younger[int(code.elder[v])].append(v)
    columns: dict[int, int] = {}
    waiting = [first]
    while waiting:
        v = waiting.pop()
        columns[v] = len(columns)
        waiting += younger[v]
    return columns


def _joined(report: EngineReport, columns: dict[int, int]) -> list[int]:
    return [v for v in range(len(report.nodes)) if v not in columns]


def _owner(report: EngineReport, vertex: int, columns: dict[int, int]) -> int:
    """The vertex whose line a passage joins as it appears."""
    while vertex not in columns:
        vertex = int(report.barcode.elder[vertex])
    return vertex


def _layout(report: EngineReport, graph: Any) -> dict[int, Any]:
    """Kamada-Kawai positions; it cannot place two passages at one point, so no distance is 0."""
    import networkx as nx

    places = report.nodes.tolist()
    rows = np.maximum(report.distances, _LEAST_DISTANCE).tolist()
    lengths = {place: dict(zip(places, row, strict=True)) for place, row in zip(places, rows, strict=True)}
    positions: dict[int, Any] = nx.kamada_kawai_layout(graph, dist=lengths)
    return positions


def _projection(report: EngineReport) -> dict[int, Any]:
    """Positions on the two principal components of the passages."""
    centred = report.gram - report.gram.mean(axis=0) - report.gram.mean(axis=1)[:, None] + report.gram.mean()
    values, vectors = np.linalg.eigh(centred)
    plane = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    return dict(zip(report.nodes.tolist(), plane, strict=True))


def _spanning_edges(graph: Any) -> list[tuple[int, int]]:
    """Edges at which the filtration joins passages; of those at one level, the most alike pairs."""
    import networkx as nx

    ranked = nx.Graph()
    by_level = sorted(graph.edges(data=True), key=lambda edge: (edge[2]["level"], edge[2]["cosine"]))
    ranked.add_edges_from((u, v, {"rank": rank}) for rank, (u, v, _) in enumerate(by_level))
    return list(nx.maximum_spanning_edges(ranked, weight="rank", data=False))


def _step(count: int, room: int) -> int:
    """Every how many-th label is written, so that at most `room` are."""
    return max(1, -(-count // room))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
