"""Which nodes may run a task, whether there is any such node, and whether a job's input data can be read, whatever is
free. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ces_common.jobfile import Flow, Task
from ces_common.messages.cards import Card, is_model
from ces_common.messages.confinement import REMEDY, keeps_secrets, why_no_secrets
from ces_common.messages.events import Reason
from ces_common.messages.records import NodeRecord
from ces_common.quantities import show_memory

SHOWN = 5  # values that a reason lists; the others are counted


def refusal(task: Task, node: NodeRecord) -> str | None:
    """Why a node may not run a task, whatever is free on it; None where it may."""
    if node.state != "ready":
        return "unreachable"
    if node.cordoned:
        return "cordoned"
    if node.reclaimed:
        return "reclaimed by its owner"
    if task.arch is not None and task.arch != node.arch:
        return f"arch is {node.arch or 'unknown'}, not {task.arch}"
    for key, value in task.labels.items():
        if node.labels.get(key) != value:
            return f"label {key} is {node.labels.get(key, 'absent')}, not {value}"
    if task.secrets and not keeps_secrets(node.confinement):
        return why_no_secrets(node.confinement)
    return _unmeasured(task, node) or _lacking_cards(task, node)


def kind_of(task: Task) -> tuple[object, ...]:
    """All of a task that ``refusal`` looks at."""
    cards = (bool(task.gpu_share), task.gpu_memory, *sorted(set(task.gpu_models)))
    return task.arch, bool(task.secrets), frozenset(task.labels.items()), cards, _class_of(task)


def suits(card: Card, task: Task) -> bool:
    """Whether the task may have it, or its share of it, were it free."""
    return is_model(card, task.gpu_models) and not (
        task.gpu_share and (card.shareable == "no" or task.gpu_memory > card.memory)
    )


def _unmeasured(task: Task, node: NodeRecord) -> str | None:
    """No speed is guessed."""
    asked = _class_of(task)
    return None if asked is None or asked in node.speeds else f"was not measured for {asked}"


def _lacking_cards(task: Task, node: NodeRecord) -> str | None:
    if not (task.gpu_share or task.gpu_models) or any(suits(card, task) for card in node.cards):
        return None
    of_model = [card for card in node.cards if is_model(card, task.gpu_models)]
    if task.gpu_models and not of_model:
        return f"has no card of model {' or '.join(task.gpu_models)}"
    shared = [card for card in of_model if card.shareable != "no"]
    if not shared:
        return "shares no card between jobs" if of_model else "has no card"
    most = max(card.memory for card in shared)
    return f"its cards have {show_memory(most)} at most, not {show_memory(task.gpu_memory)}"


def filters_of(nodes: Mapping[str, NodeRecord]) -> dict[str, tuple[object, ...]]:
    """By node, everything that ``refusal`` and ``lacking_data`` look at."""
    return {
        name: (
            *(node.state, node.cordoned, node.reclaimed, node.arch, node.labels, node.datasets),
            keeps_secrets(node.confinement),
            *((node.profile.position, node.profile.coverage) if node.profile is not None else ()),
            *sorted(node.speeds),
            *((card.id, card.model, card.memory, card.shareable) for card in node.cards),
        )
        for name, node in nodes.items()
    }


def lacking_data(flows: Sequence[Flow], nodes: Mapping[str, NodeRecord]) -> Reason | None:
    """Why a job cannot have the data that it reads, wherever its tasks are; None where it can."""
    for flow in flows:
        name = flow.data_node
        if name is None:
            continue
        node = nodes.get(name)
        why = _lacking(flow, node)
        if why is not None:
            away = node is not None and node.state != "ready"  # it may come back by itself
            text = f"node {name}, where data of {flow.dst} lies, {why}"
            return Reason(code="no-data", text=text, where=name, forever=not away)
    return None


def _lacking(flow: Flow, node: NodeRecord | None) -> str | None:
    if node is None:
        return "has not joined"
    if node.state != "ready":
        return f"is {node.state}"
    absent = [dataset for dataset in flow.datasets if dataset not in node.datasets]
    if absent:
        return f"offers no dataset {absent[0]}"
    return None if node.datasets else "offers no data"


def unmet_constraints(tasks: Sequence[Task], nodes: Mapping[str, NodeRecord]) -> Reason | None:
    """Every constraint of the tasks that no node meets, with what there is instead; None where each task has a node."""
    workers = [node for node in nodes.values() if node.cpu]  # the others are switches
    if not workers:
        return None
    asked = {kind_of(task): task for task in reversed(tasks)}
    unmet = {task.rank: said for task in asked.values() if (said := _unmet(task, workers))}
    if not unmet:
        return None
    first = tasks[min(unmet)]
    sentences = dict.fromkeys(sentence for rank in sorted(unmet) for sentence in unmet[rank])
    text = f"task {first.name} is allowed on no node: {'; '.join(sentences)}"
    of_cards = _unmet_cards(first, workers)
    code = of_cards[0] if of_cards is not None and list(sentences) == [of_cards[1]] else "no-allowed-node"
    return Reason(code=code, text=text, where=first.name, forever=True)


def _unmet(task: Task, workers: Sequence[NodeRecord]) -> list[str]:
    if any(_meets(task, node) for node in workers):
        return []
    said = []
    if task.arch is not None and all(node.arch != task.arch for node in workers):
        said.append(f"no node is {task.arch} ({_present(node.arch for node in workers)})")
    for key, value in task.labels.items():
        if all(node.labels.get(key) != value for node in workers):
            there = _present(node.labels[key] for node in workers if key in node.labels)
            said.append(f"no node has label {key}={value} ({there})")
    if task.secrets and not any(keeps_secrets(node.confinement) for node in workers):
        said.append(f"it asks for secrets, and no node gives workers a user of their own: {REMEDY}")
    if all(_unmeasured(task, node) for node in workers):
        said.append(f"no node was measured for {_class_of(task)} (ces node measure does it)")
    if of_cards := _unmet_cards(task, workers):
        said.append(of_cards[1])
    if said:
        return said
    asked = [f"arch {task.arch}"] if task.arch is not None else []
    asked += [f"label {key}={value}" for key, value in task.labels.items()]
    asked += ["a user of its own for each worker, as secrets need"] if task.secrets else []
    asked += [f"a measured speed for {_class_of(task)}"] if _class_of(task) else []
    asked += [_card_asked(task)] if task.gpu_share or task.gpu_models else []
    return [f"no single node has {' and '.join(asked)}"]


def _unmet_cards(task: Task, workers: Sequence[NodeRecord]) -> tuple[str, str] | None:
    """The code and the sentence where no node has such a card."""
    if not all(_lacking_cards(task, node) for node in workers):
        return None
    cards = [card for node in workers for card in node.cards]
    shared = [card for card in cards if is_model(card, task.gpu_models) and card.shareable != "no"]
    if task.gpu_share and shared:
        most = show_memory(max(card.memory for card in shared))
        return "gpu-memory", f"no node has {_card_asked(task)} (the largest has {most})"
    known = not task.gpu_models or any(is_model(card, task.gpu_models) for card in cards)
    return (
        "gpu-share" if known else "gpu-model",
        f"no node has {_card_asked(task)} ({_present(card.model for card in cards)})",
    )


def _meets(task: Task, node: NodeRecord) -> bool:
    return (
        task.arch in (None, node.arch)
        and all(node.labels.get(key) == value for key, value in task.labels.items())
        and (not task.secrets or keeps_secrets(node.confinement))
        and _unmeasured(task, node) is None
        and _lacking_cards(task, node) is None
    )


def _class_of(task: Task) -> str | None:
    return None if task.work is None else task.work.work_class


def _card_asked(task: Task) -> str:
    what = "a card that jobs share" if task.gpu_share else "a card"
    what += f" of model {' or '.join(task.gpu_models)}" if task.gpu_models else ""
    return what + (f" with {show_memory(task.gpu_memory)}" if task.gpu_memory else "")


def _present(values: Iterable[str]) -> str:
    found = sorted({value for value in values if value})
    if not found:
        return "no node says any"
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{', '.join(found[:SHOWN])}{more} {'exists' if len(found) == 1 else 'exist'}"
