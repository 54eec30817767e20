"""``ces solve``, ``ces check`` and ``ces solvers``: decisions on files, without services.

All three are plain functions; the ``ces`` command finds them through the entry-point group ``ces.commands``.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ces_client.cli.instance_files import (
    Basis,
    BasisOption,
    PathCount,
    PathMetric,
    PathMetricOption,
    read_answer,
    read_object,
    say_error,
)
from ces_client.cli.output import Output, OutputOption, console, say, show_json_line
from ces_core.checker import Violation
from ces_core.checker import check as broken_rules
from ces_core.model.errors import BrokenSolverError, PolicyError, ProblemError, UnknownSolverError
from ces_core.model.instance import read_instance
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.model.service import ServiceMetrics
from ces_core.network.cache import paths_for
from ces_core.registry import DEFAULT, available, get_solver
from ces_core.solver import Learned, Solver
from ces_core.warm_up import warm_up


def solve(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="instances, in JSON")],
    solver: Annotated[str, typer.Option(help="a solver that `ces solvers` lists")] = DEFAULT,
    time_limit: Annotated[float | None, typer.Option(min=0.0, help="seconds for each decision")] = None,
    seed: Annotated[int, typer.Option(min=0, help="same seed, same answer")] = 0,
    basis: Basis = BasisOption.system,
    paths: PathCount = None,
    path_metric: PathMetric = PathMetricOption.hops,
    policy: Annotated[Path | None, typer.Option(help="the policy of a learned solver, not the shipped one")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Place one job per instance file and print the plans. An independent checker judges each plan first; one that
    breaks a rule is reported as broken. Exit status 2 for bad input, 1 for a broken plan, else 0."""
    try:
        chosen = get_solver(solver)
    except UnknownSolverError as error:
        say_error(output, {"field": "solver", "message": str(error)}, f"--solver: {error}")
        raise typer.Exit(2) from error
    if policy is not None:
        try:
            chosen = _with_policy(chosen, policy)
        except PolicyError as error:
            say_error(output, {"field": "policy", "message": str(error)}, f"--policy: {error}")
            raise typer.Exit(2) from error
    with nullcontext() if _is_ours(chosen) else suppress(Exception):  # it says so again of each file
        warm_up(chosen)
    bad = broken = False
    for file in files:
        try:
            instance = read_object(file, "instance")
            problem = read_instance(instance, basis=basis.value, paths=paths, path_metric=path_metric.value)
            paths_for(problem).warm()
            start = time.perf_counter()
            result = chosen.solve(problem, seed=seed, time_limit_s=time_limit)
            elapsed_ms = (time.perf_counter() - start) * 1e3
        except ProblemError as error:
            bad = True
            details = {"instance": str(file), "field": error.field, "message": error.message}
            say_error(output, details, f"{file}: {error}")
            continue
        except Exception as error:
            if _is_ours(chosen):
                raise
            bad, why = True, f"{type(error).__name__}: {error} ({_where(error, chosen)})"
            say_error(
                output, {"instance": str(file), "field": "solver", "message": why}, f"{file}: solver {solver}: {why}"
            )
            continue
        answer = {"instance": str(file)} | result.to_dict(paths=problem.path_set)
        violations = broken_rules(instance, answer, basis=basis.value, paths=paths, path_metric=path_metric.value)
        broken = broken or bool(violations)
        if output is Output.JSON:
            answer |= {"solver": solver, "solve_ms": round(elapsed_ms, 3)}
            show_json_line(answer | (_violations(violations) if violations else {}))
        else:
            _print(file, solver, problem, result, elapsed_ms)
        if violations:
            _say_broken(f"{file}: the answer of solver {solver}", violations)
    if bad or broken:
        raise typer.Exit(2 if bad else 1)


def check(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="an instance, in JSON")],
    answer: Annotated[
        Path, typer.Argument(metavar="ANSWER", help="an answer as `ces solve -o json` prints it; `-`: standard input")
    ],
    basis: Basis = BasisOption.system,
    paths: PathCount = None,
    path_metric: PathMetric = PathMetricOption.hops,
    output: OutputOption = Output.TABLE,
) -> None:
    """Judge an answer by a checker that shares no code with solvers. Exit status 2 for bad input, 1 for an answer that
    breaks a rule, else 0."""
    file = instance
    try:
        problem = read_object(instance, "instance")
        read_instance(problem, basis=basis.value, paths=paths, path_metric=path_metric.value)
        file, given = answer, read_answer(answer)
        violations = broken_rules(problem, given, basis=basis.value, paths=paths, path_metric=path_metric.value)
    except ProblemError as error:
        say_error(output, {"file": str(file), "field": error.field, "message": error.message}, f"{file}: {error}")
        raise typer.Exit(2) from error
    if output is Output.JSON:
        show_json_line({"instance": str(instance), "answer": str(answer)} | _violations(violations))
    if violations:
        _say_broken(f"{answer}: the answer", violations)
        raise typer.Exit(1)
    if output is Output.TABLE:
        say(f"{answer}: breaks no rule")


