"""The report on communities: one HTML file that needs no network, and Markdown for the Dagster UI."""

import base64
from collections.abc import Mapping, Sequence
from functools import lru_cache

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from resources.records import Community
from retrico_assets.communities.detect import WeightedGraph
from retrico_assets.communities.drawing import UNPRINTABLE, Picture, draw, drawn_level, histogram
from retrico_assets.communities.update import LevelFigures

_TOP = 20
_ROWS_PER_LEVEL = 200
_NAMED = 8


class CommunityPage:
    """The communities of ``graph`` as pictures and tables. ``names`` are display names by entity id."""

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
        """The pictures as Markdown."""
        return "\n\n".join(
            [
                f"**Level {self.level}:** {self.picture.caption}",
                f"![communities](data:image/svg+xml;base64,{_base64(self.picture.svg)})",
                "**Communities by size** (number of entities)",
                f"![sizes](data:image/svg+xml;base64,{_base64(self.sizes)})",
            ]
        )

    def html(self) -> str:
        """The report as one HTML page."""
        shown = [c for figures in reversed(self._levels) for c in self._of_level(figures.level)[:_ROWS_PER_LEVEL]]
        page = (
            _environment()
            .get_template("page.html")
            .render(
                levels=self._levels,
                level=self.level,
                caption=self.picture.caption,
                picture=Markup(self.picture.svg),
                sizes=Markup(self.sizes),
                communities=[(community, self._best_members(community)) for community in shown],
                hidden=len(self._communities) - len(shown),
            )
        )
        return UNPRINTABLE.sub("\ufffd", page)

    def _of_level(self, level: int) -> list[Community]:
        """Communities of a level, largest first; communities of one entity only if there are no others."""
        communities = [community for community in self._communities if community.level == level]
        return [community for community in communities if len(community.member_ids) > 1] or communities

    def _best_members(self, community: Community) -> str:
        known = [id_ for id_ in community.member_ids if id_ in self._degree]
        best = sorted(known, key=lambda id_: (-self._degree[id_], id_))
        more = f", and {len(best) - _NAMED:,} more" if len(best) > _NAMED else ""
        return ", ".join(self._names.get(id_, id_) for id_ in best[:_NAMED]) + more


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(loader=PackageLoader("retrico_assets.communities"), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _base64(svg: str) -> str:
    return base64.b64encode(svg.encode()).decode()
