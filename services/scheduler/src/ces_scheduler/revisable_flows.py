"""The running flows that may be changed, from the committed state, and a revision of them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ces_common.change_log import Mark
from ces_common.messages.plans import FlowPlan, JobRevision
from ces_common.messages.records import FlowRecord, JobRecord, Topology
from ces_common.state_view import StateView
from ces_common.states import JOB_PLACED, JobState
from ces_core.bandwidth.reroute import FlowChange, Running
from ces_core.model.problem import Cluster
from ces_scheduler.offer import Offer, links_of

Settle = Callable[[Cluster, Sequence[Running]], dict[int, FlowChange]]
"""``reroute`` or ``reoptimise`` of :mod:`ces_core.bandwidth.reroute`."""
HAIR = 1e-9  # share of a rate that rounding may cost


@dataclass(frozen=True)
class RevisableFlows:
    """The flows that may be changed, the most urgent jobs' first, and the cluster with what else is in use."""

    cluster: Cluster
    flows: tuple[tuple[JobRecord, FlowRecord], ...]
    broken: bool  # whether one of them holds bandwidth on a link that is down or gone
    crowded: bool  # whether a link or medium has more on it than it carries


def revisable_flows(view: StateView, offer: Offer, *, better: bool = False) -> RevisableFlows:
    """The flows of running jobs over nodes within reach: a node out of reach cannot be changed and may work all the
    same. Of a flow whose path is broken only the ends must be within reach. ``better``: those that may be changed
    though nothing is broken: not of applications that CES adjusts, whose rates and paths keep deadlines, but for flows
    below their minimum."""
    up = {(link.src, link.dst) for link in view.topology.links if link.up}
    topology = offer.cluster.topology
    found, broken = [], False
    used = offer.cluster.link_used.copy()
    still = (job for job in offer.records.values() if job.resizing is None and job.moving is None)
    settled = (job for job in still if job.state is not JobState.SUSPENDED)
    placed = (job for job in settled if job.state in JOB_PLACED)
    for job in sorted(placed, key=lambda job: (-job.priority, job.submitted_at, job.id)):
        for flow in job.reserved:
            if better and job.adjust is not None and flow.rate >= flow.min:
                continue
            links = links_of(flow, topology)
            whole = all(hop in up for hop in pairwise(flow.path))
            if whole and len(links) < len(flow.path) - 1:
                continue
            ends = (view.nodes.get(flow.path[0]), view.nodes.get(flow.path[-1]))
            if len(flow.path) == 1 or not all(node is not None and node.state == "ready" for node in ends):
                continue
            found.append((job, flow))
            broken = broken or (not whole and flow.rate > 0)
            for link in links:
                used[link] -= flow.rate
    full = offer.cluster
    return RevisableFlows(full.with_used(full.node_used, used), tuple(found), broken, _crowded(full))


class Soundness:
    """Whether every reserved flow has its links, and every link and medium room for what is on it: what makes a look at
    each flow needless. Remembers what did not change between two states."""

    def __init__(self) -> None:
        self._topology: Topology | None = None
        self._up: frozenset[tuple[str, str]] = frozenset()
        self._broken: set[str] = set()  # jobs with a broken path
        self._looked = Mark()  # at the jobs, over these links

    def holds(self, view: StateView, offer: Offer) -> bool:
        if view.topology is not self._topology:
            up = frozenset((link.src, link.dst) for link in view.topology.links if link.up)
            if up != self._up:
                self._up, self._looked = up, Mark()
            self._topology = view.topology
        changed = view.changed_jobs.since(self._looked)
        if changed is None:
            self._broken.clear()
        for name in view.jobs if changed is None else changed:
            job = view.jobs.get(name)
            if job is None or job.released or self._is_whole(job):
                self._broken.discard(name)
            else:
                self._broken.add(name)
        self._looked = view.changed_jobs.mark
        return not (self._broken or _crowded(offer.cluster))

    def _is_whole(self, job: JobRecord) -> bool:
        return all(hop in self._up for flow in job.reserved if flow.rate for hop in pairwise(flow.path))


def _crowded(cluster: Cluster) -> bool:
    """Whether a link or medium has more on it than it carries."""
    return bool(
        (cluster.link_used > cluster.link_capacity).any() or (cluster.medium_used > cluster.medium_capacity).any()
    )


def revise(flows: RevisableFlows, settle: Settle) -> list[JobRevision]:
    """What ``settle`` changes of the flows, by job; empty where nothing is to change."""
    running = [Running(float(flow.min), float(flow.max), tuple(flow.path), float(flow.rate)) for _, flow in flows.flows]
    changed: dict[str, list[FlowPlan]] = defaultdict(list)
    attempts = {}
    for i, given in settle(flows.cluster, running).items():
        job, flow = flows.flows[i]
        rate = _whole(given.rate, flow.min)
        if rate != flow.rate or list(given.path) != flow.path:
            changed[job.id].append(FlowPlan(src=flow.src, dst=flow.dst, rate=rate, path=list(given.path)))
            attempts[job.id] = job.attempt
    return [JobRevision(job=job, attempt=attempts[job], flows=plans) for job, plans in changed.items()]


def _whole(rate: float, low: int) -> int:
    """The rate in whole bit/s, rounded down, but not below a minimum that it reaches."""
    return max(int(rate), low) if rate >= low * (1 - HAIR) else int(rate)
