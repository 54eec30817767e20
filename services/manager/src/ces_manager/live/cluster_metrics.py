"""The cluster's own metrics, read when somebody asks: nodes, links and numbers of jobs as the database has them. What
was removed leaves no series behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from ces_common.db import UNAVAILABLE, cause_of
from ces_common.db.tables import JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.energy import Energy
from ces_common.states import JobState
from ces_manager.database import Database
from ces_manager.energy.views import energy_of_nodes
from ces_manager.live.feed import EVERY_S
from ces_manager.live.look import Looker
from ces_manager.live.picture import Picture
from ces_manager.measurements import Measurements

log = structlog.get_logger()
PATIENCE_S: Final = 5.0  # for the database; without it the rest is told
BITS: Final = 8
MILLI: Final = 1000
_WAITING = (
    select(JobRow.tenant, func.min(JobRow.state_since)).where(JobRow.state == JobState.QUEUED).group_by(JobRow.tenant)
)


@dataclass(frozen=True)
class Seen:
    """``waited_s``: of each tenant, for how long the job waits that does so for longest; ``heartbeat_age_s``: of each
    node that this manager has heard of; ``energy``: of each node of which any is known."""

    picture: Picture
    waited_s: Mapping[str, float] = field(default_factory=dict)
    heartbeat_age_s: Mapping[str, float] = field(default_factory=dict)
    energy: Mapping[str, Energy] = field(default_factory=dict)


class ClusterMetrics(Collector):
    """Looks at the database in one of its reading threads, which hold up no commit, and at most once in two seconds,
    whoever asks. ``links``: with a few series for each link."""

    def __init__(self, database: Database, measurements: Measurements, *, links: bool = True) -> None:
        self._database, self._measurements, self._links = database, measurements, links
        self._looker = Looker(measurements)
        self._looking: asyncio.Task[Seen] | None = None
        self._seen: Seen | None = None
        self._seen_at = float("-inf")

    async def look(self) -> None:
        """Have what was seen renewed. Where the database does not answer in time nothing is told of the cluster."""
        steady = self._database.clock.steady
        if self._seen is not None and steady() - self._seen_at < EVERY_S:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._database.read(self._look))
        try:
            async with asyncio.timeout(PATIENCE_S):
                self._seen = await asyncio.shield(self._looking)
            self._seen_at = steady()
        except (TimeoutError, *UNAVAILABLE) as error:
            log.info("metrics without nodes, links and jobs: the database does not answer", error=cause_of(error))
            self._seen = None

    def collect(self) -> Iterable[Metric]:
        yield _answers(self._database.answers)
        if self._seen is not None:
            yield from families(self._seen)

    def _look(self, tx: ReadTx) -> Seen:
        now = self._database.clock.now()
        picture = self._looker.look_at_cluster(tx, now, links=self._links)
        beats = {node: self._measurements.beat(node) for node in picture.nodes}
        return Seen(
            picture,
            {tenant: (now - since).total_seconds() for tenant, since in tx.session.execute(_WAITING)},
            {node: (now - beat[0]).total_seconds() for node, beat in beats.items() if beat is not None},
            energy_of_nodes(tx, self._measurements.energy),
        )


def _answers(answers: bool) -> Metric:
    family = GaugeMetricFamily("ces_database_up", "Whether the database answers")
    family.add_metric([], answers)
    return family


def families(seen: Seen) -> Iterator[Metric]:
    """What there is to tell, each metric once. Pure."""
    yield from _of_jobs(seen)
    yield from _of_nodes(seen)
    if seen.picture.links:
        yield from _of_links(seen)


def _of_jobs(seen: Seen) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("ces_jobs", "Jobs that are kept, by tenant and state", labels=["tenant", "state"])
    for tenant, states in sorted(seen.picture.counts.items()):
        for state, number in sorted(states.items()):
            jobs.add_metric([tenant, state], number)
    yield jobs
    oldest = GaugeMetricFamily("ces_queue_oldest_wait_seconds", "How long the first has waited", labels=["tenant"])
    for tenant, waited_s in sorted(seen.waited_s.items()):
        oldest.add_metric([tenant], waited_s)
    yield oldest


@dataclass(frozen=True)
class Told:
    """A metric of each node or link: what it says, and of which field of the record, divided by what; for a counter
    that the device keeps ``total``. ``says``: the value of a field where it is no number."""

    help: str
    field: str
    by: float = 1
    says: str | None = None
    total: bool = False

    def value(self, record: Mapping[str, Any]) -> float | None:
        """None where it is not known, since nothing was measured lately: then there is no series."""
        value = record[self.field]
        if self.says is not None:
            return float(value == self.says)
        return None if value is None else value / self.by


NODE_LABELS: Final = ("node",)
OF_NODES: Final = {
    "ces_node_up": Told("Whether the node is ready", "state", says="ready"),
    "ces_node_cordoned": Told("Whether the node is to take no new task", "cordoned"),
    "ces_node_reclaimed": Told("Whether the owner of the device has it back", "reclaimed"),
    "ces_node_cpu_cores": Told("CPU that the node offers", "cpu", MILLI),
    "ces_node_cpu_allocated_cores": Told("CPU that tasks hold", "cpu_allocated", MILLI),
    "ces_node_cpu_used_cores": Told("CPU that is used, by whatever runs there", "cpu_used", MILLI),
    "ces_node_memory_bytes": Told("Memory that the node offers", "memory"),
    "ces_node_memory_allocated_bytes": Told("Memory that tasks hold", "memory_allocated"),
    "ces_node_memory_used_bytes": Told("Memory that is used, by whatever runs there", "memory_used"),
    "ces_node_gpus": Told("GPUs that the node offers", "gpu"),
    "ces_node_gpus_allocated": Told("GPUs that tasks hold, shares of cards as what they are", "gpu_allocated"),
}
LINK_LABELS: Final = ("src", "dst")
OF_LINKS: Final = {
    "ces_link_up": Told("Whether the link is up", "state", says="up"),
    "ces_link_bytes_per_second": Told("What the link is configured to carry", "bandwidth", BITS),
    "ces_link_measured_bytes_per_second": Told("What the last probe found that it carries", "measured", BITS),
    "ces_link_reserved_bytes_per_second": Told("What is promised to flows", "reserved", BITS),
    "ces_link_used_bytes_per_second": Told("What the link carries now", "used", BITS),
    "ces_link_dropped_packets_total": Told("Packets dropped since the device was made", "drops", total=True),
    "ces_link_damaged_packets_total": Told("Packets with an error since the device was made", "errors", total=True),
    "ces_link_round_trip_seconds": Told("Median of the last echoes", "round_trip_s"),
}


def _of_nodes(seen: Seen) -> Iterator[Metric]:
    yield from _told(OF_NODES, NODE_LABELS, (((node,), record) for node, record in seen.picture.nodes.items()))
    ages = GaugeMetricFamily("ces_node_heartbeat_age_seconds", "Since the node was last heard", labels=["node"])
    for node, age_s in seen.heartbeat_age_s.items():
        ages.add_metric([node], age_s)
    yield ages
    yield from _of_energy(seen)


def _of_energy(seen: Seen) -> Iterator[Metric]:
    used = CounterMetricFamily(
        "ces_node_energy_joules_total", "Energy that the node has used, measured or modelled", labels=["node", "source"]
    )
    power = GaugeMetricFamily("ces_node_power_watts", "What the node uses now", labels=["node"])
    for node, energy in seen.energy.items():
        for source, joules in (("measured", energy.measured), ("modelled", energy.modelled)):
            if joules:
                used.add_metric([node, source], joules)
        if energy.watts is not None:
            power.add_metric([node], energy.watts)
    yield used
    yield power


def _of_links(seen: Seen) -> Iterator[Metric]:
    yield from _told(OF_LINKS, LINK_LABELS, ((key.split(">"), record) for key, record in seen.picture.links.items()))


def _told(
    metrics: Mapping[str, Told], labels: Sequence[str], records: Iterable[tuple[Sequence[str], Mapping[str, Any]]]
) -> Iterator[Metric]:
    known = list(records)
    for name, told in metrics.items():
        family = (CounterMetricFamily if told.total else GaugeMetricFamily)(name, told.help, labels=labels)
        for whose, record in known:
            value = told.value(record)
            if value is not None:
                family.add_metric(whose, value)
        yield family
