"""How a link is shared out, from the constants that say so."""

from __future__ import annotations

from ces_common.quantities import format_bandwidth
from ces_common.shares import (
    BEST_EFFORT,
    ENCRYPTED_HEADROOM,
    HEADROOM,
    LEAST_RATE,
    RETURN,
    RETURN_BASE,
    TUNNELS_HEADROOM,
)
from ces_edge_agent.dataplane.plan.shaping import ARP_RATE, PROBE_RATE, SMALL
from generator.markdown import table


def classes() -> str:
    """The traffic classes of a link, and what plans may promise of it."""
    small = f"only its TCP packets below {SMALL} bytes"
    rows = [
        (
            "`2n+1`, return class of flow n",
            f"what answers flow n; {small} where a reserved flow runs the same way",
            f"{RETURN * 100:g} % of the flow and {format_bandwidth(RETURN_BASE)}; less where there is no room",
        ),
        ("`2n`, data class of flow n", "IPv4 packets from the flow's source to its destination", "what was allocated"),
        (
            "active probes",
            "UDP between the two nodes' own addresses: `ces probe`",
            f"{format_bandwidth(PROBE_RATE)}, and what is idle of the link",
        ),
        ("ARP", "address resolution, probes of the neighbour and answers to its own", format_bandwidth(ARP_RATE)),
        (
            "best effort",
            "everything else",
            f"{BEST_EFFORT * 100:g} % of the link or its part of the medium, at least {format_bandwidth(LEAST_RATE)}",
        ),
    ]
    most, tunnelled, encrypted = (
        f"{100 - headroom * 100:g} %" for headroom in (HEADROOM, TUNNELS_HEADROOM, ENCRYPTED_HEADROOM)
    )
    promise = (
        f"Plans may promise {most} of a link or medium, and {tunnelled} of a medium that tunnels share, {encrypted} "
        "with encrypted ones; the rest carries the other classes and the tunnels' headers."
    )
    return table(("class", "matches", "rate"), rows) + "\n\n" + promise
