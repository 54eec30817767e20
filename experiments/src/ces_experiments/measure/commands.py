"""``ces bench measure``, found through the entry-point group ``ces.bench``."""

from __future__ import annotations

import typer

from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command
from ces_experiments.measure.program import PROGRAMS
from ces_experiments.measure.question import SHARES


def _shares(flag: str, text: str) -> tuple[float, ...]:
    found = options.amounts(flag, text, least=2)
    if found[-1] != 1.0 or found[0] < 0.05:
        raise typer.BadParameter("must lie in 0.05..1, and 1 be among them: nodes are compared to it", param_hint=flag)
    return found


measure = command(
    "measure",
    "measure.report:MEASURE",
    [
        Option("shares", str, ",".join(f"{each:g}" for each in SHARES), "of this machine's CPU, a node each",
               read=_shares),
        Option("programs", str, ",".join(PROGRAMS), "those that run on them, separated by commas",
               read=lambda flag, text: options.names(flag, text, PROGRAMS)),
        Option("processes", str, "1-2", "in how many each program runs: 1-2, or 1,4",
               read=lambda flag, text: options.whole_numbers(flag, text, 1, 64)),
        options.REPEATS(3, "how often each node is measured"),
        Option("seconds", float, 3.0, "for which a program runs", read=options.number,
               more=options.between(1, 600)),
        Option("tries", int, 3, "beside others who use more than a tenth of the CPU", more=options.between(1, 20)),
        options.SEED(1, "same seed, same order"),
        PLOTS,
    ],
    help="How well nodes are measured, and programs predicted by that: nodes emulated by quotas. As root.",
)  # fmt: skip
