"""The workers that every node should be running, from the committed state. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from ces_common.application import Route, routes_of
from ces_common.checkpoint_places import copy_holder, restored_from
from ces_common.composer import Composer
from ces_common.jobfile import Task
from ces_common.messages.checkpoints import Checkpoint
from ces_common.messages.desired import CheckpointSource, DesiredCompute, DesiredCopy, DesiredWorker
from ces_common.messages.records import AllocationRecord, JobRecord, NodeRecord
from ces_common.names import CHECKPOINTS_PATH, DATA_PORT, WORKER_DEVICE, node_end, router_address
from ces_common.state_view import StateView
from ces_common.states import JOB_OVER, AllocationState, JobState
from ces_common.torchrun import FLAGS, environment

FROZEN = frozenset({JobState.PAUSED, JobState.SUSPENDED})
HAS_WORKERS = frozenset({JobState.STARTING, JobState.RUNNING}) | FROZEN
DESIRED = frozenset({AllocationState.PENDING, AllocationState.RUNNING})


@dataclass(frozen=True, eq=False)
class ComputeContext:
    """What every job's workers are planned on: how each node's workers are networked, where each node's data is read,
    and the nodes' empty documents."""

    epoch: str
    networks: Mapping[str, str]
    data: Mapping[str, str]
    bases: Mapping[str, DesiredCompute]


class Planner:
    """The desired compute document of every known node. It remembers what did not change between two views, which
    never shows in the outcome. Generations are set when documents are written."""

    def __init__(self) -> None:
        self._composer = Composer[ComputeContext, Share, DesiredCompute](share_of, _document)
        self._context: ComputeContext | None = None

    def plan(self, view: StateView) -> dict[str, DesiredCompute]:
        networks = {name: node.network for name, node in view.nodes.items()}
        data = {name: data_url(node) for name, node in view.nodes.items()}
        if self._context is None or (self._context.epoch, self._context.networks, self._context.data) != (
            view.epoch,
            networks,
            data,
        ):
            bases = {name: DesiredCompute(node=name, epoch=view.epoch, generation=view.version) for name in networks}
            self._context = ComputeContext(view.epoch, networks, data, bases)
        return self._composer.compose(self._context, self._context.bases, view.jobs.values())


@dataclass(eq=False)
class Share:
    """What one job wants of one node: ``workers``, that its ``checkpoints`` are kept, and ``copies`` of some held."""

    workers: list[DesiredWorker] = field(default_factory=list)
    checkpoints: list[str] = field(default_factory=list)
    copies: list[DesiredCopy] = field(default_factory=list)


def share_of(job: JobRecord, context: ComputeContext) -> dict[str, Share]:
    """What a job wants of each node."""
    shares: dict[str, Share] = defaultdict(Share)
    if job.checkpoint_node is not None and job.state not in JOB_OVER:
        _add_checkpoints(job, context, shares)
    if job.state in HAS_WORKERS and job.allocations:
        shared, torchrun = _shared_environment(job), _torchrun(job)
        routes = routes_of(job.requests, job.tasks)
        for allocation in job.allocations:
            if allocation.node in context.networks and allocation.state in DESIRED:
                network = context.networks[allocation.node]
                inputs = _inputs_of(job.tasks[allocation.rank].name, job, context.data)
                told = shared | torchrun.get(allocation.task, {}) | {"CES_INPUTS": inputs}
                told |= _requests_of(job.tasks[allocation.rank], job, routes)
                worker = _worker(job, allocation, network, told)
                if worker.checkpoint and job.checkpoints.restoring:
                    worker = worker.model_copy(update={"restore": True, "checkpoints": _sources(job, context)})
                shares[allocation.node].workers.append(worker)
    return shares


def _add_checkpoints(job: JobRecord, context: ComputeContext, shares: Mapping[str, Share]) -> None:
    """Folders stay where the first task is, and where it was until it has begun elsewhere; copies stay where they are
    for as long as the manager counts on them, and one node gets the newest."""
    known = job.checkpoints
    for node in context.networks.keys() & {job.checkpoint_node, known.former}:
        shares[node].checkpoints.append(job.id)
    holder = None if known.restoring else copy_holder(job, context.networks)
    for each in known.stored:
        for node in context.networks.keys() & each.nodes:
            shares[node].copies.append(DesiredCopy(job=job.id, checkpoint=each.as_checkpoint()))
    if known.stored and holder is not None and holder not in known.stored[0].nodes:
        newest = known.stored[0].as_checkpoint()
        source = _source(job, job.checkpoint_node or "", context, newest)
        shares[holder].copies.append(DesiredCopy(job=job.id, checkpoint=newest, source=source))


