"""GPU cards as the REST API shows them: with what is held of each, and by which jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import select

from ces_common.db.tables import LIVE_STATES, AllocationRow, JobRow
from ces_common.db.uow import ReadTx
from ces_common.messages.cards import Card, CardHolder, CardView, Held
from ces_common.resources import WHOLE
from ces_manager.plans.residual import taken_cards

Holding = tuple[str, str, Sequence[str], int, int]
"""Of an allocation: job, its name, cards, thousandths of the one that it shares, and bytes of it; 0 for whole ones."""
_HOLDING = (
    select(
        AllocationRow.node,
        JobRow.id,
        JobRow.name,
        AllocationRow.cards,
        AllocationRow.gpu_share,
        AllocationRow.gpu_memory,
    )
    .join(JobRow, JobRow.id == AllocationRow.job)
    .where(AllocationRow.state.in_(LIVE_STATES))
    .order_by(JobRow.id, AllocationRow.rank)
)


def card_views(
    tx: ReadTx, cards: Mapping[str, Sequence[Card]], tenants: Collection[str] | None
) -> dict[str, list[CardView]]:
    """``cards``: by node, as the answer. ``tenants``: whose jobs are named; None for all."""
    query = _HOLDING.where(AllocationRow.node.in_(list(cards)))
    if tenants is not None:
        query = query.where(JobRow.tenant.in_(tenants))
    holdings: dict[str, list[Holding]] = defaultdict(list)
    for node, job, name, ids, share, part in tx.session.execute(query) if cards else ():
        holdings[node].append((job, name, ids, share, part))
    taken = taken_cards(tx, cards) if cards else {}
    return {node: views_of(some, taken.get(node, {}), holdings[node]) for node, some in cards.items()}


def views_of(cards: Sequence[Card], taken: Mapping[str, Held], holdings: Iterable[Holding]) -> list[CardView]:
    """Pure. A job that holds a card whole, maybe at two sizes, is its one holder."""
    memory = {card.id: card.memory for card in cards}
    holders: dict[str, dict[str, CardHolder]] = {card.id: {} for card in cards}
    for job, name, ids, share, part in holdings:
        for each in ids:
            if each not in holders:
                continue
            before = holders[each].get(job)
            sums = (share, part) if before is None else (before.share + share, before.memory + part)
            held = sums if share else (WHOLE, memory[each])
            holders[each][job] = CardHolder(job=job, name=name, share=held[0], memory=held[1])
    found = []
    for card in cards:
        share, part = taken.get(card.id, (0, 0))
        some = list(holders[card.id].values())
        found.append(CardView(**card.model_dump(), allocated=share, memory_allocated=part, holders=some))
    return found
