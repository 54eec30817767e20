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
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import ValidationError
from rich.console import RenderableType
from rich.text import Text

from ces_client.cli import session
from ces_client.cli.output import Output, OutputOption, local_now, show, show_json
from ces_client.client import Client
from ces_client.errors import bad_field
from ces_client.graphs.drawing import check_kind, draw_parts
from ces_client.graphs.graphfile import ApplicationGraph, Program
from ces_client.graphs.job import NEAR, JobFlow, JobPart, job_of
from ces_client.graphs.reader import read_graph
from ces_client.view.decomposition import Row, levels_table, parts_table
from ces_client.view.plan import plan_answer
from ces_common.jobfile import JobFile
from ces_common.quantities import parse_cpu, parse_memory
from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.comparison import Rival, rivals
from ces_core.decomposition.graph import (
    Edge,
    Graph,
    IndivisibleError,
    Limits,
    Parts,
    Vertex,
    division,
    even_limits,
    parts_of,
)
from ces_core.decomposition.levels import MOST_PARTS, Granularity, Level, best_placed, parts_at, pure_levels
from ces_core.decomposition.mobile import mobile
from ces_core.decomposition.optimal import optimal
from ces_core.decomposition.packing import least_parts

TITLE = "The graph is not divided"
REMEDIES = {
    "parts": "give another number with --parts, or parts that may hold more with --cpu and --memory",
    "by": "say --by clusters",
    "cpu": "let parts hold more with --cpu",
    "memory": "let parts hold more with --memory",
    "gpu": "let parts hold more cards, by graph.capacity.gpu",
    "capacity": "let parts hold more with --cpu and --memory, or mark fewer vertices near",
    "near": "mark them in the graph file",
    "state": "allow more with --state, or mark fewer vertices near",
}


class Way(StrEnum):
    """Louvain clusters, the least cut, parts of one kind, or what is near the user and what is not."""

    clusters = "clusters"
    optimal = "optimal"
    compute = "compute"
    mobile = "mobile"


@dataclass(frozen=True)
class Wish:
    """What was asked for. ``most_state``: bytes, or None."""

    by: Way
    graph: Graph
    limits: Callable[[int], Limits]
    most_state: float | None
    limit_s: float
    seed: int


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
        float, typer.Option(min=0.1, max=3600.0, help="seconds for each level of --by optimal and mobile")
    ] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="same seed, same parts")] = 0,
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

    def limits(count: int) -> Limits:
        # What is near a user is as large as the cut makes it, unless somebody set a bound.
        even = even_limits(graph, count).cpu if by is not Way.mobile else None
        return Limits(even if capacity.cpu is None else capacity.cpu, capacity.memory, capacity.gpu)

    wish = Wish(by, graph, limits, source.near.state, time_limit, seed)
    try:
        rows, levels, asked = _levels(wish, parts, granularity)
    except IndivisibleError as error:
        raise bad_field(TITLE, error.field, str(error), REMEDIES[error.field]) from error
    if not (apply or dry_run):
        chosen = _asked_for(levels, asked)
        _tell(wish, source, rows, [Level(each) for each in levels], chosen, job, draw, output)
        return
    with session.connect() as client:
        scored = _placed(client, source, levels if by is Way.compute else [_asked_for(levels, asked)], by)
        best = scored[0].parts
        _tell(wish, source, rows, scored, best, job, draw, output, client=client, apply=apply and not dry_run)


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


def _graph(source: ApplicationGraph) -> Graph:
    index = {vertex.name: place for place, vertex in enumerate(source.vertices)}
    vertices = tuple(Vertex(**dict(vertex)) for vertex in source.vertices)
    edges = (Edge(index[e.src], index[e.dst], e.bandwidth.min, e.bandwidth.max) for e in source.edges)
    return Graph(source.name, vertices, tuple(edges))


def _levels(wish: Wish, parts: int | None, granularity: Granularity) -> tuple[list[Row], list[Parts], int]:
    """Rows of levels that there are not, with the reason; the levels that there are; how many parts were asked for.
    Raises IndivisibleError where the one that was asked for is not among them."""
    size = len(wish.graph.vertices)
    least = least_parts(division(wish.graph, wish.limits(1), pure=wish.by is Way.compute))
    if wish.by is Way.mobile:
        least = max(least, 2)
    if wish.by is Way.compute:
        most = parts if parts is not None else parts_at(Granularity.fine, size, least)
        asked = parts if parts is not None else parts_at(granularity, size, least)
        return [], list(pure_levels(wish.graph, wish.limits, most)), asked
    if parts is not None:
        return [], [_divided(wish, parts)], parts
    asked = parts_at(granularity, size, least)
    rows: list[Row] = []
    levels: list[Parts] = []
    for count in sorted({parts_at(each, size, least) for each in Granularity}):
        try:
            levels.append(_divided(wish, count))
        except IndivisibleError as error:
            if count == asked:
                raise
            rows.append(Row(wish.by, count, said=str(error)))
    return rows, levels, asked


