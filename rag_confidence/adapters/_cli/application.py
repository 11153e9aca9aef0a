"""The commands and their names."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from rag_confidence import __version__
from rag_confidence.adapters._cli import gate_fit, gate_use, guard, guard_checks, monitor, store
from rag_confidence.adapters._cli.audit import audit, traps
from rag_confidence.adapters._cli.demo import demo
from rag_confidence.adapters._cli.printing import write
from rag_confidence.adapters._cli.score import score


def application() -> typer.Typer:
    """The command line, complete."""
    app = group("How far to trust what was retrieved, and which tool calls to let run.")
    app.callback()(top)
    app.command("demo")(demo)
    app.command("score")(score)
    app.command("audit")(audit)
    app.command("traps")(traps)
    app.add_typer(_gate(), name="gate")
    app.add_typer(_guard(), name="guard")
    app.add_typer(_monitor(), name="monitor")
    app.add_typer(_store(), name="store")
    return app


def _gate() -> typer.Typer:
    app = group("Fit a gate to labelled scores, decide with it, hold it against new labels.")
    app.command("fit")(gate_fit.fit)
    app.command("apply")(gate_use.apply)
    app.command("evaluate")(gate_use.evaluate)
    app.command("plan")(gate_fit.plan_labels)
    app.command("inspect")(gate_fit.inspect)
    return app


def _guard() -> typer.Typer:
    app = group("Thresholds for tool calls from recorded ones, and whether they keep their promise.")
    app.command("inspect")(guard.inspect)
    app.command("threshold")(guard.threshold)
    app.command("coverage-check")(guard.check_coverage)
    app.command("multi-check-threshold")(guard_checks.threshold)
    app.command("multi-check-coverage-check")(guard_checks.check_coverage)
    return app


def _monitor() -> typer.Typer:
    app = group("Watch a log that arrives in parts; the monitor is kept in a file between runs.")
    app.command("drift")(monitor.drift)
    app.command("risk")(monitor.risk)
    return app


def _store() -> typer.Typer:
    app = group("Copy, label, prune and check a calibration store.")
    app.command("export")(store.export)
    app.command("import")(store.import_lines)
    app.command("migrate")(store.migrate)
    app.command("label")(store.label)
    app.command("prune")(store.prune)
    app.command("verify")(store.verify)
    return app


def group(words: str) -> typer.Typer:
    """A group of commands, whose help is plain text."""
    return typer.Typer(help=words, add_completion=False, rich_markup_mode=None)


def show_version(wanted: bool) -> None:
    """Print the version of the package, and end."""
    if wanted:
        write(f"{__version__}\n")
        raise typer.Exit


Version: TypeAlias = Annotated[
    bool,
    typer.Option("--version", help="Print the version and exit.", callback=show_version, is_eager=True),
]


def top(version: Version = False) -> None:
    """How far to trust what was retrieved, and which tool calls to let run."""
