"""The generalisation benchmark: jobs on networks of other sizes and shapes than a policy was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ces_core.bench.placement import Answer, Asked
from ces_core.bench.placement_summary import against, effort, quality
from ces_core.bench.truth import Truth
from ces_core.simulator.rounds import Round, rounds
from ces_core.topologies import layout_of


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
    return {
        "question": asdict(question),
        "networks": {network.label: {"nodes": network.size} for network in question.networks},
        "regimes": {
            regime: {
                str(tasks): {
                    network.label: _case(question.solvers, Case(regime, tasks, network), answers, truths, best)
                    for network in question.networks
                }
                for tasks in question.tasks
            }
            for regime in question.regimes
        },
    }


@dataclass(frozen=True)
class Case:
    """Rounds that are told of together."""

    regime: str
    tasks: int
    network: Network

    def has(self, asked: Round) -> bool:
        wanted = self.regime, self.tasks, self.network.topology, self.network.nodes
        return (asked.regime, asked.tasks, asked.topology, asked.nodes) == wanted


def _case(
    solvers: Sequence[str],
    case: Case,
    answers: Sequence[Answer],
    truths: Mapping[Round, Truth],
    best: Mapping[Round, float],
) -> dict[str, Any]:
    given = [answer for answer in answers if case.has(answer.round)]
    optima = {asked for asked, truth in truths.items() if case.has(asked) and truth.optimal}
    everywhere = {answer.round for answer in given} - {answer.round for answer in given if answer.composite is None}
    return {
        "instances": len({answer.round for answer in given}),
        "placed_by_somebody": sum(case.has(asked) for asked in best),
        "placed_by_all": len(everywhere),
        "proven_optima": len(optima),
        "proven_impossible": sum(case.has(asked) and truth.impossible for asked, truth in truths.items()),
        "solvers": {
            name: quality(own) | against(own, everywhere, best, optima) | effort(own)
            for name in solvers
            if (own := [answer for answer in given if answer.solver == name])
        },
    }
