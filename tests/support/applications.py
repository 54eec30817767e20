"""An application for tests: a camera's requests go to a detector and come back, on a roof, a gate and a rack."""

from __future__ import annotations

from typing import Any

from cluster_state import MBIT, node, wire

from ces_common.jobfile import JobFile
from ces_common.messages.records import LinkRecord, NodeRecord

RANGE = {"min": "8Mbit", "max": "8Mbit"}


def inspection(**fields: Any) -> dict[str, Any]:
    """20 ms of one reference core, 10 requests a second, 10 kB there and 1 kB back: at 8 Mbit/s 10 ms and 1 ms."""
    return {
        "name": "inspection",
        "kind": "compute",
        "users": [{"name": "cam", "at": {"node": "roof1"}, "access": {"delay": "1ms"}}],
        "tasks": [
            {"name": "client", "command": ["run"], "constraints": {"user": "cam"}},
            {
                "name": "detect",
                "command": ["run"],
                "resources": {"cpu": 2, "memory": "1Gi"},
                "work": {"per_request": "20ru", "class": "matrix", "threads": 1},
            },
        ],
        "flows": {
            "edges": [
                {"src": "client-0", "dst": "detect-0", "bandwidth": RANGE, "message": "10k"},
                {"src": "detect-0", "dst": "client-0", "bandwidth": RANGE, "message": "1k"},
            ]
        },
        "requests": [
            {"name": "loop", "from": "cam", "rate": 10, "chain": ["detect", "cam"], "deadline": "60ms", "hard": True}
        ],
    } | fields


def inspection_file(**fields: Any) -> JobFile:
    return JobFile.model_validate(inspection(**fields))


def request(**fields: Any) -> dict[str, Any]:
    return inspection()["requests"][0] | fields


def street(**speeds: float) -> list[NodeRecord]:
    """Speeds of matrix work by node; one that is not named was not measured. The roof has room for the client alone."""
    sizes = {"roof1": {"cpu": 1000}, "gate1": {}, "rack1": {"cpu": 32000}, "switch1": {"cpu": 0, "memory": 0}}
    return [
        node(name, i, speeds={"matrix": speeds[name]} if name in speeds else {}, **size)
        for i, (name, size) in enumerate(sizes.items())
    ]


def street_links(roof: int = 2000, gate: int = 1000, rack: int = 10_000) -> list[LinkRecord]:
    """One way, in microseconds."""
    delays = {"roof1": roof, "gate1": gate, "rack1": rack}
    return [link for name, delay in delays.items() for link in wire(name, "switch1", 100 * MBIT, delay=delay)]
