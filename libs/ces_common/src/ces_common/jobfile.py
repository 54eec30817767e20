"""The job file: what a user writes, and the tasks and flows that it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Set
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_serializer, model_validator

from ces_common.application import MAX_REQUESTS, MAX_USERS, Kind, Objective, Request, User, Work, check_application
from ces_common.deadline import JobDeadline
from ces_common.disconnect import DEFAULT, Disconnect
from ces_common.elastic import Elastic
from ces_common.fields import (
    Document,
    EnvName,
    Name,
    Plain,
    RegionName,
    SecretName,
)
from ces_common.flowfile import MAX_FLOWS, FlowMode, Flows
from ces_common.names import NODE_MARK, node_end
from ces_common.quantities import Duration, format_cpu, format_duration
from ces_common.resources import WHOLE, Constraints, Resources, asked_of_cards, wrong_gpus
from ces_common.self_adjustment import SelfAdjustment
from ces_common.topologies import topology_pairs

MAX_TASKS = 512
MAX_ENV = 1024  # variables of one task
MAX_SECRETS = 16  # of one task
MAX_INPUTS = 120_000  # characters of one task's: Linux lets no variable, so CES_INPUTS, have more than 128 KiB
ABOUT_INPUT = 150  # characters of an input in CES_INPUTS beside its names, at most
LONGEST_RUN = 3650 * 86400  # seconds that a job may say it takes: a date can still be worked out from it
DEFAULT_TENANT = "default"
MAX_REGIONS = 16  # that one job names
ANY_REGION = "any"
LONGEST_NAME = 63  # a task's name is its host name, and a host name's label has 63 characters


class Secret(Document):
    """A secret of the job's tenant, by the name that it is stored under."""

    stored: SecretName = Field(alias="from")

    @model_serializer
    def _as_written(self) -> dict[str, str]:
        return {"from": self.stored}


class TaskGroup(Document):
    name: Name
    replicas: Annotated[int, Field(ge=1, le=MAX_TASKS)] = 1
    image: Annotated[str, StringConstraints(min_length=1, max_length=255), Plain] | None = None
    command: Annotated[list[Annotated[str, StringConstraints(max_length=4096), Plain]], Field(max_length=256)] = []
    script: Annotated[str, StringConstraints(min_length=1, max_length=1024), Plain] | None = None
    env: Annotated[
        dict[EnvName, Annotated[str, StringConstraints(max_length=32768), Plain]], Field(max_length=MAX_ENV)
    ] = {}
    secrets: Annotated[dict[SecretName, Secret], Field(max_length=MAX_SECRETS)] = {}
    resources: Resources = Resources()
    constraints: Constraints = Constraints()
    work: Work | None = None

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if self.command and self.script:
            raise ValueError("give command or script, not both")
        if not (self.command or self.script or self.image):
            raise ValueError("give a command, a script or an image: there is nothing to run")
        return self

    @property
    def argv(self) -> list[str]:
        return ["python", self.script] if self.script else list(self.command)


Preemption = Literal["stop", "suspend"]


class Restart(Document):
    policy: Literal["on-failure", "never"] = "on-failure"
    max: Annotated[int, Field(ge=0, le=1000)] = 3
    scope: Literal["gang", "task"] = "gang"


class Task(BaseModel):
    """One task of a job, written out. ``cpu`` in millicores, ``memory`` in bytes. ``gpu``: whole cards; ``gpu_share``:
    thousandths of one card instead, with ``gpu_memory`` bytes of its memory (0: the same share); ``gpu_models``: of
    which cards, empty for any. ``secrets``: file -> the name that it is stored under. ``user``: at whose access node it
    runs; ``work``: what a request costs it."""

    model_config = ConfigDict(frozen=True)

    name: str
    rank: int
    image: str | None = None
    command: list[str] = []
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    cpu: int
    memory: int
    gpu: int = 0
    gpu_share: int = 0
    gpu_memory: int = 0
    gpu_models: list[str] = []
    arch: str | None = None
    labels: dict[str, str] = {}
    user: str | None = None
    work: Work | None = None

    @property
    def gpus(self) -> float:
        """Cards that it asks for, of which a share is a part of one."""
        return self.gpu + self.gpu_share / WHOLE if self.gpu_share else self.gpu


