"""Which GPU cards are held at one moment of the log, and by whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ces_client.audit.inventory import JobRequest
from ces_client.audit.lifecycle import Allocation

Card = tuple[str, str]  # node, id


class CardBooks:
    """A job that goes to another size may hold a card for both. Logs from before cards had names tell of none."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {}  # by node, as it last said
        self._holders: dict[Card, list[Allocation]] = defaultdict(list)

    def set_node(self, data: Mapping[str, Any]) -> None:
        """A node says what it has."""
        if "cards" in data:
            self._known[data["node"]] = {card["id"] for card in data["cards"]}

    def take(self, made: Iterable[Allocation], request: JobRequest | None) -> Iterator[str]:
        """Yields what is wrong with the cards that tasks get. ``request``: of their job, where it is known."""
        for each in made:
            asked = None if request is None else request.amounts(each.task)[2]
            if each.cards is not None and asked is not None and len(each.cards) != asked:
                yield f"{each.task} of job {each.job} asks for {asked} GPUs and gets the cards {list(each.cards)}"
            for card in each.cards or ():
                known = self._known.get(each.node)
                if known is not None and card not in known:
                    yield f"{each.task} of job {each.job} gets card {card}, which node {each.node} does not have"
                for other in self._holders[each.node, card]:
                    if (other.job, other.attempt) == (each.job, each.attempt) or other.job != each.job:
                        yield (
                            f"card {card} of node {each.node} is overbooked: {each.task} of job {each.job} gets it, "
                            f"and {other.task} of job {other.job} holds it"
                        )
                self._holders[each.node, card].append(each)

    def drop(self, allocation: Allocation) -> None:
        for card in allocation.cards or ():
            holders = self._holders[allocation.node, card]
            if allocation in holders:
                holders.remove(allocation)


def numbers(allocations: Iterable[Allocation]) -> dict[str, int]:
    """How many different cards these have, by node."""
    named = {(each.node, card) for each in allocations for card in each.cards or ()}
    found: dict[str, int] = defaultdict(int)
    for node, _ in named:
        found[node] += 1
    return found
