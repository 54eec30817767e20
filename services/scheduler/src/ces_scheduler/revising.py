"""What should change for flows that run: from the committed state to a revision of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ces_common.messages.events import FlowPlan, JobRevision
from ces_common.messages.records import FlowRecord, JobRecord
from ces_common.states import JOB_PLACED, JobState
from ces_common.view import StateView
from ces_core.problem import Cluster
from ces_core.resettle import Given, Running
from ces_scheduler.translate import Offer, links_of

Settle = Callable[[Cluster, Sequence[Running]], dict[int, Given]]  # ces_core.resettle's mend or refill
HAIR = 1e-9  # of a rate: what rounding may cost


@dataclass(frozen=True)
class Site:
    """The flows that may be changed, the most urgent jobs' first, and the cluster with what else is in use."""

    cluster: Cluster
    flows: tuple[tuple[JobRecord, FlowRecord], ...]
    broken: bool  # whether one of them holds bandwidth on a link that is down or gone
    crowded: bool  # whether a link or medium has more on it than it carries


def site_of(view: StateView, offer: Offer) -> Site:
    """Only flows of jobs that have their place and use it, over nodes within reach: what cannot be heard cannot be
    changed, and may work all the same. A flow whose path is broken needs but its ends within reach."""
    up = {(link.src, link.dst) for link in view.topology.links if link.up}
    topology = offer.cluster.topology
    found, broken = [], False
    used = offer.cluster.link_used.copy()
    for job in sorted(view.jobs.values(), key=lambda job: (-job.priority, job.submitted_at, job.id)):
        if job.state not in JOB_PLACED or job.state is JobState.SUSPENDED or job.released:
            continue
        for flow in job.reserved:
            links = links_of(flow, topology)
            whole = all(hop in up for hop in pairwise(flow.path))
            if whole and len(links) < len(flow.path) - 1:
                continue
            ends = (view.nodes.get(flow.path[0]), view.nodes.get(flow.path[-1]))
            if len(flow.path) == 1 or not all(node is not None and node.state == "ready" for node in ends):
                continue
            found.append((job, flow))
            broken = broken or (not whole and flow.bandwidth > 0)
            for link in links:
                used[link] -= flow.bandwidth
    full = offer.cluster
    crowded = bool((full.link_used > full.link_capacity).any() or (full.medium_used > full.medium_capacity).any())
    return Site(full.with_used(full.node_used, used), tuple(found), broken, crowded)


def revise(site: Site, settle: Settle) -> list[JobRevision]:
    """What ``settle`` finds for the site's flows, as a revision; empty where nothing is to change."""
    running = [
        Running(float(flow.min), float(flow.max), tuple(flow.path), float(flow.bandwidth)) for _, flow in site.flows
    ]
    changed: dict[str, list[FlowPlan]] = defaultdict(list)
    attempts = {}
    for i, given in settle(site.cluster, running).items():
        job, flow = site.flows[i]
        rate = _whole(given.rate, flow.min)
        if rate != flow.bandwidth or list(given.path) != flow.path:
            changed[job.id].append(FlowPlan(src=flow.src, dst=flow.dst, bandwidth=rate, path=list(given.path)))
            attempts[job.id] = job.attempt
    return [JobRevision(job=job, attempt=attempts[job], flows=flows) for job, flows in changed.items()]


def _whole(rate: float, low: int) -> int:
    """In bit/s, rounded down, but not below a minimum that it reaches."""
    return max(int(rate), low) if rate >= low * (1 - HAIR) else int(rate)
