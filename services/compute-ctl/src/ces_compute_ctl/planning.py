"""The workers that every node should be running, from the committed state. Pure."""

from __future__ import annotations

import json
from collections import defaultdict

from ces_common.messages.records import AllocationRecord, JobRecord, NodeRecord
from ces_common.messages.wanted import ComputeWanted, WorkerWanted
from ces_common.naming import WORKER_DEVICE
from ces_common.states import AllocationState, JobState
from ces_common.view import StateView

HAS_WORKERS = frozenset({JobState.STARTING, JobState.RUNNING, JobState.PAUSED})
WANTED = frozenset({AllocationState.PENDING, AllocationState.RUNNING})


def plan_workers(view: StateView) -> dict[str, ComputeWanted]:
    """The wanted compute document of every known node, at the view's version."""
    workers: dict[str, list[WorkerWanted]] = defaultdict(list)
    for job in sorted(view.jobs.values(), key=lambda job: job.id):
        if job.state not in HAS_WORKERS:
            continue
        shared = _shared_environment(job)
        for allocation in job.allocations:
            node = view.nodes.get(allocation.node)
            if node is not None and allocation.state in WANTED:
                workers[node.name].append(_worker(job, allocation, node, shared))
    return {
        name: ComputeWanted(node=name, epoch=view.epoch, generation=view.version, workers=workers[name])
        for name in view.nodes
    }


def least_generations(view: StateView) -> dict[str, int]:
    """Per node, the generation that its document must reach although nothing in it may have changed: an agent
    confirms that an allocation is gone only by a generation from after it ceased to be wanted."""
    least: dict[str, int] = {}
    for job in view.jobs.values():
        for allocation in job.allocations:
            if allocation.state is AllocationState.STOPPING and allocation.stopping_since is not None:
                least[allocation.node] = max(least.get(allocation.node, 0), allocation.stopping_since)
    return least


def _worker(job: JobRecord, allocation: AllocationRecord, node: NodeRecord, shared: dict[str, str]) -> WorkerWanted:
    task = job.tasks[allocation.rank]
    own = {
        "RANK": str(allocation.rank),
        "LOCAL_RANK": "0",
        "GLOO_SOCKET_IFNAME": WORKER_DEVICE if node.network == "tc" else "lo",
        "CES_TASK": task.name,
        "CES_ADDRESS": allocation.address,
        "CES_PORT": str(allocation.port),
        "CES_INCARNATION": str(allocation.incarnation),
    }
    return WorkerWanted(
        allocation=allocation.id,
        incarnation=allocation.incarnation,
        job=job.id,
        job_name=job.name,
        task=task.name,
        rank=allocation.rank,
        image=task.image,
        command=task.command,
        env={**task.env, **shared, **own},
        cpu=task.cpu,
        memory=task.memory,
        gpu=task.gpu,
        paused=job.state is JobState.PAUSED,
        disconnect=job.disconnect,
    )


def _shared_environment(job: JobRecord) -> dict[str, str]:
    """What all workers of a job are told alike: where their peers are and what their flows were given (bit/s)."""
    in_order = sorted(job.allocations, key=lambda allocation: allocation.rank)
    peers = [{"rank": a.rank, "task": a.task, "address": a.address, "port": a.port, "node": a.node} for a in in_order]
    flows = [{"src": flow.src, "dst": flow.dst, "bandwidth": flow.bandwidth} for flow in job.reserved]
    return {
        "WORLD_SIZE": str(len(job.tasks)),
        "MASTER_ADDR": in_order[0].address,
        "MASTER_PORT": str(in_order[0].port),
        "CES_JOB": job.id,
        "CES_JOB_NAME": job.name,
        "CES_PEERS": json.dumps(peers),
        "CES_FLOWS": json.dumps(flows),
    }