class Flow(BaseModel):
    """One directed flow between two tasks, or from a node (``@n3``) whose data a task reads, with its bandwidth range
    in bit/s. ``mode``: what it is given is its cap, or it may also borrow what is idle, up to ``max``. ``datasets``:
    what is read; none named, all that the node offers. ``border``: of a flow to or from a task in another region, the
    node that stands here for the gateway there. ``message``: bytes that a request sends."""

    model_config = ConfigDict(frozen=True)

    src: str
    dst: str
    min: int
    max: int
    mode: FlowMode = "strict"
    datasets: list[str] = []
    border: str | None = None
    message: int = 0

    @property
    def data_node(self) -> str | None:
        """The node whose data the flow carries; None for a flow between tasks."""
        return node_end(self.src)

    def far_end(self, tasks: Container[str]) -> str | None:
        """The end that is a task in another region, ``tasks`` being those of this one; None of any other flow."""
        if self.border is None:
            return None
        return self.dst if self.src in tasks else self.src


class JobFile(Document):
    name: Name
    priority: Annotated[int, Field(ge=0, le=100)] = 50
    tenant: Name = DEFAULT_TENANT
    duration: Duration | None = None
    deadline: JobDeadline | None = None
    preemption: Preemption = "stop"
    tasks: Annotated[list[TaskGroup], Field(min_length=1, max_length=64)]
    flows: Flows = Flows()
    elastic: Elastic | None = None
    restart: Restart = Restart()
    disconnect: Disconnect = DEFAULT
    regions: Annotated[list[RegionName], Field(max_length=MAX_REGIONS)] = []
    kind: Kind | None = None
    users: Annotated[list[User], Field(max_length=MAX_USERS)] = []
    requests: Annotated[list[Request], Field(max_length=MAX_REQUESTS)] = []
    objective: Objective | None = None
    adjust: SelfAdjustment | None = None

    @field_validator("duration")
    @classmethod
    def _datable(cls, value: int | None) -> int | None:
        if value is not None and not 0 < value <= LONGEST_RUN:
            raise ValueError(
                f"must be more than zero, and {format_duration(LONGEST_RUN)} at most; leave it out if unknown"
            )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.elastic is not None:
            self._check_elastic(self.elastic)
            self.at_size(self.elastic.largest)._check_tasks_and_flows()
        else:
            self._check_tasks_and_flows()
        if self.deadline is not None:
            self._check_work()
        if self.regions:
            self.check_may_leave()
        if self.is_application:
            self._check_application()
        return self

    @property
    def is_application(self) -> bool:
        """Whether anything is said that only an application file says."""
        groups = any(group.work is not None or group.constraints.user is not None for group in self.tasks)
        return groups or bool(self.kind or self.users or self.requests or self.objective or self.adjust is not None)

    def _check_application(self) -> None:
        if self.elastic is not None:
            raise ValueError("elastic: leave it out: what requests take is reckoned for a fixed number of tasks")
        if self.adjust is not None:
            self.adjust.check_fits(self, self.restart.scope)
        tasks, flows = self.expand_tasks(), self.expand_flows()
        working = {task.name for task in tasks if task.work is not None}
        messages = {(flow.src, flow.dst): flow.message for flow in flows}
        check_application(self.kind, self.users, self.requests, tasks, working, messages)

    def check_may_leave(self) -> None:
        """Raises ValueError for a job that needs what is its region's own."""
        if any(group.secrets for group in self.tasks):
            raise ValueError("regions: leave it out, or the secrets: these do not leave the region that keeps them")
        if self.flows.inputs:
            raise ValueError("regions: leave it out, or flows.inputs, which name nodes of one region")
        if self.deadline is not None:
            raise ValueError("regions: leave it out, or the deadline, which only the region that admits it can promise")
        if self.is_application:
            raise ValueError("regions: leave it out: delays and users' places are known within one region only")

    def at_size(self, size: int) -> JobFile:
        """The malleable job with ``size`` replicas of its elastic group."""
        assert self.elastic is not None
        group = self.elastic.group
        sized = [each.model_copy(update={"replicas": size}) if each.name == group else each for each in self.tasks]
        return self.model_copy(update={"tasks": sized})

    def at_cpu(self, cpu: int) -> JobFile:
        """The job with elastic CPU where each worker of its elastic group has ``cpu`` millicores."""
        assert self.elastic is not None
        given = [
            each.model_copy(update={"resources": each.resources.model_copy(update={"cpu": cpu})})
            if each.name == self.elastic.group
            else each
            for each in self.tasks
        ]
        return self.model_copy(update={"tasks": given})

    def _check_elastic(self, elastic: Elastic) -> None:
        group = next((each for each in self.tasks if each.name == elastic.group), None)
        if group is None:
            raise ValueError(f"elastic.group: no group of tasks is named {elastic.group!r}")
        if group.replicas != 1:
            raise ValueError(f"tasks: leave out the replicas of {group.name}, whose number elastic lets CES decide")
        if elastic.cpu is not None and not elastic.cpu.min <= group.resources.cpu <= elastic.cpu.max:
            raise ValueError(
                f"tasks: {group.name} starts with a resources.cpu of {format_cpu(group.resources.cpu)}; give it "
                f"{format_cpu(elastic.cpu.min)} to {format_cpu(elastic.cpu.max)}, as elastic.cpu says"
            )
        if self.restart.scope == "task":
            raise ValueError("restart.scope: a malleable job restarts as a gang, at another size or the same")
        prefix = f"{group.name}-"
        named = [end for edge in self.flows.edges for end in (edge.src, edge.dst)]
        for end in named + [data.dst for data in self.flows.inputs]:
            if end.startswith(prefix) and end[len(prefix) :].isdigit():
                raise ValueError(
                    f"flows: {end} is a task of the elastic group, which may not be there at every size; "
                    "use a topology that is drawn for each size"
                )

    def _check_work(self) -> None:
        if self.elastic is None and self.duration is None:
            raise ValueError("deadline: give duration as well, how long the job runs, or leave the deadline out")
        if self.elastic is not None and self.elastic.speed.total is None:
            raise ValueError(
                "deadline: give elastic.speed.total as well, how much work the job has to do, or leave the deadline out"
            )

    def _check_tasks_and_flows(self) -> None:
        names = self._task_names()
        self._check_count(names)
        pairs = self._check_edges(names)
        self._check_inputs(names, pairs)
        self._check_environment()
        asked = [(group.name, group.resources, group.constraints) for group in self.tasks]
        if wrong := wrong_gpus(asked, None if self.elastic is None else self.elastic.group):
            raise ValueError(wrong)

    def _task_names(self) -> set[str]:
        groups = [group.name for group in self.tasks]
        twice = sorted({name for name in groups if groups.count(name) > 1})
        if twice:
            raise ValueError(f"tasks: the group name {twice[0]!r} is used twice")
        names = {f"{group.name}-{i}" for group in self.tasks for i in range(group.replicas)}
        if len(names) > MAX_TASKS:
            raise ValueError(f"tasks: {len(names)} tasks are more than the {MAX_TASKS} that one job may have")
        longest = max(names, key=len)
        if len(longest) > LONGEST_NAME:
            raise ValueError(
                f"tasks: the task name {longest!r} has more than {LONGEST_NAME} characters; shorten the group's"
            )
        return names

    def _check_count(self, names: Set[str]) -> None:
        # Of the named topologies only the full one grows beyond the bound, and is counted without writing it out.
        count = len(names) * (len(names) - 1) if self.flows.topology == "full" else len(self.flows.edges)
        count += len(self.flows.inputs)
        if count > MAX_FLOWS:
            raise ValueError(f"flows: {count} flows are more than the {MAX_FLOWS} that one job may have")

    def _check_edges(self, names: Set[str]) -> set[tuple[str, str]]:
        """The edges as pairs of ends."""
        pairs: set[tuple[str, str]] = set()
        for i, edge in enumerate(self.flows.edges):
            for end in (edge.src, edge.dst):
                if end not in names:
                    raise ValueError(f"flows.edges[{i}]: {_unknown_task(end, names)}")
            if edge.src == edge.dst:
                raise ValueError(f"flows.edges[{i}]: a flow needs two different tasks")
            if (edge.src, edge.dst) in pairs:
                raise ValueError(f"flows.edges[{i}]: a second flow from {edge.src} to {edge.dst}")
            pairs.add((edge.src, edge.dst))
        return pairs

    def _check_inputs(self, names: Set[str], pairs: set[tuple[str, str]]) -> None:
        for i, data in enumerate(self.flows.inputs):
            if data.dst not in names:
                raise ValueError(f"flows.inputs[{i}].dst: {_unknown_task(data.dst, names)}")
            if (f"{NODE_MARK}{data.node}", data.dst) in pairs:
                raise ValueError(
                    f"flows.inputs[{i}]: a second input from {data.node} to {data.dst}; "
                    "name all that it reads there in the datasets of one"
                )
            pairs.add((f"{NODE_MARK}{data.node}", data.dst))
            twice = sorted({name for name in data.datasets if data.datasets.count(name) > 1})
            if twice:
                raise ValueError(f"flows.inputs[{i}].datasets: {twice[0]!r} is named twice")

    def _check_environment(self) -> None:
        length: Counter[str] = Counter()  # of each task's CES_INPUTS
        for i, data in enumerate(self.flows.inputs):
            length[data.dst] += ABOUT_INPUT + len(data.node) + sum(len(name) + 4 for name in data.datasets)
            if length[data.dst] > MAX_INPUTS:
                raise ValueError(
                    f"flows.inputs[{i}]: what {data.dst} reads, written out in its CES_INPUTS, would be more than "
                    f"{MAX_INPUTS} characters; name fewer datasets, or none for all that a node offers, or let several "
                    "tasks read"
                )

    def expand_tasks(self) -> list[Task]:
        """Every task in rank order: the groups as written, replicas counted up."""
        tasks: list[Task] = []
        for group in self.tasks:
            for index in range(group.replicas):
                tasks.append(
                    Task(
                        name=f"{group.name}-{index}",
                        rank=len(tasks),
                        image=group.image,
                        command=group.argv,
                        env=dict(group.env),
                        secrets={name: secret.stored for name, secret in group.secrets.items()},
                        cpu=group.resources.cpu,
                        memory=group.resources.memory,
                        **asked_of_cards(group.resources, group.constraints),
                        arch=group.constraints.arch,
                        labels=dict(group.constraints.labels),
                        user=group.constraints.user,
                        work=group.work,
                    )
                )
        return tasks

    def expand_flows(self) -> list[Flow]:
        """Every directed flow, at most one per ordered pair of ends; those from nodes come last."""
        inputs = [
            Flow(
                src=f"{NODE_MARK}{data.node}",
                dst=data.dst,
                min=data.bandwidth.min,
                max=data.bandwidth.max,
                mode=self.flows.mode,
                datasets=data.datasets,
            )
            for data in self.flows.inputs
        ]
        return self._between_tasks() + inputs

    def _between_tasks(self) -> list[Flow]:
        flows = self.flows
        if flows.topology == "edges":
            return [
                Flow(
                    src=edge.src,
                    dst=edge.dst,
                    min=edge.bandwidth.min,
                    max=edge.bandwidth.max,
                    mode=flows.mode,
                    message=edge.message,
                )
                for edge in flows.edges
            ]
        assert flows.bandwidth is not None
        names = [task.name for task in self.expand_tasks()]
        pairs = topology_pairs(flows.topology, len(names), flows.direction)
        low, high = flows.bandwidth.min, flows.bandwidth.max
        return [Flow(src=names[a], dst=names[b], min=low, max=high, mode=flows.mode) for a, b in pairs]


def _unknown_task(name: str, names: Set[str]) -> str:
    known = ", ".join(sorted(names)[:5])
    return f"no task is named {name!r}; tasks are {known}..."
