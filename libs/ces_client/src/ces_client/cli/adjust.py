"""``ces adjust``: what would change of a running job: of the cluster's, or from files, without services.

A plain function; the ``ces`` command finds it through the entry-point group ``ces.commands``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from ces_client.cli.adjust_job import adjust_job
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
from ces_client.cli.output import Output, OutputOption, console, show_json_line
from ces_client.view.adjustment import lines
from ces_common.messages.adjustments import MOST_MOVES, AdjustmentProposal
from ces_core.adjustment.decision import adjust as decide
from ces_core.adjustment.terms_format import read_terms
from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.model.plan import Plan, PlannedFlow


def adjust(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB|INSTANCE",
            help="a running job, by id or name; or, with ANSWER, an instance as things are now, without the job's own "
            "use",
        ),
    ],
    answer: Annotated[
        Path | None,
        typer.Argument(metavar="[ANSWER]", help="the plan that runs, as `ces solve -o json` prints it; `-`: stdin"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show it and change nothing: the one way there is with files")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="of a cluster's job: make the move, if it is one; for operators")
    ] = False,
    moves: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MOST_MOVES,
            help=f"of a cluster's job: tasks that may move, at most; {MOST_MOVES} where it is not given",
        ),
    ] = None,
    basis: Basis = BasisOption.system,
    paths: PathCount = None,
    path_metric: PathMetric = PathMetricOption.hops,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show how a running job with goals would be adjusted with the least disturbance: other rates, paths or CPU, or up
    to three moves. Of files, what is known of moves stands in the instance under `adjust`, and `--basis`, `--paths`
    and `--path-metric` count. Exit status 2 for bad input, 1 where a limit is broken that no adjustment mends, or, with
    `--apply`, where one is broken and nothing was carried out, else 0."""
    if answer is None:
        if Path(job).is_file():
            message = f"{job} is a file: give the plan that runs as well, as `ces solve -o json` prints it"
            raise _wrong("answer", message, output)
        of_files = {
            "basis": basis is not BasisOption.system,
            "paths": paths is not None,
            "path-metric": path_metric is not PathMetricOption.hops,
        }
        for option in (name for name, given in of_files.items() if given):
            raise _wrong(f"--{option}", "is for files; of a cluster's job, the scheduler has its own", output)
        if dry_run and apply:
            raise _wrong("--dry-run", "--apply makes the move that this only shows: give one of them", output)
        adjust_job(job, moves=MOST_MOVES if moves is None else moves, apply=apply, output=output)
        return
    if moves is not None:
        message = "is for jobs of a cluster: of files, say `most_moves` in the instance's section `adjust`"
        raise _wrong("--moves", message, output)
    if apply or not dry_run:
        message = "files have no tasks that could be moved: add --dry-run, to see what would change"
        raise _wrong("--apply" if apply else "--dry-run", message, output)
    instance = Path(job)
    try:
        data = read_object(instance, "instance")
        problem = read_instance(data, basis=basis.value, paths=paths, path_metric=path_metric.value)
        facts, terms = read_terms(data.get("adjust") or {})
        decision = decide(problem, _plan(read_answer(answer)), facts, terms)
    except ProblemError as error:
        details = {"instance": str(instance), "field": error.field, "message": error.message}
        say_error(output, details, f"{instance}: {error}")
        raise typer.Exit(2) from error
    told = decision.to_dict()
    if output is Output.JSON:
        show_json_line({"instance": str(instance), "answer": str(answer)} | told)
    else:
        screen, now = console(), {task.name: task.cpu for task in problem.tasks}
        proposal = AdjustmentProposal.model_validate(told)
        for line in lines(problem.name, proposal, now, rate=lambda rate: f"{rate:g}"):
            screen.print(line, soft_wrap=isinstance(line, Text))
    if decision.broken and decision.adjustment is None:
        raise typer.Exit(1)


def _wrong(option: str, message: str, output: Output) -> typer.Exit:
    """What to raise, once it is said."""
    say_error(output, {"field": option.removeprefix("--"), "message": message}, f"{option}: {message}")
    return typer.Exit(2)


def _plan(answer: dict[str, Any]) -> Plan:
    if not answer["feasible"]:
        raise ProblemError("answer.feasible", "the job has no plan that could be adjusted: give one that runs")
    flows = [
        PlannedFlow(flow["src"], flow["dst"], flow["bandwidth"], tuple(flow["path"]))
        for flow in answer.get("flows", [])
    ]
    return Plan(answer["assignments"], tuple(flows))
