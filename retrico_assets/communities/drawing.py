"""Pictures of communities as SVG, which a browser shows without any other file."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from resources.records import Community
from retrico_assets.communities.detect import WeightedGraph

MAX_COMMUNITIES = 24
MAX_ENTITIES = 400
MAX_EDGES = 1000

_NODE, _GAP, _STEP = 10.0, 12.0, 6.0
_MAX_TITLES = 12
_MAX_TITLE_LENGTH = 30
_TITLE_RADIUS = 64.0  # half the width of a title
_FONT = "font-family='sans-serif' font-size"
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG and a caption that says which part of the graph it shows."""

    svg: str
    caption: str


def safe(text: str) -> str:
    """Escape a text for SVG and HTML; control characters become replacement characters."""
    return escape(UNPRINTABLE.sub("\ufffd", text), quote=True)


def drawn_level(communities: Sequence[Community]) -> int:
    """The finest level whose communities of several members all fit into a picture, else the coarsest level."""
    several: defaultdict[int, int] = defaultdict(int)
    for community in communities:
        several[community.level] += len(community.member_ids) > 1
    fitting = [level for level, number in several.items() if number <= MAX_COMMUNITIES]
    return min(fitting) if fitting else max(several, default=0)


def draw(graph: WeightedGraph, communities: Sequence[Community], names: Mapping[str, str]) -> Picture:
    """Draw the communities of one level as discs of different colours, the best-connected members in the middle.

    In a large graph, the 24 largest communities are drawn, with about 400 members in proportion to their sizes (those with the
    largest weighted degree) and the 1,000 heaviest edges among them.
    """
    degree = graph.degrees()
    largest = sorted(communities, key=lambda c: (-len(c.member_ids), c.id))[:MAX_COMMUNITIES]
    total = sum(len(community.member_ids) for community in largest)
    share = min(1.0, MAX_ENTITIES / total) if total else 1.0
    discs: list[list[str]] = []
    for community in largest:
        members = sorted((id_ for id_ in community.member_ids if id_ in degree), key=lambda id_: (-degree[id_], id_))
        discs.append(members[: max(1, math.floor(len(members) * share))] if members else [])
    radii = [_radius(len(disc)) for disc in discs]
    titled = [number < _MAX_TITLES and len(disc) > 1 for number, disc in enumerate(discs)]
    centres = _packed([max(radius, _TITLE_RADIUS * has_title) for radius, has_title in zip(radii, titled, strict=True)])
    spots: dict[str, tuple[float, float, int]] = {}
    for number, (disc, (x, y)) in enumerate(zip(discs, centres, strict=True)):
        for rank, id_ in enumerate(disc):  # sunflower pattern: the same area for each member, the first in the middle
            angle, distance = rank * math.pi * (3 - math.sqrt(5)), _NODE * math.sqrt(rank)
            spots[id_] = (x + distance * math.cos(angle), y + distance * math.sin(angle), number)
    edges = _edges_among(graph, set(spots))
    parts = [_edge(spots[a], spots[b]) for a, b in edges[:MAX_EDGES]]
    for id_, (x, y, number) in spots.items():
        label = safe(names.get(id_, id_)[:80])
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.6' fill='{colour(number)}'><title>{label}</title></circle>")
    for number, ((x, y), community) in enumerate(zip(centres, largest, strict=True)):
        if titled[number]:
            title = community.title or names.get(community.member_ids[0], "")
            shown = title if len(title) <= _MAX_TITLE_LENGTH else title[: _MAX_TITLE_LENGTH - 1] + "…"
            low = y + radii[number] + 6
            parts.append(f"<text x='{x:.1f}' y='{low:.1f}' text-anchor='middle' {_FONT}='9' fill='#333'>{safe(shown)}</text>")
    caption = (
        f"{len(spots):,} of {len(graph.ids):,} entities in {len(largest):,} of {len(communities):,} communities,"
        f" {min(len(edges), MAX_EDGES):,} of {len(graph.edges):,} edges"
    )
    return Picture(_framed(parts, centres, radii), caption)


