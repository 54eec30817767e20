"""The graph of an application, as its file says it; readers of other formats make the same."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, field_validator, model_validator

from ces_common.fields import ARCH, MAX_LABELS, Document, EnvName, Label, Name, Plain
from ces_common.flowfile import Range
from ces_common.jobfile import MAX_ENV
from ces_common.quantities import Cpu, Memory
from ces_common.resources import MAX_GPUS

MAX_VERTICES = 5_000
MAX_EDGES = 50_000
LONGEST_VERTEX = 256  # characters of a name

_NAMELESS = re.compile(r"[,\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _listable(name: str) -> str:
    """Refuses what would make the list of a part's vertices, which has a comma between two, ambiguous."""
    if _NAMELESS.search(name):
        raise ValueError("must hold no comma and no control character")
    return name


def vertex_name(text: str) -> str:
    """A name that a vertex may have, of one in a format of others."""
    return _NAMELESS.sub("_", text)[:LONGEST_VERTEX] or "_"


VertexName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_VERTEX), AfterValidator(_listable)]


class GraphVertex(Document):
    """``near``: it has to be near the user, must not be (false), or may be either (left out). ``state``: what has to
    follow a user who moves. ``class``: of its work, such as ``matrix``."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: VertexName
    cpu: Cpu = 100
    memory: Memory = 64 * 2**20
    gpu: Annotated[int, Field(ge=0, le=MAX_GPUS)] = 0
    arch: Annotated[str, StringConstraints(pattern=ARCH)] | None = None
    work_class: Annotated[Label | None, Field(alias="class")] = None
    near: bool | None = None
    state: Memory = 0

    @field_validator("cpu")
    @classmethod
    def _some(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("must be more than zero")
        return value


class GraphEdge(Document):
    src: VertexName
    dst: VertexName
    bandwidth: Range


class PartCapacity(Document):
    """The most that one part may ask for; left out: an even share and the largest vertex for CPU, no bound else."""

    cpu: Cpu | None = None
    memory: Memory | None = None
    gpu: Annotated[int, Field(ge=0, le=MAX_GPUS)] | None = None


class NearUser(Document):
    """Of the part near the user: the labels of its nodes, and the most state that follows a move."""

    labels: Annotated[dict[Label, Label], Field(max_length=MAX_LABELS)] = {}
    state: Memory | None = None


class Program(Document):
    """What every part runs. The vertices of its own part are in ``CES_VERTICES``."""

    image: Annotated[str, StringConstraints(min_length=1, max_length=255), Plain] | None = None
    command: Annotated[list[Annotated[str, StringConstraints(max_length=4096), Plain]], Field(max_length=256)] = []
    env: Annotated[
        dict[EnvName, Annotated[str, StringConstraints(max_length=32768), Plain]], Field(max_length=MAX_ENV - 1)
    ] = {}

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.image or self.command):
            raise ValueError("give a command or an image: there is nothing to run")
        return self


class ApplicationGraph(Document):
    name: Name
    vertices: Annotated[list[GraphVertex], Field(min_length=1, max_length=MAX_VERTICES)]
    edges: Annotated[list[GraphEdge], Field(max_length=MAX_EDGES)] = []
    capacity: PartCapacity = PartCapacity()
    near: NearUser = NearUser()
    run: Program | None = None

    @model_validator(mode="after")
    def _joined(self) -> Self:
        names = Counter(vertex.name for vertex in self.vertices)
        if twice := next((name for name, count in names.items() if count > 1), None):
            raise ValueError(f"vertices: the name {twice!r} is used twice")
        pairs: set[tuple[str, str]] = set()
        for i, edge in enumerate(self.edges):
            for end in (edge.src, edge.dst):
                if end not in names:
                    raise ValueError(f"edges[{i}]: no vertex is named {end!r}")
            if edge.src == edge.dst:
                raise ValueError(f"edges[{i}]: an edge needs two different vertices")
            if (edge.src, edge.dst) in pairs:
                raise ValueError(f"edges[{i}]: a second edge from {edge.src} to {edge.dst}")
            pairs.add((edge.src, edge.dst))
        return self


class GraphFile(Document):
    graph: ApplicationGraph
