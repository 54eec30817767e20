"""Which GPU cards are held at one moment of the log, and by whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ces_client.audit.inventory import JobRequest
from ces_client.audit.lifecycle import Allocation

Card = tuple[str, str]  # node, id
WHOLE = 1000  # thousandths


class CardBooks:
    """A job that goes to another size may hold a card for both. Logs from before cards had names tell of none."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}  # by node, as it last said: memory of each card, in bytes
        self._holders: dict[Card, list[Allocation]] = defaultdict(list)

    def set_node(self, data: Mapping[str, Any]) -> None:
        """A node says what it has."""
        if "cards" in data:
            self._known[data["node"]] = {card["id"]: card.get("memory", 0) for card in data["cards"]}

    def take(self, made: Iterable[Allocation], request: JobRequest | None) -> Iterator[str]:
        """Yields what is wrong with the cards that tasks get. ``request``: of their job, where it is known."""
        for each in made:
            yield from _differing(each, request)
            for card in each.cards or ():
                known = self._known.get(each.node)
                if known is not None and card not in known:
                    yield f"{each.task} of job {each.job} gets card {card}, which node {each.node} does not have"
                others = self._holders[each.node, card]
                yield from _beside(each, card, others)
                others.append(each)
                share, memory = sum(one.gpu_share for one in others), sum(one.gpu_memory for one in others)
                where = f"card {card} of node {each.node}"
                if each.gpu_share and share > WHOLE:
                    yield f"{where} is overbooked: {share} of {WHOLE} thousandths"
                if each.gpu_share and known is not None and memory > known.get(card, 0):
                    yield f"{where} is overbooked: {memory} of {known.get(card, 0)} bytes"

    def drop(self, allocation: Allocation) -> None:
        for card in allocation.cards or ():
            holders = self._holders[allocation.node, card]
            if allocation in holders:
                holders.remove(allocation)


def _differing(each: Allocation, request: JobRequest | None) -> Iterator[str]:
    """What a task gets and has not asked for."""
    if request is None or each.cards is None:
        return
    asked, share = request.amounts(each.task)[2], request.shares.get(each.task, 0)
    if each.gpu_share != share:
        yield f"{each.task} of job {each.job} asks for {share} thousandths of a card and gets {each.gpu_share}"
    elif len(each.cards) != (1 if share else asked):
        yield f"{each.task} of job {each.job} asks for {asked} GPUs and gets the cards {list(each.cards)}"


def _beside(each: Allocation, card: str, others: Iterable[Allocation]) -> Iterator[str]:
    """Who else has the card, where one of both has it whole; at another size of the same job it may."""
    for other in others:
        same = other.job == each.job and other.attempt != each.attempt
        if not same and not (each.gpu_share and other.gpu_share):
            yield (
                f"card {card} of node {each.node} is overbooked: {each.task} of job {each.job} gets it, "
                f"and {other.task} of job {other.job} holds it"
            )


def numbers(allocations: Iterable[Allocation]) -> dict[str, int]:
    """How many different cards these have whole, by node."""
    named = {(each.node, card) for each in allocations if not each.gpu_share for card in each.cards or ()}
    found: dict[str, int] = defaultdict(int)
    for node, _ in named:
        found[node] += 1
    return found
