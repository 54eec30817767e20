"""Looks at the database and at what was last measured, for one picture of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from pydantic import BaseModel, TypeAdapter
from sqlalchemy import func, select
from sqlalchemy.orm import undefer_group

from ces_common.db.tables import EXPANDED, JobRow, LinkRow, MediumRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.messages.api import NodeView
from ces_common.messages.reports import Heartbeat
from ces_common.resources import gpus_of
from ces_manager.jobs.job_views import job_summary
from ces_manager.jobs.transitions import allocations_of
from ces_manager.live.picture import Picture, Record, Section
from ces_manager.measurements import Measurements
from ces_manager.network.held_flows import short_flows
from ces_manager.nodes.node_views import warning_of
from ces_manager.plans.residual import held_on_nodes, loads_of_links

SHORTFALLS_EVERY = timedelta(seconds=10)
MOST_SHORTFALLS = 100  # of one tenant
FRESH = timedelta(seconds=10)  # of what an agent measured: younger counts as of now
JOBS_AT_ONCE = 500  # whose rows are read together
_NODE_COLUMNS = [column for name, column in NodeRow.__table__.columns.items() if name in NodeView.model_fields]
_LINK_COLUMNS = (
    LinkRow.src,
    LinkRow.dst,
    LinkRow.bandwidth,
    LinkRow.kind,
    LinkRow.medium,
    LinkRow.state,
    LinkRow.measured,
    LinkRow.state_reason,
    LinkRow.round_trip_us,
    LinkRow.delay,
)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)


class Looker:
    """Jobs that have not changed since its last look are not read again. ``region``: this cluster's name as one."""

    def __init__(self, measurements: Measurements, region: str | None = None) -> None:
        self._measurements, self._region = measurements, region
        self._jobs: dict[str, tuple[int, Record]] = {}  # job -> its version, and how it was shown
        self._epoch = ""
        self._shortfalls: Mapping[str, Record] = {}
        self._shortfalls_at: datetime | None = None

    def look(self, tx: ReadTx, now: datetime) -> Picture:
        cluster = tx.cluster()
        if cluster.epoch != self._epoch:  # in another one, versions are used again
            self._jobs, self._epoch = {}, cluster.epoch
        links = self._link_records(tx, now)
        return self._picture(tx, now, links, self._job_records(tx), self._shortfall_records(tx, now))

    def look_at_cluster(self, tx: ReadTx, now: datetime, *, links: bool) -> Picture:
        """Without jobs, but for their numbers, and without links unless they are asked for."""
        return self._picture(tx, now, self._link_records(tx, now) if links else {}, jobs={}, shortfalls={})

    def _picture(self, tx: ReadTx, now: datetime, links: Section, jobs: Section, shortfalls: Section) -> Picture:
        return Picture(
            version=tx.cluster().version,
            event=tx.cluster().sequence,
            at=_ANY.dump_python(now, mode="json"),
            nodes=self._node_records(tx, now),
            links=links,
            media={row.name: row.bandwidth for row in tx.session.execute(_MEDIA)},
            jobs=jobs,
            shortfalls=shortfalls,
            counts=_counts(tx),
            region=self._region,
        )

    def _fresh_beat(self, node: str, now: datetime) -> tuple[datetime, Heartbeat] | None:
        """Its last heartbeat, unless it has been silent since."""
        beat = self._measurements.beat(node)
        return beat if beat is not None and now - beat[0] <= FRESH else None

    def _node_records(self, tx: ReadTx, now: datetime) -> dict[str, Record]:
        held = held_on_nodes(tx)
        found: dict[str, Record] = {}
        for row in tx.session.execute(_NODES):
            known = _plain(row._mapping)
            known["cards"] = [card.model_dump(mode="json") for card in row.cards]
            name, beat = known.pop("name"), self._fresh_beat(row.name, now)
            cpu, memory, gpu, share = held.get(name, (0, 0, 0, 0))
            found[name] = known | {
                "cpu_allocated": cpu,
                "memory_allocated": memory,
                "gpu_allocated": gpus_of(gpu, share),
                "cpu_used": round(beat[1].cpu) if beat else None,
                "memory_used": beat[1].memory if beat else None,
                "warning": warning_of(name, self._measurements),
            }
        return found

    def _link_records(self, tx: ReadTx, now: datetime) -> dict[str, Record]:
        """Of a large network these are most of the picture, so that what is known of a source is looked up once."""
        rows = tx.session.execute(_LINKS).all()
        loads = loads_of_links(tx, {row[0] for row in rows})
        found: dict[str, Record] = {}
        for source, links in groupby(rows, key=itemgetter(0)):
            beat = self._fresh_beat(source, now)
            usages = {usage.peer: usage for usage in beat[1].links} if beat else {}
            for src, dst, bandwidth, kind, medium, state, measured, reason, trip_us, delay in links:
                usage = usages.get(dst)
                trip_s = usage.round_trip_s if usage else None
                if trip_s is None and trip_us is not None:
                    trip_s = trip_us / 1e6
                reserved, flows = loads.get((src, dst), (0, 0))
                found[f"{src}>{dst}"] = {
                    "bandwidth": bandwidth,
                    "kind": kind,
                    "medium": medium,
                    "state": state,
                    "measured": measured,
                    "reason": reason,
                    "reserved": reserved,
                    "flows": flows or None,
                    "used": round(usage.sent) if usage else None,
                    "drops": usage.drops if usage else None,
                    "errors": usage.errors if usage else None,
                    "round_trip_s": trip_s,
                    "delay": delay,
                }
        return found

    def _shortfall_records(self, tx: ReadTx, now: datetime) -> Mapping[str, Record]:
        """Not at every look: reports of several heartbeats tell whether a link falls short."""
        if self._shortfalls_at is None or abs(now - self._shortfalls_at) >= SHORTFALLS_EVERY:
            flows = short_flows(tx, self._measurements, now, MOST_SHORTFALLS)
            fields = {"job", "name", "tenant", "src", "dst", "rate", "shortfall"}
            self._shortfalls = {str(flow.number): flow.model_dump(mode="json", include=fields) for flow in flows}
            self._shortfalls_at = now
        return self._shortfalls

    def _job_records(self, tx: ReadTx) -> dict[str, Record]:
        versions = {row.id: row.version for row in tx.session.execute(_LIVE_JOBS)}
        known = {job: kept for job, kept in self._jobs.items() if versions.get(job) == kept[0]}
        fresh = [job for job in versions if job not in known]
        for start in range(0, len(fresh), JOBS_AT_ONCE):
            query = _JOBS.where(JobRow.id.in_(fresh[start : start + JOBS_AT_ONCE]))
            rows = tx.session.scalars(query).all()
            allocations = allocations_of(tx, rows)
            for row in rows:
                record = job_summary(row, allocations[row.id]).model_dump(mode="json", exclude={"id"})
                known[row.id] = row.version, record
        self._jobs = known
        return {job: record for job, (_, record) in sorted(known.items())}


_NODES = select(*_NODE_COLUMNS).order_by(NodeRow.name)
_LINKS = select(*_LINK_COLUMNS).order_by(LinkRow.src, LinkRow.dst)
_MEDIA = select(MediumRow.name, MediumRow.bandwidth).order_by(MediumRow.name)
_LIVE_JOBS = select(JobRow.id, JobRow.version).where(JobRow.live)
_JOBS = select(JobRow).options(undefer_group(EXPANDED))
_COUNTS = select(JobRow.tenant, JobRow.state, func.count()).group_by(JobRow.tenant, JobRow.state)


def _counts(tx: ReadTx) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for tenant, state, number in tx.session.execute(_COUNTS):
        found.setdefault(tenant, {})[state] = number
    return found


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Values of columns as JSON knows them."""
    return {
        str(name): value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        for name, value in row.items()
    }
