"""What each policy thinks of a node for a task: whole numbers, 0 to 100, the most is best; -1 where it does not fit.

FGD and those it was compared with (Weng et al., USENIX ATC 2023), with the weights of its public simulator.
"""

from __future__ import annotations

import math
from enum import IntEnum

from ces_core.compiled.jit import compiled, inner
from ces_core.gpus.fragmentation import Typical, fragments
from ces_core.gpus.model import CARD, Asked, Fleet, Integers

LARGEST_CPU = 128_000
"""Milli of the largest node, by which CPU is measured."""
LARGEST_GPU = 8 * CARD
BEST = 100


class Policy(IntEnum):
    """By what a node is chosen."""

    RANDOM = 0
    DOT_PROD = 1
    GPU_CLUSTERING = 2
    GPU_PACKING = 3
    BEST_FIT = 4
    FGD = 5

    @property
    def told(self) -> str:
        return self.name.lower().replace("_", "-")


POLICIES = {policy.told: policy for policy in Policy}
DOT_PROD, GPU_CLUSTERING, GPU_PACKING = int(Policy.DOT_PROD), int(Policy.GPU_CLUSTERING), int(Policy.GPU_PACKING)
BEST_FIT, FGD = int(Policy.BEST_FIT), int(Policy.FGD)


@inner
def card_fits(fleet: Fleet, node: int, card: int, task: Asked) -> bool:
    if card >= fleet.cards[node] or fleet.milli[node, card] < task.milli:
        return False
    return bool(fleet.card_memory[node, card] >= task.card_memory)


@inner
def fits(fleet: Fleet, node: int, task: Asked) -> bool:
    if fleet.cpu[node] < task.cpu or fleet.memory[node] < task.memory:
        return False
    if task.gpus == 0:
        return True
    if task.models != 0 and not task.models & fleet.model[node]:
        return False
    there = 0
    for card in range(fleet.cards[node]):
        there += card_fits(fleet, node, card, task)
    return there >= task.gpus


@inner
def free_milli(fleet: Fleet, node: int) -> int:
    total = 0
    for card in range(fleet.cards[node]):
        total += fleet.milli[node, card]
    return total


@inner
def tightest_card(fleet: Fleet, node: int, task: Asked) -> int:
    """The first of those with the least left that is enough; -1 where there is none."""
    found = -1
    for card in range(fleet.cards[node]):
        if card_fits(fleet, node, card, task) and (found < 0 or fleet.milli[node, card] < fleet.milli[node, found]):
            found = card
    return found


@inner
def dot_prod(fleet: Fleet, node: int, task: Asked) -> int:
    """Low where much is free of what the task needs most (Tetris turned round: it packs)."""
    cpu = (fleet.cpu[node] / LARGEST_CPU) * (task.cpu / LARGEST_CPU)
    gpu = (free_milli(fleet, node) / LARGEST_GPU) * (task.gpus * task.milli / LARGEST_GPU)
    return int(BEST * (1 - (cpu + gpu) / 2))


@inner
def gpu_clustering(fleet: Fleet, node: int, task: Asked) -> int:
    """Nodes with tasks of the same kind only, then with others besides, then empty ones, then those of other kinds."""
    if task.gpus == 0:
        return 0
    kinds = 0
    for kind in range(fleet.kinds.shape[1]):
        kinds += fleet.kinds[node, kind] > 0
    same = fleet.kinds[node, task.gpus if task.milli == CARD else 0] > 0
    base = (75 if kinds == 1 else 50) if same else (25 if kinds == 0 else 0)
    return base + 25 * (LARGEST_GPU - free_milli(fleet, node)) // LARGEST_GPU


@inner
def gpu_packing(fleet: Fleet, node: int, task: Asked) -> int:
    """Cards in use first, then free cards of nodes in use, then free nodes."""
    if task.gpus == 0:
        return 0
    whole = 0
    for card in range(fleet.cards[node]):
        whole += int(fleet.milli[node, card] == CARD)
    if whole == fleet.cards[node]:
        return max(33 - whole, whole)
    if task.milli == CARD:
        return max(50 - task.gpus, 33)
    left = fleet.milli[node, tightest_card(fleet, node, task)]
    if left == CARD:
        return 49
    return max(100 - int(left) * 100 // CARD // 10, 50)


@inner
def best_fit(fleet: Fleet, node: int, task: Asked) -> int:
    """High where little CPU and GPU are left, both counting alike."""
    cpu = (fleet.cpu[node] - task.cpu) / LARGEST_CPU * 0.5
    gpu = (free_milli(fleet, node) - task.gpus * task.milli) / LARGEST_GPU * 0.5
    return int((1 - (cpu + gpu)) * BEST)


@inner
def squeezed(less: int, total: int) -> int:
    """From milli of fragments that disappear, times ``total``, to 0..100; 50: none do."""
    return int(BEST / (1 + math.exp(-less / (CARD * total))))


@inner
def fgd(fleet: Fleet, node: int, task: Asked, usual: Typical) -> tuple[int, int]:
    """Score and card (-1 but for a share): high where placing the task makes least fragments."""
    model, left, cpu = fleet.model[node], fleet.milli[node].copy(), fleet.cpu[node] - task.cpu
    before = fragments(fleet.cpu[node], left, model, usual)
    if task.gpus != 1 or task.milli == CARD:
        more = task.gpus
        for card in range(len(left)):
            if more > 0 and card_fits(fleet, node, card, task):
                left[card] -= task.milli
                more -= 1
        return squeezed(before - fragments(cpu, left, model, usual), usual.total), -1
    score, best = -1, -1
    for card in range(len(left)):
        if card_fits(fleet, node, card, task):
            left[card] -= task.milli
            found = squeezed(before - fragments(cpu, left, model, usual), usual.total)
            left[card] += task.milli
            if found > score:
                score, best = found, card
    return score, best


@compiled
def _rate(policy: int, fleet: Fleet, usual: Typical, task: Asked, nodes: Integers, scores: Integers) -> None:
    for node in nodes:
        if not fits(fleet, node, task):
            scores[node] = -1
        elif policy == DOT_PROD:
            scores[node] = dot_prod(fleet, node, task)
        elif policy == GPU_CLUSTERING:
            scores[node] = gpu_clustering(fleet, node, task)
        elif policy == GPU_PACKING:
            scores[node] = gpu_packing(fleet, node, task)
        elif policy == BEST_FIT:
            scores[node] = best_fit(fleet, node, task)
        elif policy == FGD:
            scores[node] = fgd(fleet, node, task, usual)[0]
        else:
            scores[node] = 0


@compiled
def _share_of(policy: int, fleet: Fleet, usual: Typical, task: Asked, node: int) -> int:
    if policy == FGD:
        return fgd(fleet, node, task, usual)[1]
    return tightest_card(fleet, node, task)


def rate(policy: Policy, fleet: Fleet, usual: Typical, task: Asked, nodes: Integers, scores: Integers) -> None:
    """Writes the scores of these nodes, by their places. ``scores``: shape (all nodes,)."""
    _rate(int(policy), fleet, usual, task, nodes, scores)


def share_of(policy: Policy, fleet: Fleet, usual: Typical, task: Asked, node: int) -> int:
    """The card of which a task gets a share on a node where it fits, for all policies but RANDOM, which draws it."""
    return int(_share_of(int(policy), fleet, usual, task, node))
