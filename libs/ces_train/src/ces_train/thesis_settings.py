"""What a training of the thesis's schedulers goes by, and the presets.

The thesis gives ``clip``, ``trace``, ``heuristic`` and the ideal utilisation; all other numbers are CES's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ces_core.generate import REGIMES
from ces_core.policy.thesis_schema import NODES, TASKS


@dataclass(frozen=True)
class ThesisSettings:
    """Pairs are (at the beginning, at the end) and change linearly with the share of ``updates`` that is done."""

    preset: str
    bandwidth: bool = True
    """Whether the policy gives flows their levels, or rates follow from importance (``ppo-balance``)."""
    odds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(REGIMES, 1.0))
    """Regime -> how often it is drawn, in the end; the curriculum begins with the regime of most bandwidth."""
    tasks: tuple[int, int] = (3, TASKS)
    nodes: tuple[int, int] = (NODES, NODES)
    updates: int = 700
    games: int = 2048
    """Problems of one update, each played once."""
    base_weight: float = 0.1
    """Of the base reward, in units of R_final."""
    heuristic_weights: tuple[float, ...] = (0.1, 0.1, 0.1, 0.1, 0.1)
    """eta 1..5 (eqs 4-30, 4-31): load, affinity, topology, importance, competition."""
    heuristic: tuple[float, float] = (0.8, 0.1)
    """lambda of eq. 4-25."""
    final_weights: tuple[float, float, float] = (0.5, 0.5, 0.02)
    """gamma 1..3 of R_final (eq. 4-32): 1 - L, D, average utilisation. A lost game earns none of it."""
    discount: float = 0.99
    trace: float = 0.95
    """lambda of the advantage estimate (eq. 4-34)."""
    clip: float = 0.2
    value_weight: float = 0.5
    entropy_weight: tuple[float, float] = (0.01, 0.0)
    temperature: tuple[float, float] = (1.5, 1.0)
    rate: tuple[float, float] = (2e-3, 1e-5)
    """Learning rate."""
    epochs: int = 4
    minibatch: int = 2048
    gradient: float = 0.5
    """The largest norm of a gradient."""
    width: int = 128
    curriculum: float = 0.2
    """The share of the updates in which task counts and scarcity rise to their full range."""
    evaluate_every: int = 50
    validation: int = 200
    """Instances of each regime that are evaluated on."""


THESIS = ThesisSettings("thesis")
BALANCE = replace(THESIS, preset="balance", bandwidth=False)
