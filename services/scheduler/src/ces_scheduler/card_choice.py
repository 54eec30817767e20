"""Which cards the tasks of a job get on the nodes where a plan puts them. Pure.

Of whole cards any that are free are as good as others, so the solver counts them, and they are chosen when a plan is
proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ces_common.jobfile import Task
from ces_common.messages.records import JobRecord
from ces_scheduler.decision import Decision
from ces_scheduler.job_problem import asked_by
from ces_scheduler.offer import HeldCard, Offer, cards_held_by, cards_of_plan, holder_of


def cards_for(
    record: JobRecord, tasks: Sequence[Task], assignments: Mapping[str, str], offer: Offer
) -> dict[str, list[str]]:
    """Task -> ids of its cards, of the tasks that ask for some: first those that its job has on the node, with which it
    is to go on at another size, so that it never holds more than it has to. Fewer than asked for where the manager
    counts more than it names; it refuses the plan then."""
    asking = [task for task in tasks if task.gpu and offer.nodes[assignments[task.name]].cards]
    if not asking:
        return {}
    own, holder = cards_held_by(record), holder_of(record)
    taken = frozenset[HeldCard]().union(*(cards for name, cards in offer.cards.items() if name != holder))
    left = {}
    for node in {assignments[task.name] for task in asking}:
        free = [(node, card.id) for card in offer.nodes[node].cards if (node, card.id) not in taken]
        left[node] = [card for _, card in sorted(free, key=lambda each: each not in own)]
    found = {}
    for task in asking:
        node = assignments[task.name]
        found[task.name], left[node] = left[node][: task.gpu], left[node][task.gpu :]
    return found


def with_cards(starts: Mapping[str, Decision], started: Mapping[str, JobRecord], offer: Offer) -> dict[str, Decision]:
    """The decisions, each with cards that none before it has. ``started``: the records of their jobs."""
    found = {}
    for name, decision in starts.items():
        cards = cards_for(started[name], asked_by(started[name]), decision.assignments, offer)
        if cards:
            offer = replace(offer, cards=offer.cards | {name: cards_of_plan(cards, decision.assignments)})
        found[name] = replace(decision, cards=cards) if cards else decision
    return found
