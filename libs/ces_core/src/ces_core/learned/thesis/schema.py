"""The thesis's state (4.2.1.1, eq. 4-21) and its sizes. Policies carry its hash and fit no other.

The thesis gives the parts and the total of 3|P| + 3|N| + 5 numbers. The sizes are those of its simulation (4.3.2.1);
the number of bandwidth levels, which it leaves open, is that of ``random``.
"""

from __future__ import annotations

import hashlib
import json

NODES, TASKS, LEVELS = 10, 8, 5
"""The most nodes and tasks a policy can handle, and the number of rates a flow may get (L of eq. 4-24)."""
FLOWS = TASKS * (TASKS - 1) // 2
"""Counts of flows are relative to this; there may be more."""
ACTIONS = max(NODES, LEVELS)

NODE_FEATURES = ("cpu-free", "memory-free", "mean-free-bandwidth-of-links")
TASK_FEATURES = ("cpu", "memory", "mean-bandwidth-of-flows-out")
PROGRESS_FEATURES = ("phase", "index", "tasks", "flows", "share-mapped")
WIDTH = len(NODE_FEATURES) * NODES + len(TASK_FEATURES) * TASKS + len(PROGRESS_FEATURES)
LIMIT = 4.0
"""Numbers are clipped to this. Amounts are relative to the largest capacity, so few come near it."""
VERSION = 1
"""Raised when a feature of the same name is computed differently."""


def schema_hash() -> str:
    """The hash that a policy must carry to be used with this state."""
    text = json.dumps([VERSION, NODES, TASKS, LEVELS, LIMIT, NODE_FEATURES, TASK_FEATURES, PROGRESS_FEATURES])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
