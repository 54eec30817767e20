"""An application's graph divided into the tasks of a job, as the dashboard previews it. Pure."""

from __future__ import annotations

import json

from pydantic import ValidationError

from ces_common.field_errors import plain_problem
from ces_common.graph_job import job_of, names_of
from ces_common.graphfile import ApplicationGraph
from ces_common.messages.decompositions import (
    DecompositionAnswer,
    DecompositionQuery,
    DividedLevel,
    DividedPart,
    PartTraffic,
)
from ces_common.resources import MAX_GPUS
from ces_core.decomposition.comparison import Rival, rivals
from ces_core.decomposition.graph import Graph, IndivisibleError, Limits, Parts, Vertex, division
from ces_core.decomposition.levels import Granularity
from ces_core.decomposition.ways import Made, Way, Wish, asked_for, job_parts, levels_of, part_limits

LEVEL_S = 2.0
"""For one level; what was found by then counts."""
LARGEST_JOB = 2**20
"""Bytes of the job file as JSON; every part runs, and so repeats, what ``graph.run`` says."""


def decomposed(query: DecompositionQuery, limit_s: float = LEVEL_S) -> DecompositionAnswer:
    """Divided as asked, beside other ways to divide; by the same seed as `ces decompose` where nothing is said."""
    source, by = query.graph, Way(query.by)
    edges = ((e.src, e.dst, e.bandwidth.min, e.bandwidth.max) for e in source.edges)
    graph = Graph.of(source.name, (Vertex(**dict(each)) for each in source.vertices), edges)
    cards = MAX_GPUS if source.capacity.gpu is None else source.capacity.gpu  # no task has more
    limits = part_limits(graph, by, Limits(source.capacity.cpu, source.capacity.memory, cards))
    wish = Wish(by, graph, limits, source.near.state, limit_s, seed=0)
    try:
        levels = levels_of(wish, query.parts, Granularity(query.granularity))
    except IndivisibleError as error:
        return DecompositionAnswer(refusal=str(error), field=error.field)
    chosen = asked_for(levels.made, levels.asked)
    own = [_level(by, made, made is chosen) for made in levels.made]
    own += [DividedLevel(name=by, parts=count, note=reason) for count, reason in levels.missing.items()]
    count = len(chosen.parts.members)
    others = [_other(each, graph) for each in rivals(division(graph, limits(count)), count, metis=False)]
    asked = job_parts(chosen.parts, by)
    names = names_of(asked)
    parts = [
        DividedPart(task=name, cpu=p.cpu, memory=p.memory, gpu=p.gpu, arch=p.arch, vertices=list(p.vertices))
        for name, p in zip(names, asked, strict=True)
    ]
    traffic = [PartTraffic(src=names[f.src], dst=names[f.dst], min=f.min, max=f.max) for f in chosen.parts.flows]
    nearest = query.parts is not None and query.parts != count
    answer = DecompositionAnswer(
        levels=sorted(own, key=lambda each: each.parts),
        others=others,
        parts=parts,
        traffic=traffic,
        note=f"there is no level of {query.parts} parts: this is the nearest" if nearest else None,
    )
    return answer.model_copy(update=_job(source, chosen.parts, by))


def _job(source: ApplicationGraph, parts: Parts, by: Way) -> dict[str, object]:
    if source.run is None:
        return {}
    try:
        job = job_of(source, job_parts(parts, by), parts.flows)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        return {"remark": f"the parts make no valid job: {field}: {plain_problem(first)}"}
    file = job.model_dump(mode="json", exclude_defaults=True)
    size = len(json.dumps(file))
    if size > LARGEST_JOB:
        remedy = "shorten graph.run, or ask for fewer parts"
        return {"remark": f"the job file would have {size} bytes, above {LARGEST_JOB}: {remedy}"}
    return {"job": file}


def _level(by: Way, made: Made, chosen: bool) -> DividedLevel:
    parts = made.parts
    every = range(len(parts.members))
    return DividedLevel(
        name=by,
        parts=len(every),
        chosen=chosen,
        cut=parts.cut,
        share=_share(parts.cut, parts.graph),
        gap=parts.gap,
        cpu=max(parts.amount(i, "cpu") for i in every),
        memory=max(parts.amount(i, "memory") for i in every),
        note=made.said or None,
    )


def _other(rival: Rival, graph: Graph) -> DividedLevel:
    share = None if rival.cut is None else _share(rival.cut, graph)
    note = rival.lacks or rival.above or None
    return DividedLevel(name=rival.name, parts=rival.parts, cut=rival.cut, spread=rival.spread, share=share, note=note)


def _share(cut: float, graph: Graph) -> float | None:
    whole = sum(edge.max for edge in graph.edges)
    return cut / whole if whole else None
