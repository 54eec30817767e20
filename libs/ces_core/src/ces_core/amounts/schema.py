"""What a policy of amounts sees, and the order of what it answers. Policies carry the hash of this and fit no other.

The graph is TapFinger's: clusters, pending and running tasks, and a hub (arXiv 2302.00571). Beyond it, a cluster shows
its capacity and its rank, by which agents that share one network can tell who of them is to take a task, and a pending
task how long it has waited.
"""

from __future__ import annotations

import hashlib
import json

from ces_core.amounts.settings import AUDIO, IMAGE, LANGUAGE, SLOTS

KINDS = (IMAGE, LANGUAGE, AUDIO)
CLUSTER_FEATURES = ("cpus-free", "gpus-free", "queue", "cpus", "gpus", "rank")
PENDING_FEATURES = ("least-cpus", "least-gpus", "empty", "waited", *KINDS)
RUNNING_FEATURES = ("cpus", "gpus", "slots-run", *KINDS)
MOST = 16
"""CPUs or GPUs that one task may get at most."""
CELLS = (MOST + 1) ** 2
"""Amounts: CPUs * 17 + GPUs; 0 waits."""
AMOUNT_UNIT, TIME_UNIT, QUEUE_UNIT = 16.0, 10.0, 10.0
LIMIT = 5.0
"""Times and queues are clipped to this many units."""
INPUTS = ("clusters", "pending", "running", "seen", "usable", "most")
"""(B, A, cluster features); (B, A, SLOTS, pending features); (B, A, R, running features), all 0 for a place that is
free; (B, A, SLOTS, A) 1 where a cluster has that task pending; (B, A, SLOTS) 1 where the task may be placed now; (B,
A, 2) CPUs and GPUs that a task may get now."""
OUTPUTS = ("tasks", "amounts")
"""(B, A, SLOTS) and (B, A, SLOTS, CELLS) logits."""
VERSION = 1
"""Raised when a feature of the same name is computed differently."""


def schema_hash() -> str:
    """The hash that a policy must carry to be used with these features."""
    units = [AMOUNT_UNIT, TIME_UNIT, QUEUE_UNIT, LIMIT]
    names = [CLUSTER_FEATURES, PENDING_FEATURES, RUNNING_FEATURES, INPUTS, OUTPUTS]
    text = json.dumps([VERSION, SLOTS, MOST, units, names])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
