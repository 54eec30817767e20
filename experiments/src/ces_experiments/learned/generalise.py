"""The generalisation benchmark: jobs on networks of other sizes and shapes than a policy was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ces_core.model.topologies import layout_of
from ces_experiments.placement.comparison import Answer, Asked
from ces_experiments.placement.optima import Truth
from ces_experiments.placement.summary import case
from ces_sim.rounds import Round, rounds


@dataclass(frozen=True)
class Network:
    """``nodes`` of a shape; None: a GraphML file."""

    topology: str
    nodes: int | None = None

    @property
    def label(self) -> str:
        return Path(self.topology).stem if self.nodes is None else f"{self.topology} {self.nodes}"

    @property
    def size(self) -> int:
        """Its devices."""
        layout = layout_of(self.topology, self.nodes)
        return len(layout.nodes) - len(layout.switches)


@dataclass(frozen=True)
class Question(Asked):
    """The same on every network."""

    networks: tuple[Network, ...]

    def all_rounds(self) -> Iterator[Round]:
        for network in self.networks:
            yield from rounds(
                self.regimes, self.tasks, self.rounds, self.seed, nodes=network.nodes, topology=network.topology
            )


def summarise(
    question: Question, answers: Sequence[Answer], truths: Mapping[Round, Truth], best: Mapping[Round, float]
) -> dict[str, Any]:
    """Every solver's figures: ``regimes`` -> regime -> number of tasks -> network. Pure."""

    def told(regime: str, tasks: int, network: Network) -> dict[str, Any]:
        def here(asked: Round) -> bool:
            wanted = regime, tasks, network.topology, network.nodes
            return (asked.regime, asked.tasks, asked.topology, asked.nodes) == wanted

        return case(
            question.solvers,
            [answer for answer in answers if here(answer.round)],
            {asked: truth for asked, truth in truths.items() if here(asked)},
            {asked: value for asked, value in best.items() if here(asked)},
        )

    return {
        "question": asdict(question),
        "networks": {network.label: {"nodes": network.size} for network in question.networks},
        "regimes": {
            regime: {
                str(tasks): {network.label: told(regime, tasks, network) for network in question.networks}
                for tasks in question.tasks
            }
            for regime in question.regimes
        },
    }