def _divided(wish: Wish, count: int) -> Parts:
    asked = division(wish.graph, wish.limits(count))
    match wish.by:
        case Way.optimal:
            found = optimal(asked, count, limit_s=wish.limit_s, seed=wish.seed)
            return parts_of(wish.graph, found.part, found.bound)
        case Way.mobile:
            halves = mobile(wish.graph, asked, count, most_state=wish.most_state, limit_s=wish.limit_s, seed=wish.seed)
            return parts_of(wish.graph, halves.part, halves.bound if count == 2 else None)
        case _:
            return parts_of(wish.graph, clusters(asked, count, seed=wish.seed))


def _asked_for(levels: Sequence[Parts], asked: int) -> Parts:
    """The level with that many parts, else the nearest one."""
    return min(levels, key=lambda each: abs(len(each.members) - asked))


def _placed(client: Client, source: ApplicationGraph, levels: Sequence[Parts], by: Way) -> tuple[Level, ...]:
    """The levels by the composite of the place that the cluster's scheduler finds now."""

    def place(parts: Parts) -> float | None:
        answer = client.plan(_job(source, parts, by))
        return float(answer.metrics["composite"]) if answer.feasible and "composite" in answer.metrics else None

    return best_placed(levels, place)


def _job(source: ApplicationGraph, parts: Parts, by: Way) -> JobFile:
    flows = [JobFlow(flow.src, flow.dst, flow.min, flow.max) for flow in parts.flows]
    try:
        return job_of(source, _job_parts(parts, by), flows)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "job"
        raise bad_field("The parts make no valid job", where, first["msg"], "change the graph file") from error


def _job_parts(parts: Parts, by: Way) -> list[JobPart]:
    vertices = parts.graph.vertices
    return [
        JobPart(
            vertices=[vertices[v].name for v in members],
            cpu=parts.amount(index, "cpu"),
            memory=parts.amount(index, "memory"),
            gpu=int(parts.amount(index, "gpu")),
            arch=next(iter(parts.archs(index)), None),
            near=by is Way.mobile and any(vertices[v].near for v in members),
        )
        for index, members in enumerate(parts.members)
    ]


def _tell(
    wish: Wish,
    source: ApplicationGraph,
    missing: Sequence[Row],
    levels: Sequence[Level],
    chosen: Parts,
    job: Path | None,
    draw: Path | None,
    output: Output,
    *,
    client: Client | None = None,
    apply: bool = False,
) -> None:
    """Shows, writes, draws, and submits if ``apply``; plans if there is only a client."""
    count = len(chosen.members)
    asked = division(wish.graph, wish.limits(count))
    whole = sum(edge.max for edge in wish.graph.edges)
    own = [_row(wish.by, level, whole, level.parts is chosen) for level in levels]
    own = sorted([*own, *missing], key=lambda row: row.parts)
    with _silent():
        others = [_rival_row(each, whole) for each in rivals(asked, count, seed=wish.seed)]
    file = None if source.run is None else _job(source, chosen, wish.by)
    if job is not None and file is not None:
        _write(job, file)
    if draw is not None:
        part = [0] * len(wish.graph.vertices)
        for index, members in enumerate(chosen.members):
            for vertex in members:
                part[vertex] = index
        draw_parts(draw, source, part, f"{source.name} by {wish.by}: {count} parts")
    told: dict[str, Any] = {"levels": [row.document() for row in own], "others": [row.document() for row in others]}
    told["parts"] = [[wish.graph.vertices[v].name for v in members] for members in chosen.members]
    if file is not None:
        told["job"] = file.model_dump(mode="json", exclude_defaults=True)
    said: list[RenderableType] = [levels_table(own, others), parts_table(_part_rows(chosen, wish.by))]
    if client is not None and file is not None:
        if apply:
            view = client.jobs.submit(file)
            told["submitted"] = view.id
            said.append(Text(f"{view.name} submitted: {view.id}"))
        else:
            answer = client.plan(file)
            told["plan"] = answer.model_dump(mode="json")
            said.append(plan_answer(file, answer, local_now()))
    if output is Output.JSON:
        show_json(told)
        return
    for each in said:
        show(each)


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


def _row(by: Way, level: Level, whole: float, chosen: bool) -> Row:
    parts = level.parts
    every = range(len(parts.members))
    largest = max(parts.amount(i, "cpu") for i in every), max(parts.amount(i, "memory") for i in every)
    share = parts.cut / whole if whole else 0.0
    return Row(by, len(parts.members), chosen, parts.cut, 0.0, share, parts.gap, largest, level.placed)


def _rival_row(rival: Rival, whole: float) -> Row:
    share = None if rival.cut is None or not whole else rival.cut / whole
    return Row(
        rival.name, rival.parts, cut=rival.cut, spread=rival.spread, share=share, said=rival.lacks or rival.above
    )


def _part_rows(parts: Parts, by: Way) -> list[tuple[str, float, float, int, str, Sequence[str]]]:
    return [
        (
            f"{NEAR if part.near else f'part{index + 1}'}-0",
            part.cpu,
            part.memory,
            part.gpu,
            part.arch or "any",
            part.vertices,
        )
        for index, part in enumerate(_job_parts(parts, by))
    ]


def _write(path: Path, file: JobFile) -> None:
    document = file.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(document, indent=2) if path.suffix == ".json" else yaml.safe_dump(document, sort_keys=False)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        remedy = "check the path and its permissions"
        raise bad_field(f"{path} cannot be written", "--job", error.strerror or str(error), remedy) from error
