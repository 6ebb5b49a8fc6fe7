"""What every graph store promises, as tests to run on a backend of your own.

In a test file of your package, with pytest and hypothesis installed::

    from resources.testing.graph_store import GraphStoreConformance

    class TestMyStore(GraphStoreConformance):
        @pytest.fixture
        def store(self, tmp_path):
            with MyStore.open(MyStore.options(), tmp_path) as store:
                yield store

``store`` gives an empty store to each test. A backend without Cypher also overrides the two methods of ``Inspection``.
"""

from typing import Any

import pytest

from resources.testing.graph_store.communities import CommunitiesConformance
from resources.testing.graph_store.documents import DocumentsConformance
from resources.testing.graph_store.search import SearchConformance
from resources.testing.graph_store.vectors import VectorsConformance
from resources.testing.graph_store.walks import WalksConformance


class GraphStoreConformance(
    DocumentsConformance, SearchConformance, WalksConformance, CommunitiesConformance, VectorsConformance
):
    """All promises of ``resources.graph.base.GraphStore``. Override the fixture ``store``."""

    @pytest.fixture
    def store(self) -> Any:
        raise NotImplementedError("Override the fixture store: it gives an empty graph store to each test.")
