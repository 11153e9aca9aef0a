"""Plots: what is drawn is what the report and the record hold, in the Axes that the caller gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rag_confidence import (
    EngineReport,
    MetricPolicy,
    RagConfidenceMetrics,
    plots,
    report_from_embeddings,
    score,
)

pytestmark = pytest.mark.needs_extra("plots")

Plot = Callable[..., Any]

OF_A_REPORT: tuple[Plot, ...] = (
    plots.plot_relevance,
    plots.plot_barcode,
    plots.plot_merge_tree,
    plots.plot_passage_graph,
    plots.plot_betti_curve,
)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close the figures that a test made."""
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def vectors(n: int, seed: int = 0) -> tuple[Any, Any]:
    """A query and n passages around it in two groups, so that the barcode has several bars."""
    rng = np.random.default_rng([seed, n])
    query, groups = rng.standard_normal(16), rng.standard_normal((2, 16))
    passages = query + 1.2 * groups[np.arange(n) % 2] + 0.6 * rng.standard_normal((n, 16))
    return query, passages


def retrieval(n: int) -> EngineReport:
    """The report of a flat list of n passages."""
    return report_from_embeddings(*vectors(n), perturb=False)


def tree() -> EngineReport:
    """The report of a tree whose best branches are apart, with a node that repeats another."""
    query, passages = vectors(8)
    return report_from_embeddings(query, np.vstack([passages, passages[:1]]), [None, 0, 0, 1, 1, 2, 2, 6, 0])


