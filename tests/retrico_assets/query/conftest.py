import pytest

from tests.support.query_world import small_world


@pytest.fixture
def world(tmp_path):
    made = small_world(tmp_path)
    yield made
    made.texts.close()
