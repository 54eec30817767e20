"""A network where every flow is best effort, as without CES: links have their capacity and all senders share them. For
comparisons. Pure."""

from __future__ import annotations

from ces_common.messages.desired import DesiredNetwork


def best_effort_only(document: DesiredNetwork) -> DesiredNetwork:
    """The same network where nothing is guaranteed to any flow, and each may use a whole link. Flows that send at the
    same time get equal shares, as TCP's flows do at best; each is still counted by the kernel on its own."""
    rates = {link.peer: link.bandwidth for link in document.links}
    classes = [
        flow.model_copy(update={"rate": 0, "ceil": rates[flow.via]}) if flow.via in rates else flow
        for flow in document.classes
    ]
    return document.model_copy(update={"classes": classes})
