"""Learned weights: a small JSON file of named numbers, with a card that says how they were trained."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ces_core.model.errors import PolicyError
from ces_core.model.problem import FloatArray

NUMBERS = (
    "imbalance",  # by how much the nodes' imbalance grows
    "rate",  # satisfaction that flows to placed tasks lose
    "hops",  # of the paths of flows to placed tasks
    "out-pressure",  # what flows to open tasks ask, as a share of the free bandwidth of the node's outgoing links
    "in-pressure",  # the same of flows from open tasks and of its incoming links
    "may-join",  # flows to open tasks that could come to the same node
    "joined",  # flows to placed tasks that are on the same node
    "closeness",  # of other candidates with room, times the flows to open tasks
    "room",  # for how many of the open tasks
    "busy",  # use of the node above the mean
)
"""The features that greedy construction weighs at every node."""
TRAITS = ("room", "calm", "width", "near", "farther")
"""The traits by which nodes of a large cluster are chosen."""
HABITS = (
    "links",  # what a policy thinks of the links' spread, beside the nodes' balance, which counts as it is
    "lost",  # of satisfaction that flows lose
    "hops",  # of the paths of flows, in ``ruin_and_recreate.UNIT``
    "open",  # of flows to tasks that are still to be put back, as if those came back to where they were
    "noise",  # of its draws, in this unit
    "heat",  # how much worse a plan may become, in the same
    "breadth",  # how many nodes it draws among
    "more",  # chance that one more task is taken off
    "neighbour",  # and that this is one that talks to those before it
)
"""The weights of ruin and recreate (:mod:`ces_core.learned.start.ruin_and_recreate`)."""
PARTS = {"dive": NUMBERS, "centre": TRAITS, "member": TRAITS, "remake": HABITS}
SHIPPED = Path(__file__).with_name("default.json")


@dataclass(frozen=True)
class Weights:
    """The learned weights, each array in the order of its names. ``dive``: of :data:`NUMBERS`, for greedy construction.
    ``centre`` and ``member``: exponents of :data:`TRAITS`, for the centres of regions and their other nodes.
    ``remake``: :data:`HABITS`, for ruin and recreate. ``card``: how they were trained; empty if the file has none."""

    dive: FloatArray
    centre: FloatArray
    member: FloatArray
    remake: FloatArray
    card: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        named = {part: dict(zip(names, getattr(self, part).tolist(), strict=True)) for part, names in PARTS.items()}
        return {"card": dict(self.card)} | named


def load_weights(path: Path) -> Weights:
    """The weights in a file. Raises PolicyError, saying what is wrong with it."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise PolicyError(f"{path}: is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise PolicyError(f"{path}: holds no weights of proposals")
    card = data.get("card")
    dive, centre, member, remake = (_part(path, part, data.get(part), names) for part, names in PARTS.items())
    return Weights(dive, centre, member, remake, card if isinstance(card, dict) else {})


@cache
def shipped() -> Weights:
    """The weights that come with the core."""
    return load_weights(SHIPPED)


def _part(path: Path, part: str, found: Any, names: Sequence[str]) -> FloatArray:
    if not isinstance(found, dict) or sorted(found) != sorted(names):
        raise PolicyError(f"{path}: {part} must have the numbers {', '.join(names)}; train the proposals again")
    values = [found[name] for name in names]
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        raise PolicyError(f"{path}: {part} holds something else than finite numbers")
    return np.array(values, dtype=np.float64)
