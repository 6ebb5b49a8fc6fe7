"""The report on communities: tables and pictures as one HTML file that needs no network, and as Markdown for the UI."""

import base64
from collections.abc import Mapping, Sequence

from resources.records import Community
from retrico_assets.communities.detect import WeightedGraph
from retrico_assets.communities.drawing import Picture, draw, drawn_level, histogram, safe
from retrico_assets.communities.update import LevelFigures

_TOP = 20
_ROWS_A_LEVEL = 200
_NAMED = 8
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;width:100%;margin:1em 0}"
    "td,th{border:1px solid #ddd;padding:.3em .6em;text-align:left;vertical-align:top}"
    "th{background:#f4f4f4}td.n{text-align:right}svg{max-width:100%;height:auto}"
)


class CommunityPage:
    """What there is to see of a graph's communities. ``names``: display name by entity id; ``graph``: what was detected from."""

    def __init__(
        self, graph: WeightedGraph, communities: Sequence[Community], levels: Sequence[LevelFigures], names: Mapping[str, str]
    ) -> None:
        self.level = drawn_level(communities)
        self.picture: Picture = draw(graph, [c for c in communities if c.level == self.level], names)
        self.sizes = histogram(communities)
        self._communities = sorted(communities, key=lambda c: (-len(c.member_ids), c.id))
        self._levels = levels
        self._names = names
        self._degree = graph.degrees()

    def top(self) -> list[dict[str, object]]:
        """The largest communities of each level, coarsest level first."""
        shown: list[dict[str, object]] = []
        for figures in reversed(self._levels):
            largest = self._of_level(figures.level)[:_TOP]
            shown += [
                {"level": c.level, "members": len(c.member_ids), "title": c.title, "summary": c.summary, "id": c.id}
                for c in largest
            ]
        return shown

    def markdown(self) -> str:
        """The pictures, for Dagster's UI."""
        return "\n\n".join(
            [
                f"**Level {self.level}:** {self.picture.caption}",
                f"![communities](data:image/svg+xml;base64,{_base64(self.picture.svg)})",
                "**Communities by size** (number of entities)",
                f"![sizes](data:image/svg+xml;base64,{_base64(self.sizes)})",
            ]
        )

    def html(self) -> str:
        """The whole report."""
        levels = _table(
            ("level", "communities", "largest", "of one entity", "modularity"),
            [(f.level, f"{f.communities:,}", f"{f.largest:,}", f"{f.alone:,}", f"{f.modularity:.4f}") for f in self._levels],
        )
        shown = [c for f in reversed(self._levels) for c in self._of_level(f.level)[:_ROWS_A_LEVEL]]
        rows = [(c.level, len(c.member_ids), c.title, c.summary, self._best_members(c), c.id) for c in shown]
        left = len(self._communities) - len(rows)
        more = f"<p>and {left:,} more, smaller or of one entity</p>" if left else ""
        body = (
            f"<h1>Communities</h1>{levels}<h2>Level {self.level}</h2><p>{safe(self.picture.caption)}</p>{self.picture.svg}"
            f"<h2>Sizes</h2><p>Communities by number of entities; bars are logarithmic.</p>{self.sizes}"
            "<h2>What they are about</h2>" + _table(("level", "members", "title", "summary", "best connected", "id"), rows) + more
        )
        return (
            "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Communities</title>"
            f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
        )

    def _of_level(self, level: int) -> list[Community]:
        """Largest first; those of one entity only where there are no others."""
        found = [community for community in self._communities if community.level == level]
        return [community for community in found if len(community.member_ids) > 1] or found

    def _best_members(self, community: Community) -> str:
        known = [id_ for id_ in community.member_ids if id_ in self._degree]
        best = sorted(known, key=lambda id_: (-self._degree[id_], id_))
        more = f", and {len(best) - _NAMED:,} more" if len(best) > _NAMED else ""
        return ", ".join(self._names.get(id_, id_) for id_ in best[:_NAMED]) + more


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{safe(cell)}</th>" for cell in header)
    lines = "".join("<tr>" + "".join(f"<td>{safe(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _base64(svg: str) -> str:
    return base64.b64encode(svg.encode()).decode()
