"""The shape of the package, read from its syntax trees: who imports whom, and what no module does.

Imports count wherever they stand, inside functions and under TYPE_CHECKING too. To add a package, give it a
row in ALLOWED; to change the order of the layers, write the reason in CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = "rag_confidence"
PACKAGE = Path(__file__).resolve().parents[1] / ROOT

# The one list of what `import rag_confidence` may not load.
OPTIONAL = {
    *("ripser", "persim", "sklearn", "joblib", "gudhi", "matplotlib", "IPython", "wordllama", "torch"),
    *("transformers", "sentence_transformers", "pandas", "polars", "pyarrow", "duckdb", "ray", "psycopg"),
    *("mcp", "fastapi", "requests", "langchain", "langchain_core", "llama_index", "haystack"),
    *(
        "opentelemetry",
        "tqdm",
        "rich",
        "typer",
        "jsonschema",
        "pydantic",
        "sqlalchemy",
        "openai",
        "anthropic",
    ),
}
HEAVY = {
    *("networkx", "scipy.stats", "scipy.optimize", "scipy.spatial", "scipy.cluster", "scipy.sparse"),
    *("scipy.interpolate", "scipy.integrate", "scipy.signal"),
}

# Unit -> the units it may import. A unit is a package or module directly under the root; "" is the root.
LEAVES = {
    *("_types", "_version", "errors", "_optional", "_artefact", "_inputs", "_options", "_history"),
    *("_predictions", "_calls"),
}
LAYERS = {"synthetic", "engine", "conformal", "store", "product", "guard", "learning"}
MEASURES = LEAVES | {"engine", "product", "conformal", "learning", "_settings"}
BELOW_ROOT = LEAVES | LAYERS | {"_settings", "_assess", "_assess_one", "scoring", "reporting"}
ALLOWED: dict[str, set[str]] = {
    "_types": set(),
    "errors": {"_types"},
    "_optional": set(),
    "_version": set(),
    "_artefact": {"_types", "_version", "errors"},
    "_inputs": {"_types", "errors"},
    "_options": {"_types", "errors", "_inputs"},
    "_history": {"_types", "errors", "_inputs", "_options"},
    "_predictions": {"_types", "errors", "_history"},
    "_calls": {"_types", "_history", "_options"},
    "synthetic": {"_types"},
    "engine": LEAVES,
    "conformal": LEAVES | {"synthetic"},
    "store": LEAVES,
    "product": LEAVES | {"engine"},
    "guard": LEAVES | {"conformal", "store"},
    "learning": LEAVES | {"product", "conformal"},
    "_settings": LEAVES | {"engine", "product"},
    "_assess": MEASURES,
    "_assess_one": MEASURES | {"_assess"},
    "scoring": MEASURES | {"_assess", "_assess_one"},
    "reporting": MEASURES | {"_assess"},
    "": BELOW_ROOT,
    "adapters": BELOW_ROOT | {""},
    "plots": BELOW_ROOT | {""},
}
EDGES_OF_THE_LIBRARY = {"adapters", "plots"}
# An adapter of several files keeps the others in a private package of its own.
PARTS_OF_AN_ADAPTER = {"_mcp": "mcp_server", "_cli": "cli"}

# What an upper package may name of a lower one where that is not everything.
DOORS = {("product", "engine"): {"engine", "engine.report", "engine.signals"}}
# Modules that call their siblings and that no sibling may call.
TOPS = {"engine.report", "product.batch"}

MOST_LINES = 400
MOST_BODY_LINES = 50
GLOBAL_STATE = {"simplefilter", "filterwarnings", "seterr", "seterrcall", "basicConfig", "set_printoptions"}

Graph = dict[str, set[str]]


def modules_of(package: Path) -> dict[str, Path]:
    """Name of each module below the root ("" for the root itself) -> its file."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported_names(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[str]:
    """Every absolute dotted name that a module imports, relative imports resolved."""
    here = [ROOT, *filter(None, module.split("."))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = here[: len(here) - node.level + is_package] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def import_graph(package: Path) -> Graph:
    """Module -> the modules of the package that it names."""
    modules = modules_of(package)
    graph: Graph = {}
    for module, path in modules.items():
        names = imported_names(tree_of(path), module, is_package=path.name == "__init__.py")
        inside = [name.removeprefix(ROOT).lstrip(".") for name in names if name.split(".")[0] == ROOT]
        graph[module] = {name if name in modules else name.rpartition(".")[0] for name in inside} - {module}
    return graph


def unit(module: str) -> str:
    """The package or module directly under the root that holds this module."""
    return module.partition(".")[0]


def adapter(module: str) -> str:
    """The adapter that a module below `adapters` is or belongs to; empty for the package itself."""
    _, _, inside = module.partition(".")
    name = unit(inside)
    return PARTS_OF_AN_ADAPTER.get(name, name)


def forbidden_edge(source: str, target: str) -> bool:
    """Whether `source` may not import `target`."""
    below, above = unit(target), unit(source)
    if below == above:
        return target in TOPS or (above == "adapters" and len({adapter(source), adapter(target)} - {""}) > 1)
    door = DOORS.get((above, below))
    return below not in ALLOWED[above] or (door is not None and target not in door)


def layer_violations(graph: Graph) -> list[str]:
    """Every unknown unit and forbidden edge, as sentences."""
    unknown = [f"{module} has no row in ALLOWED" for module in graph if unit(module) not in ALLOWED]
    edges = [(s, t) for s, targets in graph.items() if unit(s) in ALLOWED for t in sorted(targets)]
    return unknown + [f"{s or ROOT} imports {t or ROOT}" for s, t in edges if forbidden_edge(s, t)]


def cycle(graph: Graph) -> list[str]:
    """The modules of one import cycle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def write_package(folder: Path, files: dict[str, str]) -> Path:
    """A small package for testing the rules themselves."""
    package = folder / ROOT
    for name, text in {"__init__.py": "", **files}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    return package


def test_imports_go_one_way() -> None:
    """No module imports a layer above it, a sibling layer, or past the door of the layer below."""
    assert layer_violations(import_graph(PACKAGE)) == []


def test_there_is_no_import_cycle() -> None:
    """The modules can be put in an order in which each imports only earlier ones."""
    assert cycle(import_graph(PACKAGE)) == []


@pytest.mark.parametrize(
    ("path", "text", "violation"),
    [
        ("engine/a.py", "def f():\n    from rag_confidence.product import x", "engine.a imports product"),
        ("engine/a.py", "from .. import scoring", "engine.a imports scoring"),
        ("engine/a.py", "import rag_confidence", "engine.a imports rag_confidence"),
        ("engine/a.py", "from . import report", "engine.a imports engine.report"),
        ("product/a.py", "from rag_confidence.engine.barcode import x", "product.a imports engine.barcode"),
        ("conformal/a.py", "from rag_confidence import engine", "conformal.a imports engine"),
        ("adapters/a.py", "from rag_confidence.adapters.cli import x", "adapters.a imports adapters.cli"),
        (
            "adapters/_mcp/a.py",
            "from rag_confidence.adapters import cli",
            "adapters._mcp.a imports adapters.cli",
        ),
        ("adapters/a.py", "from rag_confidence.adapters._mcp import x", "adapters.a imports adapters._mcp"),
        ("scoring.py", "from rag_confidence.plots import x", "scoring imports plots"),
        ("utils.py", "", "utils has no row in ALLOWED"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, path: str, text: str, violation: str) -> None:
    """The layer rule sees absolute, relative and local imports, and packages that nobody placed."""
    modules = ("engine/__init__", "engine/report", "engine/barcode", "product/__init__", "adapters/cli")
    others = {f"{name}.py": "" for name in (*modules, "adapters/_mcp/__init__", "plots", "scoring")}
    package = write_package(tmp_path, {**others, path: text})
    assert violation in layer_violations(import_graph(package))


def test_a_cycle_is_found(tmp_path: Path) -> None:
    """Two modules of one layer that import each other are reported together."""
    files = {"engine/a.py": "from . import b", "engine/b.py": "from rag_confidence.engine.a import x"}
    assert set(cycle(import_graph(write_package(tmp_path, files)))) == {"engine.a", "engine.b"}


def test_optional_packages_come_through_require() -> None:
    """Below the edges no import statement names an optional package, not even inside a function."""
    found = [
        f"{module} imports {name}"
        for module, path in modules_of(PACKAGE).items()
        if unit(module) not in EDGES_OF_THE_LIBRARY
        for name in imported_names(tree_of(path), module, is_package=path.name == "__init__.py")
        if name.partition(".")[0] in OPTIONAL
    ]
    assert found == []


def loaded_by(statements: str) -> list[str]:
    """Forbidden modules that a fresh interpreter holds after running `statements`."""
    program = f"import sys, json\n{statements}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    held: list[str] = json.loads(done.stdout)
    return [name for name in held if name in HEAVY or name.partition(".")[0] in OPTIONAL]


def test_import_loads_no_heavy_module() -> None:
    """`import rag_confidence` loads no optional package, and none of the slow core ones."""
    assert loaded_by("import rag_confidence") == []


def test_no_layer_loads_a_heavy_module() -> None:
    """The same holds for every module below the edges, so that a deep import is as cheap."""
    names = [m for m in modules_of(PACKAGE) if m and unit(m) not in EDGES_OF_THE_LIBRARY]
    assert loaded_by("\n".join(f"import {ROOT}.{name}" for name in names)) == []


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(body: list[ast.stmt]) -> list[Definition]:
    """The functions and classes among the statements of a module or a class."""
    return [node for node in body if isinstance(node, Definition)]


def methods(tree: ast.Module, *, private: bool) -> list[Definition]:
    """The methods of the module's classes, those of private classes only if asked for."""
    classes = [node for node in definitions(tree.body) if isinstance(node, ast.ClassDef)]
    return [m for c in classes if private or not c.name.startswith("_") for m in definitions(c.body)]


def public(tree: ast.Module) -> list[Definition]:
    """Functions, classes and methods that a caller may use."""
    everything = definitions(tree.body) + methods(tree, private=False)
    return [node for node in everything if not node.name.startswith("_")]


def test_what_is_public_has_a_docstring() -> None:
    """Every module and every public function, class, method and property says what it is."""
    missing = []
    for module, path in modules_of(PACKAGE).items():
        tree = tree_of(path)
        missing += [
            f"{module}:{node.lineno} {node.name}" for node in public(tree) if not ast.get_docstring(node)
        ]
        missing += [] if ast.get_docstring(tree) else [module]
    assert missing == []


def test_modules_and_functions_stay_short() -> None:
    """No module above 400 lines, no function body above 50 without its docstring."""
    too_long = []
    for module, path in modules_of(PACKAGE).items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        too_long += [f"{module}: {lines} lines"] if lines > MOST_LINES else []
        tree = tree_of(path)
        for node in definitions(tree.body) + methods(tree, private=True):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if not isinstance(node, ast.ClassDef) and body:
                length = (body[-1].end_lineno or 0) - body[0].lineno + 1
                too_long += [f"{module}.{node.name}: {length} lines"] if length > MOST_BODY_LINES else []
    assert too_long == []


def unwanted(node: ast.AST) -> bool:
    """Whether a node asserts, prints, or changes state that belongs to the whole process."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    return name == "print" or name.endswith("random.seed") or name.rpartition(".")[2] in GLOBAL_STATE


def test_no_module_asserts_prints_or_changes_global_state() -> None:
    """No assert, print, warning filter, floating-point setting, log set-up or global seed in the package."""
    found = [
        f"{module}:{node.lineno}"
        for module, path in modules_of(PACKAGE).items()
        for node in ast.walk(tree_of(path))
        if unwanted(node) and isinstance(node, ast.stmt | ast.expr)
    ]
    assert found == []


@pytest.mark.parametrize(
    "statement",
    [
        "assert True",
        "print(1)",
        "warnings.simplefilter('error')",
        "np.seterr(all='ignore')",
        "np.random.seed(0)",
    ],
)
def test_an_unwanted_statement_is_found(statement: str) -> None:
    """Each thing that the rule above forbids is recognised."""
    assert any(unwanted(node) for node in ast.walk(ast.parse(statement)))
