"""GPU cards of nodes, and which of them allocations hold

What is known of a node is how many GPUs it has: they are numbered. Tasks that hold some get the lowest numbers that are
free on their node, in the order of their jobs; their workers go on with those that they were started with."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0032"
branch_labels = None
depends_on = None

_LIVE = ("pending", "running", "stopping")
_nodes = sa.table("nodes", sa.column("name"), sa.column("gpu"), sa.column("cards"))
_jobs = sa.table("jobs", *(sa.column(name) for name in ("id", "attempt", "spec", "next_size")))
_allocations = sa.table(
    "allocations",
    *(sa.column(name) for name in ("id", "job", "attempt", "rank", "node", "gpu", "state", "cards")),
)


def upgrade() -> None:
    for table in ("nodes", "allocations"):
        op.add_column(table, sa.Column("cards", sa.Text(), nullable=False, server_default="[]"))
    connection = op.get_bind()
    counts = dict(connection.execute(sa.select(_nodes.c.name, _nodes.c.gpu).where(_nodes.c.gpu > 0)).all())
    for name, gpu in counts.items():
        cards = [{"id": f"gpu{i}", "model": "", "memory": 0, "shareable": "no"} for i in range(gpu)]
        connection.execute(sa.update(_nodes).where(_nodes.c.name == name).values(cards=json.dumps(cards)))
    if counts:
        _name_held(connection, counts)


def _name_held(connection: sa.Connection, counts: dict[str, int]) -> None:
    """``counts``: GPUs by node."""
    rows = connection.execute(
        sa.select(_allocations, _jobs.c.attempt.label("present"), _jobs.c.spec, _jobs.c.next_size)
        .join(_jobs, _jobs.c.id == _allocations.c.job)
        .where(_allocations.c.state.in_(_LIVE), _allocations.c.node.in_(counts))
        .order_by(_allocations.c.job, _allocations.c.attempt, _allocations.c.rank)
    ).all()
    taken: dict[str, set[str]] = defaultdict(set)
    own: dict[tuple[str, str], set[str]] = defaultdict(set)  # of a job, on a node, by its present attempt
    for coming in (False, True):  # a size that a job goes to uses again what the job has
        used: dict[tuple[str, str], set[str]] = defaultdict(set)
        for row in (row for row in rows if (row.attempt > row.present) is coming):
            place = row.job, row.node
            number = _asked(json.loads(row.spec), row.next_size, row.rank) if coming else row.gpu
            reused = sorted(own[place] - used[place]) if coming else []
            free = [each for i in range(counts[row.node]) if (each := f"gpu{i}") not in taken[row.node]]
            cards = [*reused, *free][:number]
            if not cards:
                continue
            used[place].update(cards)
            values: dict[str, Any] = {"cards": json.dumps(cards)}
            if coming:
                values["gpu"] = len(set(cards) - own[place])
            else:
                own[place].update(cards)
            taken[row.node].update(cards)
            connection.execute(sa.update(_allocations).where(_allocations.c.id == row.id).values(**values))


def _asked(spec: dict[str, Any], size: int | None, rank: int) -> int:
    """The GPUs that a malleable job's task asks for at a size."""
    for group in spec["tasks"]:
        replicas = size if group["name"] == (spec.get("elastic") or {}).get("group") else group.get("replicas", 1)
        if rank < (replicas or 0):
            return int(group.get("resources", {}).get("gpu", 0))
        rank -= replicas or 0
    return 0


def downgrade() -> None:
    for table in ("nodes", "allocations"):
        op.drop_column(table, "cards")
