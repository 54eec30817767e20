"""``ces decompose``: an application's graph becomes a job of a few tasks.

A plain function; the ``ces`` command finds it through the entry-point group ``ces.commands``.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.console import RenderableType
from rich.progress import Progress, TaskID
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, local_now, progress_bars, show, show_json
from ces_client.client import Client
from ces_client.errors import BadInput, bad_field
from ces_client.files import LARGEST_FILE, explained
from ces_client.graphs.drawing import check_kind, draw_parts
from ces_client.graphs.reader import read_graph
from ces_client.view.decomposition import Row, levels_table, parts_table
from ces_client.view.plan import plan_answer
from ces_common.graph_job import job_of, names_of
from ces_common.graphfile import ApplicationGraph, Program
from ces_common.jobfile import JobFile
from ces_common.messages.api import PlanForecast
from ces_common.quantities import parse_cpu, parse_memory
from ces_common.resources import MAX_GPUS
from ces_core.decomposition.comparison import Rival, rivals
from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, Parts, Vertex, division
from ces_core.decomposition.levels import MOST_PARTS, Granularity, best_placed
from ces_core.decomposition.ways import Made, Way, Wish, asked_for, job_parts, levels_of, part_limits

TITLE = "The graph is not divided"
REMEDIES = {
    "parts": "give another number with --parts, or parts that may hold more with --cpu and --memory",
    "by": "say --by clusters",
    "cpu": "let parts hold more with --cpu",
    "memory": "let parts hold more with --memory",
    "gpu": "let parts hold more cards, by graph.capacity.gpu",
    "capacity": "let parts hold more with --cpu and --memory, or mark fewer vertices near",
    "near": "mark one at least in the graph file, by near: true",
    "far": "give a smaller number with --parts, or mark fewer vertices near",
    "arch": "mark only vertices of one architecture near",
    "time": "allow more with --time-limit, or say --by clusters",
    "state": "allow more with --state, or mark fewer vertices near",
}


@dataclass(frozen=True)
class Ranked:
    """``answer``: None where no cluster was asked; ``placed``: the composite of the place that it found."""

    made: Made
    placed: float | None = None
    answer: PlanForecast | None = None

    @property
    def feasible(self) -> bool:
        return self.answer is not None and self.answer.feasible


def decompose(
    app: Annotated[
        Path, typer.Argument(metavar="APP", help="a graph file, a WfCommons instance, a muBench or ONNX model")
    ],
    by: Annotated[Way, typer.Option(help="how to divide")] = Way.clusters,
    parts: Annotated[int | None, typer.Option(min=1, max=MOST_PARTS, help="into how many tasks")] = None,
    granularity: Annotated[
        Granularity, typer.Option(help="how finely, where --parts is left out")
    ] = Granularity.medium,
    cpu: Annotated[
        str | None, typer.Option(metavar="CPU", help="most that one part may ask for, such as 4 or 500m")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="MEMORY", help="most that one part may ask for, as 8Gi")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="MEMORY", help="with --by mobile: most state that follows a user's move")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=1e-6, max=1e9, help="requests in a second, of muBench and ONNX models")
    ] = 1.0,
    run: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="what every part runs, if the graph file does not say")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=0.1, max=3600.0, help="seconds for each level; what was found by then counts")
    ] = 10.0,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="same seed, same parts")] = 0,
    job: Annotated[Path | None, typer.Option("--job", metavar="FILE", help="write the job file, YAML or JSON")] = None,
    draw: Annotated[Path | None, typer.Option(metavar="FILE", help="draw the parts, SVG or PNG")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="submit the job")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show where it would go, and start nothing; alone or with --apply")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Divide an application's graph into a few tasks with little traffic between them, none above its capacity."""
    if draw is not None:
        check_kind(draw)
    source = _with_options(read_graph(app, rate), cpu, memory, state, run)
    if source.run is None and (job is not None or apply or dry_run):
        remedy = "say it by `run:` in a graph file, or with --run"
        raise bad_field("There is no job yet", "run", "nothing says what a part runs", remedy)
    graph = _graph(source)
    capacity = source.capacity

    cards = MAX_GPUS if capacity.gpu is None else capacity.gpu  # no task has more
    limits = part_limits(graph, by, Limits(capacity.cpu, capacity.memory, cards))
    wish = Wish(by, graph, limits, source.near.state, time_limit, seed)
    try:
        with progress_bars() as bars:
            bar = bars.add_task("levels divided", total=None)
            told = partial(_progressed, bars, bar)
            levels = levels_of(wish, parts, granularity, told)
    except IndivisibleError as error:
        raise bad_field(TITLE, error.field, str(error), REMEDIES[error.field]) from error
    wanted = asked_for(levels.made, levels.asked)
    rows = [Row(by, count, said=reason) for count, reason in levels.missing.items()]
    if not (apply or dry_run):
        _tell(wish, source, rows, [Ranked(each) for each in levels.made], wanted, job, draw, output)
        return
    with session.connect() as client:
        ranked = _ranked(client, source, levels.made if by is Way.compute else [wanted], by)
        if not ranked[0].feasible:  # nothing says which of them is the best
            ranked.sort(key=lambda each: each.made is not wanted)
        best = ranked[0]
        _tell(wish, source, rows, ranked, best.made, job, draw, output, client=client, apply=apply and not dry_run)
        if dry_run and not best.feasible:
            raise typer.Exit(2)


