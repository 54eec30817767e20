"""What an environment is to the algorithms: a :class:`PolicyEnv`, whose network decides step by step in a
:class:`VectorEnv`, or a :class:`NumbersEnv`, whose few numbers are judged as a whole.

A new environment is a class in a file of its own and an entry point of the group ``ces.envs``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ces_core.model.problem import BoolArray, FloatArray
from ces_core.model.topology import IntArray

if TYPE_CHECKING:
    from torch import nn

Scores = dict[str, dict[str, dict[str, float]]]
"""Way to decide -> group of instances -> figure -> value."""
VALIDATION_SEED = 900_000


class VectorEnv(Protocol):
    """Episodes side by side, one in each slot. The mask of a running slot admits at least one action."""

    @property
    def slots(self) -> int: ...
    @property
    def running(self) -> BoolArray:
        """(slots,) whether an action is to come."""

    @property
    def mask(self) -> BoolArray:
        """(slots, actions) which actions are allowed."""

    @property
    def success(self) -> BoolArray:
        """(slots,) whether the episode has ended well."""

    @property
    def score(self) -> FloatArray:
        """(slots,) the objective that a successful episode reached, whatever its rewards were."""

    def reset(self, progress: float, group: int = 1) -> None:
        """Begins new episodes; ``group`` slots in a row get the same problem. ``progress``: share of the run done."""

    def observe(self, rows: IntArray) -> tuple[NDArray[Any], ...]:
        """What the network takes for these slots, one array (rows, ...) for each of its inputs."""

    def step(self, actions: IntArray) -> NDArray[np.float32]:
        """Takes ``actions`` (slots,) in the running slots. Returns the rewards (slots,), 0 for the others."""

    def state(self) -> list[int]:
        """The generator of problems, for :meth:`restore`."""

    def restore(self, state: Sequence[int]) -> None: ...


@runtime_checkable
class AdvisedVector(VectorEnv, Protocol):
    """Episodes in which somebody knows a good action."""

    def advice(self, rows: IntArray) -> IntArray:
        """(rows,) what a rule would do in these running slots."""


class TeamVector(VectorEnv, Protocol):
    """Episodes in which A agents act at once. Actions are (slots, A, 3): which task an agent chooses, what it gives
    it, and 1 where another agent gets the task, else 0; rewards are (slots, A)."""

    @property
    def mask(self) -> BoolArray:
        """(slots, A) which agents have anything to choose; the actions of others count for nothing."""

    def losers(self, rows: IntArray, chosen: IntArray, odds: FloatArray, chance: FloatArray) -> BoolArray:
        """(rows, A) who does not get the task that it chose: ``chosen`` (rows, A), with the probabilities ``odds``
        (rows, A); of equals the one with more ``chance`` (rows, A) gets it."""

    def advice(self, rows: IntArray) -> IntArray:
        """(rows, A, 2) what a rule would choose and give in these slots; anything where the mask is False."""


class TeamPolicy(Protocol):
    """A network that several agents share: tasks first, and then amounts for the chosen one."""

    def forward(self, *observation: Any) -> tuple[Any, Any, Any]:
        """(B, A, tasks) logits, what :meth:`amounts` needs, and (B, A) values."""

    def amounts(self, known: Any, chosen: Any) -> Any:
        """(B, A, amounts) logits for the tasks ``chosen`` (B, A)."""


class Expert(Protocol):
    """Judges what an action costs in the end."""

    def judge(self, rows: IntArray) -> tuple[NDArray[np.float32], FloatArray]:
        """For running slots: (rows, actions) the regret of each action, and (rows,) what the best is worth, -inf where
        the expert does not know."""


@dataclass(frozen=True)
class Defaults:
    """What an algorithm begins with on an environment, where that differs from the dataclasses' own defaults."""

    algorithm: Mapping[str, Any]
    env: Mapping[str, Any]