def _sources(job: JobRecord, context: ComputeContext) -> list[CheckpointSource]:
    """From what the first task may begin on another node than before: what lies where it was before, then copies, the
    newest first."""
    former = job.checkpoints.former
    found = [_source(job, former, context, None)] if former in restored_from(job, context.networks) and former else []
    for each in job.checkpoints.stored:
        for node in each.nodes:
            if node == job.checkpoint_node:
                found.append(CheckpointSource(node=node, url="", checkpoint=each.as_checkpoint()))
            elif node in context.networks:
                found.append(_source(job, node, context, each.as_checkpoint()))
    return found


def _source(job: JobRecord, node: str, context: ComputeContext, checkpoint: Checkpoint | None) -> CheckpointSource:
    url = f"{context.data.get(node, '')}{CHECKPOINTS_PATH}/{job.id}"
    return CheckpointSource(node=node, url=url, checkpoint=checkpoint)


def _document(base: DesiredCompute, parts: Sequence[Share]) -> DesiredCompute:
    return base.model_copy(
        update={
            "workers": [worker for part in parts for worker in part.workers],
            "checkpoints": [job for part in parts for job in part.checkpoints],
            "copies": [copy for part in parts for copy in part.copies],
        }
    )


def least_generations(view: StateView) -> dict[str, int]:
    """Per node, the generation that its document must reach although nothing in it may have changed: an agent
    confirms that an allocation is gone, or has less CPU, only by a generation from after it ceased to be desired, or to
    have more, and a node that was lost starts nothing by one from before."""
    least = {name: node.least_generation for name, node in view.nodes.items() if node.least_generation}
    for job in view.jobs.values():
        for allocation in job.allocations:
            if allocation.state is AllocationState.STOPPING and allocation.stopping_since is not None:
                least[allocation.node] = max(least.get(allocation.node, 0), allocation.stopping_since)
            elif allocation.cpu_pending and allocation.state in DESIRED and allocation.cpu_since is not None:
                least[allocation.node] = max(least.get(allocation.node, 0), allocation.cpu_since)
    return least


def _worker(job: JobRecord, allocation: AllocationRecord, network: str, shared: dict[str, str]) -> DesiredWorker:
    task = job.tasks[allocation.rank]
    own = {
        "RANK": str(_rank(job, allocation)),
        "LOCAL_RANK": "0",
        "CES_TASK": task.name,
        "CES_ADDRESS": allocation.address,
        "CES_PORT": str(allocation.port),
        "CES_INCARNATION": str(allocation.incarnation),
        "CES_FLOWS": _flows_of(task.name, job),
    }
    elastic = None if job.spec is None else job.spec.elastic
    if network == "tc":
        own["GLOO_SOCKET_IFNAME"] = WORKER_DEVICE
    elif ip_address(allocation.address).is_loopback:
        own["GLOO_SOCKET_IFNAME"] = "lo"
    return DesiredWorker(
        allocation=allocation.id,
        incarnation=allocation.incarnation,
        attempt=job.attempt,
        job=job.id,
        job_name=job.name,
        task=task.name,
        rank=allocation.rank,
        image=task.image,
        command=task.command,
        env={**task.env, **shared, **own},
        secrets=sorted(task.secrets),
        cpu=task.cpu if allocation.cpu_desired is None else allocation.cpu_desired,
        elastic_cpu=elastic is not None and elastic.cpu is not None and elastic.includes(task.name),
        memory=task.memory,
        gpu=task.gpu,
        cards=allocation.cards,
        gpu_share=allocation.gpu_share,
        gpu_memory=allocation.gpu_memory,
        paused=job.state in FROZEN,
        disconnect=job.disconnect,
        checkpoint=job.spec is not None and allocation.rank == 0,
        grace=None if elastic is None else elastic.grace,
    )


