"""The cluster in sums, for other regions: no node, address or job can be told from them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import ceil

from sqlalchemy import func, select

from ces_common.db.tables import JobRow, NodeRow
from ces_common.db.uow import ReadTx
from ces_common.messages.cards import Card, Held
from ces_common.messages.events import QueueStatus
from ces_common.messages.regions import CARD_ROOMS, MAX_DATASETS, MAX_MODELS, ROOMS, CardRoom, Room, Totals
from ces_common.resources import WHOLE
from ces_common.states import JOB_WAITS
from ces_manager.network.borders import borders
from ces_manager.plans.residual import held_on_nodes, taken_cards

_TAKES_WORK = select(NodeRow.name, NodeRow.cpu, NodeRow.memory, NodeRow.gpu, NodeRow.cards, NodeRow.datasets).where(
    NodeRow.state == "ready", ~NodeRow.cordoned, ~NodeRow.reclaimed, NodeRow.cpu > 0
)
_WAITING = select(func.count()).select_from(JobRow).where(JobRow.state.in_(JOB_WAITS))


def totals(tx: ReadTx, queue: Sequence[QueueStatus], now: datetime) -> Totals:
    """``queue``: as the scheduler told it last."""
    held = held_on_nodes(tx)
    free, total, cards, datasets = [], [], dict[str, Sequence[Card]](), set[str]()
    for node in tx.session.execute(_TAKES_WORK):
        cpu, memory, gpu, share = held.get(node.name, (0, 0, 0, 0))
        gpu += ceil(share / WHOLE)  # at least as many are no whole ones any more
        free.append(Room(cpu=max(0, node.cpu - cpu), memory=max(0, node.memory - memory), gpu=max(0, node.gpu - gpu)))
        total.append(Room(cpu=node.cpu, memory=node.memory, gpu=node.gpu))
        datasets |= set(node.datasets)
        if node.cards:
            cards[node.name] = node.cards
    queued = tx.session.scalar(_WAITING) or 0
    return Totals(
        epoch=tx.cluster().epoch,
        nodes=len(free),
        free=_sum(free),
        total=_sum(total),
        largest=Room(
            cpu=max((room.cpu for room in free), default=0),
            memory=max((room.memory for room in free), default=0),
            gpu=max((room.gpu for room in free), default=0),
        ),
        rooms=rooms(room.cpu for room in free),
        cards=card_rooms(cards, taken_cards(tx, cards) if cards else {}),
        queued=queued,
        wait_s=0.0 if queued == 0 else last_start_s(queue, now),
        datasets=sorted(datasets)[:MAX_DATASETS],
        borders=borders(tx),
    )


def rooms(free: Iterable[int]) -> list[int]:
    """How many nodes have less than 1, 2, 4, 8, 16, 32 cores free, and how many 32 or more, from millicores. Pure."""
    counts = [0] * (len(ROOMS) + 1)
    for cpu in free:
        counts[bisect_right(ROOMS, cpu / 1000)] += 1
    return counts


def card_rooms(cards: Mapping[str, Sequence[Card]], taken: Mapping[str, Mapping[str, Held]]) -> list[CardRoom]:
    """By model, in order of their names, how many cards have how much of themselves free. ``cards``: by node;
    ``taken``: by node and card, what is held of some. Pure."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * (len(CARD_ROOMS) + 1))
    for node, some in cards.items():
        held = taken.get(node, {})
        for card in some:
            share, _ = held.get(card.id, (0, 0))
            counts[card.model][bisect_right(CARD_ROOMS, WHOLE - share)] += 1
    return [CardRoom(model=model, rooms=counts[model]) for model in sorted(counts)[:MAX_MODELS]]


def last_start_s(queue: Sequence[QueueStatus], now: datetime) -> float | None:
    """Seconds until the last waiting job starts; None where that is not known of every one. Pure."""
    starts = [each.start_at for each in queue]
    known = [start for start in starts if start is not None]
    if not starts or len(known) < len(starts):
        return None
    return max(0.0, (max(known) - now).total_seconds())


def _sum(rooms: Sequence[Room]) -> Room:
    return Room(
        cpu=sum(room.cpu for room in rooms),
        memory=sum(room.memory for room in rooms),
        gpu=sum(room.gpu for room in rooms),
    )
