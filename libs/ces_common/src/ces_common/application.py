"""What an application file says beyond a job file: who its users are and where, what a request costs, through which
tasks it goes, and by when its answer is wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import ConfigDict, Field, model_validator

from ces_common.fields import Document, EndName, Name, NodeName
from ces_common.quantities import Bandwidth, Latency, WorkAmount

MAX_USERS: Final = 64
MAX_REQUESTS: Final = 32  # classes of requests: their ways are told to workers in one variable
MAX_CHAIN: Final = 32  # tasks that a request passes
LONGEST_WAIT: Final = 3600 * 10**6  # microseconds of a deadline, an access, or a task's limit
LONGEST_DELAY: Final = 60 * 10**6  # microseconds of a link
MOST_WORK: Final = 3600 * 10**6  # microseconds of the reference core for one request
FASTEST: Final = 1e5  # requests a second
ROUNDING: Final = 1e-9  # by which the sum of weights may differ from 1

Kind = Literal["communication", "compute", "content", "complex"]
WorkClass = Literal["integer", "float", "matrix", "inference"]
"""Kinds of work that agents measure of a CPU."""
Wait = Annotated[Latency, Field(gt=0, le=LONGEST_WAIT)]
Share = Annotated[float, Field(ge=0, le=1)]


class Work(Document):
    """What a request costs a task. ``per_request``: microseconds of the reference core. ``work_class``: which of a
    node's measured speeds counts; None: every node counts as the reference core. ``threads``: more cores do not help.
    ``longest``: the longest that a request may take there, in microseconds."""

    per_request: Annotated[WorkAmount, Field(gt=0, le=MOST_WORK)]
    work_class: WorkClass | None = Field(default=None, alias="class")
    threads: Annotated[int, Field(ge=1, le=4096)] | None = None
    longest: Wait | None = None

    model_config = ConfigDict(serialize_by_alias=True)


class Location(Document):
    """Where a user is: at a position in degrees (WGS 84), or at a node."""

    lat: Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)] | None = None
    lon: Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)] | None = None
    node: NodeName | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.node is not None) == (self.lat is not None or self.lon is not None):
            raise ValueError("give lat and lon, or node")
        if self.node is None and (self.lat is None or self.lon is None):
            raise ValueError("give both lat and lon")
        return self


class Access(Document):
    """The way between a user and its access node: ``delay`` in microseconds, one way; ``bandwidth`` in bit/s, None
    where it takes no time."""

    delay: Annotated[Latency, Field(ge=0, le=LONGEST_WAIT)] = 0
    bandwidth: Annotated[Bandwidth, Field(gt=0)] | None = None


class User(Document):
    name: Name
    at: Location
    access: Access = Access()


class Request(Document):
    """A class of requests. ``rate``: a second. ``chain``: the tasks that one goes through; with a user at the end, the
    answer goes there. ``deadline`` in microseconds, from the user and back. ``hard``: a plan that misses it is no
    plan."""

    name: Name
    user: Name = Field(alias="from")
    rate: Annotated[float, Field(gt=0, le=FASTEST, allow_inf_nan=False)]
    chain: Annotated[list[EndName], Field(min_length=1, max_length=MAX_CHAIN)]
    deadline: Wait | None = None
    hard: bool = False

    model_config = ConfigDict(serialize_by_alias=True)

    @model_validator(mode="after")
    def _deadline_given(self) -> Self:
        if self.hard and self.deadline is None:
            raise ValueError("hard: give a deadline as well, or leave hard out")
        return self


class Objective(Document):
    """What counts how much when a place is chosen; the sum is 1."""

    balance: Share = 0.0
    bandwidth: Share = 0.0
    time: Share = 0.0
    energy: Share = 0.0

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = self.balance + self.bandwidth + self.time + self.energy
        if abs(total - 1.0) > ROUNDING:
            raise ValueError(f"the weights must add up to 1, not to {total:g}")
        return self


USUAL_OBJECTIVE = Objective(balance=0.5, bandwidth=0.5)
"""What every job without one is placed by."""


class Worked(Protocol):
    @property
    def work(self) -> Work | None: ...


class Aimed(Protocol):
    """A job file."""

    @property
    def requests(self) -> Sequence[Request]: ...

    @property
    def objective(self) -> Objective | None: ...

    @property
    def tasks(self) -> Sequence[Worked]: ...


def has_goals(job: Aimed) -> bool:
    """Whether there is more to its place than what every job is placed by."""
    if job.requests or job.objective not in (None, USUAL_OBJECTIVE):
        return True
    return job.objective is not None and any(
        each.work is not None and each.work.longest is not None for each in job.tasks
    )


class Placed(Protocol):
    """A task: ``user``: at whose access node it runs; None: anywhere."""

    @property
    def name(self) -> str: ...

    @property
    def user(self) -> str | None: ...


@dataclass(frozen=True)
class Route:
    """The way of a class of requests. ``steps``: the tasks, from the user's own on. ``ends_at``: the user who gets the
    answer; None where nobody does."""

    request: Request
    steps: tuple[str, ...]
    ends_at: str | None

    @property
    def flows(self) -> list[tuple[str, str]]:
        return list(pairwise(self.steps))

    @property
    def works(self) -> tuple[str, ...]:
        """The tasks by which the request is worked on: a sender that gets the answer does not work on it twice."""
        back = len(self.steps) > 1 and self.steps[-1] == self.steps[0]
        return self.steps[:-1] if back else self.steps


def routes_of(requests: Sequence[Request], tasks: Iterable[Placed]) -> list[Route]:
    """Raises ValueError, naming field and remedy, for a request that no task takes."""
    names, own = [], dict[str, list[str]]()
    for task in tasks:
        names.append(task.name)
        if task.user is not None:
            own.setdefault(task.user, []).append(task.name)
    known = frozenset(names)
    return [_route(f"requests[{i}]", request, known, own) for i, request in enumerate(requests)]


def _route(where: str, request: Request, tasks: Collection[str], own: Mapping[str, Sequence[str]]) -> Route:
    steps, ends_at = [_own_task(f"{where}.from", request.user, own)], None
    for j, name in enumerate(request.chain):
        field = f"{where}.chain[{j}]"
        last = j == len(request.chain) - 1
        if last and name in own and name not in tasks:
            step, ends_at = _own_task(field, name, own), name
        else:
            step = _task(field, name, tasks, own if last else ())
        if step == steps[-1]:
            raise ValueError(f"{field}: {step} comes twice in a row; name it once")
        steps.append(step)
    return Route(request, tuple(steps), ends_at)


def _own_task(field: str, user: str, own: Mapping[str, Sequence[str]]) -> str:
    found = own.get(user, ())
    if not found:
        raise ValueError(f"{field}: no task is at user {user!r}; give one group of tasks constraints: {{user: {user}}}")
    if len(found) > 1:
        raise ValueError(f"{field}: {' and '.join(found[:2])} are both at user {user!r}, where one sends; leave one")
    return found[0]


def _task(field: str, name: str, tasks: Collection[str], users: Collection[str]) -> str:
    if name in tasks:
        return name
    if f"{name}-0" in tasks:
        if f"{name}-1" in tasks:
            raise ValueError(f"{field}: {name} has several tasks; name one of them, such as {name}-0")
        return f"{name}-0"
    known = ", ".join([*sorted(tasks)[:5], *sorted(users)[:3]])
    raise ValueError(f"{field}: no task is named {name!r}; those that can stand here are {known}")


def check_application(
    kind: Kind | None,
    users: Sequence[User],
    requests: Sequence[Request],
    tasks: Sequence[Placed],
    working: Collection[str],
    messages: Mapping[tuple[str, str], int],
) -> None:
    """Raises ValueError, naming field and remedy. ``working``: the tasks with ``work``; ``messages``: the bytes that a
    request sends over each flow."""
    _check_users(users, tasks)
    _once("requests", [request.name for request in requests])
    known = {user.name for user in users}
    for i, request in enumerate(requests):
        if request.user not in known:
            raise ValueError(f"requests[{i}].from: no user is named {request.user!r}; add it to users")
    routes = routes_of(requests, tasks)
    for i, route in enumerate(routes):
        for src, dst in route.flows:
            if (src, dst) not in messages:
                raise ValueError(f"requests[{i}].chain: no flow leads from {src} to {dst}; add it to flows.edges")
    if kind is not None:
        _check_kind(kind, users, routes, working, messages)


def _check_users(users: Sequence[User], tasks: Sequence[Placed]) -> None:
    _once("users", [user.name for user in users])
    known, groups = {user.name for user in users}, {task.name.rpartition("-")[0]: task for task in tasks}
    for i, user in enumerate(users):
        if user.name in groups:
            raise ValueError(f"users[{i}].name: a group of tasks is named {user.name!r}, too; rename one")
    for name, task in groups.items():
        if task.user is not None and task.user not in known:
            raise ValueError(f"tasks: {name} is at user {task.user!r}, whom nobody knows; add that one to users")


def _once(field: str, names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"{field}[{i}].name: {name!r} is used twice; rename one")


def _check_kind(
    kind: Kind,
    users: Collection[User],
    routes: Sequence[Route],
    working: Collection[str],
    messages: Mapping[tuple[str, str], int],
) -> None:
    if not routes:
        raise ValueError(f"kind: an application of kind {kind} says what its requests are; add requests")
    for i, route in enumerate(routes):
        where, work = f"requests[{i}].chain", [step for step in route.works if step in working]
        if kind == "communication" and (len(users) < 2 or route.ends_at in (None, route.request.user)):
            raise ValueError(f"{where}: communication goes from one user to another; end it with the other's name")
        if kind == "compute" and not (work and route.ends_at):
            raise ValueError(
                f"{where}: kind compute needs a task with work, and a user at the end for the answer; add what lacks"
            )
        if kind == "content":
            into, out = (messages[flow] for flow in (route.flows[0], route.flows[-1]))
            if route.ends_at is None or not out > into:
                raise ValueError(
                    f"{where}: content is more than what asks for it; end it with a user, and give its last flow a "
                    "larger message than its first"
                )
    if kind == "complex" and not any(len({*route.works} & {*working}) > 1 for route in routes):
        raise ValueError("kind: complex means several tasks with work in one chain; add work, or choose another kind")


def request_rates(routes: Iterable[Route]) -> dict[str, float]:
    """Task -> requests a second that it works on."""
    rates: dict[str, float] = {}
    for route in routes:
        for step in route.works:
            rates[step] = rates.get(step, 0.0) + route.request.rate
    return rates


def access_ms(route: Route, users: Mapping[str, User], messages: Mapping[tuple[str, str], int]) -> float:
    """What a request takes between its users and their access nodes, both ways."""
    ends = [(route.request.user, route.flows[0])]
    if route.ends_at is not None:
        ends.append((route.ends_at, route.flows[-1]))
    total = 0.0
    for name, flow in ends:
        access = users[name].access
        total += access.delay / 1000
        if access.bandwidth is not None:
            total += messages.get(flow, 0) * 8000 / access.bandwidth
    return total
