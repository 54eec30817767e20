"""``ces adjust``: what would change of a running job, from files, without services.

A plain function; the ``ces`` command finds it through the entry-point group ``ces.commands``.
"""

from __future__ import annotations

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
from ces_core.adjustment.adjustment import Adjustment, Decision
from ces_core.adjustment.decision import adjust as decide
from ces_core.adjustment.terms_format import read_terms
from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.model.plan import Plan, PlannedFlow
from ces_core.model.problem import Problem


def adjust(
    instance: Annotated[
        Path, typer.Argument(metavar="INSTANCE", help="an instance as things are now, without the job's own use")
    ],
    answer: Annotated[
        Path, typer.Argument(metavar="ANSWER", help="the plan that runs, as `ces solve -o json` prints it; `-`: stdin")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show it and change nothing: the one way there is")
    ] = False,
    basis: Basis = BasisOption.system,
    paths: PathCount = None,
    path_metric: PathMetric = PathMetricOption.hops,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show how a running job with goals would be adjusted with the least disturbance: other rates, paths or CPU, or up
    to three moves. What is known of moves stands in the instance under `adjust`. Exit status 2 for bad input, 1 where a
    limit is broken that no adjustment mends, else 0."""
    if not dry_run:
        message = "moves of a cluster's tasks are not built yet: add --dry-run to see what they would be"
        say_error(output, {"field": "dry-run", "message": message}, f"--dry-run: {message}")
        raise typer.Exit(2)
    try:
        data = read_object(instance, "instance")
        problem = read_instance(data, basis=basis.value, paths=paths, path_metric=path_metric.value)
        facts, terms = read_terms(data.get("adjust") or {})
        decision = decide(problem, _plan(read_answer(answer)), facts, terms)
    except ProblemError as error:
        details = {"instance": str(instance), "field": error.field, "message": error.message}
        say_error(output, details, f"{instance}: {error}")
        raise typer.Exit(2) from error
    if output is Output.JSON:
        show_json_line({"instance": str(instance), "answer": str(answer)} | decision.to_dict())
    else:
        _print(problem, decision)
    if decision.broken and decision.adjustment is None:
        raise typer.Exit(1)


def _plan(answer: dict[str, Any]) -> Plan:
    if not answer["feasible"]:
        raise ProblemError("answer.feasible", "the job has no plan that could be adjusted: give one that runs")
    flows = [
        PlannedFlow(flow["src"], flow["dst"], flow["bandwidth"], tuple(flow["path"]))
        for flow in answer.get("flows", [])
    ]
    return Plan(answer["assignments"], tuple(flows))


def _print(problem: Problem, decision: Decision) -> None:
    now = "" if decision.now is None else f", objective {decision.now:.4f}"
    say(f"{problem.name}: {'a limit is broken' if decision.broken else 'keeps its limits'}{now}")
    for broken in decision.broken:
        say(f"  {broken.text}")
    found = decision.adjustment
    if found is None:
        say("  nothing would change")
    else:
        _print_changes(problem, found)
        gain = "" if decision.gain is None else f", {decision.gain:.4f} more than now"
        cost = f", of which its moves take {found.cost:.4f}" if found.moves else ""
        say(f"  by {found.step}: objective {found.objective:.4f}{cost}{gain}")
    say(f"  {decision.certificate.text(decision.worth)}")


def _print_changes(problem: Problem, found: Adjustment) -> None:
    screen = console()
    if found.moves:
        moves = Table("move", "from", "to", "stands still, s", "requests meanwhile")
        for move in found.moves:
            moves.add_row(move.task, move.src, move.dst, f"{move.seconds:.4g}", f"{move.requests:.4g}")
        screen.print(moves)
    if found.cpu:
        cpu = Table("task", "CPU now", "CPU then")
        for task in problem.tasks:
            if task.name in found.cpu:
                cpu.add_row(task.name, f"{task.cpu:g}", f"{found.cpu[task.name]:g}")
        screen.print(cpu)
    if found.plan.flows:
        flows = Table("flow", "rate then", "path then")
        for flow in found.plan.flows:
            flows.add_row(f"{flow.src} -> {flow.dst}", f"{flow.bandwidth:g}", " ".join(flow.path))
        screen.print(flows)
