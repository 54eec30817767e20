"""A policy of the thesis's kind from its ONNX file (the extra ``policy``): it sees the state of
:mod:`ces_core.learned.thesis.state` and scores nodes and, where it has that branch, bandwidth levels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.learned.policy import Scores, opened
from ces_core.learned.thesis.schema import LEVELS, NODES, WIDTH, schema_hash
from ces_core.model.errors import PolicyError

INPUT = "state"
MAPPING, BANDWIDTH = "mapping", "bandwidth"
"""The heads (eqs 4-27 and 4-28), as logits; a policy of mapping alone lacks the second."""
SIZES = {MAPPING: NODES, BANDWIDTH: LEVELS}
SHIPPED, SHIPPED_BALANCE = (Path(__file__).with_name(f"{name}.onnx") for name in ("thesis", "balance"))
"""The policies that come with the core."""


@dataclass(frozen=True)
class ThesisPolicy:
    """Scores actions; the higher, the better. ``card``: how the policy was trained."""

    version: str
    card: dict[str, Any]
    session: Any

    def scores(self, head: str, states: NDArray[np.float32]) -> Scores:
        """(B, ``SIZES[head]``) from states (B, WIDTH). Raises PolicyError for numbers that are not finite, in or out,
        and for a head that the policy lacks."""
        if not np.isfinite(states).all():
            raise PolicyError("a policy is asked with finite numbers only")
        try:
            found: Scores = self.session.run([head], {INPUT: states})[0]
        except Exception as error:  # the runtime has many kinds, with no common parent
            raise PolicyError(f"policy {self.version} does not answer as a policy does: {error}") from error
        if found.shape != (len(states), SIZES[head]) or not np.isfinite(found).all():
            raise PolicyError(f"policy {self.version} answers with other than finite scores, one per action")
        return found


def load_thesis_policy(path: Path, *heads: str) -> ThesisPolicy:
    """The policy in ``path``, which must have these heads. Raises PolicyError, saying what is wrong with the file."""
    policy = ThesisPolicy(*opened(path, schema_hash()))
    for head in heads:
        try:
            policy.scores(head, np.zeros((1, WIDTH), np.float32))
        except PolicyError as error:
            raise PolicyError(f"{path}: {error}") from error
    return policy
