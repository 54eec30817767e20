"""What requests took beside what was reckoned, and what floods did to them: tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.applications.experiment import Question, measure
from ces_experiments.applications.judge import FACTOR, SPARE_MS, as_reckoned
from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.plots import COLOURS
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_MISSED = 0.01
BOUND = f"{FACTOR:g} x model + {SPARE_MS:g} ms"


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    drawn = f"{question['applications']} applications, seed {question['seed']}"
    return f"{drawn}, {question['together']} at a time, {question['seconds']:g} s each"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What was aimed at, then each application."""
    return [_aims(results), _each(results)]


def _aims(results: Mapping[str, Any]) -> Grid:
    found = results["applications"]
    kept = sum(as_reckoned(each["alone"]["p95_ms"], each["reckoned"]["time_ms"]) for each in found.values())
    rows = [[f"p95 at most {BOUND}", "all", f"{kept} of {len(found)}"]]
    for key, what, aim in (
        ("reserved", "deadlines missed in a flood", f"at most {MOST_MISSED:.0%}"),
        ("unreserved", "... without reservations", ""),
    ):
        flooded = [each[key] for each in found.values() if each.get(key)]
        if flooded:
            rows.append([what, aim, _share(sum(e["missed"] for e in flooded), sum(e["sent"] for e in flooded))])
            kept = sum(each["missed"] <= MOST_MISSED * each["sent"] for each in flooded)
            rows.append([f"... applications with at most {MOST_MISSED:.0%}", "", f"{kept} of {len(flooded)}"])
    title = f"What was aimed at, and what was measured; {describe(results['question'])}."
    return Grid(title, ("what", "aim", "measured"), rows)


def _each(results: Mapping[str, Any]) -> Grid:
    rows = []
    for name, each in results["applications"].items():
        model, alone = each["reckoned"], each["alone"]
        time_ms = model["time_ms"]
        rows.append(
            [
                f"{name}, {each['kind']}, {each['tasks']} tasks",
                f"{model['wires_ms']:.1f} + {model['messages_ms']:.1f} + {model['work_ms']:.1f}",
                f"{time_ms:.1f}",
                f"{model['deadline_ms']:.0f}{' hard' if model['hard'] else ''}",
                f"{alone['p50_ms']:.1f}",
                f"{alone['p95_ms']:.1f}",
                f"{alone['p95_ms'] / time_ms:.2f}",
                "yes" if as_reckoned(alone["p95_ms"], time_ms) else "no",
                str(alone["answers"]),
                f"{alone['core_wait_ms']:.1f}",
                _missed(each.get("reserved")),
                _missed(each.get("unreserved")),
            ]
        )
    columns = (
        "application", "wires + messages + work, ms", "model, ms", "deadline, ms", "p50, ms", "p95, ms", "p95 / model",
        "within", "n", "waited for a core, ms a request", "missed in a flood", "without reservations",
    )  # fmt: skip
    return Grid(f"Each application; within: p95 at most {BOUND}.", columns, rows)


def _missed(flooded: Mapping[str, int] | None) -> str:
    return "-" if not flooded else _share(flooded["missed"], flooded["sent"])


def _share(count: int, of: int) -> str:
    return f"{count / of:.1%} of {of}" if of else "-"


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Measured p95 over the model's time, and the shares of deadlines missed in floods."""
    found = list(results["applications"].values())
    figure, [[times, floods]] = plots.panels(1, 2, width=4.4, height=3.4)
    models = [each["reckoned"]["time_ms"] for each in found]
    most = 1.1 * max(models)
    times.plot([0, most], [SPARE_MS, FACTOR * most + SPARE_MS], "--", color="#888888", label=BOUND)
    for colour, key in zip(COLOURS, ("p50_ms", "p95_ms"), strict=False):
        told = [each["alone"][key] for each in found]
        times.plot(models, told, "o", color=colour, markersize=4, label=key.removesuffix("_ms"))
    times.set(xlabel="model, ms", ylabel="measured, ms", title="alone")
    times.legend(fontsize=7)
    for colour, (key, label) in zip(COLOURS, (("reserved", "reserved"), ("unreserved", "not reserved")), strict=False):
        flooded = [each[key] for each in found if each.get(key)]
        shares = sorted(100 * each["missed"] / max(1, each["sent"]) for each in flooded)
        if shares:
            floods.plot(range(1, len(shares) + 1), shares, "o-", color=colour, markersize=4, label=label)
    floods.axhline(100 * MOST_MISSED, color="#888888", linestyle="--")
    floods.set(xlabel="applications, least first", ylabel="deadlines missed, %", title="in a flood")
    if floods.get_legend_handles_labels()[0]:
        floods.legend(fontsize=7)
    return {"applications.png": plots.caption(figure, describe(results["question"]))}


REPORT = Report(tables, pictures)
APPLICATIONS = Experiment(Question, measure, REPORT)
