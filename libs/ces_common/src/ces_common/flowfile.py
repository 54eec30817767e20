"""What a job file says of its flows: between which tasks, from which data, how much."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ces_common.fields import DatasetName, Document, EndName, NodeName, PositiveRange
from ces_common.quantities import Bandwidth, Memory

MAX_DATASETS = 64  # of one input
MAX_FLOWS = 4096  # a plan and its commitment travel in one message each
LARGEST_MESSAGE = 2**30  # bytes of one request
FlowMode = Literal["strict", "elastic"]


class Range(PositiveRange):
    min: Bandwidth
    max: Bandwidth


class Edge(Document):
    """``message``: bytes that a request of the application sends over it."""

    src: EndName
    dst: EndName
    bandwidth: Range
    message: Annotated[Memory, Field(le=LARGEST_MESSAGE)] = 0


class Input(Document):
    """Data that lies on a node, for one task to read; without ``datasets``, all that the node offers."""

    node: NodeName
    dst: EndName
    bandwidth: Range
    datasets: Annotated[list[DatasetName], Field(max_length=MAX_DATASETS)] = []


class Flows(Document):
    topology: Literal["ring", "star", "tree", "full", "gossip", "edges"] = "edges"
    direction: Literal["forward", "reverse", "both"] = "forward"
    bandwidth: Range | None = None
    mode: FlowMode = "strict"
    edges: Annotated[list[Edge], Field(max_length=MAX_FLOWS)] = []
    inputs: Annotated[list[Input], Field(max_length=MAX_FLOWS)] = []

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.topology == "edges":
            if self.bandwidth is not None:
                raise ValueError("bandwidth belongs to each edge when topology is edges")
        elif self.bandwidth is None:
            raise ValueError(f"topology {self.topology} needs bandwidth: {{min, max}}")
        elif self.edges:
            raise ValueError("edges are given only with topology: edges")
        if self.topology != "ring" and self.direction != "forward":
            raise ValueError("direction applies to a ring only; the other topologies go both ways")
        return self
