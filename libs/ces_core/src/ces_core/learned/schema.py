"""Names and scales of a policy's input features. A trained policy carries their hash and fits no other schema."""

from __future__ import annotations

import hashlib
import json

NODE_FEATURES: tuple[tuple[str, float], ...] = (
    # What placing the next task on the node costs at once, in units of the composite.
    ("imbalance-cost", 40.0),
    ("spread-cost", 80.0),
    ("rate-cost", 15.0),
    ("outlook-cost", 15.0),
    ("cost-above-least", 20.0),
    ("cost-with-next-above-least", 20.0),
    ("next-blocked", 1.0),
    # The node itself: CPU, then memory.
    ("cpu-share", 2.0),
    ("memory-share", 2.0),
    ("cpu-free-after", 2.0),
    ("memory-free-after", 2.0),
    ("cpu-above-mean", 4.0),
    ("memory-above-mean", 4.0),
    ("tasks-here", 2.0),
    # Towards neighbours that are placed.
    ("hops-to-neighbours", 0.5),
    ("talk-within", 1.0),
    ("least-slack", 1.0),
    ("least-spare", 1.0),
    # Room for neighbours that are not.
    ("talk-may-join", 1.0),
    ("all-may-join", 1.0),
    ("reach-mean", 1.0),
    ("reach-least", 1.0),
    ("reach-loss", 1.0),
    ("out-slack-minimums", 1.0),
    ("in-slack-minimums", 1.0),
    ("out-slack-maximums", 1.0),
    ("in-slack-maximums", 1.0),
    # Beside the others: the node's links among all, and what its use takes from tasks yet to come.
    ("out-room", 1.0),
    ("in-room", 1.0),
    ("tightest-task", 2.0),
    ("tasks-displaced", 1.0),
    ("next-joins", 1.0),
    # Where a quick rule that places all other tasks would end, each of them moved to where that helps.
    ("end-above-least", 25.0),
    ("end-blocked", 1.0),
    # How even the nodes could be in the end, whatever becomes of the flows.
    ("even-end-above-least", 50.0),
    ("even-end-whole-above-end", 25.0),
    ("even-end-blocked", 1.0),
    # The cheapest end known through the node: of both quick rules, and of all looks of the game so far.
    ("known-end-above-least", 25.0),
)
"""Per node, with the scale by which the value is multiplied before it is clipped to ``LIMIT``."""

CONTEXT_FEATURES: tuple[tuple[str, float], ...] = (
    ("tasks-left", 1.0),
    ("tasks", 0.1),
    ("flows-left", 1.0),
    ("flows-per-task", 0.5),
    ("nodes", 0.3),
    ("nodes-open", 1.0),
    ("cpu-demand", 1.0),
    ("memory-demand", 1.0),
    ("cpu-left", 1.0),
    ("memory-left", 1.0),
    ("talk-placed", 1.0),
    ("talk-open", 1.0),
    ("minimum-to-width", 1.0),
    ("maximum-to-width", 0.5),
    ("least-cost", 20.0),
    ("imbalance", 4.0),
    ("spread", 8.0),
    ("lost", 4.0),
    ("next-is-neighbour", 1.0),
)
"""Once per decision: the task, the job and the cluster."""

NODE = {name: column for column, (name, _) in enumerate(NODE_FEATURES)}
CONTEXT = {name: column for column, (name, _) in enumerate(CONTEXT_FEATURES)}
"""Where a named feature stands in what a policy observes."""

LIMIT = 4.0
VERSION = 4
"""Raised when a feature of the same name and scale is computed differently."""


def schema_hash() -> str:
    """The hash that a policy must carry to be used with these features."""
    text = json.dumps([VERSION, LIMIT, NODE_FEATURES, CONTEXT_FEATURES])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
