"""Real networks from GraphML files with link speeds, such as those of the Internet Topology Zoo.

The Zoo (Knight, Nguyen, Falkner, Bowden and Roughan, "The Internet Topology Zoo", IEEE JSAC 29(9), 2011) gives the
speed of a link in bit/s as the attribute ``LinkSpeedRaw``, for most links.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from ces_core.model.errors import ProblemError
from ces_core.model.topologies.shapes import Layout, Wires

SUFFIX = ".graphml"
SPEED = "LinkSpeedRaw"
MEGABIT = 1e6
FOLDERS = (Path("topologies"), Path("topologies", "topology-zoo"))
"""Where files are found within CES_DATA_DIR."""
SOURCE = "https://topology-zoo.org or https://github.com/mroughan/InternetTopologyZoo"


def find(name: str) -> Path:
    """The file at this path, or else of this name in ``topologies/`` of CES_DATA_DIR."""
    given = Path(name)
    root = os.environ.get("CES_DATA_DIR")
    places = [given, *(Path(root) / folder / name for folder in FOLDERS if root and not given.is_absolute())]
    for place in places:
        if place.is_file():
            return place
    where = "topologies/ of CES_DATA_DIR" + ("" if root else " (which is not set)")
    raise ProblemError(
        "topology",
        f"there is no file {name}, nor one in {where}; files of the Internet Topology Zoo come from {SOURCE}",
    )


def at_hand() -> tuple[str, ...]:
    """The names of all files in ``topologies/`` of CES_DATA_DIR; none if that is not set."""
    root = os.environ.get("CES_DATA_DIR")
    return tuple(sorted({path.name for folder in FOLDERS if root for path in Path(root, folder).glob(f"*{SUFFIX}")}))


def read(path: Path) -> Layout:
    """The nodes and links of a file.

    An undirected edge becomes a link each way, each with the full speed; parallel edges become one link with the sum of
    their speeds; self-loops are dropped. An edge without a speed gets the median of the others; if no edge has one, no
    link has. Nodes are named by label, with the identifier added if a label repeats. Only the largest connected
    component is kept; the rest is ``left_out``.

    Raises ProblemError, naming file and edge.
    """
    try:
        graph = nx.read_graphml(path)
    except (OSError, ParseError, nx.NetworkXError, ValueError, KeyError, AttributeError) as error:
        raise ProblemError("topology", f"{path} cannot be read as GraphML: {error}") from error
    if not graph:
        raise ProblemError("topology", f"{path} has no nodes")
    names = _names(graph)
    pieces = nx.weakly_connected_components(graph) if graph.is_directed() else nx.connected_components(graph)
    largest = max(pieces, key=len)
    nodes = [node for node in graph if node in largest]
    index = {node: i for i, node in enumerate(nodes)}
    wires: Wires = {}
    for src, dst, speed in _edges(graph, path):
        if src in index and src != dst:
            ends = [(index[src], index[dst])]
            for end in ends if graph.is_directed() else [*ends, ends[0][::-1]]:
                wires[end] = None if speed is None else (wires.get(end) or 0.0) + speed
    left_out = tuple(names[node] for node in graph if node not in largest)
    return Layout(tuple(names[node] for node in nodes), dict(sorted(wires.items())), left_out=left_out)


def _edges(graph: Any, path: Path) -> list[tuple[str, str, float | None]]:
    """Source, target and speed in Mbit/s of every edge."""
    edges = [
        (src, dst, _speed(data.get(SPEED), f"{path}: {SPEED} of edge {src} - {dst}"))
        for src, dst, data in graph.edges(data=True)
    ]
    known = [speed for _, _, speed in edges if speed is not None]
    usual = median(known) if known else None
    return [(src, dst, usual if speed is None else speed) for src, dst, speed in edges]


def _speed(raw: object, what: str) -> float | None:
    """Mbit/s."""
    if raw is None:
        return None
    try:
        speed = float(str(raw)) / MEGABIT
    except ValueError:
        speed = math.nan
    if not 0 < speed < math.inf:
        raise ProblemError("topology", f"{what} must be bit/s above 0, is {raw!r}")
    return speed


def _names(graph: Any) -> dict[str, str]:
    labels = {node: str(data.get("label") or node) for node, data in graph.nodes(data=True)}
    shared = Counter(labels.values())
    names = {node: label if shared[label] == 1 else f"{label}-{node}" for node, label in labels.items()}
    # A label may look like another's made-up name; identifiers are unique.
    return names if len(set(names.values())) == len(names) else {node: str(node) for node in names}
