"""A manager's database with a cluster in it, agents that obey, and an audit that shares no code with the manager."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import TypeVar

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.engine import URL

from ces_client.audit import Inventory
from ces_client.audit_inputs import judge, request_of
from ces_common.db import UnitOfWork, WriteTx, migrate, new_engine
from ces_common.db.outbox import ALL, events_after
from ces_common.db.tables import Base, ClusterRow, DutyRow, JobRow, LeaseRow, NodeRow
from ces_common.jobfile import JobFile
from ces_common.messages.api import TopologyFile
from ces_common.messages.events import (
    FlowPlan,
    JobRevision,
    PlanProposed,
    PreemptionProposed,
    RevisionProposed,
    Victim,
)
from ces_common.messages.queries import SnapshotQuery
from ces_common.messages.records import JobRecord, Snapshot
from ces_common.messages.reports import Status, WorkerStatus
from ces_common.queuefile import QueueFile
from ces_common.states import JobState
from ces_manager import retention
from ces_manager.clock import Clock
from ces_manager.jobs import commands, network_readiness, records, submission, worker_reports
from ces_manager.messaging.snapshot import Snapshots
from ces_manager.network import topology
from ces_manager.nodes import expiry, heartbeats, removal
from ces_manager.nodes.deadlines import COMPUTE_CTL, NETWORK_CTL
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.plans import commit, preemption, revision
from ces_manager.plans.addresses import next_subnet
from ces_manager.timeouts import Timeouts

T = TypeVar("T")
START = datetime(2030, 1, 1, tzinfo=UTC)
TIMEOUTS = Timeouts()
BY_TEN = QueueFile(preemption=10)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'ces.db'}"


def ring(name: str = "ring", tasks: int = 3, low: str = "10Mbit", high: str = "50Mbit", **more: object) -> JobFile:
    flows = {"topology": "ring", "bandwidth": {"min": low, "max": high}} if tasks > 1 else {}
    group = {"name": "w", "replicas": tasks, "command": ["true"], "resources": {"cpu": "500m", "memory": "128Mi"}}
    return JobFile.model_validate({"name": name, "tasks": [group], "flows": flows, **more})


def full_mesh(nodes: Sequence[str], bandwidth: str = "100Mbit") -> TopologyFile:
    links = [{"src": a, "dst": b, "bandwidth": bandwidth} for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    return TopologyFile.model_validate({"links": links})


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
            for table in reversed(Base.metadata.sorted_tables):
                if table is not DutyRow.__table__:
                    connection.execute(delete(table))
            connection.execute(update(DutyRow).values(holder="", process=""))
            connection.execute(insert(ClusterRow).values(id=1, epoch="00000000-0000-0000-0000-000000000001"))

    def restart(self) -> None:
        """Another manager process on the same database."""
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

    def add_nodes(self, *names: str, cpu: int = 2000, memory: int = 2**30, network: str = "tc") -> None:
        """Nodes that are there and were heard, without the ceremony of joining."""
        with self.uow.write(self.now) as tx:
            for name in names:
                cluster, taken = tx.cluster(), tx.session.scalars(select(NodeRow.subnet)).all()
                subnet, cluster.last_subnet = next_subnet(cluster.last_subnet, taken)
                tx.session.add(
                    NodeRow(
                        name=name,
                        cpu=cpu,
                        memory=memory,
                        gpu=0,
                        arch="x86_64",
                        labels={},
                        runtime="process",
                        network=network,
                        host_address="127.0.0.1",
                        subnet=subnet,
                        last_host=0,
                        public_key=f"U{name.upper():A<55}",
                        cordoned=False,
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
        self.write(lambda tx: topology.put_topology(tx, file))

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
        """A plan that puts task i on places[i], with the direct link for every flow."""
        record = self.job(job)
        where = {task.name: places[i % len(places)] for i, task in enumerate(record.tasks)}
        flows = [
            FlowPlan(
                src=flow.src,
                dst=flow.dst,
                rate=bandwidth,
                path=list(dict.fromkeys([where[flow.src], where[flow.dst]])),
            )
            for flow in record.flows
        ]
        number = next(self._messages)
        return PlanProposed(
            plan=f"plan-{job}-{number}",
            job=job,
            attempt=record.attempt,
            version=0,
            solver="test",
            assignments=where,
            flows=flows,
        )

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
        self.write(lambda tx: worker_reports.take_reports(tx, [status]))
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


def findings(world: World, links: Mapping[tuple[str, str], int] | None = None) -> list[str]:
    """What an auditor reads in the world's log, who is told beside it of its nodes and what was asked for. ``links``:
    with their capacities, or flows are not judged."""
    with world.uow.read() as tx:
        nodes = tx.session.scalars(select(NodeRow)).all()
        files = tx.session.execute(select(JobRow.id, JobRow.spec)).all()
        log = [json.loads(event.body) for event in events_after(tx, 0, ALL, 10**6)]
    there = [
        {"node": row.name, "change": change, "cpu": row.cpu, "memory": row.memory, "gpu": row.gpu}
        for row in nodes
        for change in ("joined", "ready")
    ]
    kind, time = "ces.v1.node.changed", START.isoformat()
    told = [{"id": f"n{i}", "type": kind, "time": time, "data": data} for i, data in enumerate(there)]
    numbered = [event | {"sequence": i} for i, event in enumerate(told + log, 1)]
    inventory = Inventory(links=links, jobs={job: request_of(file) for job, file in files})
    return [str(finding) for finding in judge(numbered, inventory).findings]


def audit(world: World) -> None:
    """Check, in plain SQL and arithmetic, that nothing is overbooked and the books are consistent."""
    with world.uow.read() as tx:
        allocations = tx.session.execute(
            text("SELECT id, job, attempt, task, node, address, port, cpu, memory, gpu, state FROM allocations")
        ).all()
        nodes = {row.name: row for row in tx.session.execute(text("SELECT name, cpu, memory, gpu FROM nodes"))}
        jobs_ = {row.id: row for row in tx.session.execute(text("SELECT id, state, attempt, live FROM jobs"))}
        links = {
            (row.src, row.dst): row for row in tx.session.execute(text("SELECT src, dst, bandwidth, medium FROM links"))
        }
        media = {row.name: row.bandwidth for row in tx.session.execute(text("SELECT name, bandwidth FROM media"))}
        flows = tx.session.execute(
            text("SELECT job, attempt, number, rate, min, max, path FROM reservations WHERE held")
        ).all()
        hops = Counter[tuple[int, str, str, int]](
            (row.number, row.src, row.dst, row.rate)
            for row in tx.session.execute(text("SELECT number, src, dst, rate FROM hops"))
        )
        sequences = [number for (number,) in tx.session.execute(text("SELECT sequence FROM events ORDER BY sequence"))]

    assert sequences == list(range(1, len(sequences) + 1)), "event numbers have a gap"

    live = [row for row in allocations if row.state in ("pending", "running", "stopping")]
    for what in ("cpu", "memory", "gpu"):
        used = Counter[str]()
        for row in live:
            used[row.node] += getattr(row, what)
        for node, total in used.items():
            assert total <= getattr(nodes[node], what), f"{node} is overbooked in {what}"
    places = Counter((row.address, row.port) for row in live)
    assert all(number == 1 for number in places.values()), "two live allocations share an address and port"
    tasks = Counter((row.job, row.task) for row in live)
    assert all(number == 1 for number in tasks.values()), "a task is live twice"
    for row in live:
        job = jobs_[row.job]
        assert row.attempt == job.attempt
        assert job.live
        assert job.state != "suspended" or row.cpu == 0
        over = job.state in ("succeeded", "failed", "cancelled", "rescheduling")
        assert row.state == "stopping" or not over, f"job {job.state} wants a {row.state} allocation"

    numbers = Counter(row.number for row in flows)
    assert all(number == 1 for number in numbers.values()), "a flow number is held twice"
    on_links, on_media = Counter[tuple[str, str]](), Counter[str]()
    expected = Counter[tuple[int, str, str, int]]()
    for row in flows:
        state = jobs_[row.job].state
        if state == "suspended" or (row.rate == 0 and state in ("rescheduling", "cancelled", "failed")):
            assert row.rate == 0
        else:
            assert row.min <= row.rate <= row.max
        assert jobs_[row.job].live
        assert jobs_[row.job].state != "queued"
        path = [name.strip('" ') for name in row.path.strip("[]").split(",")]
        for src, dst in pairwise(path if row.rate else []):
            expected[(row.number, src, dst, row.rate)] += 1
            on_links[src, dst] += row.rate
            medium = links[src, dst].medium if (src, dst) in links else None
            if medium is not None:
                on_media[medium] += row.rate
    assert hops == expected, "hops and reservations disagree"
    for link, total in on_links.items():
        if link in links:
            assert total * 100 <= links[link].bandwidth * 95, f"{link} is overbooked"
    for name, total in on_media.items():
        assert total * 100 <= media[name] * 95, f"{name} is overbooked"
