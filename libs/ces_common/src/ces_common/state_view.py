"""A reader's picture of the manager's state: one full snapshot, then only what changed."""

from __future__ import annotations

from ces_common.change_log import ChangeLog
from ces_common.messages.records import JobRecord, NodeRecord, Snapshot, SnapshotQuery, Topology
from ces_common.states import JOB_OVER


class StateView:
    """Nodes, topology and the jobs that still hold or want something, as of ``version``. No I/O.

    ``changed_jobs`` and ``changed_nodes`` know which of them came, changed or left since a moment, by id and by name:
    who remembers the moment of a look need not look at all jobs the next time."""

    def __init__(self) -> None:
        self.epoch = ""
        self.version = 0
        self.nodes: dict[str, NodeRecord] = {}
        self.topology = Topology()
        self.jobs: dict[str, JobRecord] = {}
        self.traced: set[str] = set()  # ids of those jobs whose attempt is traced
        self.changed_jobs, self.changed_nodes = ChangeLog(), ChangeLog()

    def query(self) -> SnapshotQuery:
        """What to ask for next."""
        return SnapshotQuery(since=self.version, epoch=self.epoch, removals=True)

    def merge(self, snapshot: Snapshot) -> bool:
        """Take in a snapshot; True where anything changed."""
        if not snapshot.full and snapshot.epoch != self.epoch:
            raise ValueError(f"changes of database {snapshot.epoch} do not fit a view of {self.epoch}")
        if snapshot.full:
            before = (self.epoch, self.version)
            self.epoch = snapshot.epoch
            self.nodes, self.jobs, self.topology, self.traced = {}, {}, Topology(), set()
            self.changed_jobs.begin()
            self.changed_nodes.begin()
            changed = before != (snapshot.epoch, snapshot.version)
        else:
            parts = (snapshot.nodes, snapshot.jobs, snapshot.topology, snapshot.removed_nodes, snapshot.removed_jobs)
            changed = any(parts)
        self.version = snapshot.version
        for name in snapshot.removed_nodes:
            self.nodes.pop(name, None)
        for name in snapshot.removed_jobs:
            self.jobs.pop(name, None)
            self.traced.discard(name)
        self.nodes.update((node.name, node) for node in snapshot.nodes)
        if snapshot.topology is not None:
            self.topology = snapshot.topology
        for job in snapshot.jobs:
            if job.state in JOB_OVER and job.released:
                self.jobs.pop(job.id, None)
                self.traced.discard(job.id)
            else:
                self.jobs[job.id] = job
                if job.traceparent is not None:
                    self.traced.add(job.id)
        self.changed_nodes.note((*snapshot.removed_nodes, *(node.name for node in snapshot.nodes)))
        self.changed_jobs.note((*snapshot.removed_jobs, *(job.id for job in snapshot.jobs)))
        return changed
