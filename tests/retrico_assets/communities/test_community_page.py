"""The report on communities: it opens without a network, shows all levels, and stays small."""

import random
import re
from xml.dom import minidom

import pytest

from resources.records import Community
from retrico_assets.communities.detect import detect, weighted_graph
from retrico_assets.communities.drawing import drawn_level
from retrico_assets.communities.options import CommunityOptions
from retrico_assets.communities.page import CommunityPage
from retrico_assets.communities.update import level_figures

EVIL = "<script>alert('x')</script>\x00\ud800&\"| # *"


def page(ids, rows, names=None, title=""):
    graph = weighted_graph(ids, rows)
    found = detect(graph, CommunityOptions())
    communities = [Community(c.id, c.level, c.member_ids, c.parent_id, title, title) for c in found.communities]
    return CommunityPage(graph, communities, level_figures(communities, found.modularity), names or {})


def pictures(html):
    return [minidom.parseString(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def test_members_are_drawn_in_the_colour_of_their_community():
    shown = page("abcdef", [(a, b, 1.0) for a, b in ["ab", "bc", "ca", "de", "ef", "fd", "cd"]], title="A title")
    drawn, sizes = pictures(shown.html())
    circles = drawn.getElementsByTagName("circle")
    names = {c.getElementsByTagName("title")[0].firstChild.data: c.getAttribute("fill") for c in circles}
    assert names.keys() == set("abcdef")
    assert names["a"] == names["b"] == names["c"] != names["d"] == names["e"] == names["f"]
    assert len(drawn.getElementsByTagName("line")) == 7
    assert shown.picture.caption == "6 of 6 entities in 2 of 2 communities, 7 of 7 edges"
    assert [t.firstChild.data for t in drawn.getElementsByTagName("text")] == ["A title", "A title"]
    labels = [t.firstChild.data for t in sizes.getElementsByTagName("text")]
    assert {"1", "2-3", "4-7", "level 0", "level 1"} <= set(labels)
    assert [row["members"] for row in shown.top()] == [6, 3, 3]
    for cell in ("0.3571", "A title", "c, a, b"):
        assert cell in shown.html()


def test_discs_do_not_touch():
    rows = [(f"{block}-{a}", f"{block}-{b}", 1.0) for block in range(9) for a in range(8) for b in range(a)]
    drawn, _ = pictures(page({end for row in rows for end in row[:2]}, rows).html())
    spots = {}
    for circle in drawn.getElementsByTagName("circle"):
        spot = (float(circle.getAttribute("cx")), float(circle.getAttribute("cy")))
        spots.setdefault(circle.getElementsByTagName("title")[0].firstChild.data.split("-")[0], []).append(spot)
    assert len(spots) == 9
    for name, here in spots.items():
        for other, there in spots.items():
            if name < other:
                assert min(abs(x - a) + abs(y - b) for x, y in here for a, b in there) > 20


def test_texts_are_shown_and_never_run():
    html = page(["a", "b"], [("a", "b", 1.0)], {"a": EVIL, "b": EVIL}, EVIL).html()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    pictures(html)
    html.encode()


def test_nothing_is_loaded_from_anywhere():
    shown = page(["a", "b"], [("a", "b", 1.0)])
    text = shown.html().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|<script|<link|<img|@import|url\(", text)
    assert shown.markdown().count("](data:image/svg+xml;base64,") == 2


def test_a_big_graph_is_sampled_by_the_rule():
    chance = random.Random(1)
    ids = [f"entity {n}" for n in range(4000)]
    shown = page(ids, [(chance.choice(ids), chance.choice(ids), chance.random()) for _ in range(9000)])
    drawn, _ = pictures(shown.html())
    assert 300 <= len(drawn.getElementsByTagName("circle")) <= 430
    assert len(drawn.getElementsByTagName("line")) <= 1000
    assert len(shown.markdown()) < 300_000
    assert re.fullmatch(r"4\d\d of 4,000 entities in 24 of \d+ communities, \d+ of 8,9\d\d edges", shown.picture.caption)


def test_the_finest_level_that_fits_is_drawn():
    many = [Community(f"fine {n}", 0, ("a", "b")) for n in range(25)] + [Community("coarse", 1, ("a", "b"))]
    assert drawn_level(many) == 1
    assert drawn_level(many[1:]) == 0
    assert drawn_level(many[:-1]) == 0
    assert drawn_level([]) == 0


@pytest.mark.parametrize(("ids", "rows"), [([], []), (["a"], []), (["a", "b"], []), (["a"], [("a", "a", 1.0)])])
def test_degenerate_graphs_have_a_page(ids, rows):
    shown = page(ids, rows)
    assert len(pictures(shown.html())) == 2
    assert shown.picture.caption.startswith(f"{len(ids)} of {len(ids)} entities")
    assert "data:image" in shown.markdown()
