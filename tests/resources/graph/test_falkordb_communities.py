"""FalkorDB: communities, beyond what every graph store promises."""

import time

import pytest

from resources.graph.cypher.communities import _statements
from resources.records import Community
from resources.testing.graphs import Says, document, pair

FINE = [
    Community("fine-1", 0, ("e-ana", "e-bo"), "top", "Ana & Bo", "They met."),
    Community("fine-2", 0, ("e-cy",), "top"),
    Community("top", 1, ("e-ana", "e-bo", "e-cy"), None, "All", 'quotes " and \\ and `x` 由'),
]


def test_a_call_that_is_cut_short_is_completed_by_the_same_call(falkordb, monkeypatch):
    store = falkordb
    store.replace_documents([pair(f"d{n}", f"a{n}", "met", f"b{n}") for n in range(40)])
    ids = [entity.id for entity in store.entities()]
    old = [Community(f"c{n}", 0, tuple(sorted(ids[n::8])), "top") for n in range(8)] + [Community("top", 1, tuple(sorted(ids)))]
    new = [Community(f"c{n}", 0, tuple(sorted(ids[n::9])), "above") for n in range(9)] + [Community("above", 2, (), None, "t")]
    calls = []

    def fails_at_the_third(changed, stored):
        calls.append(changed)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return _statements(changed, stored)

    store.replace_communities(old)
    monkeypatch.setattr("resources.graph.cypher.communities._ROWS_A_TRANSACTION", 20)
    monkeypatch.setattr("resources.graph.cypher.communities._statements", fails_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        store.replace_communities(new)
    monkeypatch.undo()
    assert store.communities() not in (old, new)
    assert 0 < store.replace_communities(new) < len(new)
    assert store.communities() == sorted(new, key=lambda c: (c.level, c.id))
    assert store.replace_communities(new) == 0


@pytest.mark.slow
def test_three_levels_over_five_thousand_entities_are_written_quickly(falkordb):
    names = [f"n{n}" for n in range(5_000)]
    falkordb.replace_documents([document("d", Says("x", [(name, "p", 0.5) for name in names]))])
    ids = [f"e-{name}" for name in names]
    sizes = (10, 100, 1_000)
    made = [
        Community(
            f"{level}-{n}", level, tuple(sorted(ids[n * size : (n + 1) * size])), f"{level + 1}-{n // 10}" if level < 2 else None
        )
        for level, size in enumerate(sizes)
        for n in range(5_000 // size)
    ]
    start = time.perf_counter()
    assert falkordb.replace_communities(made) == len(made)
    assert time.perf_counter() - start < 5  # a second on a quiet machine
    assert falkordb.communities() == sorted(made, key=lambda c: (c.level, c.id))
