"""Conformance suites: what every store promises, as tests that the author of a backend runs on it.

They need pytest and hypothesis, and are imported by tests only.
"""

import pytest

pytest.register_assert_rewrite("resources.testing.graph_store", "resources.testing.text_store", "resources.testing.vector_store")
