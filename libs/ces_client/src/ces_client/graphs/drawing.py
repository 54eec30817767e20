"""A graph that was divided as a picture: a colour for each part, what crosses between parts drawn strongly."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from ces_client.errors import bad_field
from ces_client.view.plain import plain
from ces_common.graphfile import ApplicationGraph

KINDS = (".png", ".svg")
MOST_NAMES = 60  # vertices that are drawn with their names
INSIDE, ACROSS = "#9aa5b1", "#c0392b"


def check_kind(file: Path) -> None:
    """Raises BadInput for a file that no picture can be written to."""
    if file.suffix not in KINDS:
        problem = f"{file.suffix or 'a name without an ending'} is no kind of picture that is drawn"
        raise bad_field("No picture is drawn", "--draw", problem, f"end the name with {' or '.join(KINDS)}")


def draw_parts(file: Path, graph: ApplicationGraph, part: Sequence[int], title: str) -> None:
    """Writes it. ``part``: of each vertex, from 0. Raises BadInput where the file cannot be written, or what draws is
    not installed."""
    check_kind(file)
    try:
        import networkx as nx
        from matplotlib import colormaps
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure
    except ImportError as error:
        remedy = "pip install 'ces-client[decompose]'"
        raise bad_field("No picture is drawn", "--draw", "matplotlib is not installed", remedy) from error
    names = [vertex.name for vertex in graph.vertices]
    index = {name: place for place, name in enumerate(names)}
    drawn = nx.Graph()
    drawn.add_nodes_from(range(len(names)))
    for edge in graph.edges:
        a, b = index[edge.src], index[edge.dst]
        before = drawn.get_edge_data(a, b, {"traffic": 0})["traffic"]
        # Shared parts pull: they lie together, whatever their traffic.
        drawn.add_edge(a, b, traffic=before + edge.bandwidth.max, weight=4.0 if part[a] == part[b] else 1.0)
    at = nx.spring_layout(drawn, seed=1, weight="weight", iterations=60)
    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_title(plain(title), fontsize=11)
    heaviest = max((data["traffic"] for *_, data in drawn.edges(data=True)), default=1)
    pairs = list(drawn.edges(data="traffic"))
    across = [part[a] != part[b] for a, b, _ in pairs]
    lines = LineCollection(
        [(at[a], at[b]) for a, b, _ in pairs],
        colors=[ACROSS if far else INSIDE for far in across],
        linewidths=[
            0.6 + (3.4 * traffic / heaviest if far else 0.6) for far, (*_, traffic) in zip(across, pairs, strict=True)
        ],
        alpha=0.75,
        zorder=1,
    )
    axes.add_collection(lines)
    colours = colormaps["tab20"]
    largest = max(vertex.cpu for vertex in graph.vertices)
    axes.scatter(
        [at[place][0] for place in range(len(names))],
        [at[place][1] for place in range(len(names))],
        s=[40 + 260 * vertex.cpu / largest for vertex in graph.vertices],
        c=[colours(each % 20) for each in part],
        edgecolors="#333333",
        linewidths=0.6,
        zorder=2,
    )
    for place, name in enumerate(names if len(names) <= MOST_NAMES else ()):
        text = f"{plain(name)[:18]} ({part[place] + 1})".replace("$", r"\$")  # which would begin a formula
        axes.annotate(text, at[place], xytext=(0, 8), textcoords="offset points", ha="center", fontsize=7, zorder=3)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a box stands for what no font at hand has
            figure.savefig(file, dpi=130)
    except OSError as error:
        raise bad_field("No picture is drawn", "--draw", error.strerror or str(error), "check the path") from error