def histogram(communities: Sequence[Community]) -> str:
    """Draw the number of communities by size as SVG, with one bar for each level. Sizes are grouped by powers of two."""
    levels = sorted({community.level for community in communities})
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)
    for community in communities:
        counts[max(len(community.member_ids), 1).bit_length() - 1, community.level] += 1
    steps = range(max((step for step, _ in counts), default=0) + 1)
    wide = 14 * max(len(levels), 1) + 16
    tallest = max(counts.values(), default=1)
    parts = []
    for step in steps:
        left = 40 + step * wide
        for number, level in enumerate(levels):
            count = counts[step, level]
            if count:
                # Logarithmic, since communities of one entity would dwarf the others.
                height = 110 * (math.log1p(count) / math.log1p(tallest))
                x, y = left + number * 14, 130 - height
                parts.append(f"<rect x='{x}' y='{y:.1f}' width='12' height='{height:.1f}' fill='{colour(level)}'/>")
                parts.append(f"<text x='{x + 6}' y='{y - 3:.1f}' text-anchor='middle' {_FONT}='8' fill='#333'>{count}</text>")
        first, last = 2**step, 2 ** (step + 1) - 1
        label = str(first) if first == last else f"{first}-{last}"
        parts.append(f"<text x='{left + 7 * len(levels)}' y='144' text-anchor='middle' {_FONT}='9' fill='#333'>{label}</text>")
    for number, level in enumerate(levels):
        x = 40 + number * 60
        parts.append(f"<rect x='{x}' y='158' width='9' height='9' fill='{colour(level)}'/>")
        parts.append(f"<text x='{x + 13}' y='166' {_FONT}='9' fill='#333'>level {level}</text>")
    width = max(40 + len(steps) * wide, 40 + 60 * len(levels), 200)
    return _svg(parts, 0, 0, width, 175)


def colour(number: int) -> str:
    """A colour for a number; neighbouring numbers differ clearly (golden angle)."""
    return f"hsl({number * 137.508 % 360:.0f},62%,{42 + 12 * (number // 8 % 2)}%)"


def _edges_among(graph: WeightedGraph, ids: set[str]) -> list[tuple[str, str]]:
    """The edges between these entities, heaviest first."""
    rows = zip(graph.edges.heads.tolist(), graph.edges.tails.tolist(), graph.edges.weights.tolist(), strict=True)
    edges = [(-weight, graph.ids[a], graph.ids[b]) for a, b, weight in rows if graph.ids[a] in ids and graph.ids[b] in ids]
    return [(a, b) for _, a, b in sorted(edges)]


def _radius(nodes: int) -> float:
    return _NODE * math.sqrt(max(nodes, 1)) + _NODE / 2


def _packed(radii: Sequence[float]) -> list[tuple[float, float]]:
    """Centres of discs that don't overlap: each disc takes the first free position on a spiral from the middle."""
    centres: list[tuple[float, float]] = []
    for number, radius in enumerate(radii):
        turn = 0
        while True:
            distance = _STEP * math.sqrt(turn)
            angle = distance / 12 + number
            x, y = 1.4 * distance * math.cos(angle), distance * math.sin(angle)
            if all(math.hypot(x - a, y - b) >= radius + other + _GAP for (a, b), other in zip(centres, radii, strict=False)):
                centres.append((x, y))
                break
            turn += 1
    return centres


def _edge(a: tuple[float, float, int], b: tuple[float, float, int]) -> str:
    style = f"stroke='{colour(a[2])}' stroke-opacity='.45'" if a[2] == b[2] else "stroke='#999' stroke-opacity='.3'"
    return f"<line x1='{a[0]:.1f}' y1='{a[1]:.1f}' x2='{b[0]:.1f}' y2='{b[1]:.1f}' {style}/>"


def _framed(parts: Sequence[str], centres: Sequence[tuple[float, float]], radii: Sequence[float]) -> str:
    if not centres:
        return _svg(["<text x='10' y='20' font-size='12'>The graph has no entities.</text>"], 0, 0, 300, 40)
    left = min(x - r for (x, _), r in zip(centres, radii, strict=True)) - 70
    right = max(x + r for (x, _), r in zip(centres, radii, strict=True)) + 70
    top = min(y - r for (_, y), r in zip(centres, radii, strict=True)) - 20
    low = max(y + r for (_, y), r in zip(centres, radii, strict=True)) + 20
    return _svg(parts, left, top, right - left, low - top)


def _svg(parts: Sequence[str], left: float, top: float, width: float, height: float) -> str:
    box = f"{left:.0f} {top:.0f} {width:.0f} {height:.0f}"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='{box}' width='{width:.0f}' height='{height:.0f}'>"
        f"<rect x='{left:.0f}' y='{top:.0f}' width='{width:.0f}' height='{height:.0f}' fill='white'/>{''.join(parts)}</svg>"
    )
