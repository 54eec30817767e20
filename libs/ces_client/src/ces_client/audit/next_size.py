"""What the size that a job goes to holds beside what the job still has. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from ces_client.audit.cards import numbers
from ces_client.audit.inventory import NOTHING, Amounts, Hop
from ces_client.audit.lifecycle import Allocation, Flow, Job, NextSize


def beyond(
    job: Job, coming: NextSize, allocations: Mapping[str, Allocation], amounts: Callable[[Allocation], Amounts]
) -> tuple[dict[str, Amounts], dict[Hop, int]]:
    """By node and by link, what the next size needs more than the job's live allocations and flows hold.
    ``allocations``: all, by id; ``amounts``: what one holds when it is in use."""
    held = _by_node((each.node, each.held) for each in (allocations[name] for name in job.live))
    asked = _by_node((each.node, amounts(each)) for each in coming.allocations)
    more = asked - held
    nodes = {node: (more[node, 0], more[node, 1], more[node, 2]) for node, _ in more}
    live = [allocations[name] for name in job.live]
    told = all(each.cards is not None for each in live)
    has, both = numbers(live), numbers([*live, *coming.allocations] if told else ())
    for node in both.keys() & {each.node for each in coming.allocations}:  # those that it gets, not just as many
        cpu, memory, _ = nodes.get(node, NOTHING)
        nodes[node] = (cpu, memory, both[node] - has.get(node, 0))
    return nodes, dict(_by_link(coming.flows.values()) - _by_link(job.flows.values()))


def _by_node(held: Iterable[tuple[str, Amounts]]) -> Counter[tuple[str, int]]:
    found = Counter[tuple[str, int]]()
    for node, amounts in held:
        found.update({(node, i): amount for i, amount in enumerate(amounts)})
    return found


def _by_link(flows: Iterable[Flow]) -> Counter[Hop]:
    found = Counter[Hop]()
    for flow in flows:
        for hop in pairwise(flow["path"]):
            found[hop] += flow["rate"]
    return found
