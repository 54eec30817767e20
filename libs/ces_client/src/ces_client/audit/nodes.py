"""Nodes as the log tells of them, and whether they may be given work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ces_client.audit.usage import Usage


class Nodes:
    """The state of each node that the log has told of so far."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, Any]] = {}

    def read(self, data: Mapping[str, Any]) -> None:
        """Take a change of a node."""
        if data["change"] == "forgotten":  # one of its name that joins later is another
            self._states.pop(data["node"], None)
            return
        node = self._states.setdefault(data["node"], {"state": "unreachable", "cordoned": False, "reclaimed": False})
        change = data["change"]
        if change in ("ready", "unreachable"):
            node["state"] = change
        elif change in ("cordoned", "uncordoned", "drained"):
            node["cordoned"] = change != "uncordoned"
        elif change in ("reclaimed", "lent"):
            node["reclaimed"] = change == "reclaimed"

    def wrong(self, names: Iterable[str], late: bool, usage: Usage) -> Iterator[str]:
        """Which of these get work and must not. ``late``: the log lacks its first events, so a node may have joined
        before."""
        for name in names:
            node = self._states.get(name)
            if node is not None and (node["state"] != "ready" or node["cordoned"] or node["reclaimed"]):
                told = f"{node['state']}, cordoned {node['cordoned']}, reclaimed {node['reclaimed']}"
                yield f"node {name} gets work while {told}"
            if node is None and not (late and usage.knows_node(name)):
                yield f"node {name} has never joined"
