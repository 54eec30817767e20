"""What an agent says of its node. Every report is complete in itself and repeated: a lost one costs nothing. Lists are
read up to the first mistake: a message may have thousands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import FailFast, Field, model_validator

from ces_common.fields import DatasetName
from ces_common.messages.base import Message
from ces_common.messages.bounds import (
    MAX_ATTEMPTS,
    MAX_ITEMS,
    Amount,
    Count,
    ExitCode,
    Id,
    Node,
    Number,
    Port,
    Remark,
    Small,
    TunnelKey,
)
from ces_common.messages.energy import EnergyReport
from ces_common.states import LinkState

MAX_HEARTBEAT = 256 * 1024  # bytes
MAX_OFFERED = 1024  # datasets
MAX_FLOWS = 32767  # of a node: each has two of the 65535 traffic classes of a device

WorkerState = Literal["starting", "running", "paused", "exited", "refused"]


class WorkerStatus(Message):
    """A worker as its agent sees it. ``exited`` has an exit code; ``refused`` could not be started at all and carries
    the reason (an unknown image, say), which no restart would mend. ``lapsed``: it was ended because its node's lease
    had run out, which is no failure of the program; nor is ``reclaimed``: because its device's owner has it back.
    ``cpu``: millicores that it has no more than now, of a worker whose CPU may change."""

    allocation: Id
    incarnation: Small
    state: WorkerState
    exit_code: ExitCode | None = None
    reason: Remark | None = None
    pid: Small | None = None
    lapsed: bool = False
    reclaimed: bool = False
    cpu: Count | None = None


class Status(Message):
    """All workers of a node. ``generation``: of the compute document that it has converged to; it counts only for
    the database that ``epoch`` names."""

    node: Node
    epoch: Id = ""
    generation: Count
    workers: Annotated[list[WorkerStatus], FailFast(), Field(max_length=MAX_ITEMS)] = []


class Applied(Message):
    """The data plane of a node. ``jobs``: attempts whose share of it is completely in place; ``failed``: those for
    which a step failed, with the reason; it is tried again."""

    node: Node
    generation: Count
    jobs: Annotated[list[Id], FailFast(), Field(max_length=MAX_ATTEMPTS)] = []
    failed: Annotated[dict[Id, Remark], Field(max_length=MAX_ATTEMPTS)] = {}


class LinkStatus(Message):
    """An outgoing link as its agent sees it; ``reason`` tells why it is down."""

    peer: Node
    state: LinkState
    reason: Remark | None = None


class LinkKeys(Message):
    """By which a node's neighbours encrypt their links with it. ``keys``: of two, the second is to replace the first.
    ``port``: where its host takes the packets."""

    keys: Annotated[list[TunnelKey], Field(min_length=1, max_length=2)]
    port: Annotated[Port, Field(ge=1)]


class LinkReport(Message):
    """All links of a node that shapes traffic, said at once when one changes and repeated. ``encryption``: None where
    it can encrypt none."""

    node: Node
    links: Annotated[list[LinkStatus], FailFast(), Field(max_length=MAX_ITEMS)] = []
    encryption: LinkKeys | None = None


class DataReport(Message):
    """The datasets that a node offers, and the port at which it serves them, which stays while there are none; 0 where
    it never served any."""

    node: Node
    port: Port = 0
    datasets: Annotated[list[DatasetName], FailFast(), Field(max_length=MAX_OFFERED)] = []


class WorkerUsage(Message):
    allocation: Id
    cpu: Number  # millicores, since the last report
    memory: Count  # bytes
    cpu_s: Amount | None = None  # seconds of CPU since it started, with those of its processes that have ended


class LinkUsage(Message):
    """Rates in bit/s since the last report; packets dropped, by the device or a queue, and packets with an error since
    the device was made. ``round_trip_s``: median of the last echoes."""

    peer: Node
    sent: Number
    received: Number
    drops: Count = 0
    errors: Count = 0
    round_trip_s: Number | None = None


class FlowUsage(Message):
    """A flow's class at a node that it begins at or passes: bit/s ``measured`` since the last report, the ``peak`` of
    its busiest second, bytes and dropped packets in all. ``job``: the attempt that it is part of; numbers are used
    again. ``waited``: share of the looks since the last report, 0 to 1, at which something waited in the class's queue
    or had been dropped. ``rate``: what the class guarantees in bit/s, 0 if unknown."""

    number: Annotated[Small, Field(ge=1)]
    job: Id = ""
    measured: Number
    peak: Number
    total: Count
    drops: Count = 0
    waited: Annotated[float, Field(ge=0, le=1)] = 0.0
    rate: Count = 0

    @model_validator(mode="before")
    @classmethod
    def _of_former_agents(cls, data: Any) -> Any:
        """They call what was measured ``rate``, and the rate ``given``: their leases are to be renewed, too."""
        if isinstance(data, dict) and "measured" not in data and "rate" in data:
            return data | {"measured": data["rate"], "rate": data.get("given", 0)}
        return data


class Heartbeat(Message):
    """Sign of life with measurements (thesis 3.2.2). The reply renews the node's lease. ``reclaimed``: its owner has
    the device back, and nothing of CES may run there. ``energy``: None where nothing measures or models it."""

    node: Node
    boot: Annotated[str, Field(max_length=64)]  # names this start of the agent
    machine: Annotated[str, Field(max_length=64)] = ""  # names the boot of its machine; empty where that is not known
    cpu: Number = 0.0  # millicores in use on the whole node
    memory: Count = 0  # bytes in use
    reclaimed: bool = False
    energy: EnergyReport | None = None
    workers: Annotated[list[WorkerUsage], FailFast(), Field(max_length=MAX_ITEMS)] = []
    links: Annotated[list[LinkUsage], FailFast(), Field(max_length=MAX_ITEMS)] = []
    flows: Annotated[list[FlowUsage], FailFast(), Field(max_length=MAX_FLOWS)] = []


OTHER_MACHINE = "other-machine"
"""Code of the refusal of a heartbeat whose node's lease another machine, or an earlier boot, may still hold."""


class LeaseGrant(Message):
    """Reply to a heartbeat: the lease runs this many seconds from when the heartbeat was sent. A lease that has ended
    begins again only with desired workers of this ``epoch`` and at least of ``least_generation``: what was desired
    before may run elsewhere by now."""

    lease_s: Amount
    epoch: Id = ""
    least_generation: Count = 0


class Alive(Message):
    """A controller's sign of life: its last look at the state and what followed from it have gone through."""

    service: Literal["network-ctl", "compute-ctl"]


class Progress(Message):
    """One JSON line of progress that a worker printed. ``incarnation``: the start of the allocation that it is of;
    ``seen_s``: when its agent saw it, on a clock of the agent's that only goes forward; None where it does not say."""

    node: Node
    allocation: Id
    job: Id
    task: Id
    incarnation: Small = 0
    seen_s: Amount | None = None
    data: dict[str, object]
