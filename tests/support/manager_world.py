"""A manager's database with a cluster in it, and agents that obey."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TypeVar

from confinements import APART
from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.engine import URL

from ces_common.db import UnitOfWork, WriteTx, migrate, new_engine
from ces_common.db.schema import METADATA
from ces_common.db.tables import ClusterRow, DutyRow, JobRow, LeaseRow, NodeRow
from ces_common.jobfile import Flow, JobFile, Task
from ces_common.messages.api import TopologyFile
from ces_common.messages.cards import Card, cards_of, held_of
from ces_common.messages.confinement import Confinement
from ces_common.messages.plans import (
    CpuProposed,
    FlowPlan,
    JobRevision,
    PlanProposed,
    PreemptionProposed,
    ResizeProposed,
    RevisionProposed,
    Victim,
)
from ces_common.messages.records import JobRecord, Snapshot, SnapshotQuery
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.queuefile import QueueFile
from ces_common.states import JobState
from ces_manager import retention
from ces_manager.clock import Clock
from ces_manager.jobs import commands, network_readiness, records, submission, worker_reports
from ces_manager.messaging.snapshot import Snapshots
from ces_manager.nodes import expiry, heartbeats, owners, removal
from ces_manager.nodes.deadlines import COMPUTE_CTL, NETWORK_CTL
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.plans import commit, cpu_change, preemption, resize, revision
from ces_manager.plans.addresses import next_subnet
from ces_manager.plans.residual import taken_cards
from ces_manager.replay.topology_change import rewire
from ces_manager.speed_meter import SpeedMeter
from ces_manager.timeouts import Timeouts

T = TypeVar("T")
START = datetime(2030, 1, 1, tzinfo=UTC)
TIMEOUTS = Timeouts()
BY_TEN = QueueFile(preemption=10)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'ces.db'}"


def ring(
    name: str = "ring", tasks: int = 3, low: str = "10Mbit", high: str = "50Mbit", gpu: object = 0, **more: object
) -> JobFile:
    """Of so many tasks, or of those that ``elastic`` allows."""
    resources = {"cpu": "500m", "memory": "128Mi", "gpu": gpu}
    group: dict[str, object] = {"name": "w", "command": ["true"], "resources": resources}
    if "elastic" not in more:
        group["replicas"] = tasks
    flows = {"topology": "ring", "bandwidth": {"min": low, "max": high}} if tasks > 1 or "elastic" in more else {}
    return JobFile.model_validate({"name": name, "tasks": [group], "flows": flows, **more})


def full_mesh(nodes: Sequence[str], bandwidth: str = "100Mbit") -> TopologyFile:
    links = [{"src": a, "dst": b, "bandwidth": bandwidth} for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    return TopologyFile.model_validate({"links": links})


def direct(flows: Sequence[Flow], where: Mapping[str, str], rate: int) -> list[FlowPlan]:
    """The direct link for every flow; ``where``: task -> node."""
    return [
        FlowPlan(src=flow.src, dst=flow.dst, rate=rate, path=list(dict.fromkeys([where[flow.src], where[flow.dst]])))
        for flow in flows
    ]


class World:
    """Time stands still until it is moved: ``now``, the time of day, and ``steady``. Each method is one transaction, as
    in the service."""

    def __init__(self, url: str | URL, timeouts: Timeouts = TIMEOUTS) -> None:
        migrate(url)
        self.uow = UnitOfWork(new_engine(url))
        self.snapshots = Snapshots()
        self.timeouts, self.now, self.steady = timeouts, START, 0.0
        self.controllers = {NETWORK_CTL, COMPUTE_CTL}  # those that are at work, and heard whenever the manager looks
        self.restart()
        self._messages = count()

    def close(self) -> None:
        self.uow.engine.dispose()

    def wipe(self) -> None:
        """Empty all tables, and found the cluster anew."""
        with self.uow.engine.begin() as connection:
            for table in reversed(METADATA.sorted_tables):
                if table is not DutyRow.__table__:
                    connection.execute(delete(table))
            connection.execute(update(DutyRow).values(holder="", process=""))
            connection.execute(insert(ClusterRow).values(id=1, epoch="00000000-0000-0000-0000-000000000001"))

    def restart(self) -> None:
        """Another manager process on the same database."""
        self.meter = SpeedMeter()
        self.clock = Clock(lambda: self.now, lambda: self.steady)
        self.failure_detector = FailureDetector(self.clock.steady)

    def wait(self, seconds: float) -> None:
        """Let time pass, of which the manager has looked at the beginning."""
        self.look()
        self.now += timedelta(seconds=seconds)
        self.steady += seconds

    def look(self) -> expiry.Due:
        """What is due, without doing it."""
        self._hear_controllers()
        with self.uow.read() as tx:
            return expiry.what_is_due(tx, self.timeouts, self.failure_detector)

    def write(self, act: Callable[[WriteTx], T]) -> T:
        with self.uow.write(self.now) as tx:
            return act(tx)

    def add_nodes(
        self,
        *names: str,
        cpu: int = 2000,
        memory: int = 2**30,
        network: str = "tc",
        confinement: Confinement | None = APART,
        gpu: int = 0,
        cards: Sequence[Card] = (),
    ) -> None:
        """Nodes that are there and were heard, without the ceremony of joining. ``cards``: of them all."""
        with self.uow.write(self.now) as tx:
            for name in names:
                cluster, taken = tx.cluster(), tx.session.scalars(select(NodeRow.subnet)).all()
                subnet, cluster.last_subnet = next_subnet(cluster.last_subnet, taken)
                tx.session.add(
                    NodeRow(
                        name=name,
                        cpu=cpu,
                        memory=memory,
                        gpu=len(cards) or gpu,
                        cards=list(cards) or cards_of(gpu),
                        arch="x86_64",
                        labels={},
                        runtime="process",
                        network=network,
                        host_address="127.0.0.1",
                        subnet=subnet,
                        last_host=0,
                        public_key=f"U{name.upper():A<55}",
                        cordoned=False,
                        confinement=confinement,
                        state="ready",
                        joined_at=self.now,
                        version=tx.version,
                    )
                )
                tx.session.flush()
                tx.session.add(LeaseRow(node=name, boot="b", heard_at=self.now, beats=0))
        self.beat(*names)

    def beat(self, *names: str) -> set[str]:
        """Returns those that have not joined."""
        joined = heartbeats.renew_leases(self.uow, [heartbeats.Asker(name, "b") for name in names], self.now)
        back = [name for name, known in joined.items() if known.state == "unreachable"]
        if back:
            self.write(lambda tx: heartbeats.welcome_back(tx, back))
        return set(names) - joined.keys()

    def put_topology(self, file: TopologyFile) -> None:
        self.write(lambda tx: rewire(tx, file))

    def submit(self, jobfile: JobFile, key: str | None = None) -> str:
        return self.write(lambda tx: submission.submit_job(tx, jobfile, key)).id

    def snapshot(self, query: SnapshotQuery | None = None) -> Snapshot:
        with self.uow.read() as tx:
            return self.snapshots.of(tx, query or SnapshotQuery())

    def job(self, job: str) -> JobRecord:
        """The job's record, also when it is over."""
        with self.uow.read() as tx:
            return records.job_records(tx, [tx.session.get_one(JobRow, job)])[0]

    def propose(self, job: str, places: Sequence[str], bandwidth: int = 10_000_000) -> PlanProposed:
        """A plan that puts task i on places[i], with the direct link for every flow, and cards that are free."""
        record = self.job(job)
        where = {task.name: places[i % len(places)] for i, task in enumerate(record.tasks)}
        number = next(self._messages)
        return PlanProposed(
            plan=f"plan-{job}-{number}",
            job=job,
            attempt=record.attempt,
            version=0,
            solver="test",
            assignments=where,
            flows=direct(record.flows, where, bandwidth),
            cards={} if record.state is JobState.SUSPENDED else self.free_cards(job, record.tasks, where),
        )

    def free_cards(self, job: str, tasks: Sequence[Task], where: Mapping[str, str]) -> dict[str, list[str]]:
        """For tasks of a job that ask for GPUs: those that are its own first, and then the first that are nobody's; for
        shares the first that have room."""
        own = {(each.node, card) for each in self.job(job).allocations for card in each.cards if not each.over}
        with self.uow.read() as tx:
            nodes = {node.name: node.cards for node in tx.session.scalars(select(NodeRow))}
            taken = taken_cards(tx, list(nodes), job)
        given = {}
        for task in tasks:
            name = where[task.name]
            found = []
            for card in sorted(nodes.get(name, ()), key=lambda card, name=name: (name, card.id) not in own):  # type: ignore[misc]
                share, memory = taken[name].get(card.id, (0, 0))
                more = held_of(card, task.gpu_share, task.gpu_memory)
                if share + more[0] <= 1000 and memory + more[1] <= card.memory and len(found) < task.gpus:
                    taken[name][card.id] = (share + more[0], memory + more[1])
                    found.append(card.id)
            given[task.name] = found
        return {task: cards for task, cards in given.items() if cards}

    def commit(self, plan: PlanProposed) -> str | None:
        return self.write(lambda tx: commit.commit_plan(tx, plan))

    def revise(self, job: str, *flows: FlowPlan, version: int | None = None) -> str | None:
        """Propose other bandwidth and paths for some of the job's flows; why they were rejected, if they were."""
        proposed = RevisionProposed(
            revision=f"revision-{job}-{next(self._messages)}",
            version=self.snapshot().version if version is None else version,
            cause="link",
            jobs=[JobRevision(job=job, attempt=self.job(job).attempt, flows=list(flows))],
        )
        return self.write(lambda tx: revision.commit_revision(tx, proposed))

    def resize(self, job: str, size: int, places: Sequence[str], rate: int = 10_000_000, **more: int) -> str | None:
        """Propose another size for a malleable job, with task i on places[i]; why it was rejected, if it was."""
        record = self.job(job)
        assert record.spec is not None
        sized = record.spec.at_size(size)
        where = {task.name: places[i % len(places)] for i, task in enumerate(sized.expand_tasks())}
        proposal = ResizeProposed(
            resize=f"resize-{next(self._messages)}",
            job=job,
            attempt=more.get("attempt", record.attempt),
            version=more.get("version", self.snapshot().version),
            solver="test",
            size=size,
            assignments=where,
            flows=direct(sized.expand_flows(), where, rate),
            cards=self.free_cards(job, sized.expand_tasks(), where),
        )
        return self.write(lambda tx: resize.commit_resize(tx, proposal, self.meter))

    def change_cpu(self, job: str, cpu: int, **more: int) -> str | None:
        """Propose so many millicores for each worker of a malleable job; why that was rejected, if it was."""
        proposal = CpuProposed(
            change=f"cpu-{next(self._messages)}",
            job=job,
            attempt=more.get("attempt", self.job(job).attempt),
            version=more.get("version", self.snapshot().version),
            cpu=cpu,
        )
        return self.write(lambda tx: cpu_change.commit_cpu(tx, proposal))

    def preempt(
        self, job: str, *victims: str, how: str = "suspend", version: int | None = None, queue: QueueFile = BY_TEN
    ) -> str | None:
        """Propose that the victims make room for a job; why that was rejected, if it was."""
        asked = [{"job": victim, "attempt": self.job(victim).attempt, "how": how} for victim in victims]
        proposal = PreemptionProposed(
            preemption=f"preemption-{next(self._messages)}",
            version=self.snapshot().version if version is None else version,
            job=job,
            attempt=self.job(job).attempt,
            victims=[Victim.model_validate(each) for each in asked],
        )
        return self.write(lambda tx: preemption.commit_preemption(tx, proposal, queue))

    def go_on(self, job: str, bandwidth: int = 10_000_000) -> PlanProposed:
        """A plan by which a suspended job goes on where it is."""
        places = {allocation.task: allocation.node for allocation in self.job(job).allocations}
        return self.propose(job, [places[task.name] for task in self.job(job).tasks], bandwidth)

    def network(self, job: str) -> None:
        attempt = self.job(job).attempt
        self.write(lambda tx: network_readiness.network_preparing(tx, job, attempt))
        self.write(lambda tx: network_readiness.network_ready(tx, job, attempt))

    def report(self, status: Status) -> bool:
        """As the service does: look first, then act."""
        with self.uow.read() as tx:
            if not worker_reports.with_news(tx, [status]):
                return False
        self.write(lambda tx: owners.take_reports(tx, [status]))
        return True

    def tell(self, job: str, state: str, *tasks: str, exit_code: int | None = None, reason: str | None = None) -> None:
        """Have each task's agent say that its worker is in ``state`` (of all tasks, if none is named)."""
        for allocation in self.job(job).allocations:
            if tasks and allocation.task not in tasks:
                continue
            worker = WorkerStatus.model_validate(
                {
                    "allocation": allocation.id,
                    "incarnation": allocation.incarnation,
                    "state": state,
                    "exit_code": exit_code,
                    "reason": reason,
                }
            )
            self.report(Status(node=allocation.node, generation=0, workers=[worker]))

    def confirm(self, job: str) -> None:
        """Have the agents say, at the present version, that they run nothing of it any more."""
        version = self.snapshot().version
        for node in sorted({allocation.node for allocation in self.job(job).allocations}):
            self.report(Status(node=node, generation=version, workers=[]))

    def run(self, job: str, places: Sequence[str]) -> None:
        """Bring a queued job to running."""
        assert self.commit(self.propose(job, places)) is None
        self.network(job)
        self.tell(job, "running")
        assert self.job(job).state is JobState.RUNNING

    def cancel(self, job: str) -> None:
        self.write(lambda tx: commands.cancel_job(tx, job))

    def forget(self, node: str) -> list[str]:
        """As the API does, with what this manager has observed."""
        age_s = self.failure_detector.nodes.age(node, self.steady)
        return self.write(lambda tx: removal.forget_node(tx, self.timeouts, age_s, node))

    def _hear_controllers(self) -> None:
        for name in self.controllers:
            self.failure_detector.heard(name)

    def expire(self) -> expiry.Due:
        self._hear_controllers()
        return expiry.expire(self.uow, self.timeouts, self.failure_detector, self.clock)

    def prune(self) -> int:
        """As often as it takes, in steps as the service takes them; how many rows went."""
        dropped = 0
        while True:
            cut = retention.cutoffs(self.clock.dated(), self.timeouts)
            with self.uow.read() as tx:
                if not retention.has_aged(tx, cut):
                    return dropped
            step = retention.prune(self.uow, cut, self.timeouts, self.now)
            assert 0 < step <= self.timeouts.prune_jobs + 4 * self.timeouts.prune_rows
            dropped += step

    def events(self) -> list[tuple[int, str]]:
        """Number and type of every event, in order."""
        with self.uow.read() as tx:
            rows = tx.session.execute(text("SELECT sequence, type FROM events ORDER BY sequence"))
            return [(number, kind.removeprefix("ces.v1.")) for number, kind in rows]


def commit_all(url: str, proposals: list[PlanProposed], now: datetime) -> list[str | None]:
    """What one manager process answers to the plans it is sent, four at a time."""
    engine = new_engine(url)
    uow = UnitOfWork(engine)

    def commit_one(plan: PlanProposed) -> str | None:
        with uow.write(now) as tx:
            assert tx.first_time(plan.plan)
            return commit.commit_plan(tx, plan)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(commit_one, proposals))
    engine.dispose()
    return answers
