"""Topology files: the edge hosts and switches of a testbed, and the wires between them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from ces_client.files import field_name
from ces_common.documents import read_yaml
from ces_common.field_errors import plain_problem
from ces_common.fields import MAX_LABELS, Document, Label, NodeName
from ces_common.messages.api import MAX_LINKS, MAX_MEDIA, TopologyFile, TopologyLink, TopologyMedium
from ces_common.quantities import Cpu, Memory

DATA_PLANE_SUFFIX = "-dp"
MAX_NODES = 250


class BadTopology(ValueError):
    """A topology file that cannot be used; the text names the file, the field and what to do."""


class TestbedNode(Document):
    """An edge host with its emulated capacity (``cpu`` in millicores, ``memory`` in bytes); a switch has ``cpu: 0``.
    ``datasets``: the folder of this machine with what the host offers jobs to read."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    name: NodeName
    cpu: Cpu = 0
    memory: Memory = 0
    gpu: Annotated[int, Field(ge=0, le=64)] = 0
    labels: Annotated[dict[Label, Label], Field(max_length=MAX_LABELS)] = {}
    datasets: Path | None = None

    @field_validator("name")
    @classmethod
    def _not_a_data_plane(cls, name: str) -> str:
        if name.endswith(DATA_PLANE_SUFFIX):
            raise ValueError(f"a node's name must not end with {DATA_PLANE_SUFFIX!r}: its data plane is called so")
        return name

    @field_validator("labels")
    @classmethod
    def _plain_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        for text in (*labels, *labels.values()):
            if set(text) & set(",="):
                raise ValueError(f"{text!r}: a label holds neither ',' nor '='")
        return labels

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.cpu == 0) != (self.memory == 0):
            raise ValueError("give cpu and memory, or neither for a switch")
        return self

    @property
    def is_switch(self) -> bool:
        return self.cpu == 0


class Topology(Document):
    """What a topology file says. Links are directed; one with ``both: true`` is a wire with a link each way."""

    nodes: Annotated[list[TestbedNode], Field(min_length=1, max_length=MAX_NODES)]
    links: Annotated[list[TopologyLink], Field(max_length=MAX_LINKS)] = []
    media: Annotated[list[TopologyMedium], Field(max_length=MAX_MEDIA)] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [node.name for node in self.nodes]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"nodes: the name {twice[0]!r} is used twice")
        media = {medium.name for medium in self.media}
        seen: set[tuple[str, str]] = set()
        for i, link in enumerate(self.links):
            for end in (link.src, link.dst):
                if end not in names:
                    raise ValueError(f"links[{i}]: no node is named {end!r}; nodes are {', '.join(sorted(names))}")
            if link.src == link.dst:
                raise ValueError(f"links[{i}]: a link needs two different nodes")
            if link.bandwidth <= 0:
                raise ValueError(f"links[{i}]: bandwidth must be more than zero")
            if link.medium is not None and link.medium not in media:
                raise ValueError(f"links[{i}]: no medium is named {link.medium!r}")
            ways = [(link.src, link.dst), *([(link.dst, link.src)] if link.both else [])]
            for way in ways:
                if way in seen:
                    raise ValueError(f"links[{i}]: a second link from {way[0]} to {way[1]}")
                seen.add(way)
        return self

    @property
    def wires(self) -> list[tuple[str, str]]:
        """Pairs of nodes that a cable joins, each once, in the file's order (tunnels need none)."""
        pairs: dict[tuple[str, str], None] = {}
        for link in self.links:
            if link.kind == "veth":
                a, b = sorted((link.src, link.dst))
                pairs[a, b] = None
        return list(pairs)

    @property
    def network(self) -> TopologyFile:
        """The part that the manager is told (``PUT /v1/topology``)."""
        return TopologyFile(links=self.links, media=self.media)

    @property
    def workers(self) -> list[TestbedNode]:
        return [node for node in self.nodes if not node.is_switch]


def parse_topology(text: str, source: str) -> Topology:
    """Raises BadTopology, naming ``source`` and the wrong field."""
    try:
        content = read_yaml(text)
    except yaml.YAMLError as error:
        raise BadTopology(f"{source}: no valid YAML: {error}") from error
    try:
        return Topology.model_validate(content)
    except ValidationError as error:
        lines = [
            f"{source}: {field_name(wrong['loc']) or 'topology'}: {plain_problem(wrong)}" for wrong in error.errors()
        ]
        raise BadTopology("\n".join(lines)) from error


def load_topology(path: Path) -> Topology:
    """Raises BadTopology; also where the file cannot be read."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise BadTopology(f"{path}: cannot be read: {why}") from error
    return parse_topology(text, str(path))


def default_topology() -> Topology:
    """Six edge hosts around a switch, two pairs of them joined directly as well."""
    source = resources.files("ces_testbed") / "data" / "six-hosts.yaml"
    return parse_topology(source.read_text(), "six-hosts.yaml")
