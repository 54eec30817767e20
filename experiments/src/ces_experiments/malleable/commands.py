"""``ces bench malleable``, ``cpu``, ``tides``, ``elastic``, ``elastic-edge`` and ``elastic-speeds``, found through the
entry-point group ``ces.bench``."""

from __future__ import annotations

import typer

from ces_experiments.common import options
from ces_experiments.common.command import ON_CLUSTER, PLOTS, Option, command
from ces_experiments.malleable.inputs import USUAL, inputs

COMPAT = "elasticflow"


def _compat(flag: str, text: str | None) -> str | None:
    from ces_experiments.malleable.elastic import compat

    return compat(flag, text)


def _shares(flag: str, text: str) -> tuple[str, ...]:
    """As text, each once. Raises typer.BadParameter."""
    found = options.amounts(flag, text, 1)
    if found[-1] > 1:
        raise typer.BadParameter(f"{found[-1]:g} is more than all of it", param_hint=flag)
    return tuple(f"{share:g}" for share in found)


def _cpu_amounts(flag: str, text: str) -> tuple[str, ...]:
    """As text, each once. Raises typer.BadParameter."""
    from ces_common.quantities import format_cpu, parse_cpu
    from ces_experiments.malleable.cpu.jobs import HOST, SMALLEST

    found = dict[str, None]()
    for part in text.split(","):
        try:
            cpu = parse_cpu(part.strip())
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=flag) from error
        if not SMALLEST <= cpu <= HOST:
            raise typer.BadParameter(f"{part!r} is not within {SMALLEST}m..{HOST}m, a whole host", param_hint=flag)
        found[format_cpu(cpu)] = None
    return tuple(found)


def _rules(flag: str, text: str) -> tuple[str, ...]:
    """Each once. Raises typer.BadParameter."""
    from ces_experiments.malleable.cpu.jobs import RULES

    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for part in found:
        if part not in RULES:
            raise typer.BadParameter(f"{part!r} is none of {', '.join(RULES)}", param_hint=flag)
    return found


def _amounts(name: str, usual: str, help: str) -> Option:
    return Option(
        name.replace("-", "_"),
        str,
        usual,
        f"{help}, separated by commas",
        read=lambda flag, text: options.amounts(flag, text, 1),
    )


malleable = command(
    "malleable",
    "malleable.mix.report:MIX",
    [
        Option("seeds", int, 5, "number of mixes", more=options.between(1, 100)),
        Option("jobs", int, 30, "jobs of each", more=options.between(2, 100)),
        Option("nodes", int, 4, "emulated hosts of four cores", more=options.between(2, 50)),
        Option(
            "rigid", str, "1", "shares of their time that rigid jobs are sized for, separated by commas",
            read=_shares,
        ),
        PLOTS,
    ],
    help="Real jobs with deadlines on emulated hosts, malleable against rigid, and how long resizes take. As root.",
)  # fmt: skip

cpu = command(
    "cpu",
    "malleable.cpu.report:CPU",
    [
        Option("seeds", int, 5, "number of sequences of jobs", more=options.between(1, 100)),
        Option("jobs", int, 24, "jobs of each", more=options.between(2, 200)),
        Option("nodes", int, 4, "emulated hosts of 200m", more=options.between(2, 50)),
        Option(
            "amounts", str, "even,patient,tapfinger", "rules by which CES chooses CPU, separated by commas",
            read=_rules,
        ),
        Option(
            "fixed", str, "100m,200m", "amounts of CPU that workers have throughout, separated by commas",
            read=_cpu_amounts,
        ),
        PLOTS,
    ],
    help="Real jobs whose CPU CES chooses and changes in place, against fixed requests, on emulated hosts. As root.",
)  # fmt: skip

tides = command(
    "tides",
    "malleable.tides.report:TIDES",
    [
        Option("seeds", int, 1, "number of days, each alone and beside a job", more=options.between(1, 100)),
        Option("length", float, 120.0, "seconds of a day", of="length_s", more=options.between(30, 86_400)),
        Option("nodes", int, 4, "emulated devices, each with an owner", more=options.between(2, 9)),
        PLOTS,
    ],
    help="A day on devices that their owners lend, in two minutes, with and without a malleable job. As root.",
)

elastic = command(
    "elastic",
    "malleable.elastic_report:ELASTIC",
    [
        Option(
            "traces", str, ",".join(USUAL), "traces in CES_DATA_DIR, each by name or as TRACE:CLUSTER:SLOT:GPU",
            of="inputs", read=inputs,
        ),
        Option(
            "policies", str | None, None, "those compared, separated by commas",
            of="only", more={"show_default": "all"},
        ),
        Option(
            "compat", str | None, None, f"{COMPAT}: count as the public simulator of ElasticFlow does", read=_compat,
            more={"show_default": "every event when it happens"},
        ),
        options.SEED(42, "same seed, same random sizes"),
        PLOTS,
    ],
    help="Policies for malleable jobs compared on published traces: how many jobs end by their deadlines.",
)  # fmt: skip

elastic_edge = command(
    "elastic-edge",
    "malleable.edge_report:EDGEFLOW",
    [
        Option("traces", str, "195job,elasticVpollux_e", "traces in CES_DATA_DIR", of="inputs", read=inputs),
        Option("arrivals", float, 4.0, "how many times faster jobs come", more=options.between(0.01, 1000)),
        Option("gpus", int, 32, "GPUs in the cloud", more=options.between(1, 100_000)),
        Option("servers", int, 16, "edge servers", more=options.between(1, 1000)),
        Option("speed", float, 0.5, "of an edge server, by that of a GPU in the cloud", more=options.between(0.01, 1)),
        Option("ease", float, 4.0, "time until a deadline, by the trace's", more=options.between(0.1, 100)),
        _amounts("sweep-arrivals", "2,6", "how many times faster jobs come"),
        _amounts("sweep-gpus", "16,64", "GPUs in the cloud"),
        _amounts("sweep-servers", "4,8", "edge servers"),
        _amounts("sweep-speeds", "0.2", "speeds of an edge server"),
        Option("repeats", int, 20, "availability traces at the base", more=options.at_least(2)),
        Option("fewer", int, 3, "availability traces at all other points", more=options.at_least(2)),
        Option("processes", int, 1, "simulations at once", more=options.at_least(1)),
        options.SEED(42, "same seed, same availability"),
        PLOTS,
        *ON_CLUSTER,
    ],
    help="EdgeFlow against its peers and itself without edge servers, swept over arrivals, GPUs, servers and speeds.",
)  # fmt: skip

elastic_speeds = command(
    "elastic-speeds",
    "malleable.speeds:SPEEDS",
    [
        Option(
            "gpus", str, "A100,T4", "types of GPU whose speeds are in CES_DATA_DIR, separated by commas",
            read=lambda flag, text: options.names(flag, text, ("A100", "T4")),
        ),
    ],
    help="How well the speed of a malleable job is predicted at a size, from its speeds at three others.",
)  # fmt: skip
