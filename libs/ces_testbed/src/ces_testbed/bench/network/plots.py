"""Plots of the network benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ces_core.bench.drawing import COLOURS, panels, save
from ces_testbed.bench.network.report import in_words


def network_plots(results: Mapping[str, Any], out: Path) -> None:
    """``flows.png``: how far each second of each flow is off its allocation, and how soon changes are in force."""
    rates = results["rates"]
    figure, [axes] = panels(1, len(rates) + 1, width=2.6, height=2.6)
    for axis, (rate, found) in zip(axes, rates.items(), strict=False):
        aim = 3 if int(rate) < 10_000_000 else 1
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
    save(figure, out / "flows.png")
