"""What the benchmark of the dashboard found, beside its goals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.dashboard.made_up import Asked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MB = 1e6


def describe(results: Mapping[str, Any]) -> str:
    asked = results["asked"]
    return f"{asked['nodes']} nodes and {results['links']} links, a heartbeat each {asked['interval_s']:g} s"


def goals(results: Mapping[str, Any]) -> list[tuple[str, float, float, str, str]]:
    """What, what was found, the most that it should be, in which form, and how it came about."""
    first, of_map, frames, asked = results["first_visit"], results["map"], results["frames_ms"], results["asked"]
    heap, seen = results["heap"], results["viewers"]
    loads = f"median of {first['bytes']['n']}"
    drawn = f"median of {of_map['saved']['drawn_s']['n']}"
    watched = f"watched for {heap['watched_s'] / 60:.1f} min, {heap['pages']} pages opened"
    error = f"± {heap['error_bytes_hour'] / MB:.1f} (standard error); {watched}"
    pairs = f"mean of {seen['cost']['n']} pairs of {asked['round_s']:g} s"
    return [
        ("first visit, kB on the wire", first["bytes"]["max"] / 1000, 90, ".1f", "the most of all visits"),
        ("first visit, requests for files", first["requests"]["max"], 12, ".0f", "the most of all visits"),
        ("first paint, s", first["paint_s"]["p50"], 0.5, ".2f", loads),
        ("overview can be used, s", first["usable_s"]["p50"], 1, ".2f", loads),
        ("first picture of the map, layout saved, s", of_map["saved"]["drawn_s"]["p50"], 1, ".2f", drawn),
        ("first picture of the map, without, s", of_map["without"]["drawn_s"]["p50"], 4, ".2f", drawn),
        ("frame while panning, everything in view, ms", frames["whole"]["p95"], 33, ".1f", "95th percentile"),
        ("frame while panning, from near, ms", frames["near"]["p95"], 33, ".1f", "95th percentile"),
        ("growth of the heap in an hour, MB", heap["growth_bytes_hour"] / MB, 10, ".1f", error),
        (f"manager with {asked['viewers']} viewers, % of a core more", 100 * seen["cost"]["mean"], 5, ".1f", pairs),
    ]  # fmt: skip


def tables(results: Mapping[str, Any]) -> list[Grid]:
    rows = [
        (what, format(found, form), format(most, "g"), "yes" if found <= most else "**no**", how)
        for what, found, most, form, how in goals(results)
    ]
    seen, of_map = results["viewers"], results["map"]
    commits = {
        name: [f"{found[key]:.1f}" for key in ("p50", "p99", "worst")] + [str(found["count"])]
        for name, found in seen["commit_ms"].items()
    }
    who = [(name, f"{found['mean']:.3f}", *commits[name]) for name, found in seen["manager_cores"].items()]
    first = results["first_visit"]
    spreads = [
        (what, *(f"{found[key]:.2f}" for key in ("min", "p50", "max")), str(found["n"]))
        for what, found in (
            ("first paint, s", first["paint_s"]),
            ("overview can be used, s", first["usable_s"]),
            ("map drawn, layout saved, s", of_map["saved"]["drawn_s"]),
            ("map drawn, without, s", of_map["without"]["drawn_s"]),
            ("places at rest, without, s", of_map["without"]["settled_s"]),
        )
    ]
    return [
        Grid(f"Goals: {describe(results)}.", ("what", "found", "goal", "met", "how"), rows),
        Grid("Times of pages.", ("what", "least", "median", "most", "n"), spreads),
        Grid(
            f"The manager with nobody and with {results['asked']['viewers']} viewers, "
            "while something is written ten times a second.",
            ("who looks", "cores", "commit p50, ms", "p99", "worst", "n"),
            who,
        ),
    ]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """The heap over time, and what viewers cost in each pair of rounds."""
    figure, [[left, right]] = plots.panels(1, 2, width=4.2, height=3)
    samples = results["heap"]["samples"]
    left.plot([each["seconds"] / 60 for each in samples], [each["bytes"] / MB for each in samples], ".-")
    left.set(xlabel="minutes", ylabel="heap after collection, MB", ylim=(0, None), title="A tab that is used")
    cost = [100 * each for each in results["viewers"]["cost_each_round"]]
    right.bar(range(1, len(cost) + 1), cost)
    right.axhline(5, color="#888888", linestyle=":")
    right.set(
        xlabel="pair of rounds", ylabel="% of a core", title=f"{results['asked']['viewers']} viewers against nobody"
    )
    return {"dashboard.png": plots.caption(figure, describe(results))}


REPORT = Report(tables, pictures)


def measure(asked: Asked, progress: Any) -> Any:
    """Imported late: documentation is made where no browser is."""
    from ces_experiments.dashboard.run import measure as look

    return look(asked, progress)


DASHBOARD = Experiment(Asked, measure, REPORT)
