"""A cluster as a picture: nodes by state, wires by the share of them that flows have reserved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ces_client.notebook.markup import COLOURS
from ces_client.notebook.positions import Point, place
from ces_client.view.formats import cpu_share, rate
from ces_client.view.plain import plain
from ces_common.messages.api import LinkView, NodeView, TopologyView
from ces_common.quantities import show_bandwidth

MOST_NODES = 40  # that are drawn
CROWDED = 20  # more nodes bear their names alone, and wires no figures
WIDTH, MARGIN = 720.0, 64.0
FLATTEST, TALLEST, TALLEST_CROWDED = 180.0, 520.0, 680.0
RADIUS, TRACK = 9.0, 7.0
LETTERS = 14  # of a name that are written
RESERVED = "#2f7fd1"


@dataclass(frozen=True)
class Picture:
    """``svg``; ``undrawn``: the nodes that found no room in it."""

    svg: str
    undrawn: int


def draw(cluster: TopologyView, kept: Mapping[str, Sequence[float]]) -> Picture:
    """``kept``: where operators put nodes. Of a large cluster the nodes in trouble and those with most wires are drawn,
    and on each how many of its neighbours are not."""
    wires = _wires(cluster.links)
    nodes = _chosen(cluster.nodes, wires)
    drawn = {node.name for node in nodes}
    inside = {ends: links for ends, links in wires.items() if drawn.issuperset(ends)}
    hidden = dict.fromkeys(drawn, 0)
    for a, b in wires.keys() - inside.keys():
        for end in drawn & {a, b}:
            hidden[end] += 1
    crowded = len(nodes) > CROWDED
    tallest = TALLEST_CROWDED if crowded else TALLEST
    points, height = _fitted(place([node.name for node in nodes], inside, kept), tallest)
    lines = [
        _wire(points[a], points[b], links, None if crowded else _slant(index))
        for index, ((a, b), links) in enumerate(inside.items())
    ]
    marks = [_node(node, points[node.name], hidden[node.name], crowded) for node in nodes]
    head = (
        f'<svg role="img" aria-label="Map of {len(nodes)} nodes and {len(inside)} wires" viewBox="0 0 {WIDTH:g} '
        f'{height:.0f}" width="{WIDTH:g}" height="{height:.0f}" xmlns="http://www.w3.org/2000/svg">'
    )
    return Picture("".join([head, *lines, *marks, "</svg>"]), len(cluster.nodes) - len(nodes))


def wire_count(links: Iterable[LinkView]) -> int:
    return len({frozenset((link.src, link.dst)) for link in links})


def _wires(links: Iterable[LinkView]) -> dict[tuple[str, str], list[LinkView]]:
    """The links between two nodes, one for each direction that there is."""
    found: dict[tuple[str, str], list[LinkView]] = {}
    for link in links:
        found.setdefault((min(link.src, link.dst), max(link.src, link.dst)), []).append(link)
    return dict(sorted(found.items()))


def _chosen(nodes: Sequence[NodeView], wires: Iterable[tuple[str, str]]) -> list[NodeView]:
    degree: dict[str, int] = {}
    for ends in wires:
        for end in ends:
            degree[end] = degree.get(end, 0) + 1
    first = sorted(nodes, key=lambda node: (node.state == "ready", -degree.get(node.name, 0), node.name))
    return sorted(first[:MOST_NODES], key=lambda node: node.name)


def _fitted(points: Mapping[str, Point], tallest: float) -> tuple[dict[str, Point], float]:
    """The points on the sheet, and how tall that is: both directions keep their proportion."""
    if not points:
        return {}, FLATTEST
    left, top = (min(point[axis] for point in points.values()) for axis in (0, 1))
    wide, tall = (max(point[axis] for point in points.values()) - least for axis, least in ((0, left), (1, top)))
    scale = min((WIDTH - 2 * MARGIN) / (wide or 1), (tallest - 2 * MARGIN) / (tall or 1))
    height = min(max(tall * scale + 2 * MARGIN, FLATTEST), tallest)
    across, down = (WIDTH - wide * scale) / 2, (height - tall * scale) / 2
    return {name: (across + (x - left) * scale, down + (y - top) * scale) for name, (x, y) in points.items()}, height


def _share(link: LinkView) -> float:
    return min(link.reserved / link.bandwidth, 1.0) if link.bandwidth else 0.0


def _slant(index: int) -> float:
    """Where along a wire its figure stands, so that figures of neighbouring wires do not meet."""
    return (0.5, 0.42, 0.58)[index % 3]


def _wire(a: Point, b: Point, links: Sequence[LinkView], at: float | None) -> str:
    """A track, and on it a stroke as wide as the larger share that is reserved; dashed where a direction is down.
    ``at``: how far along it the figure stands; None: nowhere."""
    share = max(map(_share, links))
    down = any(link.state == "down" for link in links)
    ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
    parts = [f"<g><title>{_text(chr(10).join(map(_about_link, links)), 500)}</title>"]
    parts.append(f'<line {ends} stroke="currentColor" stroke-opacity="0.22" stroke-width="{TRACK:g}"/>')
    if share:
        width = max(1.5, TRACK * share)
        parts.append(f'<line {ends} stroke="{RESERVED}" stroke-width="{width:.1f}"/>')
        if at is not None:
            x, y = a[0] + (b[0] - a[0]) * at, a[1] + (b[1] - a[1]) * at - 5
            parts.append(_label(x, y, f"{share:.0%}", 'font-size="11" fill="currentColor"'))
    if down:
        parts.append(f'<line {ends} stroke="{COLOURS["red"]}" stroke-width="3" stroke-dasharray="6 5"/>')
        parts.append(
            _label((a[0] + b[0]) / 2, (a[1] + b[1]) / 2 + 14, "down", f'font-size="11" fill="{COLOURS["red"]}"')
        )
    return "".join([*parts, "</g>"])


def _about_link(link: LinkView) -> str:
    medium = f", on {link.medium}" if link.medium else ""
    reason = f", down: {link.reason or 'no reason known'}" if link.state == "down" else ""
    used = "" if link.used is None else f", {rate(link.used)} used"
    reserved = f"{rate(link.reserved)} of {show_bandwidth(link.bandwidth)} reserved"
    return f"{link.src} › {link.dst}: {reserved}{used}{medium}{reason}"


def _node(node: NodeView, at: Point, hidden: int, crowded: bool) -> str:
    """A circle, or a square for a switch; below it the name and what of its CPU is allocated."""
    x, y = at
    switch = not (node.cpu or node.memory or node.gpu)
    states = [node.state, *(word for word, so in (("cordoned", node.cordoned), ("reclaimed", node.reclaimed)) if so)]
    colour = COLOURS["red"] if node.state != "ready" else COLOURS["yellow"] if len(states) > 1 else COLOURS["green"]
    cpu = "a switch" if switch else f"{cpu_share(node.cpu_allocated, node.cpu)} allocated"
    about = f"{node.name}: {', '.join(states)}\n{cpu}"
    looks = f'fill="{colour}" stroke="currentColor" stroke-width="1"'
    mark = (
        f'<rect x="{x - RADIUS:.1f}" y="{y - RADIUS:.1f}" width="{2 * RADIUS:g}" height="{2 * RADIUS:g}" {looks}/>'
        if switch
        else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS:g}" {looks}/>'
    )
    parts = [f"<g><title>{_text(about, 500)}</title>{mark}"]
    size = 'font-size="10"' if crowded else 'font-size="12" font-weight="600"'
    parts.append(_label(x, y + (20 if crowded else 24), node.name, f'{size} fill="currentColor"'))
    second = states[1:] if node.state == "ready" else states
    if second:
        parts.append(_label(x, y + 38, ", ".join(second), f'font-size="11" fill="{colour}"', letters=40))
    elif not switch and not crowded:
        used = cpu_share(node.cpu_allocated, node.cpu)
        parts.append(_label(x, y + 38, used, 'font-size="11" fill="currentColor"'))
    if hidden:
        parts.append(_label(x, y - 14, f"+{hidden}", 'font-size="11" fill="currentColor" font-style="italic"'))
    return "".join([*parts, "</g>"])


def _label(x: float, y: float, text: str, looks: str, letters: int = LETTERS) -> str:
    # Names of scripts that run from right to left stay within their own text.
    style = 'style="unicode-bidi:isolate" text-anchor="middle"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} {looks}>{_text(text, letters)}</text>'


def _text(text: str, letters: int) -> str:
    return escape(plain(text if len(text) <= letters else f"{text[: letters - 1]}…"))