def _with_options(
    graph: ApplicationGraph, cpu: str | None, memory: str | None, state: str | None, run: str | None
) -> ApplicationGraph:
    """The graph with what the command line says instead. Raises BadInput."""
    capacity = {}
    for name, text, parse in (("cpu", cpu, parse_cpu), ("memory", memory, parse_memory)):
        if text is not None:
            capacity[name] = _quantity(f"--{name}", text, parse)
    near = {} if state is None else {"state": _quantity("--state", state, parse_memory)}
    program = graph.run
    if run is not None:
        try:
            program = Program(command=shlex.split(run))
        except ValueError as error:
            remedy = "write it as in a shell, its words between spaces"
            raise bad_field(TITLE, "--run", "it is no command", remedy) from error
    return graph.model_copy(
        update={
            "capacity": graph.capacity.model_copy(update=capacity),
            "near": graph.near.model_copy(update=near),
            "run": program,
        }
    )


def _quantity(option: str, text: str, parse: Callable[[object], int]) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise bad_field(TITLE, option, str(error), f"change {text!r}") from error


def _progressed(bars: Progress, bar: TaskID, done: int, total: int | None) -> None:
    bars.update(bar, completed=done, total=total)


def _graph(source: ApplicationGraph) -> Graph:
    edges = ((e.src, e.dst, e.bandwidth.min, e.bandwidth.max) for e in source.edges)
    return Graph.of(source.name, (Vertex(**dict(each)) for each in source.vertices), edges)


def _ranked(client: Client, source: ApplicationGraph, levels: Sequence[Made], by: Way) -> list[Ranked]:
    """The levels by the composite of the place that the cluster's scheduler finds now, those without one last."""
    made = {id(each.parts): each for each in levels}
    answers = {id(each.parts): client.plan(_job(source, each.parts, by)) for each in levels}

    def place(parts: Parts) -> float | None:
        answer = answers[id(parts)]
        return float(answer.metrics["composite"]) if answer.feasible and "composite" in answer.metrics else None

    ranked = best_placed([each.parts for each in levels], place)
    return [Ranked(made[id(each.parts)], each.placed, answers[id(each.parts)]) for each in ranked]


def _job(source: ApplicationGraph, parts: Parts, by: Way) -> JobFile:
    try:
        return job_of(source, job_parts(parts, by), parts.flows)
    except ValidationError as error:
        raise BadInput("The parts make no valid job", explained(error, JobFile)) from error


