"""Whether tasks can have the cards of a node that a plan gives them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ces_common.jobfile import Task
from ces_common.messages.cards import Card, Held, held_of, is_model
from ces_common.quantities import show_memory
from ces_common.resources import WHOLE

NOTHING: Held = (0, 0)


class Cards(Protocol):
    """``cards``: of a node, by id; ``taken``: what other jobs hold of some."""

    @property
    def cards(self) -> Mapping[str, Card]: ...

    @property
    def taken(self) -> Mapping[str, Held]: ...


def wrong_cards(name: str, tasks: Sequence[Task], given: Mapping[str, Sequence[str]], node: Cards) -> Iterator[str]:
    """Why tasks that a plan puts on node ``name`` cannot have the cards ``given`` to them."""
    held, holders = dict(node.taken), dict[str, str]()
    for task in tasks:
        ids = given.get(task.name, ())
        if len(ids) != (1 if task.gpu_share else task.gpu):
            asked = f"{task.gpu_share}m of a card" if task.gpu_share else f"{task.gpu} GPUs"
            yield f"{task.name} asks for {asked}, the plan names {len(ids)} cards for it"
        for each in ids:
            who = f"card {each} of node {name}, which the plan gives to {task.name},"
            if each not in node.cards:
                yield f"node {name} has no card {each}, which the plan gives to {task.name}"
                continue
            card, (share, memory) = node.cards[each], held.get(each, NOTHING)
            if not is_model(card, task.gpu_models):
                yield f"{who} is {card.model or 'of unknown model'}, and not {' or '.join(task.gpu_models)}"
            if task.gpu_share and card.shareable == "no":
                yield f"{who} is not shared"
            more = held_of(card, task.gpu_share, task.gpu_memory)
            if share + more[0] > WHOLE or memory + more[1] > card.memory:
                if each in holders and WHOLE in (share, more[0]):
                    yield f"the plan gives card {each} of node {name} to {holders[each]} and to {task.name}"
                elif WHOLE in (share, more[0]):
                    yield f"{who} is another job's"
                else:
                    left = f"{WHOLE - share}m and {show_memory(max(card.memory - memory, 0))}"
                    yield f"{who} has {left} left, which is less than {more[0]}m and {show_memory(more[1])}"
            held[each] = (share + more[0], memory + more[1])
            holders[each] = task.name
