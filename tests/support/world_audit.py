"""Audits of a world's books and log, which share no code with the manager."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from manager_world import START, World
from sqlalchemy import select, text

from ces_client.audit import Inventory
from ces_client.audit_inputs import judge, request_of
from ces_common.db.outbox import ALL, events_after
from ces_common.db.tables import JobRow, NodeRow


def findings(world: World, links: Mapping[tuple[str, str], int] | None = None) -> list[str]:
    """What an auditor reads in the world's log, who is told beside it of its nodes and what was asked for. ``links``:
    with their capacities, or flows are not judged."""
    with world.uow.read() as tx:
        nodes = tx.session.scalars(select(NodeRow)).all()
        files = tx.session.execute(select(JobRow.id, JobRow.spec)).all()
        log = [json.loads(event.body) for event in events_after(tx, 0, ALL, 10**6)]
    kind, time = "ces.v1.node.changed", START.isoformat()
    known = {
        row.name: {"node": row.name, "cpu": row.cpu, "memory": row.memory, "gpu": row.gpu}
        | {"cards": [card.model_dump() for card in row.cards]}
        for row in nodes
    }
    for each in (event["data"] for event in log if event["type"] == kind):
        known.setdefault(each["node"], each)  # it was forgotten
    there = [each | {"change": change} for each in known.values() for change in ("joined", "ready")]
    told = [{"id": f"n{i}", "type": kind, "time": time, "data": data} for i, data in enumerate(there)]
    numbered = [event | {"sequence": i} for i, event in enumerate(told + log, 1)]
    inventory = Inventory(links=links, jobs={job: request_of(file) for job, file in files})
    return [str(finding) for finding in judge(numbered, inventory).findings]


def audit(world: World) -> None:
    """Check, in plain SQL and arithmetic, that nothing is overbooked and the books are consistent."""
    with world.uow.read() as tx:
        allocations = tx.session.execute(
            text(
                "SELECT id, job, attempt, task, node, address, port, cpu, memory, gpu, cards, "
                "gpu_share, gpu_memory, state FROM allocations"
            )
        ).all()
        nodes = {row.name: row for row in tx.session.execute(text("SELECT name, cpu, memory, gpu, cards FROM nodes"))}
        query = "SELECT id, state, attempt, live, next_size, move FROM jobs"
        jobs_ = {row.id: row for row in tx.session.execute(text(query))}
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
    _audit_cards(live, {name: row.cards for name, row in nodes.items()})
    places = Counter((row.address, row.port) for row in live)
    assert all(number == 1 for number in places.values()), "two live allocations share an address and port"
    tasks = Counter((row.job, row.task) for row in live if row.attempt == jobs_[row.job].attempt)
    assert all(number == 1 for number in tasks.values()), "a task is live twice"
    for row in live:
        job = jobs_[row.job]
        coming = row.attempt == job.attempt + 1  # held for another size
        beside = row.attempt == 0 and job.move is not None and row.state == "pending"  # held for a task that moves
        current = (
            row.attempt == job.attempt or beside or (coming and job.next_size is not None and row.state == "pending")
        )
        assert current, "something is held for a former attempt"
        assert job.live
        assert job.state != "suspended" or row.cpu == 0
        over = job.state in ("succeeded", "failed", "cancelled", "rescheduling")
        assert row.state == "stopping" or not over, f"job {job.state} wants a {row.state} allocation"

    numbers = Counter(row.number for row in flows)
    assert all(number == 1 for number in numbers.values()), "a flow number is held twice"
    on_links, on_media = Counter[tuple[str, str]](), Counter[str]()
    expected = Counter[tuple[int, str, str, int]]()
    resized = {row.number for row in flows if row.attempt == jobs_[row.job].attempt + 1}
    for row in flows:
        state = jobs_[row.job].state
        if state == "suspended" or (row.rate == 0 and state in ("rescheduling", "cancelled", "failed")):
            assert row.rate == 0
        else:
            assert row.min <= row.rate <= row.max
        assert jobs_[row.job].live
        assert jobs_[row.job].state != "queued"
        path = [name.strip('" ') for name in row.path.strip("[]").split(",")]
        for src, dst in pairwise(path if row.rate and row.number not in resized else []):
            expected[(row.number, src, dst, row.rate)] += 1
            on_links[src, dst] += row.rate
            medium = links[src, dst].medium if (src, dst) in links else None
            if medium is not None:
                on_media[medium] += row.rate
    for number, src, dst, rate in hops:  # of a size to come, what goes beyond that of the present one
        if number in resized:
            on_links[src, dst] += rate
            if links[src, dst].medium is not None:
                on_media[links[src, dst].medium] += rate
    present = Counter({hop: count for hop, count in hops.items() if hop[0] not in resized})
    assert present == expected, "hops and reservations disagree"
    for link, total in on_links.items():
        if link in links:
            assert total * 100 <= links[link].bandwidth * 95, f"{link} is overbooked"
    for name, total in on_media.items():
        assert total * 100 <= media[name] * 95, f"{name} is overbooked"


def _audit_cards(live: Sequence[Any], nodes: Mapping[str, str]) -> None:
    """A card is one job's, at one size one task's, or shares of it are held that are no more than there is; and all are
    counted. ``nodes``: their cards, as JSON."""
    there = {(node, card["id"]): card["memory"] for node, cards in nodes.items() for card in json.loads(cards)}
    jobs, tasks = dict[tuple[str, str], set[str]](), Counter[tuple[str, str, str, int]]()
    shares, memory = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in live:
        for card in json.loads(row.cards):
            assert (row.node, card) in there, f"{row.node} has no card {card}"
            if row.gpu_share:
                shares[row.node, card] += row.gpu_share
                memory[row.node, card] += row.gpu_memory
            else:
                jobs.setdefault((row.node, card), set()).add(row.job)
                tasks[row.node, card, row.job, row.attempt] += 1
    for place, holders in jobs.items():
        assert len(holders) == 1, f"card {place} is held by {holders}"
        assert not shares[place], f"card {place} is held whole, and in shares"
    for place, share in shares.items():
        assert share <= 1000, f"{share} thousandths of {place} are held"
        assert memory[place] <= there[place], f"more memory of {place} is held than it has"
    assert all(number == 1 for number in tasks.values()), "two tasks have one card"
    for node in nodes:
        counted = sum(row.gpu for row in live if row.node == node)
        assert counted == sum(name == node for name, _ in jobs), f"{node} counts other GPUs than are named"