def _tell(
    wish: Wish,
    source: ApplicationGraph,
    missing: Sequence[Row],
    levels: Sequence[Ranked],
    chosen: Made,
    job: Path | None,
    draw: Path | None,
    output: Output,
    *,
    client: Client | None = None,
    apply: bool = False,
) -> None:
    """Shows, writes, draws, and submits if ``apply``. What is divided is shown also where no job can be made of it."""
    parts = chosen.parts
    count = len(parts.members)
    asked = division(wish.graph, wish.limits(count))
    whole = sum(edge.max for edge in wish.graph.edges)
    own = [_row(wish.by, level, whole, level.made is chosen) for level in levels]
    own = sorted([*own, *missing], key=lambda row: row.parts)
    with _silent():
        others = [_rival_row(each, whole) for each in rivals(asked, count, seed=wish.seed)]
    told: dict[str, Any] = {"levels": [row.document() for row in own], "others": [row.document() for row in others]}
    told["parts"] = [[wish.graph.vertices[v].name for v in members] for members in parts.members]
    said: list[RenderableType] = [levels_table(own, others), parts_table(_part_rows(parts, wish.by))]
    try:
        if draw is not None:
            part = [0] * len(wish.graph.vertices)
            for index, members in enumerate(parts.members):
                for vertex in members:
                    part[vertex] = index
            draw_parts(draw, source, part, f"{source.name} by {wish.by}: {count} parts")
        if source.run is not None:
            file = _job(source, parts, wish.by)
            told["job"] = file.model_dump(mode="json", exclude_defaults=True)
            if job is not None:
                _write(job, file)
            if client is not None:
                answer = next(level.answer for level in levels if level.made is chosen)
                more, shown = _sent(client, file, answer, apply)
                told |= more
                said.append(shown)
    finally:
        if output is Output.JSON:
            show_json(told)
        else:
            for each in said:
                show(each)


def _sent(
    client: Client, file: JobFile, answer: PlanForecast | None, apply: bool
) -> tuple[dict[str, Any], RenderableType]:
    """What became of the job: submitted, or only planned."""
    assert answer is not None
    if not apply:
        return {"plan": answer.model_dump(mode="json")}, plan_answer(file, answer, local_now())
    view = client.jobs.submit(file)
    lacks = "" if answer.feasible else "; there is no place for it now"
    return {"submitted": view.id, "feasible": answer.feasible}, Text(f"{view.name} submitted: {view.id}{lacks}")


@contextmanager
def _silent() -> Iterator[None]:
    """METIS prints what it cannot do to standard output, where scripts read JSON."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def _row(by: Way, level: Ranked, whole: float, chosen: bool) -> Row:
    parts, made = level.made.parts, level.made
    every = range(len(parts.members))
    largest = max(parts.amount(i, "cpu") for i in every), max(parts.amount(i, "memory") for i in every)
    share = parts.cut / whole if whole else 0.0
    said = made.said if level.answer is None or level.feasible else "no place now"
    count = len(every)
    return Row(by, count, chosen, parts.cut, 0.0, share, parts.gap, largest, level.placed, said, made.near)


def _rival_row(rival: Rival, whole: float) -> Row:
    share = None if rival.cut is None or not whole else rival.cut / whole
    return Row(
        rival.name, rival.parts, cut=rival.cut, spread=rival.spread, share=share, said=rival.lacks or rival.above
    )


def _part_rows(parts: Parts, by: Way) -> list[tuple[str, float, float, int, str, Sequence[str]]]:
    asked = job_parts(parts, by)
    return [
        (
            f"{name}-0",
            part.cpu,
            part.memory,
            part.gpu,
            part.arch or "any",
            part.vertices,
        )
        for name, part in zip(names_of(asked), asked, strict=True)
    ]


def _write(path: Path, file: JobFile) -> None:
    document = file.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(document, indent=2) if path.suffix == ".json" else yaml.safe_dump(document, sort_keys=False)
    if len(text.encode()) > LARGEST_FILE:
        problem = f"it would be larger than {LARGEST_FILE // 2**20} MiB, and no job file may be"
        raise bad_field(f"{path} is not written", "--job", problem, "give fewer parts, or shorten what graph.run says")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        remedy = "check the path and its permissions"
        raise bad_field(f"{path} cannot be written", "--job", error.strerror or str(error), remedy) from error
