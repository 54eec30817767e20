"""``ces solve`` and ``ces solvers``: decisions on files, without services.

Both are plain functions; the ``ces`` command finds them through the entry-point group ``ces.commands``.
"""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ces_core.errors import PolicyError, ProblemError, UnknownSolverError
from ces_core.instance import read_instance
from ces_core.plan import Result
from ces_core.problem import Problem
from ces_core.solvers import DEFAULT, Solver, available, get_solver
from ces_core.solvers.base import Learned
from ces_core.solvers.warm import warm_up


class Output(StrEnum):
    """How answers are printed."""

    table = "table"
    json = "json"


class BasisOption(StrEnum):
    """What load imbalance counts: everything on the nodes, or the job alone."""

    system = "system"
    job = "job"


OutputOption = Annotated[Output, typer.Option("-o", "--output", help="table for people, json for scripts")]


def solve(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="instances, in JSON")],
    solver: Annotated[str, typer.Option(help="one of those that `ces solvers` lists")] = DEFAULT,
    time_limit: Annotated[float | None, typer.Option(min=0.0, help="seconds for each decision")] = None,
    seed: Annotated[int, typer.Option(min=0, help="same seed, same answer")] = 0,
    basis: Annotated[BasisOption, typer.Option(help="load of all jobs, or of this one alone")] = BasisOption.system,
    paths: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="admit the K shortest simple paths, not the hop-shortest")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="the policy of a learned solver, not the shipped one")] = None,
    output: OutputOption = Output.table,
) -> None:
    """Place one job per instance file and print the plans. Exit status 2 for bad input, else 0."""
    try:
        chosen = get_solver(solver)
    except UnknownSolverError as error:
        _say_error(output, {"field": "solver", "message": str(error)}, f"--solver: {error}")
        raise typer.Exit(2) from error
    if policy is not None:
        try:
            chosen = _with_policy(chosen, policy)
        except PolicyError as error:
            _say_error(output, {"field": "policy", "message": str(error)}, f"--policy: {error}")
            raise typer.Exit(2) from error
    warm_up(chosen)
    bad = False
    for file in files:
        try:
            problem = _read(file, basis, paths)
        except ProblemError as error:
            bad = True
            details = {"instance": str(file), "field": error.field, "message": error.message}
            _say_error(output, details, f"{file}: {error}")
            continue
        problem.routes.warm()
        start = time.perf_counter()
        result = chosen.solve(problem, seed=seed, time_limit_s=time_limit)
        elapsed_ms = (time.perf_counter() - start) * 1e3
        if output is Output.json:
            answer = {"instance": str(file)} | result.to_dict(paths=problem.path_set)
            typer.echo(json.dumps(answer | {"solver": solver, "solve_ms": round(elapsed_ms, 3)}))
        else:
            _print(file, solver, problem, result, elapsed_ms)
    if bad:
        raise typer.Exit(2)


def solvers(output: OutputOption = Output.table) -> None:
    """List the solvers that `ces solve --solver` takes."""
    known = available()
    if output is Output.json:
        lines = [{"name": name, "summary": solver.summary} for name, solver in known.items()]
        typer.echo(json.dumps(lines))
        return
    table = Table("solver", "what it does")
    for name, solver in known.items():
        table.add_row(name, f"what the service uses: {solver.name}" if name == DEFAULT else solver.summary)
    Console().print(table)


def _with_policy(solver: Solver, file: Path) -> Solver:
    if not isinstance(solver, Learned):
        raise PolicyError(f"{solver.name} asks no policy")
    return solver.using(file)


def _read(file: Path, basis: BasisOption, paths: int | None) -> Problem:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProblemError("file", error.strerror or str(error)) from error
    except ValueError as error:  # not UTF-8, or not JSON
        raise ProblemError("file", f"is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ProblemError("instance", "must be a JSON object")
    return read_instance(data, basis=basis.value, paths=paths)


def _say_error(output: Output, details: dict[str, Any], text: str) -> None:
    if output is Output.json:
        typer.echo(json.dumps({"error": details}))
    typer.echo(f"error: {text}", err=True)


def _print(file: Path, solver: str, problem: Problem, result: Result, elapsed_ms: float) -> None:
    console = Console(highlight=False, markup=False, emoji=False)  # file names are not markup
    console.print(f"{file}: {problem.name}, solver {solver}, {elapsed_ms:.2f} ms", soft_wrap=True)
    if result.plan is None or result.metrics is None:
        console.print(f"  no place: {result.reason.text() if result.reason else ''}", soft_wrap=True)
        return
    advice = result.advice
    placed = Table("task", "node", *(["probability"] if advice else []))
    for task, node in result.plan.assignments.items():
        placed.add_row(task, node, *([f"{advice.probabilities[task]:.4f}"] if advice else []))
    console.print(placed)
    if advice:
        console.print(f"  policy {advice.version}", soft_wrap=True)
    if result.plan.flows:
        table = Table("flow", "min", "max", "given", "path")
        for asked, flow in zip(problem.flows, result.plan.flows, strict=True):
            numbers = (f"{value:g}" for value in (asked.min, asked.max, flow.bandwidth))
            table.add_row(f"{flow.src} -> {flow.dst}", *numbers, " ".join(flow.path))
        console.print(table)
    metrics = result.metrics
    bound = "unknown" if result.bound is None else f"{result.bound:.4f}"
    console.print(
        f"  composite {metrics.composite:.4f} (bound {bound}), load imbalance {metrics.load_imbalance:.4f}, "
        f"bandwidth satisfaction {metrics.bandwidth_satisfaction:.4f}",
        soft_wrap=True,
    )
