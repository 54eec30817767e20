"""The judge of placements on cards: it shares nothing with what places but the nodes and tasks themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ces_core.gpus.model import CARD, GpuNode, GpuTask


@dataclass(frozen=True)
class Placed:
    """A task on a node, by its place in the list of nodes, with its cards there."""

    task: GpuTask
    node: int
    cards: tuple[int, ...] = ()


def faults(nodes: Sequence[GpuNode], placed: Iterable[Placed]) -> list[str]:
    """What is wrong with all of them together, in words; nothing where all is well. Every task counts once."""
    found: list[str] = []
    cpu, memory = [0] * len(nodes), [0] * len(nodes)
    milli, card_memory = ([[0] * node.cards for node in nodes] for _ in range(2))
    for each in placed:
        task = each.task
        if not 0 <= each.node < len(nodes):
            found.append(f"{task.name} is on node {each.node} of {len(nodes)}")
            continue
        node = nodes[each.node]
        if len(set(each.cards)) != len(each.cards) or len(each.cards) != task.gpus:
            found.append(f"{task.name} has cards {each.cards} of {node.name} and asks for {task.gpus}")
        if task.gpus and task.models and node.model not in task.models:
            found.append(f"{task.name} is on {node.model} of {node.name} and asks for {', '.join(sorted(task.models))}")
        cpu[each.node] += task.cpu
        memory[each.node] += task.memory
        for card in each.cards:
            if not 0 <= card < node.cards:
                found.append(f"{task.name} has card {card} of {node.name}, which has {node.cards}")
                continue
            milli[each.node][card] += task.milli
            card_memory[each.node][card] += task.card_memory
    for place, node in enumerate(nodes):
        if cpu[place] > node.cpu:
            found.append(f"{node.name}: {cpu[place]} milli of {node.cpu} CPU")
        if memory[place] > node.memory:
            found.append(f"{node.name}: {memory[place]} MiB of {node.memory} memory")
        for card in range(node.cards):
            if milli[place][card] > CARD:
                found.append(f"{node.name}, card {card}: {milli[place][card]} milli")
            if card_memory[place][card] > node.card_memory:
                found.append(f"{node.name}, card {card}: {card_memory[place][card]} MiB of {node.card_memory}")
    return found