def solvers(output: OutputOption = Output.TABLE) -> None:
    """List the solvers that `ces solve --solver` takes."""
    known = {name: _summary(name) for name in available()}
    known[DEFAULT] = f"alias of {get_solver().name}, which the service uses"
    if output is Output.JSON:
        show_json_line([{"name": name, "summary": summary} for name, summary in known.items()])
        return
    table = Table("solver", "what it does")
    for name, summary in known.items():
        table.add_row(name, summary)
    console().print(table)


def _summary(name: str) -> str:
    try:
        return get_solver(name).summary
    except BrokenSolverError as error:
        return f"broken: {error.reason}"


def _with_policy(solver: Solver, file: Path) -> Solver:
    if not isinstance(solver, Learned):
        raise PolicyError(f"{solver.name} asks no policy")
    return solver.using(file)


def _is_ours(solver: Solver) -> bool:
    return _package(type(solver).__module__) == "ces_core"


def _where(error: Exception, solver: Solver) -> str:
    """The last line of the solver's own code, which its author can mend, rather than one of a library."""
    package = _package(type(solver).__module__)
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [each for each in frames if _package(each[0].f_globals.get("__name__", "")) == package]
    frame, line = (own or frames)[-1]
    return f"{frame.f_code.co_filename}, line {line}"


def _package(module: str) -> str:
    return module.partition(".")[0]


def _violations(violations: Sequence[Violation]) -> dict[str, Any]:
    return {"violations": [{"code": each.code, "message": each.message} for each in violations]}


def _say_broken(what: str, violations: Sequence[Violation]) -> None:
    say(f"error: {what} is broken:", stderr=True)
    for violation in violations:
        say(f"  {violation}", stderr=True)


def _print(file: Path, solver: str, problem: Problem, result: Result, elapsed_ms: float) -> None:
    screen = console()
    screen.print(f"{file}: {problem.name}, solver {solver}, {elapsed_ms:.2f} ms", soft_wrap=True)
    if result.plan is None or result.metrics is None:
        screen.print(f"  no place: {result.reason.text() if result.reason else ''}", soft_wrap=True)
        return
    advice = result.advice
    placed = Table("task", "node", *(["probability"] if advice else []))
    for task, node in result.plan.assignments.items():
        placed.add_row(task, node, *([f"{advice.probabilities[task]:.4f}"] if advice else []))
    screen.print(placed)
    if advice:
        screen.print(f"  policy {advice.version}", soft_wrap=True)
    if result.plan.flows:
        table = Table("flow", "min", "max", "rate", "path")
        for asked, flow in zip(problem.flows, result.plan.flows, strict=True):
            numbers = (f"{value:g}" for value in (asked.min, asked.max, flow.bandwidth))
            table.add_row(f"{flow.src} -> {flow.dst}", *numbers, " ".join(flow.path))
        screen.print(table)
    metrics = result.metrics
    bound = "unknown" if result.bound is None else f"{result.bound:.4f}"
    limit = f" (bound {bound})" if metrics.service is None else ""
    screen.print(
        f"  composite {metrics.composite:.4f}{limit}, load imbalance {metrics.load_imbalance:.4f}, "
        f"bandwidth satisfaction {metrics.bandwidth_satisfaction:.4f}",
        soft_wrap=True,
    )
    if metrics.service is not None:
        _print_service(metrics.service, bound)


def _print_service(service: ServiceMetrics, bound: str) -> None:
    screen = console()
    if service.requests:
        table = Table("request", "ms", "deadline", "where its time goes")
        for request in service.requests:
            deadline = (
                "" if request.deadline_ms is None else f"{request.deadline_ms:g}{' hard' if request.hard else ''}"
            )
            steps = ", ".join(f"{step.ms:.4g} {step.what}" for step in request.steps)
            table.add_row(request.name, f"{request.time_ms:.4g}", deadline, steps)
        screen.print(table)
    screen.print(
        f"  objective {service.objective:.4f} (bound {bound}), time {service.time_score:.4f}, "
        f"energy {service.energy_score:.4f} ({service.power_change_w:+.4g} W by the model), "
        f"reliability {service.reliability:.6f}",
        soft_wrap=True,
    )
