"""``ces bench decomposition``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

from ces_experiments.common import options
from ces_experiments.common.command import Option, command

PARTS = "numbers of parts: 4-8, or 4,8,12"

decomposition = command(
    "decomposition",
    "decomposition.report:DECOMPOSITION",
    [
        Option(
            "vertices", str, "24,100", "sizes of graphs, separated by commas",
            read=lambda flag, text: options.whole_numbers(flag, text, 4, 2000),
        ),
        Option("parts", str, "4,8,12", PARTS, read=lambda flag, text: options.whole_numbers(flag, text, 2, 64)),
        Option("seeds", int, 20, "graphs and clusters of each size", more=options.between(2, 1000)),
        options.SEED(0, "the first seed; same seed, same graphs"),
        options.REGIME,
        Option("nodes", int, 12, "of each cluster", more=options.between(2, 200)),
        Option("demand", float, 0.35, "CPU that a graph asks for, by what is free", more=options.between(0.001, 1.0)),
        Option("draws", int, 3, "random divisions of each graph", more=options.between(1, 100)),
        options.SOLVER("greedy", "places the parts"),
        Option("processes", int, 1, "graphs at once", more=options.at_least(1)),
    ],
    help="Graphs are divided by traffic, at random and by METIS, and the parts placed on the same clusters.",
)  # fmt: skip
