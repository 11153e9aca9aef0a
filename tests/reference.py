"""Slow, independent references for the numeric engine, written from the definitions alone.

Nothing here imports the package. Sums are exact (`math.fsum`), graphs are walked breadth first at every
level, and every formula is spelt out where it is used, so that a reader can check it against the documents.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Vector = Sequence[float]
Edges = Mapping[tuple[int, int], float]
Bar = tuple[float, float]

SEED_WEIGHTS = {
    "answer_localization": 0.35,
    "support_cohesion": 0.25,
    "evidence_consistency": 0.25,
    "query_robustness": 0.15,
}
SEED_FLOORS = {
    "topical_grounding": 50.0,
    "answer_localization": 55.0,
    "support_cohesion": 55.0,
    "evidence_consistency": 60.0,
    "query_robustness": 60.0,
}


# --- vectors ---------------------------------------------------------------------------------------------


def dot(a: Vector, b: Vector) -> float:
    """Inner product with one exact sum."""
    assert len(a) == len(b)
    return math.fsum(map(operator.mul, map(float, a), map(float, b)))


def unit(row: Vector) -> list[float]:
    """Row of length 1; the zero row stays zero. Scaled by its largest entry first, so nothing overflows."""
    values = [float(x) for x in row]
    largest = max(abs(x) for x in values)
    if largest == 0.0:
        return values
    values = [x / largest for x in values]
    length = math.sqrt(dot(values, values))
    return [x / length for x in values]


def clip(x: float, low: float = -1.0, high: float = 1.0) -> float:
    """Nearest value of the interval."""
    return min(max(x, low), high)


def cosines(query: Vector, passages: Iterable[Vector]) -> list[float]:
    """Clipped cosine of every passage to the query."""
    q = unit(query)
    return [clip(dot(q, unit(p))) for p in passages]


def gram(passages: Iterable[Vector]) -> list[list[float]]:
    """Clipped cosines between passages, 1 on the diagonal."""
    rows = [unit(p) for p in passages]
    return [[1.0 if i == j else clip(dot(a, b)) for j, b in enumerate(rows)] for i, a in enumerate(rows)]


def canonical_order(values: Sequence[float]) -> list[int]:
    """Indices by descending cosine, ties by the served index."""
    return sorted(range(len(values)), key=lambda i: (-values[i], i))


def distinct(g: Sequence[Sequence[float]], duplicate_cosine: float) -> list[bool]:
    """Greedy duplicate removal in the given order: dropped iff too similar to an earlier kept passage."""
    keep: list[bool] = []
    for i in range(len(g)):
        keep.append(not any(keep[j] and g[i][j] > duplicate_cosine for j in range(i)))
    return keep


def distinct_passages(
    query: Vector, passages: Sequence[Vector], duplicate_cosine: float = 0.995
) -> list[int]:
    """Served indices of the passages that count, best cosine first."""
    c = cosines(query, passages)
    order = canonical_order(c)
    keep = distinct(gram([passages[i] for i in order]), duplicate_cosine)
    return [i for i, kept in zip(order, keep, strict=True) if kept]


def min_max(values: Sequence[float]) -> list[float]:
    """Relevance as the seed sees it: min-max, and one half everywhere when the range is below 1e-9."""
    low, high = min(values), max(values)
    if high - low < 1e-9:
        return [0.5] * len(values)
    return [(v - low) / (high - low) for v in values]


# --- superlevel barcode of a graph -----------------------------------------------------------------------


def components(vertices: Sequence[float], edges: Edges, level: float) -> list[set[int]]:
    """Connected components of the vertices and edges whose value is at least `level`, breadth first."""
    alive = {i for i, v in enumerate(vertices) if v >= level}
    neighbours: dict[int, list[int]] = {i: [] for i in alive}
    for (i, j), value in edges.items():
        if value >= level:
            neighbours[i].append(j)
            neighbours[j].append(i)
    found: list[set[int]] = []
    while alive:
        queue = [min(alive)]
        component = set(queue)
        while queue:
            for j in neighbours[queue.pop(0)]:
                if j not in component:
                    component.add(j)
                    queue.append(j)
        alive -= component
        found.append(component)
    return found


def superlevel_bars(vertices: Sequence[float], edges: Edges) -> list[Bar]:
    """One (birth, death) per vertex, zero-length ones included; bars that never die have death -inf.

    At every level the components are found afresh. A component keeps the oldest of those it swallowed; the
    others die at this level, and so does a vertex born here into a component that is older.
    """
    levels = sorted({*vertices, *edges.values()}, reverse=True)
    bars: list[Bar] = []
    alive: list[tuple[set[int], float]] = []
    for level in levels:
        now: list[tuple[set[int], float]] = []
        for component in components(vertices, edges, level):
            births = [birth for old, birth in alive if old <= component]
            births += [level] * sum(1 for i in component if vertices[i] == level)
            births.sort(reverse=True)
            bars += [(birth, level) for birth in births[1:]]
            now.append((component, births[0]))
        alive = now
    return bars + [(birth, -math.inf) for _, birth in alive]


def long_bars(bars: Iterable[Bar], shortest: float = 1e-9) -> list[Bar]:
    """Finite bars longer than `shortest`, longest first."""
    kept = [(b, d) for b, d in bars if d > -math.inf and b - d > shortest]
    return sorted(kept, key=lambda bar: bar[1] - bar[0])


def complete_level(vertices: Sequence[float], edges: Edges) -> float:
    """Highest level at which every vertex is present and all of them are connected."""
    levels = sorted({*vertices, *edges.values()}, reverse=True)
    n = len(vertices)
    return next(t for t in levels if [len(c) for c in components(vertices, edges, t)] == [n])


def joint_edges(c: Sequence[float], g: Sequence[Sequence[float]]) -> dict[tuple[int, int], float]:
    """Joint filtration: an edge has the smallest of both cosines and the mutual cosine."""
    n = len(c)
    return {(i, j): min(c[i], c[j], g[i][j]) for i in range(n) for j in range(i + 1, n)}


def tree_edges(values: Sequence[float], parents: Sequence[int | None]) -> dict[tuple[int, int], float]:
    """Tree filtration: an edge enters with the later of its ends; -1 or None marks the root."""
    links = [(p, i) for i, p in enumerate(parents) if p is not None and p >= 0]
    return {(p, i): min(values[p], values[i]) for p, i in links}


def star(values: Sequence[float], root_value: float) -> tuple[list[float], dict[tuple[int, int], float]]:
    """Vertex values and edges of a star whose centre is vertex 0."""
    vertices = [root_value, *values]
    return vertices, {(0, i): min(root_value, vertices[i]) for i in range(1, len(vertices))}


def second_bar(bars: Iterable[Bar]) -> float:
    """Length of the longest finite bar, 0 if there is none."""
    lengths = [b - d for b, d in long_bars(bars)]
    return max(lengths, default=0.0)


# --- energies and the spectrum ---------------------------------------------------------------------------


def pairs(n: int) -> list[tuple[int, int]]:
    """All unordered pairs of n things."""
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def squared_distance(a: Vector, b: Vector) -> float:
    """Squared Euclidean distance."""
    return math.fsum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True))


def edge_energy(rows: Sequence[Vector], links: Sequence[tuple[int, int]]) -> float:
    """Mean over the links of |x_i - x_j|^2 / 4; 0 without links."""
    if not links:
        return 0.0
    return math.fsum(squared_distance(rows[i], rows[j]) / 4 for i, j in links) / len(links)


def dirichlet_energy(passages: Sequence[Vector]) -> float:
    """Mean over pairs of the squared distance of unit passages, divided by 4."""
    rows = [unit(p) for p in passages]
    return edge_energy(rows, pairs(len(rows)))


def conditioned_energy(query: Vector, passages: Sequence[Vector]) -> float:
    """The same after the query direction has been projected out of the unit passages."""
    q = unit(query)
    rows = []
    for p in passages:
        u = unit(p)
        along = dot(u, q)
        rows.append([x - along * y for x, y in zip(u, q, strict=True)])
    return edge_energy(rows, pairs(len(rows)))


def sheaf_trace_energy(passages: Sequence[Vector]) -> float:
    """tr(X'LX) with the explicit Laplacian of the complete graph, normalised like `dirichlet_energy`."""
    x = np.array([unit(p) for p in passages])
    n = len(x)
    laplacian = np.full((n, n), -1.0) + n * np.eye(n)
    links = n * (n - 1) // 2
    return float(np.trace(x.T @ laplacian @ x)) / (4 * links) if links else 0.0


def clipped_weights(g: Sequence[Sequence[float]]) -> np.ndarray:
    """Gram matrix clipped at 0 with a zero diagonal."""
    weights = np.maximum(np.array(g, dtype=float), 0.0)
    np.fill_diagonal(weights, 0.0)
    return weights


def normalized_laplacian(weights: np.ndarray) -> np.ndarray:
    """I - D^-1/2 W D^-1/2; the row of a vertex of degree zero is zero."""
    n = len(weights)
    degree = [math.fsum(row) for row in weights]
    laplacian = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i == j and degree[i] > 0:
                laplacian[i, j] = 1.0
            elif i != j and weights[i, j] > 0:
                laplacian[i, j] = -weights[i, j] / math.sqrt(degree[i] * degree[j])
    return laplacian


def algebraic_connectivity(g: Sequence[Sequence[float]]) -> float:
    """Second smallest eigenvalue of the normalised Laplacian of the clipped Gram matrix."""
    from scipy.linalg import eigh

    return float(eigh(normalized_laplacian(clipped_weights(g)), eigvals_only=True)[1])


def is_connected(weights: np.ndarray) -> bool:
    """True if the edges of positive weight connect all vertices."""
    edges = {(i, j): 1.0 for i, j in pairs(len(weights)) if weights[i, j] > 0}
    return len(components([1.0] * len(weights), edges, 1.0)) == 1


# --- stability -------------------------------------------------------------------------------------------


def rotate_towards(q: Vector, target: Vector, angle: float) -> list[float]:
    """Unit query turned by `angle` in the plane of itself and `target`."""
    along = dot(q, target)
    tangent = unit([t - along * x for t, x in zip(target, q, strict=True)])
    return [math.cos(angle) * x + math.sin(angle) * t for x, t in zip(q, tangent, strict=True)]


def flip_angle_to(query: Vector, top: Vector, other: Vector) -> float:
    """Smallest rotation of the query at which `other` ties the better passage `top`, by bisection."""
    q, a, b = unit(query), unit(top), unit(other)
    difference = [y - x for x, y in zip(a, b, strict=True)]

    def lead(angle: float) -> float:
        return dot(rotate_towards(q, difference, angle), difference)

    low, high = 0.0, math.pi / 2
    if dot(q, unit(difference)) < -1 + 1e-14:
        return high  # the difference points against the query: every direction ties at a right angle
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if lead(middle) >= 0.0 else (middle, high)
    return high


def flip_angle(query: Vector, passages: Sequence[Vector]) -> float:
    """Smallest rotation of the query that changes the top passage; duplicates of the top are skipped."""
    c = cosines(query, passages)
    order = canonical_order(c)
    top = passages[order[0]]
    others = [passages[i] for i in order[1:] if squared_distance(unit(passages[i]), unit(top)) > 1e-20]
    return min((flip_angle_to(query, top, p) for p in others), default=math.nan)


# --- default drivers, KPI and verdict --------------------------------------------------------------------


def sigmoid(x: float) -> float:
    """Logistic function that does not overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def top_mean(values: Sequence[float], k: int = 3) -> float:
    """Mean of the k largest values (of all when there are fewer)."""
    best = sorted(values, reverse=True)[:k]
    return math.fsum(best) / len(best)


def default_drivers(
    query: Vector,
    passages: Sequence[Vector],
    *,
    centre: float,
    scale: float,
    tau: float,
    robustness: Callable[[float], float],
    duplicate_cosine: float = 0.995,
) -> dict[str, float | None]:
    """Drivers of a flat list in [0, 1]; None where one passage cannot tell.

    Grounding counts near duplicates each and exact copies once; shape counts both once.
    """
    others = [passages[i] for i in distinct_passages(query, passages, 1 - 1e-12)]
    kept = [passages[i] for i in distinct_passages(query, passages, duplicate_cosine)]
    c, g = cosines(query, kept), gram(kept)
    l2 = second_bar(superlevel_bars(c, joint_edges(c, g)))
    several = len(kept) >= 2
    return {
        "topical_grounding": sigmoid((top_mean(cosines(query, others)) - centre) / scale),
        "answer_localization": tau / (l2 + tau),
        "support_cohesion": clip(algebraic_connectivity(g), 0.0, 1.0) if several else None,
        "evidence_consistency": 1 - dirichlet_energy(kept),
        "query_robustness": robustness(flip_angle(query, kept)) if several else None,
    }


def kpi(
    drivers: Mapping[str, float | None], weights: Mapping[str, float], grounding_assessed: bool = True
) -> float:
    """Grounding times the weighted mean of the assessed shape drivers."""
    assessed = {name: value for name, value in drivers.items() if name in weights and value is not None}
    total = math.fsum(weights[name] for name in assessed)
    shape = math.fsum(weights[name] * value for name, value in assessed.items()) / total
    grounding = drivers["topical_grounding"] if grounding_assessed else 1.0
    assert grounding is not None
    return grounding * shape


def verdict(
    *,
    kpi: float,
    drivers: Mapping[str, float | None],
    floors: Mapping[str, float],
    grounding: float | None,
    n: int,
    zero_query: bool = False,
    contradiction: float | None = None,
    answer_at: float = 65.0,
    review_at: float = 45.0,
    grounding_min: float = 50.0,
    contradiction_at: float = 0.5,
) -> tuple[str, str]:
    """Verdict and reason code: the first row of the table that holds. KPI, drivers, floors are 0..100."""
    if n == 0:
        return "ABSTAIN", "no_passages"
    if zero_query:
        return "ABSTAIN", "degenerate_query"
    if grounding is not None and grounding < grounding_min:
        return "ABSTAIN", "off_topic"
    if contradiction is not None and contradiction >= contradiction_at:
        return "ESCALATE", "conflicting"
    if kpi < review_at:
        return "ABSTAIN", "weak"
    if kpi < answer_at:
        return "REVIEW", "ambiguous"
    if any(value is not None and value < floors[name] for name, value in drivers.items() if name in floors):
        return "REVIEW", "driver_floor"
    if grounding is None:
        return "REVIEW", "shape_only"
    return "ANSWER", "healthy"


# --- the seed's scorer -----------------------------------------------------------------------------------


def lowest_common_ancestor(nodes: Sequence[int], parents: Sequence[int | None]) -> int:
    """Deepest node that is an ancestor of (or equal to) every given node."""

    def path(node: int) -> list[int]:
        up = [node]
        while (parent := parents[up[-1]]) is not None:
            up.append(parent)
        return up[::-1]

    common = set.intersection(*(set(path(node)) for node in nodes))
    return max(common, key=lambda node: len(path(node)))


def depth(node: int, parents: Sequence[int | None]) -> int:
    """Number of edges between a node and the root."""
    steps = 0
    while (parent := parents[node]) is not None:
        node, steps = parent, steps + 1
    return steps


def focus_depth(relevance: Sequence[float], parents: Sequence[int | None]) -> float:
    """Depth of the lowest common ancestor of the relevant nodes over the height of the tree."""
    relevant = [i for i, r in enumerate(relevance) if r >= 0.6]
    relevant = relevant or [max(range(len(relevance)), key=lambda i: relevance[i])]
    height = max(depth(i, parents) for i in range(len(parents)))
    return depth(lowest_common_ancestor(relevant, parents), parents) / height if height else 0.0


def concentration(relevance: Sequence[float]) -> float:
    """1 minus the normalised entropy of relevance as a distribution over nodes."""
    total = math.fsum(relevance)
    shares = [r / total for r in relevance if r > 0]
    return (
        1 + math.fsum(p * math.log(p) for p in shares) / math.log(len(relevance))
        if len(relevance) > 1
        else 1.0
    )


def loop_lives(rows: Sequence[Vector]) -> list[float]:
    """Lives of Vietoris-Rips H1 loops of unit rows, longest first (ripser on distances, zero diagonal)."""
    from ripser import ripser

    distances = np.array([[math.sqrt(squared_distance(a, b)) for b in rows] for a in rows])
    diagram = ripser(distances, distance_matrix=True, maxdim=1)["dgms"][1]
    return sorted((float(d - b) for b, d in diagram), reverse=True)


def seed_score(
    query: Vector, passages: Sequence[Vector], parents: Sequence[int | None] | None = None
) -> dict[str, Any]:
    """Everything the seed's scorer returns with perturb=False, under the names of its reference cases."""
    rows = [[float(x) for x in p] for p in passages]
    raw = cosines(query, rows)
    if parents is None:
        root = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        nodes, tree = [root, *rows], [None, *([0] * len(rows))]
    else:
        nodes, tree = rows, list(parents)
    relevance = min_max(cosines(query, nodes))
    ended = [(b, max(d, 0.0)) for b, d in superlevel_bars(relevance, tree_edges(relevance, tree))]
    lengths = sorted((b - d for b, d in ended if b - d >= 1e-6), reverse=True)
    margin = lengths[0] - lengths[1] if len(lengths) > 1 else lengths[0]
    dominance = lengths[0] / math.fsum(lengths)
    fragmentation = math.fsum(lengths[1:])
    links = [(p, i) for i, p in enumerate(tree) if p is not None]
    sheaf = 1 - edge_energy([unit(x) for x in nodes], links)
    assessed = 4 <= len(rows) <= 512
    lives = loop_lives([unit(x) for x in rows]) if assessed else []
    loops = sum(1 for life in lives[:5] if life >= 0.10)
    drivers = {
        "answer_localization": 100 * clip(0.6 * margin + 0.4 * dominance, 0.0, 1.0),
        "support_cohesion": 100 / (1 + fragmentation),
        "evidence_consistency": 100 * sheaf / (1 + loops),
        "query_robustness": 100.0,
    }
    grounding = 100 * sigmoid((top_mean(raw) - 0.46) / 0.08)
    headline = grounding / 100 * math.fsum(SEED_WEIGHTS[name] * value for name, value in drivers.items())
    values = {"topical_grounding": grounding, **drivers}
    return {
        "retrieval_confidence": headline,
        "topical_grounding": grounding,
        "answer_localization": drivers["answer_localization"],
        "support_cohesion": drivers["support_cohesion"],
        "evidence_consistency": drivers["evidence_consistency"],
        "margin": margin,
        "dominance": dominance,
        "fragmentation": fragmentation,
        "focus": focus_depth(relevance, tree),
        "concentration": concentration(relevance),
        "n_features": len(lengths),
        "sheaf": sheaf,
        "max_loop_life": (lives[0] if lives else 0.0) if assessed else None,
        "n_loops": loops if assessed else None,
        "verdict": seed_verdict(headline, drivers, loops),
        "primary_risk": min(values, key=lambda name: values[name] - SEED_FLOORS[name]),
    }


def seed_verdict(headline: float, drivers: Mapping[str, float], loops: int) -> str:
    """The seed's decision table."""
    if drivers["evidence_consistency"] < 60 and loops >= 1:
        return "ESCALATE"
    if headline < 45:
        return "ABSTAIN"
    if headline < 65 or any(value < SEED_FLOORS[name] for name, value in drivers.items()):
        return "REVIEW"
    return "ANSWER"
