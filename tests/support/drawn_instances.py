"""Drawn problems as instances, for the scalar model."""

from __future__ import annotations

from typing import Any

from ces_core.model.generate import REGIMES
from ces_core.placement.view import ProblemView

EVEN = dict.fromkeys(REGIMES, 1.0)


def instance_of(view: ProblemView) -> dict[str, Any]:
    """The instance that a drawn problem comes from."""
    count = len(view.nodes)
    nodes = [
        {"name": f"n{n}"}
        | {key: 1.0 / view.inverse[k, n] for k, key in enumerate(("cpu", "memory"))}
        | {f"{key}_used": view.use[k, n] / view.inverse[k, n] for k, key in enumerate(("cpu", "memory"))}
        for n in range(count)
    ]
    links = []
    for pair in range(count * count):
        q = view.pair_first[pair]
        if view.path_first[q + 1] - view.path_first[q] == 1:
            speed = 1.0 / view.link_inverse[view.path_resource[view.path_first[q]]]
            links.append({"src": f"n{pair // count}", "dst": f"n{pair % count}", "bandwidth": speed})
    tasks = [{"name": f"t{t}", "cpu": row[0], "memory": row[1]} for t, row in enumerate(view.demand)]
    flows = [
        {"src": f"t{src}", "dst": f"t{dst}", "min": low, "max": high}
        for src, dst, low, high in zip(view.flow_src, view.flow_dst, view.low, view.high, strict=True)
    ]
    return {"nodes": nodes, "links": links, "job": {"tasks": tasks, "flows": flows}}
