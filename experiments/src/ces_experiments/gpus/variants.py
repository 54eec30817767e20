"""What learns to send tasks to clusters, and how it differs from the EADE-DDPG paper's own: pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SLOTS = 40
"""Episodes side by side where there are pools: a batch is learned after each of their steps."""
PAPER: Mapping[str, Any] = {"attention": "literal", "sees": "sums", "masked": False, "earns": "thought"}
OURS: Mapping[str, Any] = {"attention": "tokens", "sees": "hosts", "masked": True}
COUNT: Mapping[str, Any] = {**OURS, "earns": "count"}


@dataclass(frozen=True)
class Variant:
    """An algorithm with its settings, on an environment with its settings. ``advised``: it begins with what imitation
    of the environment's adviser has learned."""

    algorithm: str = "eade-ddpg"
    settings: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, Any] = field(default_factory=dict)
    advised: bool = False

    @property
    def scenario(self) -> str:
        return str(self.env.get("scenario", "D1"))

    def settings_for(self, episodes: int) -> dict[str, Any]:
        """The variant with a run of this many episodes, at least one update."""
        if self.algorithm == "ppo":
            return {"updates": max(1, episodes // 16), **self.settings}
        return {"updates": max(1, episodes // SLOTS), "slots": SLOTS, **self.settings}


def paper(algorithm: str = "eade-ddpg", settings: Mapping[str, Any] | None = None, **env: Any) -> Variant:
    """As the paper has it, but for what is named; its action is one of 17, though."""
    return Variant(algorithm, settings or {}, {**PAPER, **env})


def counting(scenario: str, *, entropy: float = 0.003, advised: bool = False) -> Variant:
    """Tasks are what counts, and large ones may wait for small ones."""
    rates = (3e-4, 1e-5) if advised else (1e-3, 1e-4)
    settings = {"gae_lambda": 0.98, "ent_coef": (entropy, 0.0), "learning_rate": rates}
    return Variant("ppo", settings, {**COUNT, "scenario": scenario}, advised)


BASE = "eade-ddpg"
VARIANTS: Mapping[str, Variant] = {
    BASE: paper(),
    **{name: paper(name) for name in ("ddpg", "td3", "sac", "ppo")},
    **{f"{share} %": paper(settings={"expert_share": share / 100}) for share in (0, 20, 50, 100)},
    **{f"batch {size}": paper(settings={"batch": size}) for size in (32, 64, 128)},
    **{f"layers {one}-{two}": paper(hidden=(one, two)) for one, two in ((32, 32), (64, 64), (128, 128))},
    **{
        f"rates {actor:g}, {critic:g}": paper(settings={"actor_rate": actor, "critic_rate": critic})
        for actor, critic in ((1e-4, 1e-4), (1e-3, 1e-4), (1e-4, 5e-4))
    },
    "no attention": paper(attention="none"),
    "attention over clusters": paper(attention="tokens"),
    "hosts seen": paper(sees="hosts"),
    "masked": paper(masked=True),
    "one number": paper(settings={"choice": "scalar"}),
    "one number, renumbered": paper(settings={"choice": "scalar"}, renumbered=True),
    "one number, masked": paper(settings={"choice": "scalar"}, masked=True),
    "reward after": paper(earns="after"),
    **{f"ours, {name}": Variant(name, env={**OURS, "earns": "thought"}) for name in (BASE, "ppo")},
    "64 hosts": paper(among="hosts"),
    "64 hosts, masked": paper(among="hosts", masked=True),
    "64 hosts, ours": Variant("ppo", env={**OURS, "earns": "thought", "among": "hosts"}),
    **{f"counting, {scenario}": counting(scenario) for scenario in ("D1", "D2", "D5")},
    **{f"exploring, {scenario}": counting(scenario, entropy=0.01) for scenario in ("D5", "D2", "D1")},
    **{f"advised, {scenario}": counting(scenario, advised=True) for scenario in ("D1", "D2", "D5")},
}
STUDIES: Mapping[str, tuple[str, ...]] = {
    "algorithms": (BASE, "ddpg", "td3", "sac", "ppo"),
    "shares": ("0 %", BASE, "20 %", "50 %", "100 %"),
    "batches": ("batch 32", "batch 64", "batch 128", BASE),
    "layers": ("layers 32-32", "layers 64-64", BASE, "layers 128-128"),
    "rates": (BASE, "rates 0.0001, 0.0001", "rates 0.001, 0.0001", "rates 0.0001, 0.0005"),
    "ablations": (
        BASE, "no attention", "attention over clusters", "hosts seen", "masked", "one number", "one number, renumbered",
        "one number, masked", "reward after",
    ),
    "ours": tuple(name for name in VARIANTS if name.startswith("ours")),
    "hosts": tuple(name for name in VARIANTS if name.startswith("64 hosts")),
    "counting": tuple(name for name in VARIANTS if name.startswith("counting")),
    "exploring": tuple(name for name in VARIANTS if name.startswith("exploring")),
    "advised": tuple(name for name in VARIANTS if name.startswith("advised")),
}  # fmt: skip
"""Which are compared. The first is of tables 6 to 9 of the paper, the next four are its tables 1 to 4."""
OFTEN = ("algorithms", "counting", "exploring")
"""Studies with all the runs; the others have a few."""
