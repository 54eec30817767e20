"""The policies that are compared, by name: as CES simulates them, and as the public simulator counts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ces_core.malleable.elasticflow import ElasticFlow
from ces_core.malleable.model import MalleableJob
from ces_core.malleable.peers.afs import afs
from ces_core.malleable.peers.edf import EarliestDeadlineFirst
from ces_core.malleable.peers.gandiva import Gandiva
from ces_core.malleable.peers.optimus import Optimus
from ces_core.malleable.peers.pollux import Pollux
from ces_core.malleable.peers.simple import RandomSize, smallest
from ces_core.malleable.peers.themis import Themis
from ces_core.malleable.peers.tiresias import Gittins, Tiresias
from ces_core.malleable.policy import Policy
from ces_experiments.malleable.inputs import Input
from ces_sim.malleable.compat import caps, edf, elastic, gandiva, themis, tiresias
from ces_sim.malleable.compat.state import Tally
from ces_sim.malleable.traces import TracedJob


@dataclass(frozen=True)
class Setting:
    """What some policies need to know of the cluster and the trace. ``services``: GPU-seconds that its jobs take at the
    sizes asked for, ascending."""

    slot_s: float
    node: int
    services: tuple[float, ...]
    seed: int

    @staticmethod
    def of(given: Input, jobs: Sequence[TracedJob], seed: int) -> Setting:
        services = tuple(sorted(float(job.duration_s * job.gpus) for job in jobs))
        return Setting(float(given.slot_s), given.spec.gpus, services, seed)


POLICIES: Mapping[str, Callable[[Setting], Policy]] = {
    "elasticflow": lambda setting: ElasticFlow(setting.slot_s),
    "elasticflow-all": lambda setting: ElasticFlow(setting.slot_s, admission=False),
    "edf": lambda setting: EarliestDeadlineFirst(),
    "edf-admission": lambda setting: EarliestDeadlineFirst(admission=True),
    "tiresias": lambda setting: Tiresias(),
    "gittins": lambda setting: Gittins(setting.services),
    "gandiva": lambda setting: Gandiva(),
    "themis": lambda setting: Themis(setting.slot_s),
    "afs": lambda setting: afs,
    "optimus": lambda setting: Optimus(),
    "pollux": lambda setting: Pollux(setting.node),
    "min": lambda setting: smallest,
    "random": lambda setting: RandomSize(setting.seed),
}
"""Name -> the policy. ``elasticflow-all`` and ``edf`` refuse nobody."""


def _elastic_jobs(given: Input, jobs: Sequence[TracedJob]) -> list[MalleableJob]:
    return [_capped(job, caps.elastic_cap(job, given.gpu), given) for job in jobs]


def _measured_jobs(given: Input, jobs: Sequence[TracedJob]) -> list[MalleableJob]:
    return [_capped(job, caps.measured_cap(job), given) for job in jobs]


def _capped(job: TracedJob, most: int, given: Input) -> MalleableJob:
    return replace(job.malleable(given.spec.capacity), profile=caps.profile(job, most), measured=None)


def _elastic(given: Input, jobs: Sequence[TracedJob], admission: bool) -> Tally:
    spec = given.spec
    return elastic.run(_elastic_jobs(given, jobs), spec.capacity, spec.gpus, given.slot_s, admission=admission)


def _edf(given: Input, jobs: Sequence[TracedJob], admission: bool) -> Tally:
    spec = given.spec
    return edf.run(_measured_jobs(given, jobs), spec.capacity, spec.gpus, given.slot_s, admission=admission)


AS_PUBLISHED: Mapping[str, Callable[[Input, Sequence[TracedJob]], Tally]] = {
    "elasticflow": lambda given, jobs: _elastic(given, jobs, True),
    "elasticflow-all": lambda given, jobs: _elastic(given, jobs, False),
    "edf": lambda given, jobs: _edf(given, jobs, False),
    "edf-admission": lambda given, jobs: _edf(given, jobs, True),
    "tiresias": lambda given, jobs: tiresias.run(jobs, given.spec.capacity, given.slot_s),
    "gandiva": lambda given, jobs: gandiva.run(jobs, given.spec.capacity, given.spec.gpus, given.slot_s),
    "themis": lambda given, jobs: themis.run(jobs, given.spec.capacity, given.slot_s),
}
"""Name -> the policy as the public simulator counts it."""
