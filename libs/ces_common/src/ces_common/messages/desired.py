"""Desired state: one document per node and controller, that the node's agent converges to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ces_common.disconnect import STOP, Disconnect
from ces_common.messages.base import Message
from ces_common.messages.bounds import Count, Number, Port, Small, TunnelKey
from ces_common.messages.checkpoints import Checkpoint
from ces_common.shares import LinkKind


class CheckpointSource(Message):
    """Where a job's checkpoint is to be had. ``url``: of the node that serves it, the job's id behind it; empty where
    it is this node's own copy. ``checkpoint``: which one; None: the newest that lies in the job's folder there."""

    node: str
    url: str
    checkpoint: Checkpoint | None = None


class DesiredWorker(Message):
    """A worker that should be there. ``cpu`` in millicores, ``memory`` in bytes. ``secrets``: names of the files that
    it needs besides; what is in them the agent asks the manager for. ``elastic_cpu``: ``cpu`` may change while it runs,
    and the agent says how much it has. ``restore``: it is to begin from the first of
    ``checkpoints`` that can be had, and not from what may lie in its job's folder on this node. ``cards``: which GPUs
    it has; none named by a manager that knows only how many. ``gpu_share``: thousandths of the one that it has
    a part of, with ``gpu_memory`` bytes; 0: it has them whole."""

    allocation: str
    incarnation: Small
    attempt: Small = 1
    job: str  # id
    job_name: str
    task: str
    rank: Small
    image: str | None = None
    command: list[str] = []
    env: dict[str, str] = {}
    secrets: list[str] = []
    cpu: Count
    elastic_cpu: bool = False
    memory: Count
    gpu: Small = 0
    cards: list[str] = []
    gpu_share: Small = 0
    gpu_memory: Count = 0
    paused: bool = False
    checkpoint: bool = False  # it has a folder for checkpoints, which stays when it ends
    restore: bool = False
    checkpoints: list[CheckpointSource] = []
    grace: Number | None = None  # seconds from SIGTERM to SIGKILL; None: as the agent is set
    disconnect: Disconnect = STOP  # left out by none who knows more; too early an end is safe, a late one is not

    @property
    def key(self) -> str:
        return f"{self.allocation}.{self.incarnation}"


class DesiredDocument(Message):
    """``generation``: the database version that it was made from. ``epoch`` names the database: generations compare
    only within one. ``traces``: of traced attempts that are being prepared, by key, the context in which this document
    was written; None where there are none. A document that differs in nothing else is not written for it."""

    node: str
    epoch: str = ""
    generation: Count
    traces: dict[str, str] | None = None


class DesiredCopy(Message):
    """A checkpoint that this node is to hold a copy of; the job's first task runs elsewhere. ``source``: where to fetch
    it; None where the node holds it already, or nobody can serve it."""

    job: str
    checkpoint: Checkpoint
    source: CheckpointSource | None = None


class DesiredCompute(DesiredDocument):
    """All workers that one node should be running. ``checkpoints``: ids of the jobs whose checkpoints are kept here;
    None: nothing is said of them, and none is removed. ``copies``: of other jobs' checkpoints, to be held here."""

    workers: list[DesiredWorker] = []
    checkpoints: list[str] | None = None
    copies: list[DesiredCopy] = []


class VxlanTunnel(Message):
    """How a point-to-point VXLAN link reaches the neighbour. ``remote``: its host's address, or, inside an encrypted
    tunnel, its router address. ``local``: this node's host's, the only one from which the neighbour takes frames; empty
    inside an encrypted tunnel, where there is one address to send from."""

    vni: Small
    remote: str
    local: str = ""
    port: Port = 4789


class EncryptedTunnel(Message):
    """How the WireGuard under an encrypted link reaches the neighbour. ``keys``: its public keys; of two, it goes over
    from the first to the second. None: it has told none, so the link cannot be."""

    keys: Annotated[list[TunnelKey], Field(max_length=2)] = []
    address: str
    port: Port


class LinkDevice(Message):
    """An outgoing link of this node: its device and the traffic classes' envelope. Rates in bit/s."""

    peer: str
    device: str
    kind: LinkKind
    bandwidth: Count
    best_effort: Count  # rate that all traffic without a reservation shares
    gateway: str  # the neighbour's router address: next hop on this link
    two_way: bool = True  # whether the neighbour has a link back, over which it can answer
    vxlan: VxlanTunnel | None = None
    wireguard: EncryptedTunnel | None = None  # around the VXLAN


class SubnetRoute(Message):
    """Plain shortest-path route to another node's workers. ``job``: the key of the attempt whose tasks meet over it;
    empty for the route to a neighbour, which is always there."""

    subnet: str
    via: str  # neighbour
    job: str = ""


class PeerRoute(Message):
    """Where an endpoint's traffic to a peer leaves this node: a neighbour, or None for a worker on this node, or for
    the node itself, whose data it reads."""

    address: str
    via: str | None = None


class Endpoint(Message):
    """A sandbox with its address; it may reach its peers and nobody else."""

    allocation: str
    job: str  # the attempt's key
    address: str
    hostname: str
    hosts: dict[str, str] = {}  # name -> address, its own included
    peers: list[PeerRoute] = []


class PolicyRoute(Message):
    """Traffic from one worker to another that passes through this node leaves towards ``via``."""

    job: str
    src: str
    dst: str
    via: str


class FlowClass(Message):
    """A traffic class on the device towards ``via``. kind ``data``: everything from src to dst. kind ``return``: what
    answers flow ``number`` on its way back; with ``small_only`` just its small TCP packets (acknowledgements), the
    rest being best effort or another flow's. ``ceil``: what it may send in all, in bit/s, where nobody else uses the
    link; left out, its rate is its cap."""

    job: str
    number: Small
    kind: Literal["data", "return"]
    via: str
    src: str
    dst: str
    rate: Count  # bit/s, guaranteed; 0: nothing is, and it lives on what it borrows
    ceil: Count | None = None
    small_only: bool = False


class Reader(Message):
    """A worker's address, from which datasets of this node may be read; none named, all that it offers."""

    job: str
    address: str
    datasets: list[str] = []


class CheckpointReader(Message):
    """A node that may fetch checkpoints of a job from this one. ``job``: the attempt's key; ``owner``: the job's id;
    ``key``: the public key that signs its requests; ``newest``: it may have the newest one packed for it."""

    job: str
    owner: str
    node: str
    address: str
    key: str
    newest: bool = False


class DesiredNetwork(DesiredDocument):
    """A node's data plane."""

    mode: Literal["tc", "none"] = "tc"
    router: str = ""  # this node's router address (first of its worker subnet)
    subnet: str = ""
    links: list[LinkDevice] = []
    subnets: list[SubnetRoute] = []
    endpoints: list[Endpoint] = []
    policies: list[PolicyRoute] = []
    classes: list[FlowClass] = []
    readers: list[Reader] = []
    checkpoint_readers: list[CheckpointReader] = []
    link_keys: list[str] = []  # of this node's own, those that its neighbours are told

    @property
    def jobs(self) -> set[str]:
        """Keys of the job attempts that this document serves."""
        keys = {endpoint.job for endpoint in self.endpoints}
        keys.update(policy.job for policy in self.policies)
        keys.update(flow_class.job for flow_class in self.classes)
        keys.update(reader.job for reader in self.readers)
        keys.update(reader.job for reader in self.checkpoint_readers)
        keys.update(route.job for route in self.subnets if route.job)
        return keys
