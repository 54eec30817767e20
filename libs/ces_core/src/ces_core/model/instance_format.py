"""What an instance file may contain, as pydantic models: types and names. Meanings and bounds are the model's."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ces_core.model.problem import EQUAL_WEIGHTS

Number = Annotated[float, Field(ge=-1e24, le=1e24)]  # sums and products of many are still numbers


class _Part(BaseModel):
    # Unknown fields are refused: a misspelt "cpu_used" would otherwise pass as zero.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class PositionPart(_Part):
    lat: float
    lon: float


class NodePart(_Part):
    name: str
    cpu: Number = 0.0
    memory: Number = 0.0
    gpu: Number = 0.0
    cpu_used: Number = 0.0
    memory_used: Number = 0.0
    gpu_used: Number = 0.0
    speed: dict[str, Number] | None = None
    idle_w: Number = 0.0
    peak_w: Number = 0.0
    power_w: list[Number] | None = None
    sleeping: bool = False
    reliability: Number = 1.0
    position: PositionPart | None = None
    coverage_m: Number | None = None


class LinkPart(_Part):
    src: str
    dst: str
    bandwidth: Number
    bandwidth_used: Number = 0.0
    medium: str | None = None
    delay_ms: Number = 0.0
    nj_per_bit: Number = 0.0
    reliability: Number = 1.0


class WorkPart(_Part):
    per_request: Number
    work_class: str | None = Field(None, alias="class")
    threads: Number | None = None


class TaskPart(_Part):
    name: str
    cpu: Number = 0.0
    memory: Number = 0.0
    gpu: Number = 0.0
    allowed: list[str] | None = None
    work: WorkPart | None = None
    rate: Number = 0.0
    longest_ms: Number | None = None
    group: str | None = None
    state: Number = 0.0


class FlowPart(_Part):
    src: str
    dst: str
    min: Number = 0.0
    max: Number
    message: Number = 0.0
    sources: list[str] | None = None


class ChainPart(_Part):
    name: str
    tasks: list[str] = Field(default_factory=list)
    flows: list[list[str]] = Field(default_factory=list)
    fixed_ms: Number = 0.0
    deadline_ms: Number | None = None
    hard: bool = False


class ObjectivePart(_Part):
    balance: Number = 0.0
    bandwidth: Number = 0.0
    time: Number = 0.0
    energy: Number = 0.0


class HeldPart(_Part):
    task: str
    node: str
    cost: Number | None = None


class UnitsPart(_Part):
    core: Number = 1.0
    mbit: Number = 1.0


class JobPart(_Part):
    name: str = "job"
    tasks: list[TaskPart]
    flows: list[FlowPart] = Field(default_factory=list)
    chains: list[ChainPart] = Field(default_factory=list)
    least_reliability: Number = 0.0
    objective: ObjectivePart | None = None
    held: list[HeldPart] = Field(default_factory=list)
    units: UnitsPart | None = None


class InstanceFile(BaseModel):
    # At the top, other keys are left to whoever wrote the file (seed, regime, comments).
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    nodes: list[NodePart]
    links: list[LinkPart] = Field(default_factory=list)
    media: dict[str, Number] = Field(default_factory=dict)
    job: JobPart
    weights: list[Number] = Field(default_factory=lambda: list(EQUAL_WEIGHTS))