def _shared_environment(job: JobRecord) -> dict[str, str]:
    """The environment that all workers of a job share: who and where their peers are."""
    peers: list[dict[str, Any]] = [
        {"rank": _rank(job, a), "task": a.task, "address": a.address, "port": a.port, "node": a.node}
        for a in job.allocations
    ]
    if job.part is not None:  # of peers in other regions, it is not known here on which node they are
        ranks = job.part.ranks
        peers += [
            {"rank": ranks[p.task], "task": p.task, "address": str(p.address), "port": p.port, "node": p.region}
            for p in job.part.places or ()
        ]
    peers.sort(key=lambda peer: int(peer["rank"]))
    first = peers[0]
    return {
        "WORLD_SIZE": str(len(peers)),
        "MASTER_ADDR": first["address"],
        "MASTER_PORT": str(first["port"]),
        "CES_JOB": job.id,
        "CES_JOB_NAME": job.name,
        "CES_PEERS": json.dumps(peers),
    }


def _rank(job: JobRecord, allocation: AllocationRecord) -> int:
    """Of a task among all of its job's, wherever these are."""
    return allocation.rank if job.part is None else job.part.ranks[allocation.task]


def _torchrun(job: JobRecord) -> dict[str, dict[str, str]]:
    """By task of a malleable job's elastic group, what torchrun is told there: the group is all that takes part."""
    elastic = None if job.spec is None else job.spec.elastic
    if elastic is None:
        return {}
    group = sorted((each for each in job.allocations if elastic.includes(each.task)), key=lambda each: each.rank)
    if not group:
        return {}
    first = group[0]
    shared = environment(
        nodes=len(group),
        address=first.address,
        port=first.port,
        rendezvous=f"{first.id}.{first.incarnation}",
        grace=elastic.grace,
    )
    return {each.task: shared | {FLAGS["node-rank"]: str(rank)} for rank, each in enumerate(group)}


def data_url(node: NodeRecord) -> str:
    """Where a node's data is read: at its own address in the data plane, or at its host's where there is none."""
    own = node.network == "tc"
    address, port = (router_address(node.subnet), DATA_PORT) if own else (node.host_address, node.data_port)
    return f"http://{f'[{address}]' if ':' in address else address}:{port}/"


def _inputs_of(task: str, job: JobRecord, data: Mapping[str, str]) -> str:
    """Where a task reads what it asked for, and how fast (bit/s)."""
    given = {(flow.src, flow.dst): flow.rate for flow in job.reserved}
    return json.dumps(
        [
            {
                "node": node,
                "url": data.get(node, ""),
                "datasets": flow.datasets,
                "bandwidth": given.get((flow.src, flow.dst), 0),
            }
            for flow in job.flows
            if flow.dst == task and (node := flow.data_node) is not None
        ]
    )


def _requests_of(task: Task, job: JobRecord, routes: Sequence[Route]) -> dict[str, str]:
    """For a task that requests of the application pass: what one costs it, and their ways, with the bytes that each
    flow carries and the tasks that work on them. Nothing for any other."""
    passing = [route for route in routes if task.name in route.steps]
    if not passing:
        return {}
    messages = {(flow.src, flow.dst): flow.message for flow in job.flows}
    work = None if task.work is None else {"us": task.work.per_request, "class": task.work.work_class}
    requests = [
        {
            "name": route.request.name,
            "rate": route.request.rate,
            "deadline_us": route.request.deadline,
            "steps": route.steps,
            "messages": [messages.get(flow, 0) for flow in route.flows],
            "answered": route.ends_at is not None,
        }
        for route in passing
    ]
    return {"CES_REQUESTS": json.dumps({"work": work, "requests": requests})}


def _flows_of(task: str, job: JobRecord) -> str:
    """The rates in bit/s of the flows between a task and others. Not of the whole job's: Linux limits a variable to
    128 KiB, and they would be repeated for every worker in a document."""
    return json.dumps(
        [
            {"src": flow.src, "dst": flow.dst, "bandwidth": flow.rate}
            for flow in job.reserved
            if task in (flow.src, flow.dst) and node_end(flow.src) is None
        ]
    )