class Environment(ABC):
    """A problem to learn, made of its settings (a frozen dataclass; each field becomes a flag)."""

    Settings: ClassVar[type]
    file: ClassVar[str]
    """Name of the shipped file."""
    schema: str = ""
    """Hash of what the shipped file was trained to see; empty where there is none."""
    unasked: str = ""
    """Why no scheduler can ask the shipped file; empty where one can."""
    untrained: str = "a network with random weights"
    """What "before learning" stands for."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    @classmethod
    def defaults(cls, algorithm: str) -> Defaults:
        """Of the algorithm of that name."""
        return Defaults({}, {})

    def prepare(self, folder: Path) -> None:  # noqa: B027 - most need nothing
        """Makes what :meth:`evaluate` needs; ``folder`` may keep it for the next time."""

    @property
    def instances(self) -> str:
        """What scores are from, in words."""
        return "episodes that training does not draw"

    @abstractmethod
    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        """How good a solution is on held-out instances; ``thorough``: in every way to decide, else in the first."""

    def baselines(self) -> Scores:
        """Scores of what needs no learning, on the same instances."""
        return {}

    @abstractmethod
    def export(self, solution: Any, path: Path, version: str, card: Mapping[str, Any]) -> None:
        """Writes the file that CES reads, with its card."""


class PolicyEnv(Environment):
    """Its solution is a network (``torch.nn.Module``): (B, actions) scores and (B,) values from a vector environment's
    observations."""

    file = "policy.onnx"
    team: ClassVar[bool] = False
    """Whether several agents act at once: its vectors are a :class:`TeamVector`, its network is a
    :class:`TeamPolicy`."""
    inputs: tuple[str, ...] = ("observation", "mask")
    """Names of the observations in the shipped file."""
    searched_episodes: ClassVar[int] = 128
    """Problems that CEM and ES compare candidates on."""
    axes: Mapping[str, Mapping[int, str]] = {}
    """Input or output of the shipped file -> its axes of any length beside the batch, with their names."""

    @abstractmethod
    def policy(self) -> nn.Module:
        """A new network; random weights come from torch's seed."""

    @abstractmethod
    def vector(self, slots: int, seed: int) -> VectorEnv:
        """A vector environment that draws its problems by ``seed``."""

    def networks(self, width: int) -> tuple[nn.Module, nn.Module] | None:
        """For algorithms that learn from pools: a new actor, from observations to (B, width) numbers, and a new critic,
        from observations and such numbers to (B, 1) values. None where there are none."""
        return None

    def searched(self, policy: nn.Module) -> list[nn.Parameter]:
        """The parameters that CEM and ES move; the others stay as they began."""
        return list(policy.parameters())

    def expert(
        self, vector: VectorEnv, *, limit: int, regret_cap: float, threads: int
    ) -> AbstractContextManager[Expert] | None:
        """Judges actions for imitation; None where nobody can."""
        return None

    def evaluate(self, solution: Any, *, thorough: bool) -> Scores:
        """The best action always, on 256 episodes."""
        vector = self.vector(256, VALIDATION_SEED)
        vector.reset(1.0)
        returns = play_greedy(solution, vector)
        figures = {"success": float(vector.success.mean()), "return": float(returns.mean())}
        return {"greedy": {"validation": figures}}

    def export(self, solution: Any, path: Path, version: str, card: Mapping[str, Any]) -> None:
        """Scores alone, from :attr:`inputs`, for any number of decisions at once."""
        import torch

        from ces_rl.export import export_network

        vector = self.vector(2, 0)
        vector.reset(1.0)
        example = tuple(torch.from_numpy(part) for part in vector.observe(np.arange(2)))
        axes = {name: {0: "batch", **self.axes.get(name, {})} for name in (*self.inputs, "scores")}
        export_network(
            scores_only(solution), example, path, inputs=self.inputs, outputs=["scores"], axes=axes,
            schema=self.schema, version=version, card=card,
        )  # fmt: skip


class Judged(NamedTuple):
    """``fitness``: one number for each kind of job, higher is better. ``measured``: for the log."""

    fitness: FloatArray
    measured: Mapping[str, float]


class Objective(Protocol):
    """Numbers to be found."""

    @property
    def start(self) -> FloatArray:
        """(numbers,) where the search begins."""

    @property
    def spread(self) -> FloatArray:
        """(numbers,) how far it looks around them at first."""

    @property
    def least_spread(self) -> FloatArray:
        """(numbers,) what is added to the spread of every later generation."""

    def scenario(self, rng: np.random.Generator, seed: int) -> Any:
        """What candidates are compared on; drawn by ``rng`` or ``seed``, or always the same."""

    def evaluate(self, numbers: FloatArray, scenario: Any) -> Judged: ...


class NumbersEnv(Environment):
    """Its solution is a list of arrays, one for each objective, found one after the other."""

    objectives: ClassVar[int] = 1
    file = "weights.json"
    untrained = "the numbers that the search begins with"

    @abstractmethod
    def start(self, number: int) -> FloatArray:
        """What the search for objective ``number`` begins with."""

    @abstractmethod
    def objective(self, number: int, found: Sequence[FloatArray]) -> Objective:
        """Objective ``number``, given the solutions ``found`` of those before it."""


def play_greedy(policy: nn.Module, vector: VectorEnv) -> FloatArray:
    """Plays all slots to the end, always the best action. Returns the sums of rewards (slots,)."""
    import torch

    returns = np.zeros(vector.slots)
    while vector.running.any():
        rows = np.flatnonzero(vector.running)
        with torch.no_grad():
            scores = policy(*(torch.from_numpy(part) for part in vector.observe(rows)))[0].numpy()
        actions = np.zeros(vector.slots, dtype=np.int64)
        actions[rows] = np.argmax(np.where(vector.mask[rows], scores, -np.inf), axis=1)
        returns += vector.step(actions)
    return returns


def scores_only(policy: nn.Module) -> nn.Module:
    """The part of a policy that decisions need."""
    from torch import nn

    class ScoresOnly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.policy = policy

        def forward(self, *observation: Any) -> Any:
            return self.policy(*observation)[0]

    return ScoresOnly()
