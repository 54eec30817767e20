"""The network benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ces_core.bench.results import Grid
from ces_testbed.bench.network.experiment import UNDISTURBED

MBIT = 1_000_000


def grids(results: Mapping[str, Any]) -> list[Grid]:
    """What was aimed at and what came of it, then flows, new connections and changes."""
    return [_bar(results), _flows(results), _openings(results), _elastic(results["elastic"])]


def in_words(rate: float) -> str:
    return f"{rate / 1e9:.3g} Gbit/s" if rate >= 1e9 else f"{rate / 1e6:.3g} Mbit/s"


def _bar(results: Mapping[str, Any]) -> Grid:
    rates, victims = results["rates"], results["victims"]
    changed, many = results["changes"], results["many"]
    rows = []
    for rate, found in rates.items():
        aim = 3 if int(rate) < 10 * MBIT else 1
        rows.append([f"{in_words(int(rate))}, each second", f"within {aim} %", _each_second(found)])
        rows.append([f"{in_words(int(rate))}, first second", "within 3 %", _first_second(found)])
    for rate, found in victims.items():
        measured = f"{found['lost']:.2f} % (worst second {found['lost_worst_second']:.2f} %)"
        rows.append([f"victim of {in_words(int(rate))} loses", "under 2 %", measured])
    count = len(changed["rates"]) - 1
    calm = [took for took, share in zip(changed["by_udp_ms"], changed["stolen"], strict=True) if share <= UNDISTURBED]
    rows.append(
        [f"{count} changes of a live allocation, classes changed after", "200 ms", _times(changed["applied_ms"])]
    )
    rows.append(["... in force at the receiver (UDP) after", "200 ms", _times(changed["by_udp_ms"])])
    if 0 < len(calm) < count:
        rows.append([f"... the {len(calm)} that no other machine disturbed", "200 ms", _times(calm)])
    rows.append(["... TCP (cubic) has found its new rate after", "", _times(changed["by_tcp_ms"])])
    rows.append(["connections broken by them", "0", str(changed["broken_connections"])])
    rows.append([f"{many['flows']} flows of 10 Mbit/s, each second", "within 1 %", _each_second(many)])
    rows.append(["their first second", "within 3 %", _first_second(many)])
    cpu = max(many["agent_cpu"].values())
    rows.append(["data plane's CPU meanwhile, busiest node", "under 5 % of a core", f"{cpu:.1f} %"])
    return Grid("What was aimed at, and what was measured.", ("what", "aim", "measured"), rows)


def _each_second(found: Mapping[str, Any]) -> str:
    told = f"{found['worst_second']:+.2f} % at worst; {found['within_1']:.0f} % within 1 %"
    calm, seconds = found["undisturbed"], found["seconds"] - 1
    if calm in (0, seconds):
        return told
    return f"{told}; {found['worst_undisturbed']:+.2f} % in the {calm} of {seconds} that no other machine disturbed"


def _first_second(found: Mapping[str, Any]) -> str:
    told = f"{found['first_second']:+.2f} % at worst"
    return f"{told}, disturbed by other machines" if found["first_disturbed"] else told


def _flows(results: Mapping[str, Any]) -> Grid:
    question = results["question"]
    rows = [
        [
            in_words(int(rate)),
            f"{found['flows']} x {found['seconds']}",
            f"{found['mean']:+.3f} %",
            f"{found['first_second']:+.2f} %",
            f"{found['worst_second']:+.2f} %",
            str(found["segments_sent_again"]),
        ]
        for rate, found in results["rates"].items()
    ]
    title = (
        f"Saturated flows of two jobs, both ways over two hops of full links, under floods; seed {question['seed']}."
    )
    return Grid(title, ("each flow", "flows x seconds", "mean", "first", "worst", "segments sent again"), rows)


def _openings(results: Mapping[str, Any]) -> Grid:
    rows = []
    for rate, found in results["rates"].items():
        for when, key, failed in (
            ("idle", "opening_idle_ms", "not_opened_idle"),
            ("under flood", "opening_ms", "not_opened"),
        ):
            spread = found[key]
            values = [f"{spread[column]:.1f}" for column in ("p50", "p90", "worst")]
            rows.append([f"{in_words(int(rate))}, {when}", *values, str(spread["count"]), str(found[failed])])
    columns: Sequence[str] = ("beside flows of", "p50, ms", "p90, ms", "worst, ms", "n", "not opened")
    return Grid("Time until a new connection between a job's workers is open: two ways over two hops.", columns, rows)


def _elastic(found: Mapping[str, Any]) -> Grid:
    arriving = found["arriving"]
    rows = [
        ["elastic flow alone, slowest second", in_words(found["alone"])],
        ["beside reserved flows that take the rest, mean", in_words(found["beside_mean"])],
        ["beside them, slowest second", in_words(found["beside_least"])],
        ["a reserved flow's first second", f"{arriving['first_second']:+.2f} %"],
        ["each of its seconds, at worst", f"{arriving['worst_second']:+.2f} %"],
        ["a new connection of its job, at worst", f"{found['opening_ms']['worst']:.1f} ms"],
    ]
    limits = f"{in_words(found['allocated'])} were given to it, {in_words(found['most'])} is its maximum"
    return Grid(f"Elastic flows both ways ({limits}), then reserved ones arrive.", ("what", "measured"), rows)


def _times(values: Sequence[float | None]) -> str:
    """Milliseconds; None where something did not happen in its time."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return "never"
    late = f", {len(values) - len(known)} of {len(values)} not in time" if len(known) < len(values) else ""
    return f"{known[len(known) // 2]:.0f} ms median, {known[-1]:.0f} ms at worst{late}"
