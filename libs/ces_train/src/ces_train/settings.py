"""What a training run goes by, and the preset. The thesis leaves most of these numbers open."""

from __future__ import annotations

from dataclasses import dataclass, field

from ces_core.generate import REGIMES


@dataclass(frozen=True)
class Teaching:
    """What the policy is taught before it plays for reward; see :mod:`ces_train.teaching`."""

    rounds: int = 0
    """So many of the run's updates teach."""
    instances: int = 384
    """Games of a round, each of a problem of its own."""
    heats: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    """Temperatures that the games are played at."""
    limit: int = 10_000
    """Partial placements that the teacher looks at for a node: seldom all are needed. With a tenth of that the first
    decisions of jobs of eight tasks are misjudged by as much as the policy is wrong."""
    cut: float = 0.1
    """Regrets, in units of the composite, count as at most so much; so does a dead end."""
    unit: tuple[float, float] = (0.004, 0.0015)
    """The regret that a score of 1 stands for, in the first and the last round: fine differences are learned last."""
    steps: int = 250
    """Steps of gradient descent in a round, over all that was judged so far."""
    batch: int = 512
    rate: tuple[float, float] = (1.5e-3, 2e-5)
    """Learning rate in the first and the last round."""
    gradient: float = 1.0
    """The largest norm of a gradient."""
    threads: int = 2


@dataclass(frozen=True)
class Settings:
    """Pairs are (at the beginning, at the end) and change linearly with the share of ``updates`` that is done, teaching
    left out."""

    preset: str
    odds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(REGIMES, 1.0))
    """Regime -> how often it is drawn, in the end; the curriculum begins with the regime of most bandwidth."""
    tasks: tuple[int, int] = (3, 8)
    nodes: tuple[int, int] = (10, 10)
    teaching: Teaching = Teaching()
    updates: int = 1000
    """Those that teach included."""
    instances: int = 64
    """Problems of one update."""
    group: int = 32
    """Games of each problem."""
    spread_floor: float = 0.004
    """A group's deviation counts as at least so much: where all games end alike, differences are noise."""
    loss_below_worst: float = 0.1
    """How far below the worst of its group a lost game counts, in units of the composite."""
    discount: float = 1.0
    trace: float = 0.95
    """lambda of the advantage estimate (eq. 4-34)."""
    clip: float = 0.2
    value_weight: float = 0.5
    entropy: tuple[float, float] = (0.5, 0.1)
    """What a decision's entropy is held at, in nats; the weight of the entropy follows. Without that, policies become
    sure of themselves within minutes, and drawing many plans finds nothing new."""
    entropy_weight: tuple[float, float, float] = (0.3, 1e-3, 5.0)
    """What that weight begins with, its least and its most."""
    entropy_step: float = 1.1
    """The factor by which it follows, from update to update."""
    temperature: tuple[float, float] = (1.2, 1.0)
    rate: tuple[float, float] = (6e-4, 2e-5)
    """Learning rate."""
    epochs: int = 3
    minibatch: int = 2816
    gradient: float = 0.5
    """The largest norm of a gradient."""
    width: int = 64
    curriculum: float = 0.05
    """The share of the updates in which task counts and scarcity rise to their full range."""
    evaluate_every: int = 20
    validation: int = 200
    """Instances of each regime that are evaluated on."""


def between(pair: tuple[float, float], done: float) -> float:
    """What a pair of :class:`Settings` has come to once the share ``done`` lies behind."""
    return pair[0] + (pair[1] - pair[0]) * min(max(done, 0.0), 1.0)


GENERAL = Settings(
    "general",
    odds={"thesis": 3.0, "tight": 1.0, "scarce": 1.0},  # where bandwidth is plenty, regrets are small and teach little
    teaching=Teaching(rounds=100),
    updates=100,
    spread_floor=0.02,
    entropy=(0.7, 0.6),
    entropy_weight=(0.05, 1e-3, 0.5),
    temperature=(1.0, 1.0),
    rate=(1e-4, 1e-5),
    curriculum=0.0,
)
"""Taught only: updates after that, which play for reward, have not made it better so far."""