def new_axes() -> Any:
    """Axes of a figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def rendered(ax: Any) -> Any:
    """The Axes after their figure was drawn, where late errors show."""
    ax.figure.canvas.draw()
    return ax


REPORTS: dict[str, Callable[[], EngineReport]] = {
    "one": lambda: retrieval(1),
    "two": lambda: retrieval(2),
    "ten": lambda: retrieval(10),
    "many": lambda: retrieval(70),
    "equal": lambda: report_from_embeddings([1.0, 0.0, 0.0], np.ones((5, 3))),
    "orthogonal": lambda: report_from_embeddings(np.ones(4), np.eye(4)),
    "antipodal": lambda: report_from_embeddings([1.0, 0.0], [[1.0, 0.1], [-1.0, 0.0]]),
    "tree": tree,
}


@pytest.mark.parametrize("plot", OF_A_REPORT, ids=lambda plot: plot.__name__)
@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_report_can_be_drawn(plot: Plot, report: Callable[[], EngineReport]) -> None:
    """The given Axes come back with a title, drawn without a warning."""
    ax = new_axes()
    assert plot(report(), ax) is ax
    assert rendered(ax).get_title()


@pytest.mark.parametrize("plot", OF_A_REPORT, ids=lambda plot: plot.__name__)
def test_axes_are_made_when_none_are_given(plot: Plot) -> None:
    """A new pyplot figure, which a notebook shows, holds what was drawn."""
    import matplotlib.pyplot as plt

    ax = plot(retrieval(3))
    assert [ax.figure.number] == plt.get_fignums()


@pytest.mark.parametrize(
    ("plot", "label"),
    [
        (plots.plot_relevance, "get_ylabel"),
        (plots.plot_barcode, "get_xlabel"),
        (plots.plot_merge_tree, "get_ylabel"),
        (plots.plot_betti_curve, "get_xlabel"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_the_axis_names_its_unit(plot: Plot, label: str) -> None:
    """Where values are read off an axis, the axis says that they are cosines."""
    assert "cosine" in getattr(plot(retrieval(5), new_axes()), label)()


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_the_barcode_shows_every_bar_where_it_lies(report: Callable[[], EngineReport]) -> None:
    """One rectangle a bar, from death to birth, in the order of the barcode."""
    measured = report()
    (container,) = plots.plot_barcode(measured, new_axes()).containers
    drawn = [[bar.get_x() + bar.get_width(), bar.get_x()] for bar in container]
    np.testing.assert_allclose(drawn, measured.barcode.bars, atol=1e-12)


def test_bars_carry_the_served_position_of_their_best_passage() -> None:
    """Tick labels name passages as the caller served them, not by rank."""
    report = retrieval(10)
    labels = [text.get_text() for text in plots.plot_barcode(report, new_axes()).get_yticklabels()]
    assert labels == [str(place) for place in report.nodes[report.barcode.representatives]]
    assert labels[0] == str(report.nodes[0])


@pytest.mark.parametrize("name", ["ten", "many", "tree", "equal"])
def test_the_merge_tree_accounts_for_every_passage(name: str) -> None:
    """A region has a name at its birth and the other passages a circle: together all nodes."""
    report = REPORTS[name]()
    ax = plots.plot_merge_tree(report, new_axes())
    circles = [line for line in ax.lines if line.get_label() == "joins at once"]
    n_joined = sum(len(line.get_xdata()) for line in circles)
    assert len(ax.texts) == report.barcode.n_components
    assert len(ax.texts) + n_joined == len(report.nodes)


@pytest.mark.parametrize("seed", range(5))
def test_lines_of_the_merge_tree_do_not_cross(seed: int) -> None:
    """No merge passes through the line of another region."""
    rng = np.random.default_rng([77, seed])
    parents = [None, *(int(rng.integers(0, child)) for child in range(1, 30))]
    report = report_from_embeddings(rng.standard_normal(5), rng.standard_normal((30, 5)), parents)
    assert report.barcode.n_components > 5
    drawn = [np.asarray(line.get_xydata()) for line in plots.plot_merge_tree(report, new_axes()).lines]
    lines = [line for line in drawn if len(line) == 2]
    upright = [line for line in lines if line[0, 0] == line[1, 0]]
    level = [line for line in lines if line[0, 0] != line[1, 0]]
    assert len(level) == report.barcode.n_components - 1
    for (left, y), (right, _) in level:
        between = [line for line in upright if left < line[0, 0] < right]
        assert all(line[1, 1] >= y for line in between)


def test_the_betti_curve_steps_where_the_report_does() -> None:
    """Between two neighbouring levels the drawn count is that of the report."""
    report = retrieval(10)
    (steps,) = plots.plot_betti_curve(report, new_axes()).patches
    counts, edges, _ = steps.get_data()
    middles = (edges[1:] + edges[:-1]) / 2
    assert counts.tolist() == report.betti_curve(middles).tolist()
    assert counts.max() > 1


def test_the_relevance_plot_counts_near_duplicates() -> None:
    """Passages that the report leaves out as copies are in the title, and ranks are named by position."""
    query, passages = vectors(4)
    report = report_from_embeddings(query, np.vstack([passages, passages[:2]]))
    ax = plots.plot_relevance(report, new_axes())
    assert "4 distinct of 6 passages measured" in ax.get_title()
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(place) for place in report.nodes]


def test_the_passage_graph_is_drawn_the_same_way_each_time() -> None:
    """Positions do not depend on a global generator; best passages of regions have a black ring."""
    report = retrieval(10)
    first, second = (plots.plot_passage_graph(report, new_axes()).collections[-1] for _ in range(2))
    np.testing.assert_array_equal(first.get_offsets(), second.get_offsets())
    rings = [tuple(colour) == (0, 0, 0, 1) for colour in first.get_edgecolors()]
    assert np.flatnonzero(rings).tolist() == sorted(report.barcode.representatives.tolist())


def test_alike_passages_lie_near_each_other() -> None:
    """Two far groups stay two groups in the plane, in both layouts."""
    rng = np.random.default_rng(3)
    for n in (12, 60):
        centres = np.repeat(np.eye(8)[:2], n // 2, axis=0)
        report = report_from_embeddings(np.ones(8), centres + 0.1 * rng.standard_normal((n, 8)))
        at = plots.plot_passage_graph(report, new_axes()).collections[-1].get_offsets()
        group = report.nodes >= n // 2
        apart = np.linalg.norm(at[group].mean(axis=0) - at[~group].mean(axis=0))
        assert apart > 2 * max(at[group].std(), at[~group].std())


def metrics(n: int = 6, **options: Any) -> RagConfidenceMetrics:
    """The metrics of n passages."""
    return score(*vectors(n), **options)


def test_signals_are_drawn_with_value_floor_and_band() -> None:
    """Five bars as long as the displayed signals, a floor for each, and the word of the band."""
    scored, policy = metrics(), MetricPolicy()
    ax = plots.plot_signals(scored, new_axes())
    values = [c.patches[0].get_width() for c in ax.containers if c.get_label() == "_value"]
    record = scored.to_dict()
    names = [text.get_text().replace(" ", "_") for text in ax.get_yticklabels()]
    assert values == [record[name] for name in names]
    assert [c.get_segments()[0][0][0] for c in ax.collections] == list(policy.signal_floors.values())
    assert [text.get_text() for text in ax.texts] == [
        f"{record[name]:.1f} {record[f'{name}_band']}" for name in names
    ]
    assert scored.verdict.value in rendered(ax).get_title()


def test_a_signal_that_was_not_assessed_has_no_value() -> None:
    """One lexical passage: grounding, cohesion and robustness are hatched, never drawn as 0 or 100."""
    ax = plots.plot_signals(metrics(1, embedding_backend="lexical"), new_axes())
    labels = [container.get_label() for container in ax.containers]
    assert labels.count("_not assessed") == 3
    assert labels.count("_value") == len(ax.collections) == 2
    assert sum(text.get_text() == "not assessed" for text in rendered(ax).texts) == 3


def test_nothing_retrieved_can_be_drawn() -> None:
    """No passages give five hatched rows."""
    ax = plots.plot_signals(score([1.0, 0.0], np.empty((0, 2))))
    assert [container.get_label() for container in rendered(ax).containers] == 5 * ["_not assessed"]


def test_bands_of_another_policy_are_refused() -> None:
    """Floors are drawn only from the policy that decided; a record keeps its fingerprint."""
    policy = MetricPolicy(grounding_min=30.0)
    scored = RagConfidenceMetrics.from_dict(metrics(policy=policy).to_dict())
    with pytest.raises(ValueError, match="`policy` must be the one that scored `metrics`"):
        plots.plot_signals(scored, new_axes())
    ax = plots.plot_signals(scored, new_axes(), policy=policy)
    assert ax.collections[0].get_segments()[0][0][0] == 30.0


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing matplotlib is one install sentence, at the call and not at the import."""
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(ImportError, match=r"rag-confidence\[plots\]"):
        plots.plot_barcode(retrieval(2))
