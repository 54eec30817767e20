"""Decisions of a learned policy of amounts: its ONNX file (the extra ``policy``), and what its scores make agents
choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ces_core.amounts.choice import Choice, lost_conflicts
from ces_core.amounts.features import Numbers, Seen
from ces_core.amounts.schema import CELLS, INPUTS, MOST, OUTPUTS, schema_hash
from ces_core.amounts.state import State, World
from ces_core.compiled.jit import compiled
from ces_core.learned.policy import opened
from ces_core.model.errors import PolicyError
from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray

Ask = Callable[[Seen], tuple[Numbers, Callable[[IntArray], Numbers]]]
"""From what is seen of B worlds to logits (B, A, SLOTS) of tasks, and from the chosen slots (B, A) to those of amounts
(B, A, CELLS)."""


SHIPPED = {setting: Path(__file__).with_name(f"{setting}.onnx") for setting in ("hetero_6", "synthetic")}
"""Setting -> the policy that comes with the core."""


@dataclass(frozen=True)
class AmountsPolicy:
    """A policy from a file. ``card``: how it was trained."""

    version: str
    card: dict[str, Any]
    session: Any

    def __call__(self, seen: Seen) -> tuple[Numbers, Callable[[IntArray], Numbers]]:
        """As :data:`Ask`. Raises PolicyError for answers that are not finite or have another shape."""
        given = dict(zip(INPUTS, seen[: len(INPUTS)], strict=True))
        try:
            # A network without graph attention takes less than all.
            inputs = {each.name: given[each.name] for each in self.session.get_inputs()}
            tasks, amounts = self.session.run(list(OUTPUTS), inputs)
        except Exception as error:  # the runtime has many kinds, with no common parent
            raise PolicyError(f"policy {self.version} does not answer as a policy of amounts does: {error}") from error
        if tasks.shape != seen.usable.shape or amounts.shape != (*seen.usable.shape, CELLS):
            raise PolicyError(f"policy {self.version} answers in other shapes")
        if not (np.isfinite(tasks).all() and np.isfinite(amounts).all()):
            raise PolicyError(f"policy {self.version} answers with numbers that are not finite")
        return tasks, lambda chosen: np.take_along_axis(amounts, chosen[..., None, None], 2)[:, :, 0]


def load_amounts_policy(path: Path) -> AmountsPolicy:
    """The policy in ``path``. Raises PolicyError, saying what is wrong with the file and what to do."""
    return AmountsPolicy(*opened(path, schema_hash()))


def choose(
    ask: Ask, world: World, state: State, rows: IntArray, seen: Seen, choice: Choice, rng: np.random.Generator | None
) -> None:
    """Sets what the agents of the worlds ``rows`` (B,) choose, no task twice, by what is ``seen`` of them: the
    likeliest task and amounts, or drawn ones where ``rng`` is given."""
    tasks, amounts_of = ask(seen)
    chosen = likeliest_or_drawn(tasks, rng)
    odds = np.take_along_axis(_softmax(tasks), chosen[..., None], -1)[..., 0].astype(np.float64)
    acts = seen.usable.any(axis=-1)
    lost = np.zeros(chosen.shape, dtype=np.bool_)
    chance = np.zeros(chosen.shape) if rng is None else rng.random(chosen.shape)
    lose(world, state, rows, np.where(acts, chosen, -1), odds, chance, lost)
    amounts = likeliest_or_drawn(amounts_of(chosen), rng)
    choice.slot[rows] = np.where(acts & ~lost, chosen, -1)
    choice.cpus[rows], choice.gpus[rows] = np.divmod(amounts, MOST + 1)


def likeliest_or_drawn(logits: Numbers, rng: np.random.Generator | None) -> IntArray:
    """One of n for each of logits (..., n)."""
    scores = logits if rng is None else logits + rng.gumbel(size=logits.shape)
    found: IntArray = np.argmax(scores, axis=-1)
    return found


@compiled
def lose(
    world: World, state: State, rows: IntArray, chosen: IntArray, odds: FloatArray, chance: FloatArray, lost: BoolArray
) -> None:
    """Sets ``lost`` (B, A) in each of the worlds ``rows`` as :func:`ces_core.amounts.choice.lost_conflicts` does."""
    for b in range(len(rows)):
        lost_conflicts(world, state, rows[b], chosen[b], odds[b], chance[b], lost[b])


def _softmax(logits: Numbers) -> Numbers:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    found: Numbers = powers / powers.sum(axis=-1, keepdims=True)
    return found
