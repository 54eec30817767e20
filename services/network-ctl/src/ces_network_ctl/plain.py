"""A network as it is without CES: links have their capacity, and whoever sends shares them. For comparisons. Pure."""

from __future__ import annotations

from ces_common.messages.wanted import NetworkWanted


def unreserved(document: NetworkWanted) -> NetworkWanted:
    """The same network where no flow is promised anything, and each may use all of a link. Flows that send at the
    same time get equal shares, which is what TCP's flows come to on a good day; what the kernel counts of each flow
    stays known."""
    rates = {link.peer: link.bandwidth for link in document.links}
    classes = [
        flow.model_copy(update={"rate": 0, "ceiling": rates[flow.via]}) if flow.via in rates else flow
        for flow in document.classes
    ]
    return document.model_copy(update={"classes": classes})
