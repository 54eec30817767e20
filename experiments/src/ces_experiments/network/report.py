"""The network benchmark's results as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.plots import COLOURS
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.network.experiment import MBIT, UNDISTURBED, Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_ON = {"veth": "", "vxlan": " on tunnels", "wireguard": " on encrypted links"}


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What was aimed at and what came of it, then flows, new connections and changes."""
    return [_bar(results), _flows(results), _openings(results), _elastic(results["elastic"])]


def in_words(rate: float) -> str:
    return f"{rate / 1e9:.3g} Gbit/s" if rate >= 1e9 else f"{rate / 1e6:.3g} Mbit/s"


def _aim(rate: str) -> int:
    """How far off a second may be, in percent."""
    return 3 if int(rate) < 10 * MBIT else 1


def _bar(results: Mapping[str, Any]) -> Grid:
    rates, victims = results["rates"], results["victims"]
    changed, many = results["changes"], results["many"]
    rows = []
    for rate, found in rates.items():
        aim = _aim(rate)
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
    links = _ON[results["question"].get("links", "veth")]
    return Grid(f"What was aimed at, and what was measured{links}.", ("what", "aim", "measured"), rows)


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


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """How far each second of each flow is off its allocation, and how soon changes are in force."""
    rates = results["rates"]
    figure, [axes] = plots.panels(1, len(rates) + 1, width=2.6, height=2.6)
    for axis, (rate, found) in zip(axes, rates.items(), strict=False):
        aim = _aim(rate)
        axis.axhspan(-aim, aim, color=COLOURS[2], alpha=0.12, linewidth=0)
        for flow in found["each_second"]:
            axis.plot(range(1, len(flow) + 1), flow, "o-", color=COLOURS[0], alpha=0.6, markersize=2.5, linewidth=0.8)
        reach = 1.3 * max(aim, *(abs(value) for flow in found["each_second"] for value in flow))
        axis.set(title=f"{found['flows']} flows of {in_words(int(rate))}", xlabel="second", ylim=(-reach, reach))
    axes[0].set_ylabel("off the allocation, %")
    axes[-1].axvspan(0, 200, color=COLOURS[2], alpha=0.12, linewidth=0)
    for colour, (key, label) in zip(COLOURS, (("by_udp_ms", "UDP"), ("by_tcp_ms", "TCP (cubic)")), strict=False):
        took = sorted(value for value in results["changes"][key] if value is not None)
        shares = [(place + 1) / len(results["changes"][key]) for place in range(len(took))]
        axes[-1].step(took, shares, where="post", color=colour, label=label)
    axes[-1].set(title="changes of a live flow", xlabel="ms until in force", ylabel="share of changes", ylim=(0, 1.02))
    axes[-1].legend(fontsize=7)
    return {"flows.png": figure}


REPORT = Report(tables, pictures)
NETWORK = Experiment(Question, measure, REPORT)
