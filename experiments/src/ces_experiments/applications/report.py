"""What requests took beside what was reckoned, and what floods did to them: tables and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ces_experiments.applications.experiment import Question, measure
from ces_experiments.applications.judge import FACTOR, SPARE_MS, as_reckoned
from ces_experiments.applications.wires import DELAY_MS
from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.plots import COLOURS
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_MISSED = 0.01
ENOUGH = 20
"""Answers that a p95 is told of."""
BOUND = f"{FACTOR:g} x model + {SPARE_MS:g} ms"


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    drawn = f"{question['applications']} applications, seed {question['seed']}"
    messages = f"messages up to {question['largest'] / 1000:g} kB"
    return f"{drawn}, {question['together']} at a time, {question['seconds']:g} s each, {messages}"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What was aimed at, each application, and the wires."""
    return [_aims(results), _each(results), _wires(results["wires"])]


def _wires(found: Sequence[Mapping[str, Any]]) -> Grid:
    rows = [
        [
            f"{each['beside'] / 1e6:g} Mbit/s" if each["beside"] else "nothing",
            *(f"{each[key]:.2f}" for key in ("p50_ms", "p95_ms", "p99_ms", "most_ms")),
            f"{each['n']}, {each['lost']}",
            f"{100 * each['core']:.0f} %",
        ]
        for each in found
    ]
    columns = ("beside", "p50, ms", "p95, ms", "p99, ms", "most, ms", "n, lost", "of a core")
    return Grid(f"What a wire of {DELAY_MS} ms adds to its delay, one way, and what it takes.", columns, rows)


def _aims(results: Mapping[str, Any]) -> Grid:
    found = results["applications"].values()
    rows = [
        [f"p95 at most {BOUND}, of all answers", "all", _kept(found, "alone", "all")],
        ["... of undisturbed answers", "all", _kept(found, "alone", "undisturbed")],
    ]
    for key, what, aim in (
        ("reserved", "deadlines missed in a flood", f"at most {MOST_MISSED:.0%}"),
        ("plain", "... without CES: one queue on each link", ""),
    ):
        flooded = [each[key] for each in found if each.get(key)]
        if flooded:
            rows.append([what, aim, _share(sum(e["missed"] for e in flooded), sum(e["sent"] for e in flooded))])
            kept = sum(each["missed"] <= MOST_MISSED * each["sent"] for each in flooded)
            rows.append([f"... applications with at most {MOST_MISSED:.0%}", "", f"{kept} of {len(flooded)}"])
        if flooded and key == "reserved":
            rows.append([f"p95 in that flood at most {BOUND}, of all answers", "", _kept(found, key, "all")])
            rows.append(["... of undisturbed answers", "", _kept(found, key, "undisturbed")])
    if results["failed"]:
        rows.append(["applications that could not be measured", "none", ", ".join(results["failed"])])
    title = f"What was aimed at, and what was measured; {describe(results['question'])}."
    return Grid(title, ("what", "aim", "measured"), rows)


def _kept(found: Iterable[Mapping[str, Any]], way: str, which: str) -> str:
    """How many applications have the p95 that was reckoned, of those with answers enough to tell."""
    told = [
        as_reckoned(each[way][which]["p95_ms"], each["reckoned"]["time_ms"])
        for each in found
        if each.get(way) and each[way][which]["n"] >= ENOUGH
    ]
    return f"{sum(told)} of {len(told)}"


def _each(results: Mapping[str, Any]) -> Grid:
    rows = []
    for name, each in results["applications"].items():
        model, alone = each["reckoned"], each["alone"]
        rows.append(
            [
                f"{name}, {each['kind']}, {each['tasks']} task{'s' if each['tasks'] > 1 else ''}",
                f"{model['wires_ms']:.1f} + {model['messages_ms']:.1f} + {model['work_ms']:.1f}",
                f"{model['time_ms']:.1f}",
                f"{model['deadline_ms']:.0f}{' hard' if model['hard'] else ''}",
                *_percentiles(alone["all"], model["time_ms"]),
                *_percentiles(alone["undisturbed"], model["time_ms"]),
                f"{model['flow_load']:.0%}",
                f"{alone['core_wait_ms']:.1f}",
                _missed(each.get("reserved")),
                _missed(each.get("plain")),
            ]
        )
    columns = (
        "application", "wires + messages + work, ms", "model, ms", "deadline, ms", "p50, p95, ms", "p95 / model", "n",
        "undisturbed: p50, p95, ms", "p95 / model", "n", "busiest flow", "waited for a core, ms a request",
        "missed in a flood", "without CES",
    )  # fmt: skip
    return Grid(f"Each application; * p95 above {BOUND}.", columns, rows)


def _percentiles(told: Mapping[str, Any], time_ms: float) -> list[str]:
    if not told["n"]:
        return ["-", "-", "0"]
    mark = "" if as_reckoned(told["p95_ms"], time_ms) else " *"
    return [f"{told['p50_ms']:.1f}, {told['p95_ms']:.1f}", f"{told['p95_ms'] / time_ms:.2f}{mark}", str(told["n"])]


def _missed(flooded: Mapping[str, int] | None) -> str:
    return "-" if not flooded else _share(flooded["missed"], flooded["sent"])


def _share(count: int, of: int) -> str:
    return f"{count / of:.1%} of {of}" if of else "-"


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Measured p95 over the model's time, and the shares of deadlines missed in floods."""
    found = list(results["applications"].values())
    flooded = [each for each in found if each.get("reserved") and each.get("plain")]
    figure, [axes] = plots.panels(1, 2 if flooded else 1, width=4.4, height=3.4)
    _times(axes[0], found)
    if flooded:
        _floods(axes[1], flooded)
    return {"applications.png": plots.caption(figure, describe(results["question"]))}


def _times(axis: Axes, found: Sequence[Mapping[str, Any]]) -> None:
    most = 1.1 * max(each["reckoned"]["time_ms"] for each in found)
    axis.plot([0, most], [SPARE_MS, FACTOR * most + SPARE_MS], "--", color="#888888", label=BOUND)
    for colour, (which, label) in zip(COLOURS, (("undisturbed", "p95, undisturbed"), ("all", "p95")), strict=False):
        told = [(each["reckoned"]["time_ms"], each["alone"][which]) for each in found]
        points = [(time_ms, each["p95_ms"]) for time_ms, each in told if each["n"] >= ENOUGH]
        axis.plot([x for x, _ in points], [y for _, y in points], "o", color=colour, markersize=4, label=label)
    axis.set(xlabel="model, ms", ylabel="measured, ms", title="alone")
    axis.legend(fontsize=7)


def _floods(axis: Axes, flooded: Sequence[Mapping[str, Any]]) -> None:
    ways = (("reserved", "with reservations"), ("plain", "one queue on each link"))
    for colour, (key, label) in zip(COLOURS, ways, strict=False):
        shares = sorted(100 * each[key]["missed"] / max(1, each[key]["sent"]) for each in flooded)
        axis.plot(range(1, len(shares) + 1), shares, "o-", color=colour, markersize=4, label=label)
    axis.axhline(100 * MOST_MISSED, color="#888888", linestyle="--")
    axis.set(xlabel="applications, least first", ylabel="deadlines missed, %", title="in a flood")
    axis.legend(fontsize=7)


REPORT = Report(tables, pictures)
APPLICATIONS = Experiment(Question, measure, REPORT)
