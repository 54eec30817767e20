"""``ces bench gpus``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_core.gpus.scores import POLICIES
from ces_experiments.common import options
from ces_experiments.common.command import ON_CLUSTER, PLOTS, Option, command

PROCESSES = Option("processes", int, 1, "simulations at once", more=options.at_least(1))


def _lists(flag: str, text: str | None) -> tuple[str, ...]:
    from ces_experiments.gpus.trace import known_lists

    return known_lists(flag, text)


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
