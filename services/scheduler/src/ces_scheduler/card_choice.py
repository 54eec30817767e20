"""Which cards the tasks of a job get on the nodes where a plan puts them, and how many tasks a node's cards hold. Pure.

The solver counts GPUs node by node, and does not know cards. Of whole ones any that are free are as good as others.
Where jobs have shares, it is told of each node only what its cards can hold of just this job: all its tasks that ask
for a share or a model ask alike, so that is a number of them. Cards are then chosen with each plan, so that of what is
kept or freed for a job each card is known; else when a plan is proposed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ces_common.jobfile import Task
from ces_common.messages.cards import Card, Held, held_of
from ces_common.messages.records import JobRecord
from ces_common.resources import WHOLE
from ces_core.model.cards import Cards
from ces_core.model.plan import Plan
from ces_core.model.problem import Cluster, Problem
from ces_core.model.reason import Reason
from ces_scheduler.card_cells import CardTable, particular
from ces_scheduler.card_value import LeftOver
from ces_scheduler.decision import Decision
from ces_scheduler.eligibility import suits
from ces_scheduler.job_problem import BESIDE, Refusals, asked_by
from ces_scheduler.offer import GPU, CardPlace, Offer, cards_held_by, cards_of_plan, holder_of

ROUNDING = 1e-6
OF_GPUS = frozenset({"gpu", f"gpu{BESIDE}"})
"""Why a node has no place for a task, where sums of GPUs are all that is known."""


def cards_for(
    record: JobRecord, tasks: Sequence[Task], assignments: Mapping[str, str], offer: Offer
) -> dict[str, list[str]]:
    """Task -> ids of its cards, of the tasks that ask for some: whole ones first of those that its job has on the node,
    with which it is to go on at another size, so that it never holds more than it has to; shares on the fullest card
    that still has room. Fewer than asked for where there is no room."""
    own = cards_held_by(record)
    taken = _taken(offer, holder_of(record))
    found: dict[str, list[str]] = {}
    for task in (task for task in tasks if task.gpus and offer.nodes[assignments[task.name]].cards):
        node = assignments[task.name]
        fitting = []
        for at, card in enumerate(offer.nodes[node].cards):
            left = _left(card, taken.get((node, card.id), (0, 0)))
            if suits(card, task) and _fits(card, task, left):
                fitting.append(((node, card.id) not in own, left, at, card))
        chosen = [each[3] for each in sorted(fitting, key=lambda each: each[:3])[: 1 if task.gpu_share else task.gpu]]
        for card in chosen:
            before, more = taken.get((node, card.id), (0, 0)), held_of(card, task.gpu_share, task.gpu_memory)
            taken[node, card.id] = (before[0] + more[0], before[1] + more[1])
        found[task.name] = [card.id for card in chosen]
    return found


def with_cards(
    starts: Mapping[str, Decision], started: Mapping[str, JobRecord], offer: Offer
) -> tuple[dict[str, Decision], dict[str, Reason]]:
    """The decisions, each with cards that none before it has; and the jobs for which they have left too few, which wait
    for another cycle, with the reason. ``started``: the records of their jobs."""
    found, dropped = {}, {}
    for name, decision in starts.items():
        tasks = asked_by(started[name])
        cards = decision.cards
        if not cards or not _free_still(cards, tasks, decision.assignments, offer):
            cards = cards_for(started[name], tasks, decision.assignments, offer)
        short = next((task for task in tasks if task.name in cards and len(cards[task.name]) < task.gpus), None)
        if short is not None:
            dropped[name] = _too_few(short, decision.assignments[short.name], len(cards[short.name]))
            continue
        if cards:
            held = cards_of_plan(cards, decision.assignments, tasks, offer.nodes)
            offer = replace(offer, cards=offer.cards | {name: held})
        found[name] = replace(decision, cards=cards) if cards else decision
    return found, dropped


def _free_still(
    cards: Mapping[str, Sequence[str]], tasks: Sequence[Task], assignments: Mapping[str, str], offer: Offer
) -> bool:
    """Whether the cards that a plan names have room beside what others have."""
    taken = _taken(offer)
    for place, (share, memory) in cards_of_plan(cards, assignments, tasks, offer.nodes).items():
        card = next((each for each in offer.nodes[place[0]].cards if each.id == place[1]), None)
        left = (0, 0) if card is None else _left(card, taken.get(place, (0, 0)))
        if share > left[0] or memory > left[1]:
            return False
    return True


def _too_few(task: Task, node: str, found: int) -> Reason:
    """Why a task does not start on the node for which it was meant."""
    if task.gpu_share:
        return Reason("gpu-share", proven=False, resource="gpu", where=f"no card of {node} has {task.gpu_share}m free")
    text = f"a task needs {_whole_ones(task)} on one node; {node} has {found} free"
    return Reason("gpu-model" if task.gpu_models else "gpu-share", proven=False, resource="gpu", where=text)


@dataclass(frozen=True, eq=False)
class CardRoom:
    """What the cards of an offer can hold. ``records``: of the jobs that ask, by id. ``cards``: of the clusters that
    are asked about, where these are known, whatever is used of them. ``weight``: see LeftOver."""

    offer: Offer
    records: Mapping[str, JobRecord]
    cards: Cards | None = None
    weight: float = 0.0

    def narrowed(self, job: str, problem: Problem) -> Problem:
        """The problem with as much of each node's GPUs free as its cards can hold of this job, and with what is left
        over of them counted; the same where it does not matter. On a cluster whose cards are not known, and that is
        freer than the offer, no more can be said than how much is free."""
        task = self._asking(job)
        if task is None:
            return problem
        cards = problem.cluster.cards
        if cards is not None:
            narrowed = self._table.narrowed(task, problem, cards)
            return self._left_over.valued(narrowed, asked_by(self.records[job]), cards)
        if not (particular(task) or self._shared):
            return problem
        cluster, used = problem.cluster, problem.cluster.node_used.copy()
        for name, node in self.offer.nodes.items():
            at = cluster.topology.node_index.get(name)
            if at is None or not node.cards:
                continue
            free = float(cluster.node_capacity[GPU, at] - used[GPU, at])
            lefts = [(card, _left(card, self._held.get((name, card.id), (0, 0)))) for card in node.cards]
            if free <= sum(left[0] for _, left in lefts) / WHOLE + ROUNDING:
                room = sum(_number(card, task, left) for card, left in lefts) * (task.gpus if task.gpu_share else 1.0)
                used[GPU, at] = cluster.node_capacity[GPU, at] - min(free, room)
        return replace(problem, cluster=cluster.with_used(used, cluster.link_used))

    def named(self, job: str, plan: Plan, cluster: Cluster) -> Plan | None:
        """The plan with the cards that its tasks get, where those of the cluster are known; None where it has too few
        of them free."""
        if cluster.cards is None or self._asking(job) is None:
            return plan
        return self._table.named(asked_by(self.records[job]), plan, cluster.cards)

    def said(self, job: str, reason: Reason) -> Reason:
        """The reason, in terms of cards where it is about GPUs and a share of one is asked for, or a model."""
        task = self._asking(job)
        if reason.resource != "gpu" or reason.permanent or task is None or not particular(task):
            return reason
        barred = self.offer.barred(task)
        code, free = self._free(
            task, [name for name, node in self.offer.nodes.items() if node.cpu and name not in barred]
        )
        what = f"{task.gpu_share}m of one card" if task.gpu_share else _whole_ones(task) + " on one node"
        what += f" of model {' or '.join(task.gpu_models)}" if task.gpu_share and task.gpu_models else ""
        what += f" with {task.gpu_memory / 2**30:g} GiB" if task.gpu_memory else ""
        return replace(reason, code=code, where=f"a task needs {what}; {free}")

    def explained(self, job: str, refused: Refusals) -> Refusals:
        """Why tasks go on no other node, in terms of cards where GPUs are the obstacle and sums of them do not say."""
        record, asking = self.records.get(job), self._asking(job)
        if record is None or asking is None or not (particular(asking) or self._shared):
            return refused
        tasks = {task.name: task for task in asked_by(record) if task.gpus}
        return {
            name: {
                node: self._on_node(tasks[name], node) if name in tasks and why in OF_GPUS else why
                for node, why in row.items()
            }
            for name, row in refused.items()
        }

    def _on_node(self, task: Task, node: str) -> str:
        code, free = self._free(task, [node])
        return f"{code}: {free}"

    def _free(self, task: Task, nodes: Sequence[str]) -> tuple[str, str]:
        """What lacks, and what is free of the cards of these nodes that the task may have."""
        code = "gpu-share" if task.gpu_share or not task.gpu_models else "gpu-model"
        lefts = {
            name: [
                (card, _left(card, self._held.get((name, card.id), (0, 0))))
                for card in self.offer.nodes[name].cards
                if suits(card, task)
            ]
            for name in nodes
        }
        cards = [each for of_node in lefts.values() for each in of_node]
        if not cards:
            return code, "no node that it may use now has such a card"
        free = sorted((left[0] for _, left in cards if left[0]), reverse=True)
        if not free:
            return code, f"all {len(cards)} cards are full" if len(cards) > 1 else "the card is full"
        listed = ", ".join(f"{free.count(left)} x {left}m" for left in sorted(set(free), reverse=True)[:3]) + " free"
        if not task.gpu_share:
            whole = max(sum(left[0] == WHOLE for _, left in of_node) for of_node in lefts.values())
            return code, f"{listed}, of whole cards {whole} on one node" if whole < task.gpu else listed
        if free[0] < task.gpu_share:
            return code, f"{listed}, none has {task.gpu_share}m"
        if any(_fits(card, task, left) for card, left in cards):
            return code, listed
        most = max(left[1] for _, left in cards if left[0] >= task.gpu_share)
        return (
            "gpu-memory",
            f"{listed}, but of memory those with {task.gpu_share}m have {max(most, 0) / 2**30:.3g} GiB at most",
        )

    @cached_property
    def _table(self) -> CardTable:
        assert self.cards is not None
        return CardTable(self.cards, self.offer.nodes)

    @cached_property
    def _left_over(self) -> LeftOver:
        running = [record for name in self.offer.cards if (record := self.offer.records.get(name)) is not None]
        known = {record.id: record for record in (*running, *self.records.values())}
        return LeftOver(self._table, [task for record in known.values() for task in record.tasks], self.weight)

    def _asking(self, job: str) -> Task | None:
        record = self.records.get(job)
        return None if record is None else next((task for task in asked_by(record) if task.gpus), None)

    @cached_property
    def _held(self) -> dict[CardPlace, Held]:
        return _taken(self.offer)

    @cached_property
    def _shared(self) -> bool:
        return any(share < WHOLE for share, _ in self._held.values())


def _whole_ones(task: Task) -> str:
    models = f" of model {' or '.join(task.gpu_models)}" if task.gpu_models else ""
    return f"{task.gpu} whole card{'s' * (task.gpu > 1)}{models}"


def _taken(offer: Offer, but: str = "") -> dict[CardPlace, Held]:
    """What is held of each card; by the job ``but`` does not count."""
    found: dict[CardPlace, Held] = {}
    for place, (share, memory) in _each(offer, but):
        before = found.get(place, (0, 0))
        found[place] = (before[0] + share, before[1] + memory)
    return found


def _each(offer: Offer, but: str) -> Iterator[tuple[CardPlace, Held]]:
    return (each for name, held in offer.cards.items() if name != but for each in held.items())


def _left(card: Card, held: Held) -> Held:
    return (WHOLE - held[0], card.memory - held[1]) if held[0] < WHOLE else (0, 0)


def _fits(card: Card, task: Task, left: Held) -> bool:
    more = held_of(card, task.gpu_share, task.gpu_memory)
    return more[0] <= left[0] and more[1] <= left[1]


def _number(card: Card, task: Task, left: Held) -> int:
    """How many such tasks the card has room for; whole, it is one GPU of the task's."""
    if not suits(card, task) or not _fits(card, task, left):
        return 0
    share, memory = held_of(card, task.gpu_share, task.gpu_memory)
    return min(left[0] // share, left[1] // memory if memory else WHOLE)
