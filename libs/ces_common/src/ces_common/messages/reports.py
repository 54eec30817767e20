"""What an agent says of its node. Every report is complete in itself and repeated: a lost one costs nothing."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ces_common.jobfile import DatasetName
from ces_common.messages.base import Message
from ces_common.messages.records import LinkState

# What one report may hold: far more than a node has, and little enough that no node can fill the manager's memory.
MAX_HEARTBEAT = 256 * 1024  # bytes
MAX_WORKERS = 4096
MAX_LINKS = 4096
MAX_OFFERED = 1024  # datasets
MAX_LINK_REASON = 500  # characters
MAX_FLOW_NUMBER = 32767  # each has two of the 65535 traffic classes of a device

WorkerState = Literal["starting", "running", "paused", "exited", "refused"]


class WorkerStatus(Message):
    """A worker as its agent sees it. ``exited`` has an exit code; ``refused`` could not be started at all and carries
    the reason (an unknown image, say), which no restart would mend. ``lapsed``: it was ended because its node's lease
    had run out, which is no failure of the program."""

    allocation: str
    incarnation: int
    state: WorkerState
    exit_code: int | None = None
    reason: str | None = None
    pid: int | None = None
    lapsed: bool = False


class Status(Message):
    """All workers of a node. ``generation``: of the compute document that it has converged to; it counts only for
    the database that ``epoch`` names."""

    node: str
    epoch: str = ""
    generation: int
    workers: list[WorkerStatus] = []


class Applied(Message):
    """The data plane of a node. ``jobs``: attempts whose share of it is completely in place; ``failed``: those for
    which a step failed, with the reason; it is tried again."""

    node: str
    generation: int
    jobs: list[str] = []
    failed: dict[str, str] = {}


class LinkStatus(Message):
    """An outgoing link as its agent sees it; ``reason`` tells why it is down."""

    peer: str
    state: LinkState
    reason: Annotated[str | None, Field(max_length=MAX_LINK_REASON)] = None


class LinkReport(Message):
    """All links of a node that shapes traffic, said at once when one changes and repeated."""

    node: str
    links: Annotated[list[LinkStatus], Field(max_length=MAX_LINKS)] = []


class DataReport(Message):
    """The datasets that a node offers, and the port at which it serves them, which stays while there are none; 0 where
    it never served any."""

    node: str
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    datasets: Annotated[list[DatasetName], Field(max_length=MAX_OFFERED)] = []


class WorkerUsage(Message):
    allocation: str
    cpu: float  # millicores, since the last report
    memory: int  # bytes


class LinkUsage(Message):
    """Rates in bit/s since the last report; packets dropped, by the device or a queue, and packets with an error since
    the device was made. ``round_trip_s``: median of the last echoes."""

    peer: str
    sent: float
    received: float
    drops: int = 0
    errors: int = 0
    round_trip_s: float | None = None


class FlowUsage(Message):
    """A flow's class at a node that it begins at or passes: bit/s ``measured`` since the last report, the ``peak`` of
    its busiest second, bytes and dropped packets in all. ``job``: the attempt that it is part of; numbers are used
    again. ``waited``: share of the looks since the last report, 0 to 1, at which something waited in the class's queue
    or had been dropped. ``rate``: what the class guarantees in bit/s, 0 if unknown."""

    number: Annotated[int, Field(ge=1, le=MAX_FLOW_NUMBER)]
    job: str = ""
    measured: float
    peak: float
    total: int
    drops: int = 0
    waited: Annotated[float, Field(ge=0, le=1)] = 0.0
    rate: int = 0

    @model_validator(mode="before")
    @classmethod
    def _of_former_agents(cls, data: Any) -> Any:
        """They call what was measured ``rate``, and the rate ``given``: their leases are to be renewed, too."""
        if isinstance(data, dict) and "measured" not in data and "rate" in data:
            return data | {"measured": data["rate"], "rate": data.get("given", 0)}
        return data


class Heartbeat(Message):
    """Sign of life with measurements (thesis 3.2.2). The reply renews the node's lease."""

    node: str
    boot: str  # names this start of the agent
    cpu: float = 0.0  # millicores in use on the whole node
    memory: int = 0  # bytes in use
    workers: Annotated[list[WorkerUsage], Field(max_length=MAX_WORKERS)] = []
    links: Annotated[list[LinkUsage], Field(max_length=MAX_LINKS)] = []
    flows: Annotated[list[FlowUsage], Field(max_length=MAX_FLOW_NUMBER)] = []


class LeaseGrant(Message):
    """Reply to a heartbeat: the lease runs this many seconds from when the heartbeat was sent."""

    lease_s: float


class Progress(Message):
    """One JSON line of progress that a worker printed."""

    node: str
    allocation: str
    job: str
    task: str
    data: dict[str, object]
