"""``ces bench gpus``, ``gpu-clusters``, ``gpu-learning``, ``gpu-mix``: entry points of the group ``ces.bench``."""

from __future__ import annotations

from pathlib import Path

from ces_core.gpus.scores import POLICIES
from ces_core.registry import DEFAULT, available
from ces_experiments.common import options
from ces_experiments.common.command import ON_CLUSTER, PLOTS, Option, command
from ces_experiments.gpus.variants import STUDIES
from ces_sim.gpus.scenarios import SCENARIOS

PROCESSES = Option("processes", int, 1, "simulations at once", more=options.at_least(1))


def _lists(flag: str, text: str | None) -> tuple[str, ...]:
    from ces_experiments.gpus.trace import known_lists

    return known_lists(flag, text)


def _scenarios(flag: str, text: str) -> tuple[str, ...]:
    from ces_experiments.gpus.clusters import LIST

    found = options.names(flag, text, SCENARIOS)
    _lists(flag, LIST)
    return found


def _contenders(flag: str, text: str | None) -> tuple[str, ...]:
    from ces_experiments.gpus.clusters import CONTENDERS

    return CONTENDERS if text is None else options.names(flag, text, CONTENDERS)


gpus = command(
    "gpus",
    "gpus.fgd_report:FGD",
    [
        Option(
            "lists", str | None, None, "lists of pods in CES_DATA_DIR, separated by commas",
            read=_lists, more={"show_default": "all that are there"},
        ),
        Option(
            "policies", str, ",".join(POLICIES), "those compared, separated by commas",
            read=lambda flag, text: options.names(flag, text, POLICIES),
        ),
        Option("seeds", int, 10, "orders of tasks and nodes", more=options.between(1, 1000)),
        options.SEED(0, "the first seed; same seed, same tasks"),
        PROCESSES,
        PLOTS,
        *ON_CLUSTER,
    ],
    help="FGD and its peers place a published trace of tasks that share GPUs, until 1.3 times all GPUs are asked for.",
)  # fmt: skip

gpu_clusters = command(
    "gpu-clusters",
    "gpus.clusters_report:CLUSTERS",
    [
        Option(
            "scenarios", str, ",".join(SCENARIOS), "those drawn from the trace in CES_DATA_DIR, separated by commas",
            read=_scenarios,
        ),
        Option(
            "contenders", str | None, None, "rules for clusters, and policies by node (node-NAME), separated by commas",
            read=_contenders, more={"show_default": "all"},
        ),
        Option("seeds", int, 10, "draws of hosts and tasks", more=options.between(1, 1000)),
        options.SEED(0, "the first seed; same seed, same draw"),
        Option("rounds", int, 60, "of improvement for the offline plan", more=options.between(0, 10_000)),
        PROCESSES,
        PLOTS,
        *ON_CLUSTER,
    ],
    help="Tasks that share GPUs are sent to clusters of hosts by rules, beside what is possible at all.",
)  # fmt: skip

gpu_mix = command(
    "gpu-mix",
    "gpus.mix_report:MIX",
    [
        Option("lists", str, "default", "lists of pods in CES_DATA_DIR, separated by commas", read=_lists),
        Option(
            "loads", str, "0.9,1.1", "what is asked for, in times all GPUs",
            read=lambda flag, text: options.amounts(flag, text, 1),
        ),
        Option("hosts", int, 32, "nodes, drawn from those of the trace", more=options.between(2, 1000)),
        Option(
            "stays", float, 6.0, "for how many mean stays of a task; the first two do not count",
            more=options.between(3, 100),
        ),
        Option(
            "solver", str, DEFAULT, "the service's solver",
            read=lambda flag, text: options.one(flag, text, available),
        ),
        Option("seeds", int, 10, "draws of nodes and tasks", more=options.between(1, 1000)),
        options.SEED(0, "the first seed; same seed, same draw"),
        PROCESSES,
        PLOTS,
        *ON_CLUSTER,
    ],
    help="Tasks with shares of cards, whole ones and none come and go, placed by the service's solver with FGD or not.",
)  # fmt: skip


def _studies(flag: str, text: str) -> tuple[str, ...]:
    from ces_experiments.gpus.clusters import LIST

    found = options.names(flag, text, STUDIES)
    _lists(flag, LIST)
    return found


def _torch() -> None:
    from ces_rl.needs import require_torch

    require_torch()


gpu_learning = command(
    "gpu-learning",
    "gpus.learning:LEARNING",
    [
        Option("studies", str, ",".join(STUDIES), "what is compared, separated by commas", read=_studies),
        Option("episodes", int, 1000, "that a run learns from", more=options.at_least(1)),
        Option("seeds", int, 10, "runs of each of algorithms and counting", more=options.between(1, 1000)),
        Option("few", int, 3, "runs of each other variant", more=options.between(1, 1000)),
        options.SEED(0, "of the first run; the next has the next"),
        Option("draws", int, 10, "of hosts and tasks to judge on", more=options.between(1, 1000)),
        Option(
            "seconds", float | None, None, "of CPU after which a run ends with the episodes it has had",
            more=options.at_least(1) | {"show_default": False},
        ),
        Option("keep", Path | None, None, "a folder for the policies that count tasks", more={"show_default": False}),
        PROCESSES,
        PLOTS,
    ],
    needs=_torch,
    help="Algorithms learn to send tasks that share GPUs to clusters of hosts, and are judged on other draws.",
)  # fmt: skip
